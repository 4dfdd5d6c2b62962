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
  return (DayOf(set) + 3) / 7;  // 1970 began with a Thursday
}

int64_t MonthOf(const SetName& set) {
  const std::chrono::year_month_day date{
      std::chrono::sys_days(std::chrono::days(DayOf(set)))};
  return static_cast<int>(date.year()) * 12 +
         static_cast<int64_t>(static_cast<unsigned>(date.month()));
}

}  // namespace

std::set<SetName> ChooseKept(const std::vector<SetName>& sets,
                             const Retention& retention) {
  std::vector<SetName> newest = sets;
  std::sort(newest.begin(), newest.end(), std::greater<>());
  std::set<SetName> kept;
  for (size_t i = 0;
       i < newest.size() && i < std::max<size_t>(retention.last, 1); ++i) {
    kept.insert(newest[i]);
  }
  const auto keep_each = [&](uint32_t count, int64_t (*period)(const SetName&)) {
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
      kept.insert(set);
    }
  };
  keep_each(retention.daily, DayOf);
  keep_each(retention.weekly, WeekOf);
  keep_each(retention.monthly, MonthOf);
  return kept;
}

}  // namespace sstferry
