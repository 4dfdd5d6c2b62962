// Files that the operator names and that decide what this process does: config
// files, certificates and keys.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>

#include "rocksdb/status.h"

namespace sstferry {

// Maximum size of such a file, in bytes.
inline constexpr size_t kMaxOwnFileBytes = 4u << 20;
// Stands for any one account other than root.
inline constexpr uid_t kAnyAccount = static_cast<uid_t>(-1);

// Reads a regular file. In a process of root, every directory on the way, every
// symbolic link and the file must belong to root or to `account` (0: to root
// only) and must not be writable by others; a sticky directory may be. Links
// are followed step by step, each below a directory that is already open. A
// file reached through a link of `account`, or by a second name in a directory
// of `account`, must belong to `account`: its names cannot open root's files.
// Other processes read what they can.
//   kRefused  the file is missing or breaks these rules; the message begins
//             with `path`
[[nodiscard]] rocksdb::Status ReadOwn(const std::string& path, uid_t account,
                                      std::string* bytes);

}  // namespace sstferry
