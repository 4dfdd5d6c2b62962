// Lists the live files of a family, marks overlaps, and decides which are
// carried.
#pragma once

#include <functional>
#include <vector>

#include "pipeline/source/plan/carry_rules.h"
#include "rocksdb/db.h"

namespace sstferry {

// Lists all live files with keys in the interval, sorted by their smallest
// keys, with overlaps marked. Two files that share a user key overlap. The list
// is complete because the snapshot has no entries in memtables. *sorted_runs:
// maximum of iterators that one range merges.
std::vector<FilePlan> ListFiles(rocksdb::DB* db,
                                rocksdb::ColumnFamilyHandle* family,
                                const KeyInterval& interval,
                                uint32_t* sorted_runs);

// Marks overlapping files. REQUIRES: sorted by smallest keys.
void MarkOverlaps(const rocksdb::Comparator* comparator,
                  std::vector<FilePlan>* files);

struct TableSums {
  uint64_t merge_operands = 0;
  uint32_t max_format_version = 0;  // 0: no block-based table
};

// Opens each file once, adds to the sums and decides.
//   kSourceError, kCorrupt  a file cannot be read or its tail is damaged; the
//                           message names it
//   kRefused      with CarryMode::kOnly, for the first file with an obstacle
//   kCancelled    cancelled() (may be null) returned true
[[nodiscard]] rocksdb::Status DecideCarrying(
    const CarryRules& rules, const std::string& family_name,
    const std::function<bool()>& cancelled, TableSums* sums,
    std::vector<FilePlan>* files);

}  // namespace sstferry
