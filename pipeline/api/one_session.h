// A control connection for one request, which may be cancelled at any moment.
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

// Returns how to ask with these timeouts, but only once. `deadline`: of all; 0:
// none.
SourceLinkOptions AskOnce(const Timeouts& timeouts,
                          std::chrono::milliseconds deadline);

// Threads: Run() from one, once; Cancel() from any.
class OneSession {
 public:
  // Connects, calls `ask`, and tells the source how it ended, at `place`. The
  // dialer must outlive the call. kCancelled if Cancel() ended it.
  [[nodiscard]] rocksdb::Status Run(
      Dialer* dialer, const SourceLinkOptions& options,
      const FailurePlace& place,
      const std::function<rocksdb::Status(SourceSession*)>& ask);
  void Cancel();

 private:
  void CloseLink();

  FirstFailure failure_{[this] { CloseLink(); }};
  std::mutex mu_;
  std::unique_ptr<SourceLink> link_;  // changes under mu_; null: nobody asks
};

}  // namespace sstferry
