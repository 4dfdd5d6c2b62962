// Lists the snapshots that are retained next to a source, and releases one of
// them on the operator's request. Any process may do this. Only private
// directories of the current user are read.
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

// The private directories with a lease in one directory.
struct LeasedDirs {
  std::vector<LeasedDir> dirs;  // oldest first
  uint64_t foreign = 0;         // number of directories of other users
  std::string foreign_owner;    // name of one of these users
};

// Lists the private directories in `parent` for whose lease `wanted` returns
// true. The list includes directories whose lease has expired but that were not
// removed yet.
[[nodiscard]] rocksdb::Status ListLeasedDirs(
    const std::string& parent,
    const std::function<bool(const Lease&)>& wanted, LeasedDirs* out);

// Formats the target of a transfer, for example "db2:/data/users (CN=db2)".
// `said` is the name that the target has sent, and `subject` is that of its
// certificate. Returns an empty string if both are unknown.
std::string ShownTarget(const std::string& said, const std::string& subject);

// Describes the snapshot that has this lease. The result has the complete id of
// the transfer.
RetainedSnapshot DescribeLeased(const LeasedDir& dir, const LeaseRules& rules);

// Returns the path of a source directory without symbolic links.
std::string RealPath(const std::string& path);
// Returns the directory in which the snapshots of a source are made. If
// `snapshot_dir` is not empty, returns that directory. Otherwise returns the
// source's parent directory. If the source's file system is read-only and
// nothing can be created in the parent, returns the directory for temporary
// files (TMPDIR or /tmp).
std::string SnapshotParent(const std::string& real_directory,
                           const std::string& snapshot_dir);

// Lists the retained snapshots of the source `directory`. If the directory that
// has them cannot be read, returns an empty list.
LeasedDirs ListSnapshotsOf(const std::string& directory,
                           const std::string& snapshot_dir);

// Releases a retained snapshot of a source directory. `id` is a prefix of the
// id of the snapshot's transfer (8 to 32 hex digits). If a process has the
// snapshot open, asks that process to release it, and waits until `deadline`.
// Otherwise removes the snapshot.
//   kRefused  no such snapshot, or several; the message lists all
//   kBusy     a target is connected to it, or its owner does not answer
[[nodiscard]] rocksdb::Status ReleaseSnapshotOf(
    const std::string& directory, const std::string& snapshot_dir,
    const std::string& id, std::chrono::milliseconds deadline,
    RetainedSnapshot* released);

}  // namespace sstferry
