// Finds the databases of this machine that a pattern of paths names.
#pragma once

#include <string>
#include <vector>

#include "rocksdb/status.h"

namespace sstferry {

// Returns true if a component of the path has one of * ? [.
bool IsPattern(const std::string& path);

// Returns false for names that sstferry gives to what it keeps beside a
// database, and for those that it does not serve.
bool IsNameOfDatabase(const std::string& name);

// Finds the databases and standbys whose paths match an absolute pattern, in
// order of their names. Follows no link below the first component with a *, ?
// or [.
//   kRefused  a directory cannot be read, or there is no database: a volume that
//             is not mounted must not look like databases that are gone
[[nodiscard]] rocksdb::Status FindDatabases(const std::string& pattern,
                                            std::vector<std::string>* paths);

}  // namespace sstferry
