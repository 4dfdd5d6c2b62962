// Where the private directory of a snapshot may lie: where hard links to the
// files of the database can be made.
#pragma once

#include <string>

#include "rocksdb/status.h"

namespace sstferry {

// Checks the parent of a database's private directories, before one is made.
// Both are real paths. `snapshot_dir` is the one that the operator chose, or
// empty; it need not exist, if its own parent does. `command` is for the
// message and may be empty.
//   kRefused      a mount lies between: the database's directory is itself a
//                 mount point, or --snapshot-dir is on another file system. The
//                 message has the command that works
//   kSourceError  nothing can be made there
[[nodiscard]] rocksdb::Status CheckSnapshotPlace(
    const std::string& directory, const std::string& parent,
    const std::string& snapshot_dir, const std::string& command);

// Makes the directory that the operator chose, if it does not exist. It may lie
// in that of the database; nothing else of sstferry's ever does.
[[nodiscard]] rocksdb::Status MakeSnapshotParent(
    const std::string& snapshot_dir);

// Returns true if both directories are on one mount of one file system, as hard
// links need it.
bool AreOnOneMount(const std::string& a, const std::string& b);

}  // namespace sstferry
