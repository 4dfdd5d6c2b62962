// Calls functions when SIGINT, SIGTERM or SIGHUP arrives. Also notifies systemd
// or another service manager.
#pragma once

#include <functional>
#include <string>
#include <thread>

#include "rocksdb/status.h"

namespace sstferry {

// Blocks SIGINT and SIGTERM in this thread and in all threads that it starts
// later. Ignores SIGPIPE and SIGXFSZ, and restores the default for SIGCHLD.
// Call this function first in main().
void HoldSignals();
// Blocks SIGHUP in the same way; otherwise SIGHUP ends the process. Call this
// function before the process starts its first thread.
void HoldReloadSignal();

// Discards each SIGINT and SIGTERM that has arrived but that no StopWatcher has
// read.
// REQUIRES: HoldSignals() was called.
void DropStopSignals();

// Runs a thread that waits for signals. On the first SIGINT or SIGTERM, or when
// Trigger() is called, the thread calls `stop`, but only once. On every SIGHUP
// it calls `reload`, unless `reload` is null.
//
// Ownership: `stop` and `reload` must stay callable until the destructor
//            returns.
// Threads:   Trigger() from any thread.
// REQUIRES:  HoldSignals() was called. If `reload` is not null,
//            HoldReloadSignal() was called. No other StopWatcher exists.
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

  // Returns the next signal if signals_ is readable. Otherwise returns 0.
  int TakeSignal(bool readable);

  const std::function<void()> stop_;
  const std::function<void()> reload_;
  int signals_ = -1;  // a signalfd
  int wake_ = -1;     // an eventfd; wakes the thread to stop or to end
  std::thread thread_;
};

// Tells the service manager that this process is ready: sends READY=1 and
// STATUS=`status` to the socket $NOTIFY_SOCKET, as in sd_notify(3). systemctl
// status shows `status`. Returns OK if the variable is not set.
[[nodiscard]] rocksdb::Status NotifyReady(const std::string& status);
// Tells the service manager that this process is stopping.
[[nodiscard]] rocksdb::Status NotifyStopping();

}  // namespace sstferry
