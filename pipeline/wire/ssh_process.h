// The program that logs in to another machine and runs a command there.
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

// Returns the words of /bin/sh that run place.commands.ssh, which runs
// place.commands.remote with `words` at place.host. The remote shell reads the
// words back as they are.
//   kRefused  a name or a word that ssh or a shell may read as something else
[[nodiscard]] rocksdb::Status SshWords(const SshPlace& place,
                                       const std::vector<std::string>& words,
                                       bool asks_nobody,
                                       std::vector<std::string>* out);

// True if there is a terminal at which ssh can ask a person for a password.
bool HasTerminal();

// Ownership: owns the process. The destructor waits for its end for a moment,
//   then ends it.
// Threads:   all members from any thread.
class SshProcess {
 public:
  // Starts words[0]. If `socket` is not null, it gets this side's end of a pair
  // that is the process's standard input and output; else it has those of this
  // process. Standard error is that of this process.
  // kInternal: the system cannot start it.
  [[nodiscard]] static rocksdb::Status Start(
      const std::vector<std::string>& words, Descriptor* socket,
      std::unique_ptr<SshProcess>* process);
  ~SshProcess();

  // Returns how it ended, as waitpid(2) tells it; nullopt: it runs after
  // `limit` still.
  std::optional<int> Wait(std::chrono::milliseconds limit);
  void Signal(int signal);

 private:
  explicit SshProcess(pid_t pid) : pid_(pid) {}
  bool Reap();

  const pid_t pid_;
  std::mutex mu_;
  std::optional<int> ended_;  // under mu_
};

// "ended with exit code 255" or "was ended by signal 15".
std::string DescribeExit(int wait_status);

}  // namespace sstferry
