// Copies the attributes of a directory other than its owner, group and mode:
// access control lists, labels and other extended attributes, the flags of
// chattr(1), and the project of its quota. A directory that replaces another
// one must have all of them; otherwise the replacement is refused.
#pragma once

#include <string>

#include "rocksdb/status.h"

namespace sstferry {

// Copies the attributes of the directory `from` to the directory `to`. Removes
// access control lists from `to` that `from` does not have, because `to` may
// have inherited them from its parent. Does nothing if `from` does not exist.
//   kRefused  an attribute, which the message names ("its ..." for `from`),
//             cannot be read, set or removed
[[nodiscard]] rocksdb::Status CopyAttributes(const std::string& from,
                                             const std::string& to);

// Copies only the attributes that new files in a directory inherit: the default
// access control list, labels, flags and the project. Otherwise like
// CopyAttributes().
[[nodiscard]] rocksdb::Status CopyInherited(const std::string& from,
                                            const std::string& to);

}  // namespace sstferry
