// Builds the options for opening a private copy: those of the source's OPTIONS
// file, so that RocksDB understands the files, but without settings that would
// write outside the copy, compact, cache without limit, or fail because of what
// recovery finds.
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

// How one column family of the private copy is opened.
struct FamilyOpening {
  std::string name;
  bool wanted = false;
  rocksdb::ColumnFamilyOptions source;  // from OPTIONS
  rocksdb::ColumnFamilyOptions open;    // for the private copy
  // Names in OPTIONS that neither RocksDB nor the registry knows.
  std::string unknown_comparator;
  std::string unknown_merge_operator;
};

// How the private copy is opened.
struct OpenPlan {
  rocksdb::DBOptions db;
  std::vector<FamilyOpening> families;  // all families of the MANIFEST
  bool atomic_flush = false;     // the source's setting
  bool paranoid_checks = true;   // the source's setting
  // A family that is not wanted cannot be opened. So only the wanted families
  // are opened, read-only.
  bool read_only = false;
  std::string read_only_reason;
  std::vector<std::string> notes;
};

struct OpenLimits {
  uint64_t write_buffer_bytes = 0;  // all families together
  int max_open_files = 0;
};

// Plans how to open the database with MANIFEST `state` and OPTIONS
// `options_text`, which is empty if the source has no OPTIONS file; messages
// contain `options_name`. An empty `wanted` means all families. A family that
// OPTIONS do not describe gets default options, and plan->notes says so.
//   kRefused  a wanted family does not exist, has a comparator that this
//             process does not have, or uses user-defined timestamps; or
//             OPTIONS cannot be parsed (a refusal of chunks: a clone is
//             possible). RocksDB reads only the newest OPTIONS file and fails,
//             even if an older one is whole.
[[nodiscard]] rocksdb::Status PlanOpening(
    const ManifestState& state, const std::string& options_text,
    const std::string& options_name,
    const std::vector<std::string>& wanted, const OperatorRegistry& registry,
    const OpenLimits& limits, OpenPlan* plan);

// Limits the memtables to the WAL bytes that RocksDB will replay into them.
void BoundWriteBuffers(uint64_t wal_bytes, const OpenLimits& limits,
                       OpenPlan* plan);

}  // namespace sstferry
