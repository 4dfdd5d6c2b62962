// Runs a command that root starts for another account's directory, such as a
// pull or a promotion, as that account, so that no code that reads bytes of a
// peer or a database runs as root. The process that root started does only what
// root must do: it runs the hooks, reads the config file and the TLS files, and
// writes the metrics file.
//
//   root:     parse -- fork -------- hook, metrics file ----- wait
//                        \           ^ |  (messages)           ^
//   account:              drop -- pull -------- exchange ----- end
//
// The account's process has no access to root's terminal. Root's process copies
// its output from pipes to standard output and error, and forwards Ctrl-C,
// Ctrl-Z and the terminal's width.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "rocksdb/status.h"
#include "sstferry/options.h"
#include "sstferry/transport.h"
#include "tools/sstferry/console.h"

namespace sstferry {

// Work that root's process does when the child requests it.
struct RootDuties {
  std::string target_dir;
  SwapHook before_swap;  // may be null; of a promotion: --before
  SwapHook after_swap;
  std::function<rocksdb::Status(const std::string& text)> write_metrics;
  // RunAs() changes these paths to those of copies that any account may read.
  TlsFiles* tls = nullptr;
  LogFunction log;
  bool uses_ssh = false;  // the log then says that ssh uses the account's keys
  std::string command = "pull";  // for messages
};

// Called by the child, for work that only root's process may do. Threads: any,
// one at a time.
class RootSide {
 public:
  virtual ~RootSide() = default;
  // Runs a hook of the command. The event's stopped() ends it.
  [[nodiscard]] virtual rocksdb::Status RunHook(bool before,
                                                const SwapEvent& event) = 0;
  [[nodiscard]] virtual rocksdb::Status WriteMetrics(
      const std::string& text) = 0;
  // Sends the JSON object of the command.
  virtual void SendResult(const std::string& json) = 0;
  // Returns the destination of the account's standard error.
  virtual Screen screen() const = 0;
};

// Returns the destination of standard error of this process. `root`: null if it
// is not relayed.
Screen ScreenFor(const RootSide* root);

// Runs `child` in a process of account `uid`, with the TLS files and the config
// file in `arguments` replaced by copies that it may read, and logs this.
// Returns the child's exit code and passes its result to the receiver
// (console.h). Returns in root's process only; the child ends here. Forwards
// SIGINT, SIGTERM, SIGHUP and SIGTSTP. The account may read the TLS key,
// because its pulls use the key.
// REQUIRES: this process is root's and has one thread; HoldSignals() and
// HoldReloadSignal() were called.
int RunAs(uid_t uid, const RootDuties& duties,
          std::vector<std::string> arguments,
          const std::function<int(const std::vector<std::string>& arguments,
                                  RootSide* root)>& child);

}  // namespace sstferry
