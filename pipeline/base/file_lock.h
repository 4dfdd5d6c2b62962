// The flock that says whose a directory is: taken by who works in it, asked for
// by who only wants to know whether somebody does.
#pragma once

#include <string>

namespace sstferry {

// Takes the lock of an open file; false when somebody else holds it. Somebody
// who only looks (below) holds it for microseconds: that is waited for.
bool LockFile(int fd);

// Whether somebody holds the lock of the file at `path`. Changes nothing; false
// where there is no such file.
bool IsFileLocked(const std::string& path);

}  // namespace sstferry
