// The ssh process that logs in to another machine and runs a command there.
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

// Makes a command line for /bin/sh. It runs place.commands.ssh, which runs
// place.commands.remote with `words` at place.host. Words are quoted, so that
// the remote shell passes them on unchanged.
//   kRefused  a name or a word that ssh or a shell might interpret
[[nodiscard]] rocksdb::Status SshWords(const SshPlace& place,
                                       const std::vector<std::string>& words,
                                       bool asks_nobody,
                                       std::vector<std::string>* out);

// Returns true if ssh can ask for a password at a terminal.
bool HasTerminal();

// A running ssh process.
//
// Ownership: owns the process. The destructor waits briefly for the process
//   to end, then kills it.
// Threads:   all members from any thread.
class SshProcess {
 public:
  // Starts words[0]. If `socket` is not null, the process's standard input and
  // output are one end of a socket pair, and *socket is the other end.
  // Otherwise the process inherits this process's input and output. It always
  // inherits this process's standard error.
  // kInternal: the system cannot start it.
  [[nodiscard]] static rocksdb::Status Start(
      const std::vector<std::string>& words, Descriptor* socket,
      std::unique_ptr<SshProcess>* process);
  ~SshProcess();

  // Blocks until the process has ended, and returns its status as waitpid(2)
  // does; nullopt: the process still runs after `limit`.
  std::optional<int> Wait(std::chrono::milliseconds limit);
  void Signal(int signal);

 private:
  explicit SshProcess(pid_t pid) : pid_(pid) {}
  bool Reap();

  const pid_t pid_;
  std::mutex mu_;
  std::optional<int> ended_;  // under mu_
};

// Returns "ended with exit code 255" or "was ended by signal 15".
std::string DescribeExit(int wait_status);

}  // namespace sstferry
