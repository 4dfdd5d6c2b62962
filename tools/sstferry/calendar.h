// Times at which jobs run, in the form of systemd's OnCalendar (systemd.time,
// section 7 of the manual): "02:00", "Mon..Fri *-*-* 04:30", "*:0/15",
// "Sun 07:00 UTC", "daily".
#pragma once

#include <bitset>
#include <cstdint>
#include <ctime>
#include <optional>
#include <string>

#include "rocksdb/status.h"

namespace sstferry {

class Calendar {
 public:
  // Parses an expression. InvalidArgument: as in arguments.h.
  [[nodiscard]] static rocksdb::Status Parse(const std::string& what,
                                             const std::string& text,
                                             Calendar* out);

  // Returns the first time after `now`; nullopt: none in the next years, or the
  // zone is neither this machine's nor UTC.
  std::optional<std::time_t> NextAfter(std::time_t now) const;

  // Formats it as the five fields of cron(8). InvalidArgument: cron has no form
  // for it.
  [[nodiscard]] rocksdb::Status ToCron(const std::string& what,
                                       std::string* fields) const;

  // Returns "UTC", "Europe/Berlin"...; empty: the machine's.
  const std::string& zone() const { return zone_; }

 private:
  // Index: the value; an hour is 0 to 23, a weekday 0 (Sunday) to 6.
  using Values = std::bitset<256>;

  rocksdb::Status ParseParts(const std::string& text);
  bool HasDay(const std::tm& day) const;

  Values weekdays_;
  Values years_;  // since 1970
  Values months_;
  Values days_;
  bool days_from_end_ = false;  // 1 is the last day of the month
  Values hours_;
  Values minutes_;
  Values seconds_;
  std::string zone_;
  std::string text_;
};

}  // namespace sstferry
