// Lists the retained snapshots next to a source, and releases one on the
// operator's request. Works in any process. Reads only private directories that
// belong to the current user.
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
  uint64_t foreign = 0;  // such directories of other users
  std::string foreign_owner;  // name of one of these users
};

// Lists the directories in `parent` for whose lease `wanted` returns true,
// including directories whose lease has expired but that still exist.
[[nodiscard]] rocksdb::Status ListLeasedDirs(
    const std::string& parent,
    const std::function<bool(const Lease&)>& wanted, LeasedDirs* out);

// Returns "db2:/data/users (CN=db2)": the name that the target sent, and the
// subject of its certificate. Empty: both are unknown.
std::string ShownTarget(const std::string& said, const std::string& subject);

// Describes the snapshot of a lease, with the complete transfer id.
RetainedSnapshot DescribeLeased(const LeasedDir& dir, const LeaseRules& rules);

// Resolves the symbolic links of a source directory.
std::string RealPath(const std::string& path);
// Returns the parent directory of a source's snapshots. If `snapshot_dir` is
// empty, this is the source's parent, or the directory for temporary files
// (TMPDIR, else /tmp) if the source's file system is read-only and nothing can
// be created next to the source.
std::string SnapshotParent(const std::string& real_directory,
                           const std::string& snapshot_dir);

// Lists the snapshots of the source at `directory`; returns none if the parent
// directory cannot be read.
LeasedDirs ListSnapshotsOf(const std::string& directory,
                           const std::string& snapshot_dir);

// Releases the retained snapshot of a source directory whose transfer id begins
// with `id` (8 to 32 hex digits). If a process has the snapshot open, asks that
// process, which must answer within `deadline`; otherwise removes it.
//   kRefused  no such snapshot, or several; the message lists all
//   kBusy     a target is connected to it, or its owner does not answer
[[nodiscard]] rocksdb::Status ReleaseSnapshotOf(
    const std::string& directory, const std::string& snapshot_dir,
    const std::string& id, std::chrono::milliseconds deadline,
    RetainedSnapshot* released);

}  // namespace sstferry
