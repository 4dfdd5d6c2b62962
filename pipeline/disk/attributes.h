// Attributes of a directory beside its owner, group and mode: access control
// lists, labels and other extended attributes, the flags of chattr(1) and the
// project of its quota. A directory that takes the place of another one has all
// of them, or it does not take its place.
#pragma once

#include <string>

#include "rocksdb/status.h"

namespace sstferry {

// Gives the directory `to` the attributes of the directory `from`, and takes
// away access control lists that `from` does not have: `to` may have got them
// from its parent. Does nothing if `from` does not exist.
//   kRefused  an attribute of `from`, which the message names ("its ..."),
//             cannot be read or set
[[nodiscard]] rocksdb::Status CopyAttributes(const std::string& from,
                                             const std::string& to);

// Does the same for those attributes that whatever is made in `to` inherits:
// the default access control list, labels, flags and the project.
[[nodiscard]] rocksdb::Status CopyInherited(const std::string& from,
                                            const std::string& to);

}  // namespace sstferry
