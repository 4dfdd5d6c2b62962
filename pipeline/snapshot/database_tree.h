// Finds the databases below a directory, while other processes may add and
// remove databases.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "rocksdb/status.h"

namespace sstferry {

// The databases below one directory. A directory is a database if it has a
// CURRENT file or a standby's record, or a MANIFEST and a LOCK (then its
// CURRENT is lost). The subdirectories of a database are not searched.
struct DatabaseTree {
  std::string directory;           // real path of the top directory
  std::vector<std::string> names;  // paths relative to the top, sorted
  // False if there may be more databases: a directory could not be read, or a
  // limit was exceeded.
  bool is_complete = false;
  // Names of directories without a database, and of symbolic links. Such a
  // directory may be the mount point of a volume with a database that is not
  // mounted now.
  std::set<std::string> others;
  // One sentence for each omission: a directory that cannot be read, a database
  // whose path is not a valid name, a limit that was exceeded.
  std::vector<std::string> problems;
  // Id of the top directory's file system. If the id differs in a later search,
  // another file system is mounted there.
  uint64_t file_system = 0;
};

// Searches `directory`, kMaxDatabaseNameComponents levels deep. Follows no
// symbolic link below it, and skips directories that sstferry creates next to
// databases.
//   kSourceError  `directory` cannot be read, or is itself a database
[[nodiscard]] rocksdb::Status FindDatabases(const std::string& directory,
                                            DatabaseTree* tree);

}  // namespace sstferry
