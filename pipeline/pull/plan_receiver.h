// Puts together what a source pinned and planned from the frames of a plan.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "format/digest.h"
#include "format/messages.h"
#include "format/plan.h"
#include "pipeline/wire/channel.h"
#include "rocksdb/status.h"
#include "sstferry/transport.h"

namespace sstferry {

// Receives the plan of one transfer, as often as the source is asked for it: a
// plan that comes again must be the same.
// Threads: one at a time.
class PlanReceiver {
 public:
  // The source was asked for a plan: what came of one before is dropped.
  void Begin();
  bool has_begun() const { return has_begun_; }
  bool is_complete() const { return plan_.is_complete(); }
  // The source has named the transfer and its snapshot.
  bool is_opened() const { return plan_.is_opened(); }
  bool Expects(FrameType type) const {
    return has_begun_ && !is_complete() &&
           (type == FrameType::kOpened || type == FrameType::kBusy) !=
               is_opened();
  }
  // When the source was asked last.
  Clock::time_point asked_at() const { return asked_at_; }
  uint64_t SecondsSinceFirstAsked() const;
  // When it is to be asked again; absent: it does not lack a place.
  std::optional<Clock::time_point> asks_again_at() const {
    return asks_again_at_;
  }

  // REQUIRES: Expects(frame.type).
  //   NotFound       the frame is none of a plan.
  //   kCorrupt       it is malformed, out of turn, or one too many.
  //   kSnapshotGone  another transfer, or another plan than before.
  //   kBusy          the source has no place.
  [[nodiscard]] rocksdb::Status Take(const Frame& frame);

  // REQUIRES: is_complete().
  Plan TakePlan() { return plan_.TakePlan(); }
  // Returns the id that came with any of the plans.
  const std::optional<TransferId>& transfer_id() const { return transfer_id_; }
  bool gave_plan() const { return digest_.has_value(); }
  // Nothing depends on the transfer yet: another one will do.
  void ForgetTransfer() { transfer_id_.reset(); }
  // The source resumed the transfer, as the newest Opened says.
  bool source_resumed() const { return source_resumed_; }
  // Returns the bytes that came of this plan, and those that it takes in memory
  // beyond that.
  uint64_t bytes() const { return plan_.bytes(); }

 private:
  [[nodiscard]] rocksdb::Status TakeBusy(const Frame& frame);
  [[nodiscard]] rocksdb::Status CheckTransfer();
  [[nodiscard]] rocksdb::Status CheckSamePlan();

  bool has_begun_ = false;
  bool source_resumed_ = false;
  Clock::time_point first_asked_at_;
  Clock::time_point asked_at_ = Clock::now();
  std::optional<Clock::time_point> asks_again_at_;
  PlanDecoder plan_;
  std::optional<Digest128> digest_;  // of the plan that was complete before
  std::optional<TransferId> transfer_id_;
};

}  // namespace sstferry
