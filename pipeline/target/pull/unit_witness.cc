#include "pipeline/target/pull/unit_witness.h"

#include "pipeline/target/lane/lane_retry.h"

namespace sstferry {

using rocksdb::Status;

Status UnitWitness::Compare(uint32_t range_id, const Digest128& content,
                            bool* equal) {
  std::lock_guard<std::mutex> lock(mu_);
  LaneRetry retry(context_->state, "comparison with the first source",
                  context_->options->retry_for);
  Status status;
  do {
    const bool opens = channel_ == nullptr;
    status = opens ? context_->link->OpenLane(lane_, &channel_) : Status::OK();
    const bool opened = status.ok();
    DigestReply reply;
    if (opened) {
      retry.Connected();
      status = Ask(range_id, &reply);
    }
    if (status.ok()) {
      *equal = reply.content == content;
      return status;
    }
    const LaneFailure failure =
        FailureToAsk(status, opened ? channel_ : nullptr,
                     context_->failure->failed());
    channel_ = nullptr;
    status = retry.AwaitTurn(status, failure);
  } while (status.ok());
  return status;
}

Status UnitWitness::Ask(uint32_t range_id, DigestReply* reply) {
  UnitDigestRequest request;
  request.range_id = range_id;
  const Status status =
      channel_->SendMessage(FrameType::kUnitDigestRequest, request);
  return status.ok() ? context_->link->guard().ReceiveMessage(
                           channel_, FrameType::kDigestReply, reply)
                     : status;
}

}  // namespace sstferry
