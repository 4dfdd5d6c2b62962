#include "pipeline/api/one_session.h"

#include <utility>

#include "format/end_state.h"

namespace sstferry {

using rocksdb::Status;

SourceLinkOptions AskOnce(const Timeouts& timeouts,
                          std::chrono::milliseconds deadline) {
  SourceLinkOptions options;
  options.timeouts = TriedOnce(timeouts);
  if (deadline.count() > 0) {
    options.until = Clock::now() + deadline;
  }
  return options;
}

Status OneSession::Run(Dialer* dialer, const SourceLinkOptions& options,
                       const FailurePlace& place,
                       const std::function<Status(SourceSession*)>& ask) {
  auto made = std::make_unique<SourceLink>(dialer, options, &failure_);
  SourceLink* const link = made.get();
  {
    std::lock_guard<std::mutex> lock(mu_);
    link_ = std::move(made);
  }
  Status status = failure_.failed() ? failure_.status() : link->Connect();
  if (status.ok()) {
    status = ask(link->session());
  }
  link->End(status, place);
  {
    std::lock_guard<std::mutex> lock(mu_);
    made = std::move(link_);
  }
  return status.ok() || !failure_.failed() ? status : failure_.status();
}

void OneSession::Cancel() {
  failure_.Set(MakeStatus(EndState::kCancelled, "stopped on request"),
               {FailedPart::kTarget});
}

void OneSession::CloseLink() {
  std::lock_guard<std::mutex> lock(mu_);
  if (link_ != nullptr) {
    link_->Close();
  }
}

}  // namespace sstferry
