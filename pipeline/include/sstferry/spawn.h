// Starts child processes: other programs, or a part of this program that runs
// as another account. No other file starts child processes.
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
  // Strings of the form NAME=VALUE; unset: this process's environment.
  std::optional<std::vector<std::string>> environment;
  // Descriptors for the program's standard streams.
  int in = kNothing;
  int out = kNothing;
  int err = 2;
  int third = kNothing;  // the program's descriptor 3; kNothing: closed
  // Puts the program into its own process group, so that kill(-child) ends it
  // and all processes that it started.
  bool own_group = false;
};

// Starts the program with only these descriptors and default signal handling,
// as a shell does.
//   kInternal  the system cannot start it
[[nodiscard]] rocksdb::Status Spawn(const ProgramStart& start, pid_t* child);

struct Account {
  uid_t uid = 0;
  gid_t group = 0;
  std::string name;  // empty: this machine does not know the account
  std::string home;
  std::string shell;
};
// Returns the account with this number; unknown fields stay empty.
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
// environment variables that it needs, and cannot gain other rights. It gets
// SIGTERM when the parent ends. REQUIRES: this process runs as root and has one
// thread.
//   kRefused  the account is unknown; in the child: it cannot become this
//             account
[[nodiscard]] rocksdb::Status ForkAs(const AccountStart& start, pid_t* child);

}  // namespace sstferry
