// A pull that root starts for another account's directory runs as that account:
// no code that reads a peer's or a database's bytes is root then. The process
// that root started keeps what only root may: it runs the hooks, reads the
// config file and the TLS files, and writes the metrics file.
//
//   root:     parse -- fork -------- hook, metrics file ----- wait
//                        \           ^ |  (messages)           ^
//   account:              drop -- pull -------- exchange ----- end
//
// The account's process has no terminal of root's. Root's process writes to
// standard output and error what comes through pipes, and passes on what is
// typed: Ctrl-C, Ctrl-Z and the terminal's width.
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

// The duties that stay with root.
struct RootDuties {
  std::string target_dir;
  SwapHook before_swap;  // may be null
  SwapHook after_swap;
  std::function<rocksdb::Status(const std::string& text)> write_metrics;
  TlsFiles* tls = nullptr;  // gets the names of copies that anybody may read
  LogFunction log;
  bool uses_ssh = false;  // then the log says that ssh has the account's keys
};

// Root's side, which the child calls instead of doing it itself. Threads: any,
// one at a time.
class RootSide {
 public:
  virtual ~RootSide() = default;
  // Runs a hook of the pull. The event's stopped() ends it.
  [[nodiscard]] virtual rocksdb::Status RunHook(bool before,
                                                const SwapEvent& event) = 0;
  [[nodiscard]] virtual rocksdb::Status WriteMetrics(
      const std::string& text) = 0;
  // Returns where the account's standard error ends.
  virtual Screen screen() const = 0;
};

// Returns where standard error of this process ends. `root`: null if it is not
// passed on.
Screen ScreenFor(const RootSide* root);

// Says in the log that it runs as account `uid`. Runs `child` in a process of
// that account, with the TLS files and the config
// file in `arguments` replaced by copies that it may read, and returns its exit
// code in both processes. Passes SIGINT, SIGTERM, SIGHUP and SIGTSTP on. The account may
// read the TLS key: its pulls act with it. REQUIRES: this process is root's and
// has one thread; HoldSignals() and HoldReloadSignal() were called.
int RunAs(uid_t uid, const RootDuties& duties,
          std::vector<std::string> arguments,
          const std::function<int(const std::vector<std::string>& arguments,
                                  RootSide* root)>& child);

}  // namespace sstferry
