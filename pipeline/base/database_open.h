// Finds the process that uses a database.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "rocksdb/status.h"

namespace sstferry {

// Returns true if a process (possibly this one) holds RocksDB's lock on the
// directory. Does not detect read-only and secondary instances, because they
// take no lock. Writes nothing.
bool IsDatabaseOpen(const std::string& dir);
// Returns true only if certainly no process has the database open. This is the
// case if the lock file can be checked and no process holds its lock, or if the
// directory exists without a lock file.
bool IsDatabaseClosed(const std::string& dir);
// Returns the id of the process that has the database open. Returns 0 if a
// process has it open but the id is unknown. Returns nullopt if no process is
// known to have it open.
std::optional<pid_t> DatabaseProcess(const std::string& dir);
// Describes the process that has the database open, for a message: "process
// 4711 (myapp)", "this process", or "a process" if its id is unknown. Returns
// an empty string if no process has the database open.
std::string DatabaseUser(const std::string& dir);

// Checks that this machine sees the application's writes to the database in the
// order in which the application wrote them. A network file system may show the
// next WAL before the end of the previous WAL if another machine writes both.
// Returns OK if the file system is local, if the application runs on this
// machine, or if no process has the database open.
//   kRefused  the database is on a network file system, and a process on
//             another machine may have it open. On FUSE, also returned
//             if this account may not see which files the application has open
[[nodiscard]] rocksdb::Status CheckWriterIsHere(const std::string& dir);

}  // namespace sstferry
