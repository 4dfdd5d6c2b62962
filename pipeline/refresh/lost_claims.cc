#include "pipeline/refresh/lost_claims.h"

#include <algorithm>
#include <vector>

namespace sstferry {
namespace {

// Returns the interval records that are not doubted, encoded and sorted.
std::vector<std::string> Believed(const ReplicaRecord& memory) {
  std::vector<std::string> believed;
  for (const IntervalRecord& interval_record : memory.intervals) {
    if (!interval_record.doubted) {
      IntervalRecords one{{interval_record}};
      one.intervals.front().family = 0;
      std::string text = memory.families[interval_record.family].name;
      text.push_back('\0');
      Encode(one, &text);
      believed.push_back(std::move(text));
    }
  }
  std::sort(believed.begin(), believed.end());
  return believed;
}

}  // namespace

std::string FindLost(const ReplicaRecord& told, const ReplicaRecord& now) {
  const std::vector<std::string> believed = Believed(now);
  for (const std::string& interval_record : Believed(told)) {
    if (!std::binary_search(believed.begin(), believed.end(),
                            interval_record)) {
      return "column family '" +
             interval_record.substr(0, interval_record.find('\0')) +
             "': its files have changed";
    }
  }
  for (const TargetFamily& family : now.families) {
    const bool is_new = std::none_of(
        told.families.begin(), told.families.end(),
        [&family](const TargetFamily& t) { return t.name == family.name; });
    if (is_new) {
      return "column family '" + family.name + "' was added";
    }
  }
  return "";
}

}  // namespace sstferry
