// Finds out if a process uses a database.
#pragma once

#include <string>

namespace sstferry {

// True when a process, this one included, holds RocksDB's lock on the
// directory. Instances that take no lock (read-only and secondary ones) cannot
// be seen. Writes nothing.
bool IsDatabaseOpen(const std::string& dir);

}  // namespace sstferry
