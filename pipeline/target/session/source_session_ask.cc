// Questions to a source that open nothing: what it serves, what it holds.
#include "pipeline/target/session/source_session.h"

namespace sstferry {

using rocksdb::Status;

Status SourceSession::HandleAnswer(const Frame& frame) {
  std::lock_guard<std::mutex> lock(mu_);
  const Status status = frame.type == FrameType::kListReply
                            ? list_.DecodeFrom(frame.payload)
                            : status_reply_.DecodeFrom(frame.payload);
  answered_ = status.ok();
  changed_.notify_all();
  return status;
}

Status SourceSession::List(std::vector<std::string>* names) {
  Status status = channel()->SendMessage(FrameType::kListRequest,
                                         ListRequest(),
                                         WaitLimit::Within(kSendLimit));
  if (status.ok()) {
    status = WaitFor(answered_);
  }
  std::lock_guard<std::mutex> lock(mu_);
  *names = list_.names;
  return status;
}

Status SourceSession::AskHeld(const std::string& database,
                              std::vector<HeldSnapshot>* held) {
  Status status = channel()->SendMessage(FrameType::kStatusRequest,
                                         StatusRequest{database},
                                         WaitLimit::Within(kSendLimit));
  if (status.ok()) {
    status = WaitFor(answered_);
  }
  std::lock_guard<std::mutex> lock(mu_);
  *held = status_reply_.snapshots;
  return status;
}

}  // namespace sstferry
