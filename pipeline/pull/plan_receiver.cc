#include "pipeline/pull/plan_receiver.h"

#include <algorithm>
#include <utility>

namespace sstferry {
using rocksdb::Status;

void PlanReceiver::Begin() {
  asked_at_ = Clock::now();
  if (!has_begun_) first_asked_at_ = asked_at_;
  has_begun_ = true;
  plan_ = PlanDecoder();
}

uint64_t PlanReceiver::SecondsSinceFirstAsked() const {
  return static_cast<uint64_t>(
      std::chrono::ceil<std::chrono::seconds>(Clock::now() - first_asked_at_)
          .count());
}

// Stores the time at which to ask again. The decoder limits the time that the
// source asks for.
Status PlanReceiver::TakeBusy(const Frame& frame) {
  Busy busy;
  RETURN_IF_ERROR(Decode(frame.payload, &busy));
  asks_again_at_ =
      Clock::now() + std::chrono::milliseconds(busy.retry_after_millis);
  return MakeStatus(EndState::kBusy,
                    "all transfer slots of the source are in use");
}

Status PlanReceiver::CheckTransfer() {
  const Opened& opened = plan_.plan().opened;
  asks_again_at_.reset();
  if (transfer_id_.has_value() && opened.transfer_id != *transfer_id_) {
    return MakeStatus(EndState::kSnapshotGone,
                      "the source opened another transfer than the one that "
                      "this pull had begun");
  }
  transfer_id_ = opened.transfer_id;
  source_resumed_ = opened.resumed;
  return Status::OK();
}

Status PlanReceiver::Take(const Frame& frame) {
  if (frame.type == FrameType::kBusy) {
    return TakeBusy(frame);
  }
  Status status = plan_.Add(frame.type, frame.payload);
  if (status.ok() && frame.type == FrameType::kOpened) {
    status = CheckTransfer();
  }
  return status.ok() && plan_.is_complete() ? CheckSamePlan() : status;
}

// Checks that the plan is the same as an earlier one.
Status PlanReceiver::CheckSamePlan() {
  const Digest128 digest = plan_.plan().Digest();
  if (digest_.has_value() && !(*digest_ == digest)) {
    return MakeStatus(EndState::kSnapshotGone,
                      "the source sent a different plan for the same "
                      "snapshot");
  }
  digest_ = digest;
  return Status::OK();
}

}  // namespace sstferry
