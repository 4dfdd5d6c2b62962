// Finds the process that uses a database.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "rocksdb/status.h"

namespace sstferry {

// Returns true if a process (possibly this one) holds RocksDB's lock on the
// directory. Does not detect instances without a lock (read-only and
// secondary). Writes nothing.
bool IsDatabaseOpen(const std::string& dir);
// Returns true only if it is certain that no process has the database open: the
// lock could be checked, or the directory exists without a lock file.
bool IsDatabaseClosed(const std::string& dir);
// Returns the id of the process that has the database open; 0 if the id is
// unknown; nullopt if no process has the database open.
std::optional<pid_t> DatabaseProcess(const std::string& dir);
// Describes the process that has the database open, for a message: "process
// 4711 (myapp)", "this process", or "a process" if its id is unknown. Returns
// an empty string if no process has the database open.
std::string DatabaseUser(const std::string& dir);

// Checks that what the database's application writes can be seen here in the
// order in which it wrote it. Through a network file system that is certain
// only if the application runs on this machine, or nobody has the database
// open: its machine may send the end of a WAL later than the next WAL.
//   kRefused  it is open on such a file system, by a process that may run on
//             another machine, or this is not known
[[nodiscard]] rocksdb::Status CheckWriterIsHere(const std::string& dir);

}  // namespace sstferry
