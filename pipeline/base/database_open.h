// Finds the process that uses a database.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

namespace sstferry {

// Returns true if a process, this one included, holds RocksDB's lock on the
// directory. Instances without a lock (read-only and secondary ones) are not
// detected. Writes nothing.
bool IsDatabaseOpen(const std::string& dir);
// Returns true if certainly no process has the database open: the lock could be
// checked, or the directory exists without a lock file.
bool IsDatabaseClosed(const std::string& dir);
// Returns the id of the process that has the database open, 0 if the id is
// unknown, nullopt if no process has it open.
std::optional<pid_t> DatabaseProcess(const std::string& dir);
// Returns the process that has the database open, for a message: "process 4711
// (myapp)", "this process", or "a process" if its id is unknown. Empty: no
// process has it open.
std::string DatabaseUser(const std::string& dir);

}  // namespace sstferry
