// Finds out which process uses a database.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

namespace sstferry {

// True when a process, this one included, holds RocksDB's lock on the
// directory. Instances that take no lock (read-only and secondary ones) cannot
// be seen. Writes nothing.
bool IsDatabaseOpen(const std::string& dir);
// Returns true if it is known that no process does so: the lock can be looked at,
// or there is a directory without one.
bool IsDatabaseClosed(const std::string& dir);
// Returns the number of the process that does so; 0: it cannot be
// seen. Nothing: none does.
std::optional<pid_t> DatabaseProcess(const std::string& dir);
// Returns the process that does so, for a message: "process 4711 (myapp)",
// "this process", or "a process" where its number cannot be seen. Empty: none
// does.
std::string DatabaseUser(const std::string& dir);

}  // namespace sstferry
