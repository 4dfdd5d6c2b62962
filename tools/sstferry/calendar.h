// Parses the times at which jobs run. They have the form of OnCalendar= in a
// systemd timer, see systemd.time(7): "02:00", "Mon..Fri *-*-* 04:30",
// "*:0/15", "Sun 07:00 UTC" or "daily".
#pragma once

#include <string>

#include "rocksdb/status.h"

namespace sstferry {

struct Calendar {
  std::string text;
  // The same times as the five time fields of a crontab line, without the time
  // zone. Empty if cron cannot express the times.
  std::string cron;
  std::string zone;  // "UTC", "Europe/Berlin"...; the machine's zone if empty
};

// Parses `text`. Returns InvalidArgument, with a message as in arguments.h, if
// `text` does not have the form above. `what` is the name in the message.
[[nodiscard]] rocksdb::Status ParseCalendar(const std::string& what,
                                            const std::string& text,
                                            Calendar* out);

}  // namespace sstferry
