// Records the totals that a transfer's lanes have sent and its target has
// received.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "format/messages.h"
#include "pipeline/base/stage_clock.h"
#include "pipeline/serve/transfer_plan.h"
#include "rocksdb/status.h"

namespace sstferry {

// Counters of the lanes. Threads: any.
struct TransferCounters {
  std::atomic<uint64_t> entries{0};
  std::atomic<uint64_t> sst_bytes{0};
  std::atomic<uint64_t> wire_bytes{0};
  std::atomic<uint64_t> acks{0};  // acknowledgements received by lanes
  std::atomic<uint64_t> send_blocked_micros{0};
  StageTotals stages;
};

// Totals of each part of a plan. Threads: any.
class TransferLedger {
 public:
  // Sets the number of parts. REQUIRES: before anything is recorded.
  void Begin(size_t parts);

  // Records a part that was sent to its end; `received` are the totals that the
  // target already had.
  void RecordPart(const PartEnd& end, const Totals& received);
  // Records parts that the target has, but did not receive from this process.
  // Returns kCorrupt for a part that is not in the plan, or if this process
  // sent the part with other totals.
  [[nodiscard]] rocksdb::Status RecordReceived(const Received& received);
  // Returns the totals of each family over the parts sent or received so far.
  std::vector<Totals> FamilyTotals(const TransferPlan& plan) const;
  // Returns the number of parts that were not sent completely and that the
  // target does not have.
  size_t UnsentParts() const;

 private:
  // The state of a part that the target has received, or will have received
  // when all sent bytes have arrived.
  struct Recorded {
    std::optional<Totals> totals;
    bool sent = false;  // sent by this process
  };

  mutable std::mutex mu_;
  std::vector<Recorded> recorded_;  // under mu_, by part id
};

}  // namespace sstferry
