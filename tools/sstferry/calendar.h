// Times at which jobs run, in the form of systemd's OnCalendar (systemd.time,
// section 7 of the manual): "02:00", "Mon..Fri *-*-* 04:30", "*:0/15",
// "Sun 07:00 UTC", "daily".
#pragma once

#include <string>

#include "rocksdb/status.h"

namespace sstferry {

struct Calendar {
  std::string text;
  // The same times as the five fields of a crontab line, which has no time
  // zone; empty: cron cannot express them.
  std::string cron;
  std::string zone;  // "UTC", "Europe/Berlin"...; empty: the machine's zone
};

// Parses an expression. InvalidArgument: as in arguments.h.
[[nodiscard]] rocksdb::Status ParseCalendar(const std::string& what,
                                            const std::string& text,
                                            Calendar* out);

}  // namespace sstferry
