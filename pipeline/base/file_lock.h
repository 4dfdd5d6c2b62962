// The flock that marks a directory as in use. Only the process that works in
// the directory locks it; other processes check the lock.
#pragma once

#include <string>

#include "rocksdb/status.h"
#include "sstferry/descriptor.h"

namespace sstferry {

// Locks an open file. Returns false if another process holds the lock. Waits up
// to 100 ms, because IsFileLocked() in another process holds the lock for
// microseconds.
bool LockFile(int fd);

// Returns true if a process holds the lock of the file at `path`; false if
// there is no such file. Changes nothing.
bool IsFileLocked(const std::string& path);

// Locks the directory that has the name `dir`, for a moment: waits at most 10 s
// for another holder. Closing *lock releases it. Returns OK with *lock closed
// if there is no such directory; after an error, *lock is closed, too.
//   kBusy      another process holds the lock
//   kInternal  the directory cannot be opened or locked
[[nodiscard]] rocksdb::Status LockDirectory(const std::string& dir,
                                            Descriptor* lock);

}  // namespace sstferry
