#include "pipeline/serve/transfer_ledger.h"

#include <algorithm>

#include "format/end_state.h"

namespace sstferry {

using rocksdb::Status;

void TransferLedger::Begin(size_t parts) {
  std::lock_guard<std::mutex> lock(mu_);
  recorded_.resize(parts);
}

void TransferLedger::RecordPart(const PartEnd& end, const Totals& received) {
  std::lock_guard<std::mutex> lock(mu_);
  Totals all = received;
  all += end.totals;
  recorded_[end.part_id] = {all, true};
}

Status TransferLedger::RecordReceived(const Received& received) {
  std::lock_guard<std::mutex> lock(mu_);
  for (const ReceivedPart& part : received.parts) {
    if (part.part_id >= recorded_.size()) {
      return MakeStatus(EndState::kCorrupt,
                        "received: expected a part number below " +
                            std::to_string(recorded_.size()) + ", found " +
                            std::to_string(part.part_id));
    }
    Recorded& recorded = recorded_[part.part_id];
    // Does not compare the numbers of chunks and SST bytes. If a part is sent
    // again, its entries may be in other files.
    if (recorded.sent &&
        (recorded.totals->entries != part.totals.entries ||
         recorded.totals->key_value_bytes != part.totals.key_value_bytes)) {
      return MakeStatus(EndState::kCorrupt,
                        "received: part " + std::to_string(part.part_id) +
                            ": the source sent " +
                            std::to_string(recorded.totals->entries) +
                            " entries, the target has " +
                            std::to_string(part.totals.entries));
    }
    recorded.totals = part.totals;
  }
  return Status::OK();
}

std::vector<Totals> TransferLedger::FamilyTotals(
    const TransferPlan& plan) const {
  std::vector<Totals> families(plan.families.size());
  std::lock_guard<std::mutex> lock(mu_);
  for (size_t i = 0; i < recorded_.size(); ++i) {
    if (recorded_[i].totals.has_value()) {
      families[plan.parts[i].family] += *recorded_[i].totals;
    }
  }
  return families;
}

size_t TransferLedger::UnsentParts() const {
  std::lock_guard<std::mutex> lock(mu_);
  return static_cast<size_t>(std::count_if(
      recorded_.begin(), recorded_.end(),
      [](const Recorded& one) { return !one.totals.has_value(); }));
}

}  // namespace sstferry
