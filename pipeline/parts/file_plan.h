// Lists the live files of a family and reads their properties.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "format/types.h"
#include "pipeline/parts/table_file.h"
#include "rocksdb/db.h"
#include "rocksdb/status.h"

namespace sstferry {

// One live file of a family with keys in the requested interval.
struct FilePlan : TableFile {
  std::string name;  // "000042.sst"
  uint64_t bytes = 0;
  uint64_t entries = 0;
  // ReadProperties() sets the members below. They stay zero for a file that is
  // not a block-based table.
  uint64_t deletions = 0;  // deletions of any kind in the table
  bool is_block_based = false;
};

// Lists all live files with keys in the interval, sorted by their smallest
// keys. REQUIRES: the memtables are empty, as in a snapshot, so that the files
// have all entries. Sets *sorted_runs to the maximum number of sorted runs that
// a read of one part merges. Each file of level 0 is a sorted run; any other
// level is one run.
std::vector<FilePlan> ListFiles(rocksdb::DB* db,
                                rocksdb::ColumnFamilyHandle* family,
                                const KeyInterval& interval,
                                uint32_t* sorted_runs);

// Totals over the tables of a family.
struct TableSums {
  uint64_t merge_operands = 0;
  uint32_t max_format_version = 0;  // 0: no block-based table
};

// Reads the properties of each file into its FilePlan, and adds them to *sums.
// Opens each file once.
//   kSourceError, kCorrupt  a file cannot be read, or its end, which has the
//                           properties, is damaged; the message names the file
//   kCancelled              `cancelled` (may be null) returned true
[[nodiscard]] rocksdb::Status ReadProperties(
    const std::function<bool()>& cancelled, TableSums* sums,
    std::vector<FilePlan>* files);

}  // namespace sstferry
