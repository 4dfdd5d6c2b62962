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
  // ReadProperties() sets the members below; they stay zero for a table that is
  // not block-based.
  uint64_t deletions = 0;  // number of deletions of any kind in the properties
  bool is_block_based = false;
};

// Lists all live files with keys in the interval, sorted by their smallest
// keys. The list is complete because the snapshot has no entries in memtables.
// Sets *sorted_runs to the maximum number of sorted runs that one part merges:
// each file of level 0 is a run, and so is each other level.
std::vector<FilePlan> ListFiles(rocksdb::DB* db,
                                rocksdb::ColumnFamilyHandle* family,
                                const KeyInterval& interval,
                                uint32_t* sorted_runs);

// Sums and maxima of the properties of all files.
struct TableSums {
  uint64_t merge_operands = 0;
  uint32_t max_format_version = 0;  // 0: no block-based table
};

// Opens each file once, fills its FilePlan from its properties and adds to the
// sums.
//   kSourceError, kCorrupt  a file cannot be read or its end is damaged; the
//                           message names it
//   kCancelled    `cancelled` (may be null) returned true
[[nodiscard]] rocksdb::Status ReadProperties(
    const std::function<bool()>& cancelled, TableSums* sums,
    std::vector<FilePlan>* files);

}  // namespace sstferry
