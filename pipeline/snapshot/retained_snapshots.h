// Lists the retained snapshots beside a source and releases one by hand, in any
// process. Reads only private directories that belong to the current user.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "pipeline/snapshot/private_dir.h"

namespace sstferry {

// A private directory with a lease.
struct LeasedDir {
  std::string path;
  Lease lease;
  bool open = false;  // a process has it open
};

// The private directories with a lease in one parent directory.
struct LeasedDirs {
  std::vector<LeasedDir> dirs;  // oldest first
  uint64_t foreign = 0;  // number of directories with such names of other users
  std::string foreign_owner;  // account that owns one of them
};

// Lists the directories in `parent` for whose lease `wanted` returns true,
// including those that have expired but are not removed yet.
[[nodiscard]] rocksdb::Status ListLeasedDirs(
    const std::string& parent,
    const std::function<bool(const Lease&)>& wanted, LeasedDirs* out);

// Returns "db2:/data/users (CN=db2)": the name that the target gave, and the
// subject of its certificate. Empty: neither is known.
std::string ShownTarget(const std::string& said, const std::string& subject);

// Describes the snapshot of a lease, with the complete transfer id.
RetainedSnapshot DescribeLeased(const LeasedDir& dir, const LeaseRules& rules);

// Resolves the symbolic links of a source directory.
std::string RealPath(const std::string& path);
// Finds the parent directory of a source's snapshots. `snapshot_dir` may be
// empty: then it is the source's parent, or the directory for temporary files
// (TMPDIR, else /tmp) if the source's file system is read-only and nothing can
// be made beside the source.
std::string SnapshotParent(const std::string& real_directory,
                           const std::string& snapshot_dir);

// Lists the snapshots of the source at `directory`; returns none if the parent
// directory cannot be read.
LeasedDirs ListSnapshotsOf(const std::string& directory,
                           const std::string& snapshot_dir);

// Releases the retained snapshot of a source directory whose transfer id begins
// with `id` (8 to 32 hex digits). If a process has it open, asks that process,
// which must answer before `deadline` has passed; otherwise removes it.
//   kRefused  no such snapshot, or more than one; the message lists all
//   kBusy     a target is connected to it, or its owner does not answer
[[nodiscard]] rocksdb::Status ReleaseSnapshotOf(
    const std::string& directory, const std::string& snapshot_dir,
    const std::string& id, std::chrono::milliseconds deadline,
    RetainedSnapshot* released);

}  // namespace sstferry
