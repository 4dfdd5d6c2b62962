// When carrying a file of the source is exactly as good as rebuilding it.
// Pure decisions: nothing here opens anything.
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
#include "rocksdb/comparator.h"
#include "rocksdb/options.h"

namespace sstferry {

// One live file of a family that holds keys of the asked interval.
struct FilePlan {
  std::string name;      // "000042.sst"
  std::string path;
  std::string smallest;  // user keys, range deletions counted
  std::string largest;
  uint64_t bytes = 0;
  uint64_t entries = 0;
  uint64_t smallest_sequence = 0;
  uint64_t largest_sequence = 0;
  // Of two files that overlap, the one with the smaller depth is read first:
  // it lies in a higher level, or is the newer one of level 0.
  uint64_t depth = 0;
  bool has_blobs = false;
  std::string overlaps;  // a file whose keys meet this one's; empty: none
  bool inside = true;    // wholly inside the asked interval
  // Database id, session id and number of its making; empty: not all known.
  std::string identity;
  bool flushed_by_snapshot = false;  // holds what was in the source's WAL
  // The decision. Carried: its bytes on the wire and, in `reason`, what
  // differs from a rebuilt file. Else: why not.
  bool carry = false;
  uint64_t carried_bytes = 0;
  std::string reason;
};

// What a table that the target would build looks like.
struct TableShape {
  // Name of the filter's meta block, empty: none.
  std::string filter_block;
  std::string filter_policy;
  bool whole_key_filter = true;
  SstIndexType index_type = SstIndexType::kBinarySearch;
  uint8_t compression = 0;  // rocksdb::CompressionType
  int compression_level = 0;
  uint32_t dictionary_bytes = 0;
  std::string prefix_extractor;  // "nullptr": none
};

// Of the tables SstFileWriter makes with these options.
TableShape ShapeOf(const rocksdb::Options& chunk_options);

struct CarryRules {
  CarryMode mode = CarryMode::kAuto;
  bool target_takes_carried = true;
  // Values apart from keys, uniform keys: both ends know them.
  bool reads_marked_blocks = true;
  bool wal_not_flushed = false;
  bool plain_tables = false;  // the family's; it cannot be cut between files
  bool replaces = false;      // of a refresh: files clear their intervals
  std::string own_session_id;  // of the database that the snapshot opened
  const rocksdb::Comparator* comparator = nullptr;
  uint32_t asked_format_version = 0;  // 0: any
  uint32_t max_format_version = 0;    // that the target reads
  std::set<uint8_t> compressions;     // that the target has
  uint64_t max_bytes = kMaxChunkFileBytes;
  TableShape shape;
};

// What its metadata says against carrying a file; empty: nothing.
std::string ObstacleInMetadata(const CarryRules& rules, const FilePlan& file);

// What its size says: as it lies there, or as it would be carried.
std::string ObstacleInSize(const CarryRules& rules, uint64_t bytes);

// What is read of a table's end.
struct TableFacts {
  SstFooter footer;
  const SstProperties* properties = nullptr;
  const std::vector<SstMetaBlock>* meta_blocks = nullptr;
};

// What its table says against carrying a file, whatever the mode; empty:
// nothing.
std::string ObstacleInTable(const CarryRules& rules, const TableFacts& table);

// How it differs from what the target would build, or cannot be checked:
// enough for kAuto to rebuild it, while kOnly carries it. Empty: in nothing.
std::string DifferenceInTable(const CarryRules& rules,
                              const TableFacts& table);

}  // namespace sstferry
