#include "pipeline/operation/one_session.h"

#include <memory>

#include "format/end_state.h"

namespace sstferry {
namespace {

using rocksdb::Status;

Status Cancelled() {
  return MakeStatus(EndState::kCancelled, "stopped on request");
}

}  // namespace

Status OneSession::Run(Dialer* dialer, SessionLimits limits,
                       const char* where,
                       const std::function<Status(SourceSession*)>& ask) {
  {
    std::lock_guard<std::mutex> lock(mu_);
    dialer_ = dialer;
  }
  SourceSessionOptions options;
  options.connect_timeout = limits.connect_timeout;
  options.peer_timeout = limits.peer_timeout;
  options.ping_interval = limits.peer_timeout / 2;
  options.stall_timeout = limits.stall_timeout;
  if (limits.deadline.count() > 0) {
    options.until = Clock::now() + limits.deadline;
  }
  options.handshakes = &handshakes_;
  std::unique_ptr<SourceSession> session;
  Status status = cancelled_
                      ? Cancelled()
                      : SourceSession::Connect(dialer, options, &session);
  {
    std::lock_guard<std::mutex> lock(mu_);
    session_ = session.get();
    if (status.ok() && cancelled_) {
      status = Cancelled();
    }
  }
  if (status.ok()) {
    status = ask(session.get());
  }
  if (session != nullptr) {
    session->End(status, where);
  }
  std::lock_guard<std::mutex> lock(mu_);
  session_ = nullptr;
  dialer_ = nullptr;
  return cancelled_ && !status.ok() ? Cancelled() : status;
}

void OneSession::Cancel() {
  cancelled_ = true;
  handshakes_.CloseAll();
  std::lock_guard<std::mutex> lock(mu_);
  if (dialer_ != nullptr) {
    dialer_->Close();
  }
  if (session_ != nullptr) {
    session_->Cancel();
  }
}

}  // namespace sstferry
