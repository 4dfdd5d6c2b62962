// Snapshots that lie beside a source with a lease, as somebody else than their
// owner sees them, and how one is let go by hand. Only the private directories
// are looked at, of this user alone.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "pipeline/source/directory/private_dir.h"

namespace sstferry {

struct LeasedDir {
  std::string path;
  Lease lease;
  bool open = false;  // a process holds it
};

struct LeasedDirs {
  std::vector<LeasedDir> dirs;  // the oldest first
  uint64_t foreign = 0;  // directories of another user, by their names
};

// Those in `parent` whose lease is `wanted`, those that have run out and are
// not removed yet among them.
[[nodiscard]] rocksdb::Status ListLeasedDirs(
    const std::string& parent,
    const std::function<bool(const Lease&)>& wanted, LeasedDirs* out);

// What a lease says of the snapshot, with all of its transfer's id.
HeldSnapshot DescribeLeased(const LeasedDir& dir, const LeaseRules& rules);

// A source directory with no link in it, and where its snapshots are.
// `snapshot_dir` may be empty: beside it.
std::string RealPath(const std::string& path);
std::string SnapshotParent(const std::string& real_directory,
                           const std::string& snapshot_dir);

// The snapshots of the source at `directory`. A parent that cannot be read
// holds none.
LeasedDirs ListSnapshotsOf(const std::string& directory,
                           const std::string& snapshot_dir);

// Lets the snapshot of a source directory go whose transfer's id begins with
// `id` (8 to 32 hex digits): by its owner, who is asked and must answer within
// `patience`, or itself where nobody has it open.
//   kRefused  there is none such, or more than one; says which are held
//   kBusy     a target is connected to it, or its owner does not answer
[[nodiscard]] rocksdb::Status ReleaseSnapshotOf(
    const std::string& directory, const std::string& snapshot_dir,
    const std::string& id, std::chrono::milliseconds patience,
    HeldSnapshot* released);

}  // namespace sstferry
