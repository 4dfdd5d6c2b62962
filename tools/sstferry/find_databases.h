// Finds the databases on this machine whose paths match a pattern.
#pragma once

#include <string>
#include <vector>

#include "rocksdb/status.h"

namespace sstferry {

// Returns true if a component of the path has one of * ? [.
bool IsPattern(const std::string& path);

// Returns false for names of sstferry's own files beside a database, and for
// other names that sstferry does not serve.
bool IsNameOfDatabase(const std::string& name);

// Finds the databases and standbys whose paths match an absolute pattern, in
// order of their names. Follows no link below the first component with a *, ?
// or [. *others: matching directories without a database.
//   kRefused  a directory cannot be read, or no database matches: an unmounted
//             volume must not look as if its databases had been removed
[[nodiscard]] rocksdb::Status FindDatabases(const std::string& pattern,
                                            std::vector<std::string>* paths,
                                            std::vector<std::string>* others);

}  // namespace sstferry
