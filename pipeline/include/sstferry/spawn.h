// Starts all child processes: other programs, or a part of this one that runs
// as another account.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "rocksdb/status.h"

namespace sstferry {

// A program to start under this account.
struct ProgramStart {
  static constexpr int kNothing = -1;  // /dev/null

  std::vector<std::string> words;  // [0] is the path of the program
  // NAME=VALUE each; unset: the environment of this process.
  std::optional<std::vector<std::string>> environment;
  // Descriptors for its standard streams.
  int in = kNothing;
  int out = kNothing;
  int err = 2;
  int third = kNothing;  // its descriptor 3; kNothing: closed
  // Gives it a process group, so that kill(-child) ends the program and all
  // that it started.
  bool own_group = false;
};

// Starts the program with these descriptors and no others, and with default
// signal handling, as a shell does.
//   kInternal  the system cannot start it
[[nodiscard]] rocksdb::Status Spawn(const ProgramStart& start, pid_t* child);

struct Account {
  uid_t uid = 0;
  gid_t group = 0;
  std::string name;  // empty: this machine does not know the account
  std::string home;
  std::string shell;
};
// Returns the account with that number; unknown fields stay empty.
Account FindAccount(uid_t uid);

// A process to start as another account. It must have no access to the
// terminal, files and memory of this process.
struct AccountStart {
  Account account;
  int out = -1;  // pipes for its standard output and error
  int err = -1;
  std::vector<int> kept;  // other descriptors that stay open in it
};

// Forks. In the child *child is 0. The child has its own session without a
// terminal, no standard input, the account's rights, HOME and groups, only the
// environment variables that its work needs, and cannot gain other rights. It
// gets SIGTERM when the parent ends. REQUIRES: this process is root's and has
// one thread.
//   kRefused  the account is unknown; in the child: it cannot become that
//             account
[[nodiscard]] rocksdb::Status ForkAs(const AccountStart& start, pid_t* child);

}  // namespace sstferry
