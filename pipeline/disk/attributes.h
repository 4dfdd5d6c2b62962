// Copies the attributes of a directory other than its owner, group and mode:
// access control lists, labels and other extended attributes, the flags of
// chattr(1), and the project id of its disk quota. A directory that replaces
// another directory must get all these attributes; otherwise sstferry refuses
// the replacement.
#pragma once

#include <string>

#include "rocksdb/status.h"

namespace sstferry {

// Copies the attributes of the directory `from` to the directory `to`. Removes
// the access control lists that only `to` has, because `to` may have inherited
// them from its parent. Does nothing if `from` does not exist.
//   kRefused  an attribute cannot be read, set or removed; the message names
//             it, as in "its default access control list"
[[nodiscard]] rocksdb::Status CopyAttributes(const std::string& from,
                                             const std::string& to);

// Copies only the attributes that new files in a directory inherit: the default
// access control list, labels, flags and the project id. In all other respects
// like CopyAttributes().
[[nodiscard]] rocksdb::Status CopyInherited(const std::string& from,
                                            const std::string& to);

}  // namespace sstferry
