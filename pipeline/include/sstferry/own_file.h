// Files that the operator names and that decide what this process does: config
// files, certificates and keys.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>

#include "rocksdb/status.h"

namespace sstferry {

// Maximum of such a file.
inline constexpr size_t kMaxOwnFileBytes = 4u << 20;
// Stands for whichever account other than root owns a part of the way.
inline constexpr uid_t kAnyAccount = static_cast<uid_t>(-1);

// Reads a regular file, as one whole. For a process of root's, every directory
// on the way, every symbolic link and the file belong to root or to `account`
// (0: to root alone), and nobody else may write them; in a sticky directory,
// others may write. Links are followed step by step, each below a directory
// that is open. What `account` leads to by a link, or keeps in a directory of
// its own under a second name, must be its own file: its names do not open
// root's files. Other processes read what they can.
//   kRefused  there is no such file, or it does not keep these rules; the
//             message begins with `path`
[[nodiscard]] rocksdb::Status ReadOwn(const std::string& path, uid_t account,
                                      std::string* bytes);

}  // namespace sstferry
