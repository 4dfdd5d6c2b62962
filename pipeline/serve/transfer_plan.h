// The plan of a transfer: what it moves, and how. Constant after it is made.
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

class Snapshot;

// Maximum number of files of a family that are merged without RocksDB. Limits
// the memory of the list, some hundred bytes per file.
inline constexpr size_t kMaxMergedFiles = 20000;

// A column family at the source.
struct TransferFamily {
  uint32_t index = 0;  // index in Plan::families
  rocksdb::ColumnFamilyHandle* handle = nullptr;
  rocksdb::Options chunk_options;
  uint64_t readahead_bytes = 0;
  FamilyPlan plan;  // has files only while the plan is made
  // All files with keys in the interval, if they contain all entries; otherwise
  // empty.
  std::vector<TableFile> merged_files;

  // Returns null if RocksDB must iterate.
  const std::vector<TableFile>* files_to_merge() const {
    return merged_files.empty() ? nullptr : &merged_files;
  }
};

// A plan, and what the source needs to send its parts. Transfers of one
// snapshot may share it: each one completes `opened` for its own target.
struct TransferPlan : Plan {
  RocksDbRelease application;  // release of the application that opens the
                               // replica
  RocksDbRelease written_by;   // from the source's OPTIONS
  Needs needs;                 // what the sent data requires
  std::vector<TransferFamily> sources;  // by index of `families`
  std::unique_ptr<RefreshAtSource> refresh;  // null: not a refresh
  UnknownOptions unknown_options;  // in the source's OPTIONS
};

// Checks the names in a snapshot, whose number and lengths the wire format
// limits but RocksDB does not.
//   kRefused  there are too many, or one is too long
[[nodiscard]] rocksdb::Status CheckNames(const Snapshot& snapshot);

// Sets in *opened what is the same for all targets of the plan: facts about the
// snapshot, and the releases of RocksDB that can open the files.
void DescribeSource(const Snapshot& snapshot, const TransferPlan& plan,
                    Opened* opened);

// Appends the notes of a transfer to those of its plan, which may have one for
// each family. Drops notes of the plan so that there is room for one more.
std::vector<std::string> JoinNotes(std::vector<std::string> of_plan,
                                   const std::vector<std::string>& own);

// Sets *release to the application's RocksDB release from the request; unknown
// if the request has none.
//   kRefused  the request's text is not a release
[[nodiscard]] rocksdb::Status ReleaseAsked(const OpenRequest& request,
                                           RocksDbRelease* release);

}  // namespace sstferry
