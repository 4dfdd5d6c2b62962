// Checks where the private directory of a snapshot may be: hard links to the
// files of the database must be possible there.
#pragma once

#include <string>

#include "rocksdb/status.h"

namespace sstferry {

// Checks the parent of a database's private directories before one is made.
// `directory` and `parent` are real paths. `snapshot_dir` is the operator's
// choice, or empty; it need not exist if its own parent exists. The message
// contains `command`, which may be empty.
//   kRefused      a mount lies between: the database's directory is itself a
//                 mount point, or --snapshot-dir is on another file system. The
//                 message has the command that works
//   kSourceError  nothing can be made there
[[nodiscard]] rocksdb::Status CheckSnapshotPlace(
    const std::string& directory, const std::string& parent,
    const std::string& snapshot_dir, const std::string& command);

// Makes the directory that the operator chose, if it does not exist. It may be
// inside the database's directory, where sstferry otherwise makes nothing.
[[nodiscard]] rocksdb::Status MakeSnapshotParent(
    const std::string& snapshot_dir);

// Returns true if both directories are on one mount of one file system, which
// hard links require.
bool AreOnOneMount(const std::string& a, const std::string& b);

}  // namespace sstferry
