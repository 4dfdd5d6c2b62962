// If root starts a command such as a pull, runs the command in a child process
// as the account that owns the target directory. Code that reads a peer's bytes
// or a database then does not run as root. Root's process itself does only what
// root must do: it runs the hooks, reads the config file and the TLS files, and
// writes the metrics file.
//
//   root:     parse -- fork -------- hook, metrics file ----- wait
//                        \           ^ |  (messages)           ^
//   account:              drop -- pull -------- exchange ----- end
//
// The child has no access to root's terminal. Root's process copies the child's
// output to its own standard output and error (relay.h). It passes Ctrl-C,
// Ctrl-Z and the terminal's width to the child.
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

// The work that root's process does for the child, and the values it needs.
struct RootDuties {
  std::string target_dir;
  SwapHook before_swap;  // may be null; for a promotion the hook of --before
  SwapHook after_swap;   // may be null; for a promotion the hook of --after
  std::function<rocksdb::Status(const std::string& text)> write_metrics;
  // The TLS files. RunAs() copies the files, and replaces the paths by the
  // paths of the copies, which any account may read.
  TlsFiles* tls = nullptr;
  LogFunction log;
  bool uses_ssh = false;  // RunAs() logs that ssh uses the account's keys
  std::string command = "pull";  // for messages
};

// The functions by which the child asks root's process to work for it.
//
// Threads: any thread may call them, but only one at a time.
class RootSide {
 public:
  virtual ~RootSide() = default;
  // Runs before_swap or after_swap of RootDuties. Ends the hook if stopped() of
  // the event returns true.
  [[nodiscard]] virtual rocksdb::Status RunHook(bool before,
                                                const SwapEvent& event) = 0;
  [[nodiscard]] virtual rocksdb::Status WriteMetrics(
      const std::string& text) = 0;
  // Sends the JSON object of the command to root's process.
  virtual void SendResult(const std::string& json) = 0;
  // Describes root's standard error, to which the child's output is copied.
  virtual Screen screen() const = 0;
};

// Describes the final destination of this process's standard error. In a child
// of RunAs(), this is root's standard error. If `root` is null, it is the
// standard error of this process.
Screen ScreenFor(const RootSide* root);

// Forks a child process. The child calls the function `child` as the account
// `uid`, and exits with the return value of the function. Root's process waits
// for the child and returns the child's exit code. It passes the child's JSON
// object to the ResultReceiver (console.h), and passes SIGINT, SIGTERM, SIGHUP
// and SIGTSTP to the child.
//
// Copies the TLS files and the config file in `arguments` to files that the
// account may read. The account may read the TLS key, because the pull needs
// it. Logs the name of the account.
// REQUIRES: this process is root's and has only one thread. HoldSignals() and
// HoldReloadSignal() were called.
int RunAs(uid_t uid, const RootDuties& duties,
          std::vector<std::string> arguments,
          const std::function<int(const std::vector<std::string>& arguments,
                                  RootSide* root)>& child);

}  // namespace sstferry
