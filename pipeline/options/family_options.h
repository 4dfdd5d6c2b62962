// Builds RocksDB's option structs from descriptions of options
// (options_file.h), which an untrusted peer sent: the final options of a
// database, the options for filling it, and those for building its chunks.
//
// All functions may be called from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "format/messages.h"
#include "pipeline/base/rocksdb_compat.h"
#include "pipeline/options/operators.h"
#include "rocksdb/cache.h"
#include "rocksdb/options.h"
#include "rocksdb/status.h"

namespace sstferry {

struct BuildLimits {
  // Requested by the operator; 0: the highest in the source's files.
  uint32_t format_version = 0;
  // Highest in the source's files; 0: no files (or only plain tables).
  uint32_t source_files_format_version = 0;
  // Highest that both the linked RocksDB and the application that will open the
  // database can read.
  uint32_t max_format_version = kMaxTableFormatVersion;
  // The way in which the RocksDB that opens the target ingests.
  bool universal_ingests_to_last_level = kUniversalIngestsToLastLevel;
  bool fifo_ingests_to_level0 = kFifoIngestsToLevel0;
  // Block cache for all built options; null: each family gets a small one.
  std::shared_ptr<rocksdb::Cache> cache;
};

struct BuiltFamily {
  // Final options of the family, as in the source's OPTIONS.
  rocksdb::ColumnFamilyOptions final_options;
  // Options for the transfer: no compaction, small memtables, index and filter
  // blocks inside the small cache, leveled style if ingestion needs it.
  rocksdb::ColumnFamilyOptions pull_options;
  uint32_t format_version = 0;  // of the chunks
  // Files stay in level 0 (FIFO, or only one level).
  bool keeps_level0 = false;
  // Omitted or changed options, each with the reason.
  std::vector<std::string> notes;
  // Other features that the family loses and a clone would keep.
  std::vector<std::string> advice;
};

// Builds all options of one family. Errors name the family and the obstacle:
//   NotSupported (kRefused)          timestamps, a FIFO family where RocksDB
//                                    cannot ingest into one, a table format
//                                    that is neither block-based nor plain
//   InvalidArgument (kIncompatible)  comparator missing in this process, a
//                                    compaction style or checksum that this
//                                    RocksDB does not know, a requested
//                                    format_version that cannot be read
[[nodiscard]] rocksdb::Status BuildFamily(const FamilyDescription& description,
                                          const OperatorRegistry& registry,
                                          const BuildLimits& limits,
                                          BuiltFamily* out);

// Derives the options of SstFileWriter for this family's chunks from the
// family's own: the given format_version, no caches, no settings of flushes and
// compactions, and limited buffering for dictionaries (SstFileWriter would
// otherwise keep a whole chunk in memory). Chunks have no filters if the family
// builds its last level without them. They have marked blocks
// (kReadsMarkedBlocks) only with `marked_blocks`, and checksums that
// `application` reads, if it is known. The caller sets env.
//   InvalidArgument (kIncompatible)  format_version out of range
//   NotSupported (kRefused)          no block-based or plain table factory
[[nodiscard]] rocksdb::Status ChunkOptions(
    const rocksdb::ColumnFamilyOptions& family, uint32_t format_version,
    const RocksDbRelease& application, bool marked_blocks,
    rocksdb::Options* out);

}  // namespace sstferry
