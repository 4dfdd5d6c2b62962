// Decides whether carrying a file of the source is as good as rebuilding it.
// Pure functions: they open no files.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "format/limits.h"
#include "format/message/messages.h"
#include "format/sst/sst_footer.h"
#include "format/sst/sst_properties.h"
#include "format/sst/sst_reader.h"
#include "pipeline/read/table_file.h"
#include "rocksdb/comparator.h"
#include "rocksdb/options.h"

namespace sstferry {

// One live file of a family with keys in the requested interval.
struct FilePlan : TableFile {
  std::string name;  // "000042.sst"
  uint64_t bytes = 0;
  uint64_t entries = 0;
  uint64_t deletions = 0;  // of keys, of any kind
  uint64_t range_deletions = 0;
  bool is_block_based = false;
  std::string overlaps;  // a file whose keys meet this one's; empty: none
  bool inside = true;    // wholly inside the requested interval
  // Database id, session id and number of the file's creation; empty: unknown.
  std::string identity;
  bool flushed_by_snapshot = false;  // holds entries of the source's WALs
  // The decision. If carried: its bytes on the wire, and in `reason` the
  // differences from a rebuilt file. Else `reason` says why not.
  bool carry = false;
  uint64_t carried_bytes = 0;
  std::string reason;
};

// Properties of the tables that a rebuild makes.
struct TableShape {
  // Name of the filter's meta block; empty: none.
  std::string filter_block;
  std::string filter_policy;
  bool whole_key_filter = true;
  SstIndexType index_type = SstIndexType::kBinarySearch;
  uint8_t compression = 0;  // rocksdb::CompressionType
  int compression_level = 0;
  uint32_t dictionary_bytes = 0;
  std::string prefix_extractor;  // "nullptr": none
};

// Returns the properties of tables that SstFileWriter makes with these options.
TableShape ShapeOf(const rocksdb::Options& chunk_options);

struct CarryRules {
  CarryMode mode = CarryMode::kAuto;
  bool target_takes_carried = true;
  // Both sides can read marked blocks (values apart from keys, uniform keys).
  bool reads_marked_blocks = true;
  bool wal_not_flushed = false;
  bool plain_tables = false;  // family of plain tables, not cut between files
  bool replaces = false;      // refresh: files replace their intervals
  std::string own_session_id;  // of the snapshot's own database
  const rocksdb::Comparator* comparator = nullptr;
  uint32_t asked_format_version = 0;  // 0: any
  uint32_t max_format_version = 0;    // of the target
  std::set<uint8_t> compressions;     // of the target
  uint64_t max_bytes = kMaxChunkFileBytes;
  TableShape shape;
};

// Returns the obstacle to carrying a file in its metadata; empty: none.
std::string ObstacleInMetadata(const CarryRules& rules, const FilePlan& file);

// Returns the obstacle in a file's size, original or carried; empty: none.
std::string ObstacleInSize(const CarryRules& rules, uint64_t bytes);

// Facts from the end of a table file.
struct TableFacts {
  SstFooter footer;
  const SstProperties* properties = nullptr;
  const std::vector<SstMetaBlock>* meta_blocks = nullptr;
};

// Returns the obstacle to carrying a file in its table, for every mode; empty:
// none.
std::string ObstacleInTable(const CarryRules& rules, const TableFacts& table);

// Returns a difference from a rebuilt file, or a property that cannot be
// checked: kAuto then rebuilds the file, while kOnly carries it. Empty: no
// difference.
std::string DifferenceInTable(const CarryRules& rules,
                              const TableFacts& table);

}  // namespace sstferry
