// Checks the file-system calls of a root process, as strace recorded them:
// could another account have redirected a call to another file?
#pragma once

#include <string>
#include <vector>

namespace sstferry {

// Returns the arguments for strace whose output JudgeFileCalls() can read.
std::vector<std::string> StraceWords(const std::string& trace_file);

struct FileCalls {
  size_t judged = 0;  // root's calls with a file name
  // Each with its reason: "12 open("/a/b", O_RDONLY) = 3: looks up ...".
  std::vector<std::string> offences;
};

// Checks each call in `trace` that was made while the effective user was root.
// `place`: a directory in which, and in whose subdirectories, another account
// may change names, except in private directories that root itself makes there.
// The rules, for each name that a call looks up in such a directory:
//   1. No path from "/" or from the working directory contains it, unless
//      openat2 refuses links in the whole path (RESOLVE_NO_SYMLINKS).
//   2. In a path below a descriptor (dirfd, or /proc/self/fd/N/), it is the
//      last component.
//   3. The call does not follow the last component if that may be a link.
// Calls of other users, and names in other directories, are not checked.
FileCalls JudgeFileCalls(const std::string& trace, const std::string& place);

}  // namespace sstferry
