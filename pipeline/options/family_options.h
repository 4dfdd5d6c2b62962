// Builds RocksDB's option structs for a replica from descriptions of options
// (options_file.h) that a peer has sent. The peer is not trusted. There are
// three kinds of structs: the final options of the database, options to fill
// it, and options to build its chunks.
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
  // Table format_version that the operator requested. 0: uses the highest
  // version in the source's files.
  uint32_t format_version = 0;
  // Highest format_version in the source's files. 0: there are no files, or
  // only plain tables.
  uint32_t source_files_format_version = 0;
  // Highest format_version that two RocksDBs can read: the linked one, and that
  // of the application that will open the database.
  uint32_t max_format_version = kMaxTableFormatVersion;
  // Two facts about how the target's RocksDB ingests files.
  bool universal_ingests_to_last_level = kUniversalIngestsToLastLevel;
  bool fifo_ingests_to_level0 = kFifoIngestsToLevel0;
  // Block cache for all options that are built. Null: each family gets a small
  // cache of its own.
  std::shared_ptr<rocksdb::Cache> cache;
};

struct BuiltFamily {
  // Final options of the family, as in the source's OPTIONS.
  rocksdb::ColumnFamilyOptions final_options;
  // Options while the family is filled: no compaction, small memtables, and
  // index and filter blocks in a small cache. If ingestion requires it, the
  // compaction style is leveled.
  rocksdb::ColumnFamilyOptions pull_options;
  uint32_t format_version = 0;  // format_version of the chunks
  // True if all files stay in level 0, because the style is FIFO or there is
  // only one level.
  bool keeps_level0 = false;
  // Options that were omitted or changed, each with the reason.
  std::vector<std::string> notes;
  // Features that the family loses in this pull and that a clone would keep.
  // Does not include options in `notes`.
  std::vector<std::string> advice;
};

// Builds all options of one family. Error messages contain the name of the
// family and the reason:
//   NotSupported (kRefused)          timestamps, a FIFO family where RocksDB
//                                    cannot ingest into FIFO families, a table
//                                    format that is neither block-based nor
//                                    plain
//   InvalidArgument (kIncompatible)  comparator missing in this process, a
//                                    compaction style or checksum that this
//                                    RocksDB does not know, a requested
//                                    format_version that cannot be read
[[nodiscard]] rocksdb::Status BuildFamily(const FamilyDescription& description,
                                          const OperatorRegistry& registry,
                                          const BuildLimits& limits,
                                          BuiltFamily* out);

// Builds the options with which SstFileWriter writes a family's chunks. They
// are the family's options with these changes:
// - `format_version` is used, and caches, flush and compaction settings are
//   omitted.
// - Dictionary buffering is limited, because SstFileWriter would otherwise keep
//   a complete chunk in memory.
// - If the family's last level has no filters, chunks have none, either.
// - Blocks are marked (kReadsMarkedBlocks) only with `marked_blocks`.
// - The kind of checksum is one that `application` can read, if it is known.
//
// The caller sets env.
//   InvalidArgument (kIncompatible)  format_version out of range
//   NotSupported (kRefused)          the table factory is neither block-based
//                                    nor plain
[[nodiscard]] rocksdb::Status ChunkOptions(
    const rocksdb::ColumnFamilyOptions& family, uint32_t format_version,
    const RocksDbRelease& application, bool marked_blocks,
    rocksdb::Options* out);

}  // namespace sstferry
