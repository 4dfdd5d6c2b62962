#include "pipeline/archive/retention.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>

namespace sstferry {
namespace {

int64_t DayOf(const SetName& set) {
  return static_cast<int64_t>(set.seconds / 86400);
}

int64_t WeekOf(const SetName& set) {
  return (DayOf(set) + 3) / 7;  // 1970 began on a Thursday
}

int64_t MonthOf(const SetName& set) {
  const std::chrono::year_month_day date{
      std::chrono::sys_days(std::chrono::days(DayOf(set)))};
  return static_cast<int>(date.year()) * 12 +
         static_cast<int64_t>(static_cast<unsigned>(date.month()));
}

}  // namespace

std::map<SetName, std::string> ChooseKept(const std::vector<SetName>& sets,
                                          const Retention& retention) {
  std::vector<SetName> newest = sets;
  std::sort(newest.begin(), newest.end(), std::greater<>());
  std::map<SetName, std::string> kept;
  const auto keep = [&kept](const SetName& set, const std::string& why) {
    std::string& all = kept[set];
    all += (all.empty() ? "" : ", ") + why;
  };
  if (!newest.empty()) {
    keep(newest.front(), "the newest whole set");
  }
  for (size_t i = 0; i < newest.size() && i < retention.last; ++i) {
    keep(newest[i], "--keep-last " + std::to_string(retention.last));
  }
  const auto keep_each = [&](const char* option, uint32_t count,
                             int64_t (*period)(const SetName&)) {
    const std::string why = option + std::to_string(count);
    std::optional<int64_t> before;
    for (const SetName& set : newest) {
      if (before == period(set)) {
        continue;
      }
      if (count == 0) {
        return;
      }
      --count;
      before = period(set);
      keep(set, why);
    }
  };
  keep_each("--keep-daily ", retention.daily, DayOf);
  keep_each("--keep-weekly ", retention.weekly, WeekOf);
  keep_each("--keep-monthly ", retention.monthly, MonthOf);
  return kept;
}

}  // namespace sstferry
