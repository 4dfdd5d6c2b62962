// Checks if a snapshot's private directory can be in a given directory: hard
// links to the database's files must be possible there.
#pragma once

#include <string>

#include "rocksdb/status.h"

namespace sstferry {

// Checks the parent of a database's private directories before a private
// directory is made. `directory` and `parent` are real paths. `snapshot_dir` is
// the operator's choice, or empty; it may be missing if its own parent exists.
// The message contains `command`, which may be empty.
//   kRefused      a mount separates them: the database's directory is itself a
//                 mount point, or --snapshot-dir is on another file system. The
//                 message shows the command that works
//   kSourceError  nothing can be created there
[[nodiscard]] rocksdb::Status CheckSnapshotPlace(
    const std::string& directory, const std::string& parent,
    const std::string& snapshot_dir, const std::string& command);

// Makes the directory that the operator chose, if it is missing. It may be
// inside the database's directory, where sstferry otherwise creates nothing.
[[nodiscard]] rocksdb::Status MakeSnapshotParent(
    const std::string& snapshot_dir);

// Returns true if both directories are on the same mount of one file system,
// which hard links require.
bool AreOnOneMount(const std::string& a, const std::string& b);

}  // namespace sstferry
