// SIGINT, SIGTERM and SIGHUP as calls, and the lines to a service manager.
#pragma once

#include <functional>
#include <string>
#include <thread>

#include "rocksdb/status.h"

namespace sstferry {

// Blocks SIGINT and SIGTERM, ignores SIGPIPE and does not ignore SIGCHLD, for
// this thread and all it starts later. Call first thing in main().
void HoldSignals();
// Blocks SIGHUP too, which otherwise ends the process. Call before the first
// thread is started.
void HoldReloadSignal();

// Calls `stop` once, from a thread of its own, when SIGINT or SIGTERM arrives
// or Trigger() is called; later ones change nothing. Calls `reload`, if there
// is one, for every SIGHUP from the same thread.
//
// Ownership: both must stay callable until the destructor returns.
// Threads:   Trigger() from any thread.
// REQUIRES: HoldSignals() was called, and HoldReloadSignal() with `reload`; one
//   watcher at a time.
class StopWatcher {
 public:
  explicit StopWatcher(std::function<void()> stop,
                       std::function<void()> reload = nullptr);
  StopWatcher(const StopWatcher&) = delete;
  StopWatcher& operator=(const StopWatcher&) = delete;
  ~StopWatcher();

  void Trigger();

 private:
  void Loop();

  // 0: none arrived.
  int TakeSignal(bool readable);

  const std::function<void()> stop_;
  const std::function<void()> reload_;
  int signals_ = -1;  // signalfd
  int wake_ = -1;     // eventfd: kStop or kEnd is added
  std::thread thread_;
};

// Sends READY=1 and STATUS=`status`, a line for `systemctl status`, to the
// socket that $NOTIFY_SOCKET names (a path, or '@' and an abstract name). OK
// when the variable is not set.
[[nodiscard]] rocksdb::Status NotifyReady(const std::string& status);
// The same with STOPPING=1.
[[nodiscard]] rocksdb::Status NotifyStopping();

}  // namespace sstferry
