// Builds the options to open a private copy of a database. RocksDB needs the
// options in the source's OPTIONS file to understand the files. But some
// settings are replaced: those that would write outside the copy, compact, use
// unlimited cache, or make recovery fail.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "format/rocksdb/manifest_reader.h"
#include "rocksdb/cache.h"
#include "rocksdb/db.h"
#include "rocksdb/options.h"
#include "sstferry/options.h"

namespace sstferry {

// Options to open one column family of the private copy.
struct FamilyOpening {
  std::string name;
  bool wanted = false;
  rocksdb::ColumnFamilyOptions source;  // options in OPTIONS
  rocksdb::ColumnFamilyOptions open;    // options of the private copy
  // Names in OPTIONS that neither RocksDB nor the registry of the application
  // knows.
  std::string unknown_comparator;
  std::string unknown_merge_operator;
};

// Options to open the private copy.
struct OpenPlan {
  rocksdb::DBOptions db;
  std::vector<FamilyOpening> families;  // all families of the MANIFEST
  bool atomic_flush = false;     // the source's setting
  bool paranoid_checks = true;   // the source's setting
  // True if a family that the caller does not want cannot be opened. Then the
  // copy is opened read-only, with only the wanted families.
  bool read_only = false;
  std::string read_only_reason;
  std::vector<std::string> notes;
};

struct OpenLimits {
  uint64_t write_buffer_bytes = 0;  // sum over all families
  int max_open_files = 0;
};

// Decides how to open a database. `state` is that of its MANIFEST.
// `options_text` is the text of its OPTIONS file, or empty if there is none,
// and `options_name` is the file's name for messages. If `wanted` is empty, all
// families are wanted. A family that OPTIONS do not describe gets default
// options, and plan->notes gets a note.
//   kRefused  a wanted family does not exist, has a comparator that this
//             process lacks, or uses user-defined timestamps; or OPTIONS cannot
//             be parsed (then chunks are refused, but a clone is possible).
//             RocksDB reads only the newest OPTIONS file and fails even if an
//             older file is intact.
[[nodiscard]] rocksdb::Status PlanOpening(
    const ManifestState& state, const std::string& options_text,
    const std::string& options_name,
    const std::vector<std::string>& wanted, const OperatorRegistry& registry,
    const OpenLimits& limits, OpenPlan* plan);

// Makes memtables smaller if RocksDB will replay only `wal_bytes` bytes of
// WALs.
void BoundWriteBuffers(uint64_t wal_bytes, const OpenLimits& limits,
                       OpenPlan* plan);

}  // namespace sstferry
