// The live files of a family: which there are, which overlap, which are
// carried.
#pragma once

#include <functional>
#include <vector>

#include "pipeline/source/plan/carry_rules.h"
#include "rocksdb/db.h"

namespace sstferry {

// All live files that hold keys of the interval (the snapshot holds nothing in
// memtables, so metadata is the whole truth), sorted by their smallest keys,
// with overlaps marked: two files that share one user key overlap.
// *sorted_runs: most iterators one range may merge.
std::vector<FilePlan> ListFiles(rocksdb::DB* db,
                                rocksdb::ColumnFamilyHandle* family,
                                const KeyInterval& interval,
                                uint32_t* sorted_runs);

// Marks what overlaps. REQUIRES: sorted by smallest keys.
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
//   kCancelled    cancelled() said so (may be null)
[[nodiscard]] rocksdb::Status DecideCarrying(
    const CarryRules& rules, const std::string& family_name,
    const std::function<bool()>& cancelled, TableSums* sums,
    std::vector<FilePlan>* files);

}  // namespace sstferry
