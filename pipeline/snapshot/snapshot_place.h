// Checks if a snapshot's private directory can be made in a given directory.
// Hard links from there to the database's files must be possible.
#pragma once

#include <string>

#include "rocksdb/status.h"

namespace sstferry {

// Checks the directory `parent` in which the private directories of the
// database `directory` will be made. Both are paths without symbolic links.
// `snapshot_dir` is the directory that the operator chose, or empty. It may be
// missing if its own parent exists. `command` is a command line for the
// message, or empty.
//   kRefused      a mount separates them: the database's directory is itself a
//                 mount point, or --snapshot-dir is on another file system. The
//                 message shows the command that works
//   kSourceError  nothing can be created there
[[nodiscard]] rocksdb::Status CheckSnapshotPlace(
    const std::string& directory, const std::string& parent,
    const std::string& snapshot_dir, const std::string& command);

// Makes the directory that the operator chose, if it is missing. It may be
// inside the database's directory. sstferry creates nothing else there.
[[nodiscard]] rocksdb::Status MakeSnapshotParent(
    const std::string& snapshot_dir);

// Returns true if both directories are on the same mount of one file system.
// Hard links are possible only there.
bool AreOnOneMount(const std::string& a, const std::string& b);

}  // namespace sstferry
