// Finds the accounts that may change names on the path to a TARGET_DIR. Such an
// account could replace a name with a link during a pull. So root pulls only
// where no other account can do that; elsewhere the pull runs as that account.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "rocksdb/status.h"

namespace sstferry {

// Returns the account's name, or its number if this machine does not know it.
std::string AccountName(uid_t uid);

// Checks every directory on the path to `dir` and on the paths of symbolic
// links there, but not `dir` itself. If exactly one account other than root
// owns such directories, sets *account to it. A sticky directory (/tmp) counts
// as owned by nobody, because no account can rename another's files in it.
//   kRefused  several accounts, or a group, or everybody may change a name
[[nodiscard]] rocksdb::Status FindOtherAccount(const std::string& dir,
                                               std::optional<uid_t>* account);

// Checks the path of a pull into `target_dir` that runs as root. Returns OK for
// any other user. `in_place`: the pull opens the files in the directory.
//   kRefused  another account may change a name on the path, or owns a
//             directory that is opened; the message says which account should
//             run the pull
[[nodiscard]] rocksdb::Status CheckOnlyRoot(const std::string& target_dir,
                                            bool in_place);

// Checks an existing workspace. Returns OK if it does not exist.
//   kRefused  it is not a directory, belongs to another user, or others may
//             write to it
[[nodiscard]] rocksdb::Status CheckOwnDirectory(const std::string& dir);

}  // namespace sstferry
