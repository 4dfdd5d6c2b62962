// Builds the options to open a private copy. They are the options in the
// source's OPTIONS file, so that RocksDB understands the files, but without
// settings that would write outside the copy, compact, use unlimited cache, or
// fail on what recovery finds.
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
  // Names in OPTIONS that are unknown to both RocksDB and the registry.
  std::string unknown_comparator;
  std::string unknown_merge_operator;
};

// How the private copy is opened.
struct OpenPlan {
  rocksdb::DBOptions db;
  std::vector<FamilyOpening> families;  // all families of the MANIFEST
  bool atomic_flush = false;     // the source's setting
  bool paranoid_checks = true;   // the source's setting
  // True if an unwanted family cannot be opened. Then only the wanted families
  // are opened, read-only.
  bool read_only = false;
  std::string read_only_reason;
  std::vector<std::string> notes;
};

struct OpenLimits {
  uint64_t write_buffer_bytes = 0;  // sum over all families
  int max_open_files = 0;
};

// Plans how to open the database with MANIFEST `state` and OPTIONS
// `options_text`, which is empty if the source has no OPTIONS file; messages
// contain `options_name`. An empty `wanted` means all families. A family that
// OPTIONS do not describe gets default options, and a note in plan->notes.
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

// Limits the memtables' size to the WAL bytes that RocksDB will replay.
void BoundWriteBuffers(uint64_t wal_bytes, const OpenLimits& limits,
                       OpenPlan* plan);

}  // namespace sstferry
