// The flock that marks a directory as in use. Only the process that works in
// the directory locks it; other processes check the lock.
#pragma once

#include <string>

#include "rocksdb/status.h"
#include "sstferry/descriptor.h"

namespace sstferry {

// Opens a file to lock it. NFSv4 locks it only if it is open for writing; if
// this process may not write it, opens it for reading. On failure errno says
// why.
Descriptor OpenToLock(const std::string& path);

// Locks an open file; `path` is for messages. Waits up to 100 ms, because
// IsFileLocked() in another process holds the lock for microseconds.
//   kBusy      another process holds the lock
//   kInternal  the file system cannot lock the file, or cannot lock it now
[[nodiscard]] rocksdb::Status LockFile(int fd, const std::string& path);

// Returns true if a process holds the lock of the file at `path`; false if
// there is no such file. Changes nothing.
bool IsFileLocked(const std::string& path);

// Locks the directory that has the name `dir`, for a short time. Waits at most
// 10 s while another process holds the lock. Closing *lock releases it. Returns
// OK with *lock closed if there is no such directory; after an error, *lock is
// closed, too.
//   kBusy      another process holds the lock
//   kInternal  the directory cannot be opened or locked
[[nodiscard]] rocksdb::Status LockDirectory(const std::string& dir,
                                            Descriptor* lock);

}  // namespace sstferry
