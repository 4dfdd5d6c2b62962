// Reads files that the operator specifies and that decide what this process
// does: config files, certificates and keys.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>

#include "rocksdb/status.h"

namespace sstferry {

// Maximum size of such a file, in bytes.
inline constexpr size_t kMaxOwnFileBytes = 4u << 20;
// Means any one account other than root.
inline constexpr uid_t kAnyAccount = static_cast<uid_t>(-1);

// Reads a regular file. If this process runs as root, the file and every
// directory and symbolic link on the path must belong to root or to `account`
// (0: only root), and others must not be able to write them; sticky directories
// are allowed. Each link is followed relative to an open directory. A file
// reached through a link owned by `account`, or through a hard link in a
// directory of `account`, must belong to `account`; so `account` cannot make
// this process read root's files. Other processes read any file that they can.
//   kRefused  the file is missing or breaks these rules; the message begins
//             with `path`
[[nodiscard]] rocksdb::Status ReadOwn(const std::string& path, uid_t account,
                                      std::string* bytes);

}  // namespace sstferry
