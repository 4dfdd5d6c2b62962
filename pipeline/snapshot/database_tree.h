// Finds the databases below a directory, which come and go while it looks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rocksdb/status.h"

namespace sstferry {

// A directory with a CURRENT file counts as a database; nothing is looked for
// inside of one.
struct DatabaseTree {
  std::string directory;           // real path of the top
  std::vector<std::string> names;  // paths from the top, sorted
  // Says what is left out, a sentence each: a directory that cannot be read, a
  // database whose path is no name, one beyond a bound.
  std::vector<std::string> problems;
  // Says on which file system the top is, to compare with another time.
  uint64_t file_system = 0;
};

// Looks through `directory`, kMaxDatabaseNameComponents deep; follows no
// symbolic link below it, and passes over what sstferry makes beside databases.
//   kSourceError  `directory` cannot be read, or is itself a database
[[nodiscard]] rocksdb::Status FindDatabases(const std::string& directory,
                                            DatabaseTree* tree);

}  // namespace sstferry
