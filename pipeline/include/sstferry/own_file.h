// Reads files that an operator has written to control this process: config
// files, certificates and keys.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>

#include "rocksdb/status.h"

namespace sstferry {

// Maximum size of a file that ReadOwn() reads, in bytes.
inline constexpr size_t kMaxOwnFileBytes = 4u << 20;
// Tells ReadOwn() to allow files of root and of one other account: the first
// other owner that ReadOwn() finds on the path.
inline constexpr uid_t kAnyAccount = static_cast<uid_t>(-1);

// Reads a regular file. If this process does not run as root, it reads any file
// that it can. If it runs as root, these rules protect root's files from
// `account` (0: only root is allowed):
// - The file and all directories and symbolic links on its path must belong to
//   root or to `account`. No other account may be able to write to them, except
//   to sticky directories.
// - If a symbolic link on the path belongs to `account`, the file must also
//   belong to `account`. The same holds for a file with several hard links in a
//   directory of `account`.
//
// Each link is followed relative to an open directory.
//   kRefused  the file is missing or breaks these rules; the message begins
//             with `path`
[[nodiscard]] rocksdb::Status ReadOwn(const std::string& path, uid_t account,
                                      std::string* bytes);

}  // namespace sstferry
