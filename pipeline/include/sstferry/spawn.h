// Every process that this one starts: another program, or a part of this one
// that runs as another account.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "rocksdb/status.h"

namespace sstferry {

// Another program, for this account.
struct ProgramStart {
  static constexpr int kNothing = -1;  // /dev/null

  std::vector<std::string> words;  // [0] is the path of the program
  // NAME=VALUE each; none: those of this process.
  std::optional<std::vector<std::string>> environment;
  // Its standard streams.
  int in = kNothing;
  int out = kNothing;
  int err = 2;
  int third = kNothing;  // its descriptor 3; kNothing: it has none
  // A process group of its own, which kill(-child) ends with all it started.
  bool own_group = false;
};

// Starts it with these descriptors and no others, and with the signals of a
// program that a shell starts.
//   kInternal  the system cannot start it
[[nodiscard]] rocksdb::Status Spawn(const ProgramStart& start, pid_t* child);

struct Account {
  uid_t uid = 0;
  gid_t group = 0;
  std::string name;  // empty: this machine does not know it
  std::string home;
  std::string shell;
};
// Returns the account with that number, as far as this machine knows it.
Account FindAccount(uid_t uid);

// A process of another account, which must be able to do nothing to this one's
// terminal, files and memory.
struct AccountStart {
  Account account;
  int out = -1;  // its standard output and error: pipes
  int err = -1;
  std::vector<int> kept;  // other descriptors that it gets
};

// Goes on as two processes. In the new one *child is 0: it has a session of its
// own without a terminal, no standard input, the account's rights, HOME and
// groups, of the environment what its work takes, no way to other rights, and
// SIGTERM when this one ends.
// REQUIRES: this process is root's and has one thread.
//   kRefused  the account is not known; in the new process: it cannot become
//             that account
[[nodiscard]] rocksdb::Status ForkAs(const AccountStart& start, pid_t* child);

}  // namespace sstferry
