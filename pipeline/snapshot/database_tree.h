// Finds the databases below a directory, while other processes may add and
// remove databases.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "rocksdb/status.h"

namespace sstferry {

// The databases below a top directory. A directory counts as a database if it
// has a CURRENT file or a standby's record. It also counts if it has a MANIFEST
// and a LOCK; its CURRENT is then lost. The search does not enter the
// subdirectories of a database.
struct DatabaseTree {
  std::string directory;           // real path of the top directory
  std::vector<std::string> names;  // paths relative to the top, sorted
  // False if a database may be missing in `names`, because a directory could
  // not be read or a limit was exceeded.
  bool is_complete = false;
  // Names of symbolic links, and of directories that have no database. For
  // example, such a directory may be the mount point of a volume that is not
  // mounted now.
  std::set<std::string> others;
  // One sentence for each part of the tree that was not searched completely: a
  // directory that cannot be read, a database whose path is not a valid name,
  // or an exceeded limit.
  std::vector<std::string> problems;
  // Id of the top directory's file system. If a later search finds another id,
  // another file system was mounted there meanwhile.
  uint64_t file_system = 0;
};

// Searches `directory` and its subdirectories, kMaxDatabaseNameComponents
// levels deep. Below `directory`, follows no symbolic links, and skips the
// directories that sstferry creates next to databases.
//   kSourceError  `directory` cannot be read, or is itself a database
[[nodiscard]] rocksdb::Status FindDatabases(const std::string& directory,
                                            DatabaseTree* tree);

}  // namespace sstferry
