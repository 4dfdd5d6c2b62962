// The plan of a transfer. It says what the transfer copies and how. A plan does
// not change after it is made.
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

// While chunks are built, sstferry itself merges the files of a family, or
// RocksDB does so if there are more files than this. The limit bounds the
// memory of the list of files, which needs some hundred bytes per file.
inline constexpr size_t kMaxMergedFiles = 20000;

// A column family at the source.
struct TransferFamily {
  uint32_t index = 0;  // index in Plan::families
  rocksdb::ColumnFamilyHandle* handle = nullptr;
  rocksdb::Options chunk_options;
  uint64_t readahead_bytes = 0;
  FamilyPlan plan;  // its file list is empty after planning
  // All files with keys in the interval. Empty if the files do not contain all
  // entries, or are too many.
  std::vector<TableFile> merged_files;

  // Returns the files from which sstferry reads the entries itself. Returns
  // null if it must read them with a RocksDB iterator.
  const std::vector<TableFile>* files_to_merge() const {
    return merged_files.empty() ? nullptr : &merged_files;
  }
};

// A plan, with what the source needs to send its parts. Several transfers of
// one snapshot may share a plan. Each of them copies `opened` and adds what is
// special for its own target.
struct TransferPlan : Plan {
  RocksDbRelease application;  // release of the application that opens the
                               // replica
  RocksDbRelease written_by;   // RocksDB release in the source's OPTIONS
  Needs needs;                 // RocksDB features that sent files need
  std::vector<TransferFamily> sources;  // by index of `families`
  std::unique_ptr<RefreshAtSource> refresh;  // null: no refresh is planned
  UnknownOptions unknown_options;  // of the source's OPTIONS
};

// Checks the number of column families in a snapshot, and the lengths of the
// names. RocksDB does not limit them, but the wire format does.
//   kRefused  there are too many families, or a name is too long
[[nodiscard]] rocksdb::Status CheckNames(const Snapshot& snapshot);

// Sets the fields of *opened that are equal for all targets of the plan: the
// facts about the snapshot, and the RocksDB releases that can open the files.
void DescribeSource(const Snapshot& snapshot, const TransferPlan& plan,
                    Opened* opened);

// Joins the notes of a plan and the notes of a transfer. A plan may have a note
// for each family. If there are too many notes, drops notes of the plan. Leaves
// room for one more note.
std::vector<std::string> JoinNotes(std::vector<std::string> of_plan,
                                   const std::vector<std::string>& own);

// Sets *release to the release of RocksDB that the request names. If it names
// none, the release is unknown.
//   kRefused  the text in the request is not a release
[[nodiscard]] rocksdb::Status ReleaseAsked(const OpenRequest& request,
                                           RocksDbRelease* release);

}  // namespace sstferry
