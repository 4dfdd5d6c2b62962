// The plan of a transfer: what it moves, and how. Constant once it is made.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "format/digest.h"
#include "format/plan.h"
#include "format/release.h"
#include "pipeline/options/unknown_options.h"
#include "pipeline/parts/planner.h"
#include "pipeline/serve/refresh_at_source.h"
#include "rocksdb/options.h"

namespace sstferry {

// Files of one family that are merged without RocksDB: bounds the memory of the
// list, some hundred bytes a file.
inline constexpr size_t kMaxMergedFiles = 20000;

// A column family at the source.
struct TransferFamily {
  uint32_t index = 0;  // in Plan::families
  rocksdb::ColumnFamilyHandle* handle = nullptr;
  rocksdb::Options chunk_options;
  uint64_t readahead_bytes = 0;
  FamilyPlan plan;  // its files only while the plan is made
  // All files with keys in the interval, if they hold all entries; else empty.
  std::vector<TableFile> merged_files;

  // Null: RocksDB has to iterate.
  const std::vector<TableFile>* files_to_merge() const {
    return merged_files.empty() ? nullptr : &merged_files;
  }
};

// A plan, and what the source needs to send its parts. Transfers of one
// snapshot may share it: each completes `opened` for its own target.
struct TransferPlan : Plan {
  RocksDbRelease application;  // that will open the replica
  RocksDbRelease written_by;   // the source's OPTIONS
  Needs needs;                 // of what is sent
  std::vector<TransferFamily> sources;  // by index of `families`
  std::unique_ptr<RefreshAtSource> refresh;  // null: it is no refresh
  UnknownOptions unknown_options;  // of the source's OPTIONS
};

// Sets the release of the application that the request names; not known if it
// names none.
//   kRefused  it names something else
[[nodiscard]] rocksdb::Status ReleaseAsked(const OpenRequest& request,
                                           RocksDbRelease* release);

}  // namespace sstferry
