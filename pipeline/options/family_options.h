// From descriptions of options (options_file.h), which a peer sent and nobody
// vouches for, to RocksDB's option structs: those a database is left with,
// those it is filled with, and those chunks are built with.
//
// All functions may be called from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "format/message/messages.h"
#include "pipeline/base/rocksdb_compat.h"
#include "pipeline/options/operators.h"
#include "rocksdb/cache.h"
#include "rocksdb/options.h"
#include "rocksdb/status.h"

namespace sstferry {

struct BuildLimits {
  // What the operator asked for; 0: the highest in the source's files.
  uint32_t format_version = 0;
  // The highest in the source's files; 0: it has none (or only plain tables).
  uint32_t source_files_format_version = 0;
  // What both ends can read.
  uint32_t max_format_version = kMaxTableFormatVersion;
  // How ingestion of the RocksDB that opens the target behaves.
  bool universal_ingests_to_last_level = kUniversalIngestsToLastLevel;
  bool fifo_ingests_to_level0 = kFifoIngestsToLevel0;
  // The block cache of all options built; null: each family gets a small one.
  std::shared_ptr<rocksdb::Cache> cache;
};

struct BuiltFamily {
  // What the application finds in OPTIONS afterwards: the source's.
  rocksdb::ColumnFamilyOptions final_options;
  // While data arrives: no compaction, small memtables, index and filter
  // blocks inside the small cache, leveled where ingestion needs it.
  rocksdb::ColumnFamilyOptions pull_options;
  uint32_t format_version = 0;  // of the chunks
  bool keeps_level0 = false;    // FIFO, or one level: files stay in level 0
  // Options dropped or changed, each with the reason.
  std::vector<std::string> notes;
};

// Errors name the family and what stands against it:
//   NotSupported (kRefused)          timestamps, a FIFO family where RocksDB
//                                    cannot ingest into one, a table format
//                                    that is neither block-based nor plain
//   InvalidArgument (kIncompatible)  comparator or compression missing here,
//                                    a value out of bounds, a format_version
//                                    asked for that cannot be read
[[nodiscard]] rocksdb::Status BuildFamily(const FamilyDescription& description,
                                          const OperatorRegistry& registry,
                                          const BuildLimits& limits,
                                          BuiltFamily* out);

// The database's own options, as they shall stand in OPTIONS afterwards. A
// pull opens with smaller ones (max_open_files above all) and restores these
// by a reopen, or by SetDBOptions where ChangesTo() says so.
//   InvalidArgument (kIncompatible)  as BuildFamily
[[nodiscard]] rocksdb::Status BuildDatabaseOptions(
    const std::vector<NamedValue>& description, rocksdb::DBOptions* out,
    std::vector<std::string>* notes);

// The options SstFileWriter builds this family's chunks with, from the
// family's own: the given format_version, no caches, nothing of flushes and
// compactions, dictionary buffering bounded (SstFileWriter would otherwise
// keep a whole chunk in memory). Where the family builds its last level
// without filters, so are its chunks. Marked blocks (kReadsMarkedBlocks) only
// where the target reads them. The caller sets env.
//   InvalidArgument (kIncompatible)  format_version out of range
//   NotSupported (kRefused)          no block-based or plain table factory
[[nodiscard]] rocksdb::Status ChunkOptions(
    const rocksdb::ColumnFamilyOptions& family, uint32_t format_version,
    bool marked_blocks, rocksdb::Options* out);

// What leads from one set of options to another.
struct OptionChanges {
  std::vector<NamedValue> settable;       // by SetOptions or SetDBOptions
  std::vector<std::string> need_reopen;   // names that only an open can change
};

[[nodiscard]] rocksdb::Status ChangesTo(
    const rocksdb::ColumnFamilyOptions& from,
    const rocksdb::ColumnFamilyOptions& to, OptionChanges* out);
[[nodiscard]] rocksdb::Status ChangesTo(const rocksdb::DBOptions& from,
                                        const rocksdb::DBOptions& to,
                                        OptionChanges* out);

}  // namespace sstferry
