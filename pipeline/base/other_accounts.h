// Finds the accounts that may change names on the way to a TARGET_DIR. One
// that can may put links in the place of what a pull is about to write, so root
// works only where no other can; elsewhere the pull runs as that account.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "rocksdb/status.h"

namespace sstferry {

// Returns the account's name, or its number where the machine does not know it.
std::string AccountName(uid_t uid);

// Looks at every directory on the way to `dir`, and at those that symbolic
// links on that way lead through, but not at `dir` itself. Sets *account to the
// one account other than root that owns such a directory, if there is one. A
// sticky directory (/tmp) counts as nobody's: in it nobody changes a name of
// another.
//   kRefused  several accounts, or a group, or everybody may change a name
[[nodiscard]] rocksdb::Status FindOtherAccount(const std::string& dir,
                                               std::optional<uid_t>* account);

// For a pull into `target_dir` that runs as root. OK for any other user.
// `in_place`: what is in the directory is opened, too.
//   kRefused  another account may change a name on the way, or owns what is
//             opened; the message names the account as which to run
[[nodiscard]] rocksdb::Status CheckOnlyRoot(const std::string& target_dir,
                                            bool in_place);

// Checks a workspace that is there. OK if there is none.
//   kRefused  it is no directory, belongs to another user, or others may write
//             there
[[nodiscard]] rocksdb::Status CheckOwnDirectory(const std::string& dir);

}  // namespace sstferry
