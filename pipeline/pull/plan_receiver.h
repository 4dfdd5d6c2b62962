// Assembles a source's plan from its frames.
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

// Receives the plan of one transfer. The plan may be requested several times,
// for example after a lost connection. Each time it must be the same.
//
// Threads: one at a time.
class PlanReceiver {
 public:
  // Called when a plan was requested. Drops an incomplete plan.
  void Begin();
  bool has_begun() const { return has_begun_; }
  bool is_complete() const { return plan_.is_complete(); }
  // Returns true if the source has sent the transfer's id and its snapshot.
  bool is_opened() const { return plan_.is_opened(); }
  bool Expects(FrameType type) const {
    return has_begun_ && !is_complete() &&
           (type == FrameType::kOpened || type == FrameType::kBusy) !=
               is_opened();
  }
  // Time of the latest request for the plan.
  Clock::time_point asked_at() const { return asked_at_; }
  uint64_t SecondsSinceFirstAsked() const;
  // Time at which the plan is requested again. Set only if the source has no
  // free transfer slot.
  std::optional<Clock::time_point> asks_again_at() const {
    return asks_again_at_;
  }

  // Adds a frame. REQUIRES: Expects(frame.type).
  //   NotFound       the frame is not part of a plan.
  //   kCorrupt       the frame is malformed, out of order or surplus.
  //   kSnapshotGone  the frame belongs to another transfer, or the plan differs
  //                  from the earlier one.
  //   kBusy          the source has no free transfer slot.
  [[nodiscard]] rocksdb::Status Take(const Frame& frame);

  // REQUIRES: is_complete().
  Plan TakePlan() { return plan_.TakePlan(); }
  // Returns the transfer id that all plans received so far have.
  const std::optional<TransferId>& transfer_id() const { return transfer_id_; }
  bool gave_plan() const { return digest_.has_value(); }
  // Forgets the transfer id. The source may then answer with another transfer.
  // REQUIRES: nothing depends on this transfer yet.
  void ForgetTransfer() { transfer_id_.reset(); }
  // Returns true if the source said in its latest Opened message that it
  // resumed the transfer.
  bool source_resumed() const { return source_resumed_; }
  // Returns the memory that this plan uses: its received bytes, plus overhead.
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
  std::optional<Digest128> digest_;  // digest of the earlier complete plan
  std::optional<TransferId> transfer_id_;
};

}  // namespace sstferry
