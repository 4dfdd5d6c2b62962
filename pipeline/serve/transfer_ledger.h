// Records how much a transfer's lanes have sent, and how much its target
// already had.
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

// Counters to which all lanes of a transfer add. Threads: any.
struct TransferCounters {
  std::atomic<uint64_t> entries{0};
  std::atomic<uint64_t> sst_bytes{0};
  std::atomic<uint64_t> wire_bytes{0};
  std::atomic<uint64_t> acks{0};  // acknowledgements of chunks
  std::atomic<uint64_t> send_blocked_micros{0};
  StageTotals stages;
};

// Records the totals of each part of a plan. Threads: any.
class TransferLedger {
 public:
  // Sets the number of parts. REQUIRES: no part is recorded yet.
  void Begin(size_t parts);

  // Called when a lane has sent a part to its end. The totals of the part are
  // those of `end`, plus `received`, which the target had when it requested the
  // part.
  void RecordPart(const PartEnd& end, const Totals& received);
  // Records parts that the target already has from an earlier connection or
  // process. Returns kCorrupt if a part is not in the plan, or if this process
  // sent the part with other totals.
  [[nodiscard]] rocksdb::Status RecordReceived(const Received& received);
  // Returns for each family the totals of the parts that are recorded.
  std::vector<Totals> FamilyTotals(const TransferPlan& plan) const;
  // Returns the number of parts that are not recorded.
  size_t UnsentParts() const;

 private:
  // A part that the target has, or will have when all sent bytes have arrived.
  struct Recorded {
    std::optional<Totals> totals;
    bool sent = false;  // this process sent the part
  };

  mutable std::mutex mu_;
  std::vector<Recorded> recorded_;  // under mu_, by part id
};

}  // namespace sstferry
