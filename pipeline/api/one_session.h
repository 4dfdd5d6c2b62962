// Opens a control connection for one request, which can be cancelled at any
// time.
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

// Returns options for a single attempt with these timeouts. `deadline` limits
// the whole request; 0: no limit.
SourceLinkOptions AskOnce(const Timeouts& timeouts,
                          std::chrono::milliseconds deadline);

// Runs one request.
//
// Threads: Run() from one thread, once; Cancel() from any.
class OneSession {
 public:
  // Connects, calls `ask`, and sends the result to the source at `place`. The
  // dialer must outlive the call. Returns kCancelled after Cancel().
  [[nodiscard]] rocksdb::Status Run(
      Dialer* dialer, const SourceLinkOptions& options,
      const FailurePlace& place,
      const std::function<rocksdb::Status(SourceSession*)>& ask);
  void Cancel();

 private:
  void CloseLink();

  FirstFailure failure_{[this] { CloseLink(); }};
  std::mutex mu_;
  std::unique_ptr<SourceLink> link_;  // set under mu_; null: no request runs
};

}  // namespace sstferry
