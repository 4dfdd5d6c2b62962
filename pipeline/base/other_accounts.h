// Protects a pull that runs as root from other accounts. An account that owns a
// directory on the path to TARGET_DIR could replace a name there with a link.
// Root therefore pulls only if no other account can change a name on the path.
// Otherwise the operator must run the pull as the account that can.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <optional>
#include <string>

#include "rocksdb/status.h"

namespace sstferry {

// Returns the account's name, or its number if this machine does not know it.
std::string AccountName(uid_t uid);

// Returns a description of the accounts, other than the owner and root, that
// may write to the file or directory at `path`. Returns "" if no other account
// may. `info` is the state of the file or directory. Root's group does not
// count, unless there is an access control list. With such a list, the group's
// permissions in the mode are the most that an account in the list can have.
std::string OtherWriters(const struct stat& info, const std::string& path);

// Finds the account other than root that owns directories on the path to `dir`.
// Also checks the paths to which symbolic links lead, but not `dir` itself.
// Leaves *account empty if root owns all of these directories. A directory that
// everybody may write to is allowed if it is sticky, like /tmp: nobody can
// rename another account's files there.
//   kRefused  several accounts, a group, the accounts of an access control
//             list, or everybody may change a name
[[nodiscard]] rocksdb::Status FindOtherAccount(const std::string& dir,
                                               std::optional<uid_t>* account);

// Checks that root may pull into `target_dir`. Returns OK if this process does
// not run as root. `in_place` is true if the pull opens the database in the
// directory.
//   kRefused  another account may change a name on the path, or owns the
//             database that the pull opens
[[nodiscard]] rocksdb::Status CheckOnlyRoot(const std::string& target_dir,
                                            bool in_place);

// Checks that the workspace `dir` belongs to this account only. Returns OK if
// `dir` does not exist.
//   kRefused  it is not a directory, or another account owns it or may write to
//             it
[[nodiscard]] rocksdb::Status CheckOwnDirectory(const std::string& dir);

}  // namespace sstferry
