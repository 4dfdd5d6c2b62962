// Lists the retained snapshots beside a source and releases one by hand, in any
// process. Reads only private directories that belong to the current user.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "pipeline/snapshot/private_dir.h"

namespace sstferry {

struct LeasedDir {
  std::string path;
  Lease lease;
  bool open = false;  // a process has it open
};

struct LeasedDirs {
  std::vector<LeasedDir> dirs;  // oldest first
  uint64_t foreign = 0;  // number of other users' directories, by name
  std::string foreign_owner;  // the account of one of them
};

// Lists the directories in `parent` whose lease is `wanted`, including those
// that have expired and are not yet removed.
[[nodiscard]] rocksdb::Status ListLeasedDirs(
    const std::string& parent,
    const std::function<bool(const Lease&)>& wanted, LeasedDirs* out);

// Returns "db2:/data/users (CN=db2)": what a target said of itself, and the
// subject of its certificate. Empty: neither is known.
std::string ShownTarget(const std::string& said, const std::string& subject);

// Describes the snapshot of a lease, with the complete transfer id.
RetainedSnapshot DescribeLeased(const LeasedDir& dir, const LeaseRules& rules);

// Resolves the links of a source directory, and finds the parent directory of
// its snapshots. `snapshot_dir` may be empty: beside the source, or in the
// directory for temporary files (TMPDIR, else /tmp) if the source's file system
// is read-only and nothing can be made beside it.
std::string RealPath(const std::string& path);
std::string SnapshotParent(const std::string& real_directory,
                           const std::string& snapshot_dir);

// Lists the snapshots of the source at `directory`. None if the parent
// directory cannot be read.
LeasedDirs ListSnapshotsOf(const std::string& directory,
                           const std::string& snapshot_dir);

// Releases the retained snapshot of a source directory whose transfer id begins
// with `id` (8 to 32 hex digits). If a process has it open, asks that process,
// which must answer within `patience`; else removes it.
//   kRefused  no such snapshot, or more than one; the message lists all
//   kBusy     a target is connected to it, or its owner does not answer
[[nodiscard]] rocksdb::Status ReleaseSnapshotOf(
    const std::string& directory, const std::string& snapshot_dir,
    const std::string& id, std::chrono::milliseconds deadline,
    RetainedSnapshot* released);

}  // namespace sstferry
