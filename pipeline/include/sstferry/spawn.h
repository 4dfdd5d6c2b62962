// Starts child processes: other programs, or a part of this program that runs
// as another account. All child processes are started and reaped by this file.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "rocksdb/status.h"

namespace sstferry {

// A program to start under this account.
struct ProgramStart {
  // Connects the stream to /dev/null.
  static constexpr int kNothing = -1;

  // The path of the program, followed by its arguments.
  std::vector<std::string> words;
  // Environment of the program, as strings NAME=VALUE. Not set: this process's
  // environment.
  std::optional<std::vector<std::string>> environment;
  // Descriptors for the program's standard streams.
  int in = kNothing;
  int out = kNothing;
  int err = 2;
  // The program's descriptor 3. kNothing: descriptor 3 is closed.
  int third = kNothing;
  // Puts the program into its own process group, so that kill(-child) ends it
  // and all processes that it started.
  bool own_group = false;
};

// Starts the program. It has no other open descriptors than those in `start`,
// and default signal handling.
//   kInternal  the system cannot start it
[[nodiscard]] rocksdb::Status Spawn(const ProgramStart& start, pid_t* child);

// The wait status of a child that the functions below could not reap, because
// the application reaps all children or ignores SIGCHLD. For this value,
// WIFEXITED() and WIFSIGNALED() are false.
inline constexpr int kUnknownEnd = -1;

// If the child has ended, reaps it and returns true. Then sets *wait_status to
// the status from waitpid(2), or to kUnknownEnd. Does not block.
bool ReapChild(pid_t child, int* wait_status);
// Blocks until the child has ended and returns its wait status, or kUnknownEnd.
int AwaitChild(pid_t child);
// Sends a signal to the child, or to its group (ProgramStart::own_group). Does
// nothing if the child was reaped, because another process may have its number.
void SignalChild(pid_t child, int signal, bool whole_group = false);

struct Account {
  uid_t uid = 0;
  gid_t group = 0;
  // Empty: this machine does not know the account.
  std::string name;
  std::string home;
  std::string shell;
};
// Finds an account by its number. Unknown fields of the result stay empty.
Account FindAccount(uid_t uid);

// How to start a process as another account, isolated from this process: it
// must not have access to this process's terminal, files and memory.
struct AccountStart {
  Account account;
  // Pipes for its standard output and standard error.
  int out = -1;
  int err = -1;
  // Other descriptors of this process that stay open in the new process.
  std::vector<int> kept;
};

// Forks. In the child, *child is 0. The child has a new session without a
// terminal, no standard input, and only the environment variables that it
// needs. It has the account's rights, HOME and groups, and cannot gain other
// rights. It gets SIGTERM when the parent ends. REQUIRES: this process runs as
// root and has one thread.
//   kRefused  the account is unknown; in the child: it cannot become this
//             account
[[nodiscard]] rocksdb::Status ForkAs(const AccountStart& start, pid_t* child);

}  // namespace sstferry
