// Judges the file-system calls of a process of root, as strace recorded them:
// which of them could another account have led elsewhere?
#pragma once

#include <string>
#include <vector>

namespace sstferry {

// The arguments of strace with which JudgeFileCalls() can read what it writes.
std::vector<std::string> StraceWords(const std::string& trace_file);

struct FileCalls {
  size_t judged = 0;  // calls of root that name a file
  // Each with its reason: "12 open("/a/b", O_RDONLY) = 3: looks up ...".
  std::vector<std::string> offences;
};

// Judges each call in `trace` that was made while the effective user was root.
// `place`: a directory in which, and in whose directories, another account may
// change names, except in those that root itself makes there for nobody else.
// The rules, for each name that a call looks up in such a directory:
//   1. No path from "/" or from the working directory leads through it, unless
//      openat2 refuses links on all of the way (RESOLVE_NO_SYMLINKS).
//   2. Below a descriptor (dirfd, or /proc/self/fd/N/), it is the last
//   component.
//   3. The call does not follow a link that the last component may be.
// Calls of other users, and names in other directories, are free.
FileCalls JudgeFileCalls(const std::string& trace, const std::string& place);

}  // namespace sstferry
