#include "pipeline/target/memory/listed_ranges.h"

#include <algorithm>
#include <map>
#include <utility>

namespace sstferry {
namespace {

using rocksdb::Comparator;
using rocksdb::Status;

std::string Shown(const FamilyRange& range) {
  const auto text = [](const std::optional<std::string>& key) {
    return key ? "'" + KeyToText(*key) + "'" : std::string("none");
  };
  return "column family '" + range.column_family + "', " +
         text(range.interval.begin) + " to " + text(range.interval.end);
}

const Comparator* OrderOf(const std::vector<JudgedFamily>& families,
                          const std::string& name) {
  for (const JudgedFamily& family : families) {
    if (family.name == name) {
      return family.order;
    }
  }
  return nullptr;
}

// REQUIRES: ranges of one family. Joins those that meet.
std::vector<FamilyRange> Joined(std::vector<FamilyRange> ranges,
                                const Comparator* order) {
  std::sort(ranges.begin(), ranges.end(),
            [order](const FamilyRange& a, const FamilyRange& b) {
              const auto& left = a.interval.begin;
              const auto& right = b.interval.begin;
              return right && (!left || order->Compare(*left, *right) < 0);
            });
  std::vector<FamilyRange> joined;
  for (FamilyRange& range : ranges) {
    if (!joined.empty()) {
      std::optional<std::string>& end = joined.back().interval.end;
      if (!end || !range.interval.begin ||
          order->Compare(*range.interval.begin, *end) <= 0) {
        const std::optional<std::string>& other = range.interval.end;
        if (end && (!other || order->Compare(*end, *other) < 0)) {
          end = other;
        }
        continue;
      }
    }
    joined.push_back(std::move(range));
  }
  return joined;
}

}  // namespace

Status SortRanges(std::vector<FamilyRange> ranges,
                  const std::vector<JudgedFamily>& families,
                  std::vector<FamilyRange>* sorted) {
  std::map<std::string, std::vector<FamilyRange>> by_family;
  for (FamilyRange& range : ranges) {
    const Comparator* const order = OrderOf(families, range.column_family);
    const KeyInterval& interval = range.interval;
    if (order != nullptr && interval.begin && interval.end &&
        order->Compare(*interval.begin, *interval.end) >= 0) {
      return MakeStatus(EndState::kRefused,
                        "listed range: expected a begin before its end, found " +
                            Shown(range) + "; list the ranges that sstferry "
                            "verify --json reports");
    }
    by_family[range.column_family].push_back(std::move(range));
  }
  sorted->clear();
  for (auto& [name, of_family] : by_family) {
    const Comparator* const order = OrderOf(families, name);
    std::vector<FamilyRange> joined;
    if (order == nullptr) {
      joined.push_back({name, {}});
    } else {
      joined = Joined(std::move(of_family), order);
    }
    sorted->insert(sorted->end(), std::make_move_iterator(joined.begin()),
                   std::make_move_iterator(joined.end()));
  }
  return Status::OK();
}

void TellRanges(const std::vector<FamilyRange>& sorted, TargetMemory* memory) {
  memory->covers.clear();
  memory->source_record.clear();
  for (uint32_t i = 0; i < memory->families.size(); ++i) {
    for (const FamilyRange& range : sorted) {
      if (range.column_family == memory->families[i].name) {
        Cover cover;
        cover.family = i;
        cover.interval = range.interval;
        memory->covers.push_back(std::move(cover));
      }
    }
  }
}

bool IsPlanOf(const std::vector<FamilyRange>& sorted,
              const JournalState& journal) {
  // Neighbouring ranges of the plan are parts of one that was listed.
  std::map<std::string, std::vector<KeyInterval>> planned;
  const Range* before = nullptr;
  for (const Range& range : journal.ranges) {
    if (range.need == RangeNeed::kUnchanged) {
      before = nullptr;
      continue;
    }
    std::vector<KeyInterval>& of_family =
        planned[journal.families[range.family].description.name];
    if (before != nullptr && before->family == range.family) {
      of_family.back().end = range.interval.end;
    } else {
      of_family.push_back(range.interval);
    }
    before = &range;
  }
  std::map<std::string, std::vector<KeyInterval>> listed;
  for (const FamilyRange& range : sorted) {
    listed[range.column_family].push_back(range.interval);
  }
  return planned == listed;
}

}  // namespace sstferry
