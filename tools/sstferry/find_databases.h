// Finds the databases on this machine whose paths match a pattern.
#pragma once

#include <string>
#include <vector>

#include "rocksdb/status.h"

namespace sstferry {

// Returns true if the path is a pattern: it contains *, ? or [.
bool IsPattern(const std::string& path);

// Returns true if a database that sstferry serves may have this directory name.
// Returns false, for example, for directories that sstferry makes beside a
// database, such as "orders.sstferry" and "orders.old-1".
bool IsNameOfDatabase(const std::string& name);

// Finds the databases and standbys whose paths match an absolute pattern such
// as "/var/lib/app/*", in the order of their paths. Does not follow symbolic
// links in the part of the path that begins with the first *, ? or [. Adds
// directories that match but have no database to *others.
//   kRefused  a directory cannot be read, or no database matches, for example
//             because the volume of the databases is not mounted
[[nodiscard]] rocksdb::Status FindDatabases(const std::string& pattern,
                                            std::vector<std::string>* paths,
                                            std::vector<std::string>* others);

}  // namespace sstferry
