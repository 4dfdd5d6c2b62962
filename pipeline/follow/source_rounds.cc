#include "pipeline/follow/source_rounds.h"

#include <utility>

#include "format/end_state.h"
#include "pipeline/base/this_machine.h"

namespace sstferry {

using rocksdb::Status;

Status SourceRounds::Connect(std::shared_ptr<SourceSession>* session) {
  {
    std::lock_guard<std::mutex> lock(mu_);
    *session = session_;
    if (closed_) {
      return MakeStatus(EndState::kCancelled, "stopped on request");
    }
  }
  if (*session != nullptr) {
    return Status::OK();
  }
  SourceSessionOptions options;
  options.timeouts = timeouts_;
  options.handshakes = &handshakes_;
  std::unique_ptr<SourceSession> made;
  RETURN_IF_ERROR(SourceSession::Connect(dialer_, options, &made));
  std::lock_guard<std::mutex> lock(mu_);
  session_ = std::move(made);
  *session = session_;
  return closed_ ? MakeStatus(EndState::kCancelled, "stopped on request")
                 : Status::OK();
}

Status SourceRounds::Ask(const FollowRequest& request, Round* round) {
  *round = Round();
  round->asked_micros = MicrosNow();
  std::shared_ptr<SourceSession> session;
  RETURN_IF_ERROR(Connect(&session));
  const Status status =
      session->AskWalBytes(request, &round->logs, &round->end);
  if (!status.ok()) {
    round->logs.clear();
    std::lock_guard<std::mutex> lock(mu_);
    past_bytes_ += session->received_bytes();
    session_.reset();
    return closed_ ? MakeStatus(EndState::kCancelled, "stopped on request")
                   : status;
  }
  round->heard_micros = MicrosNow();
  return Status::OK();
}

uint64_t SourceRounds::received_bytes() const {
  std::lock_guard<std::mutex> lock(mu_);
  return past_bytes_ + (session_ != nullptr ? session_->received_bytes() : 0);
}

void SourceRounds::Close() {
  std::lock_guard<std::mutex> lock(mu_);
  closed_ = true;
  handshakes_.CloseAll();
  if (session_ != nullptr) {
    session_->Cancel();
  }
}

}  // namespace sstferry
