// What a transfer's lanes have sent, and what its target holds.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "format/message/messages.h"
#include "pipeline/base/stage_clock.h"
#include "pipeline/source/transfer/transfer_plan.h"
#include "rocksdb/status.h"

namespace sstferry {

// What lanes count; any thread.
struct TransferCounters {
  std::atomic<uint64_t> entries{0};
  std::atomic<uint64_t> key_value_bytes{0};
  std::atomic<uint64_t> sst_bytes{0};
  std::atomic<uint64_t> wire_bytes{0};
  std::atomic<uint64_t> send_blocked_micros{0};
  StageTotals stages;
};

// One account for each range of a plan. Threads: any.
class TransferLedger {
 public:
  // Before anything is recorded.
  void Begin(size_t ranges);

  // A range was sent to its end; `held` is what the target had of it before.
  void RecordRange(const RangeEnd& end, const Totals& held);
  // What the target holds without having got it from this process. kCorrupt
  // for a range that is not planned, and where this process counted otherwise.
  [[nodiscard]] rocksdb::Status RecordHeld(const Held& held);
  // Over the ranges sent or held so far.
  std::vector<Totals> FamilyTotals(const TransferPlan& plan) const;
  // Ranges that were neither sent to their end nor are held.
  size_t UnsentRanges() const;

 private:
  // A range that the target has, or will have once it has got what was sent.
  struct Covered {
    std::optional<Totals> totals;
    bool sent = false;  // by this process
  };

  mutable std::mutex mu_;
  std::vector<Covered> covered_;  // under mu_, by range id
};

}  // namespace sstferry
