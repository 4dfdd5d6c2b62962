#include "pipeline/pull/plan_check.h"

#include <optional>
#include <set>
#include <string>

#include "format/end_state.h"
#include "rocksdb/db.h"

namespace sstferry {
namespace {

std::string FamilyName(const Family& family) {
  return "column family '" + family.description.name + "'";
}

}  // namespace

using rocksdb::Status;

Status CheckFamilies(const Plan& plan,
                     const std::vector<std::string>& asked) {
  std::set<std::string> names;
  for (const Family& family : plan.families) {
    if (!names.insert(family.description.name).second) {
      return MakeStatus(EndState::kCorrupt,
                        "plan: " + FamilyName(family) + " appears twice");
    }
  }
  if (asked.empty() ? names.count(rocksdb::kDefaultColumnFamilyName) == 0
                    : names != std::set<std::string>(asked.begin(),
                                                     asked.end())) {
    return MakeStatus(EndState::kCorrupt,
                      "the plan's " + std::to_string(names.size()) +
                          " column families are not the requested ones");
  }
  return Status::OK();
}

Status CheckTiling(const Plan& plan, const KeyInterval& interval,
                   const std::vector<const rocksdb::Comparator*>& orders) {
  size_t at = 0;
  for (const Family& family : plan.families) {
    const rocksdb::Comparator* order = orders[family.index];
    std::optional<std::string> next = interval.begin;
    const size_t first = at;
    for (; at < plan.parts.size() &&
           plan.parts[at].family == family.index; ++at) {
      const KeyInterval& piece = plan.parts[at].interval;
      const bool starts = piece.begin == next && (at == first || next);
      const bool ascends = !piece.begin || !piece.end ||
                           order->Compare(*piece.begin, *piece.end) < 0;
      if (!starts || !ascends) {
        return MakeStatus(EndState::kCorrupt,
                          "plan: part " + std::to_string(at) + " of " +
                              FamilyName(family) +
                              " does not begin where the previous part ends");
      }
      next = piece.end;
    }
    if (at == first || next != interval.end) {
      return MakeStatus(EndState::kCorrupt,
                        "plan: the parts of " + FamilyName(family) +
                            " do not cover the requested keys");
    }
  }
  if (at != plan.parts.size()) {
    return MakeStatus(EndState::kCorrupt,
                      "plan: the parts are not in the order of the column "
                      "families");
  }
  return Status::OK();
}

}  // namespace sstferry
