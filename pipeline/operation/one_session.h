// A control connection for one question, which may be cancelled at any moment.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>

#include "pipeline/target/session/channel_set.h"
#include "pipeline/target/session/source_session.h"
#include "rocksdb/status.h"
#include "sstferry/transport.h"

namespace sstferry {

struct SessionLimits {
  std::chrono::milliseconds connect_timeout{0};
  std::chrono::milliseconds peer_timeout{0};
  std::chrono::milliseconds stall_timeout{0};
  std::chrono::milliseconds deadline{0};  // of all; 0: none
};

// Threads: Run() from one, once; Cancel() from any.
class OneSession {
 public:
  // Connects, asks, and tells the source how it ended, at `where`. The dialer
  // must outlive the call. kCancelled when Cancel() was its end.
  [[nodiscard]] rocksdb::Status Run(
      Dialer* dialer, SessionLimits limits, const char* where,
      const std::function<rocksdb::Status(SourceSession*)>& ask);
  void Cancel();

 private:
  std::atomic<bool> cancelled_{false};
  ChannelSet handshakes_;
  std::mutex mu_;
  Dialer* dialer_ = nullptr;          // under mu_
  SourceSession* session_ = nullptr;  // under mu_
};

}  // namespace sstferry
