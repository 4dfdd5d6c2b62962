// The flock that marks a directory as in use. The process that works in the
// directory holds it; other processes only test it.
#pragma once

#include <string>

namespace sstferry {

// Takes the lock of an open file. Returns false if another process holds it.
// Waits up to 100 ms, because IsFileLocked() of another process holds the lock
// for microseconds.
bool LockFile(int fd);

// Returns true if a process holds the lock of the file at `path`. Changes
// nothing. Returns false if there is no such file.
bool IsFileLocked(const std::string& path);

}  // namespace sstferry
