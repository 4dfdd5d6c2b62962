// Builds RocksDB's option structs from descriptions of options (options_file.h)
// that an untrusted peer sent. The structs are a database's final options, the
// options to fill the database, and the options to build its chunks.
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
  // Requested by the operator; 0: use the highest version in the source's
  // files.
  uint32_t format_version = 0;
  // Highest version in the source's files; 0: no files (or only plain tables).
  uint32_t source_files_format_version = 0;
  // Highest version that both the linked RocksDB and the application that will
  // open the database can read.
  uint32_t max_format_version = kMaxTableFormatVersion;
  // How the RocksDB that opens the target ingests files.
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
  uint32_t format_version = 0;  // of the chunks to build
  // All files stay in level 0 (FIFO, or only one level).
  bool keeps_level0 = false;
  // Omitted or changed options, each with the reason.
  std::vector<std::string> notes;
  // Other features that the family loses in this pull but would keep in a
  // clone.
  std::vector<std::string> advice;
};

// Builds all options of one family. Error messages contain the family and the
// reason:
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

// Derives the SstFileWriter options for a family's chunks from the family's
// options: with the given format_version, without caches, and without flush or
// compaction settings. Limits dictionary buffering, because SstFileWriter would
// otherwise keep a complete chunk in memory. Chunks have no filters if the
// family builds its last level without filters. They have marked blocks
// (kReadsMarkedBlocks) only with `marked_blocks`, and a kind of checksum that
// `application`, if known, can read. The caller sets env.
//   InvalidArgument (kIncompatible)  format_version out of range
//   NotSupported (kRefused)          the table factory is neither block-based
//                                    nor plain
[[nodiscard]] rocksdb::Status ChunkOptions(
    const rocksdb::ColumnFamilyOptions& family, uint32_t format_version,
    const RocksDbRelease& application, bool marked_blocks,
    rocksdb::Options* out);

}  // namespace sstferry
