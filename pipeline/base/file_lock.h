// The flock that marks a directory as in use. Only the process that works in
// the directory locks it; other processes check the lock.
#pragma once

#include <string>

namespace sstferry {

// Locks an open file. Returns false if another process holds the lock. Waits up
// to 100 ms, because IsFileLocked() in another process holds the lock for
// microseconds.
bool LockFile(int fd);

// Returns true if a process holds the lock of the file at `path`; false if
// there is no such file. Changes nothing.
bool IsFileLocked(const std::string& path);

}  // namespace sstferry
