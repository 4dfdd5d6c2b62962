// Turns SIGINT, SIGTERM and SIGHUP into calls, and notifies a service manager.
#pragma once

#include <functional>
#include <string>
#include <thread>

#include "rocksdb/status.h"

namespace sstferry {

// Blocks SIGINT and SIGTERM, ignores SIGPIPE, and restores the default for
// SIGCHLD, for this thread and all that it starts later. Call it first in
// main().
void HoldSignals();
// Also blocks SIGHUP, which otherwise ends the process. Call it before the
// first thread is started.
void HoldReloadSignal();

// Discards each pending SIGINT and SIGTERM, which no StopWatcher has read.
// REQUIRES: HoldSignals() was called.
void DropStopSignals();

// Calls `stop` once, from its own thread, when the first SIGINT or SIGTERM
// arrives or Trigger() is called. For every SIGHUP, calls `reload`, unless
// null, from the same thread.
//
// Ownership: `stop` and `reload` must stay callable until the destructor
//            returns.
// Threads:   Trigger() from any thread.
// REQUIRES:  HoldSignals() was called, and HoldReloadSignal() with `reload`;
//            one watcher at a time.
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

  // Reads a signal from signals_ if it is readable. Returns 0 if none arrived.
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
// Sends STOPPING=1 in the same way.
[[nodiscard]] rocksdb::Status NotifyStopping();

}  // namespace sstferry
