// Starts and ends the ssh process that logs in to another machine and runs a
// command there.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "rocksdb/status.h"
#include "sstferry/descriptor.h"
#include "sstferry/transport.h"

namespace sstferry {

// Sets *out to a command line for /bin/sh that runs place.commands.ssh. ssh
// then runs place.commands.remote with the arguments `words` at place.host.
// Quotes `words` for the shell at that host.
//   kRefused  ssh or a shell might interpret a name or a word
[[nodiscard]] rocksdb::Status SshWords(const SshPlace& place,
                                       const std::vector<std::string>& words,
                                       bool asks_nobody,
                                       std::vector<std::string>* out);

// Returns true if ssh can ask for a password at a terminal.
bool HasTerminal();

// A running ssh process.
//
// Ownership: owns the process. The destructor waits briefly for the process to
//   end, and then kills it.
// Threads:   all members from any thread.
class SshProcess {
 public:
  // Starts the program words[0]. If `socket` is not null, makes a socket pair:
  // one socket becomes the program's standard input and output, and *socket is
  // the other. If `socket` is null, the program gets the input and output of
  // this process. The program always gets the standard error of this process.
  //   kInternal  the system cannot start the program
  [[nodiscard]] static rocksdb::Status Start(
      const std::vector<std::string>& words, Descriptor* socket,
      std::unique_ptr<SshProcess>* process);
  ~SshProcess();

  // Blocks until the process has ended, and returns its status as waitpid(2)
  // does, or kUnknownEnd. Returns nullopt if the process still runs after
  // `limit`.
  std::optional<int> Wait(std::chrono::milliseconds limit);
  void Signal(int signal);

 private:
  explicit SshProcess(pid_t pid) : pid_(pid) {}
  bool Reap();

  const pid_t pid_;
  std::mutex mu_;
  std::optional<int> ended_;  // under mu_
};

// Returns for example "ended with exit code 255" or "was ended by signal 15".
std::string DescribeExit(int wait_status);

}  // namespace sstferry
