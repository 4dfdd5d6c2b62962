// Opens a control connection for one request. Another thread can cancel the
// request at any time.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>

#include "pipeline/pull/first_failure.h"
#include "pipeline/pull/source_link.h"
#include "rocksdb/status.h"
#include "sstferry/transport.h"

namespace sstferry {

// Returns options for a single attempt with these timeouts. `deadline` is the
// maximum time for the whole request; 0 means no limit.
SourceLinkOptions AskOnce(const Timeouts& timeouts,
                          std::chrono::milliseconds deadline);

// Runs one request.
//
// Threads: one thread calls Run(), once; any thread may call Cancel().
class OneSession {
 public:
  // Connects, calls `ask`, and reports the result to the source. If the result
  // is a failure, the report says that it occurred at `place`. The dialer must
  // outlive the call. Returns kCancelled after Cancel().
  [[nodiscard]] rocksdb::Status Run(
      Dialer* dialer, const SourceLinkOptions& options,
      const FailurePlace& place,
      const std::function<rocksdb::Status(SourceSession*)>& ask);
  void Cancel();

 private:
  void CloseLink();

  FirstFailure failure_{[this] { CloseLink(); }};
  std::mutex mu_;
  std::unique_ptr<SourceLink> link_;  // guarded by mu_; null: no request runs
};

}  // namespace sstferry
