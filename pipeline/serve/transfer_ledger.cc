#include "pipeline/serve/transfer_ledger.h"

#include <algorithm>

#include "format/end_state.h"

namespace sstferry {

using rocksdb::Status;

void TransferLedger::Begin(size_t ranges) {
  std::lock_guard<std::mutex> lock(mu_);
  covered_.resize(ranges);
}

void TransferLedger::RecordRange(const RangeEnd& end, const Totals& held) {
  std::lock_guard<std::mutex> lock(mu_);
  Totals all = held;
  all += end.totals;
  covered_[end.range_id] = {all, true};
}

Status TransferLedger::RecordHeld(const Held& held) {
  std::lock_guard<std::mutex> lock(mu_);
  for (const HeldRange& range : held.ranges) {
    if (range.range_id >= covered_.size()) {
      return MakeStatus(EndState::kCorrupt,
                        "held: expected a range below " +
                            std::to_string(covered_.size()) + ", found " +
                            std::to_string(range.range_id));
    }
    Covered& covered = covered_[range.range_id];
    // Does not compare chunks or SST bytes: the same entries may be sent again
    // in other files.
    if (covered.sent &&
        (covered.totals->entries != range.totals.entries ||
         covered.totals->key_value_bytes != range.totals.key_value_bytes)) {
      return MakeStatus(EndState::kCorrupt,
                        "held: range " + std::to_string(range.range_id) +
                            ": sent " +
                            std::to_string(covered.totals->entries) +
                            " entries, the target has " +
                            std::to_string(range.totals.entries));
    }
    covered.totals = range.totals;
  }
  return Status::OK();
}

std::vector<Totals> TransferLedger::FamilyTotals(
    const TransferPlan& plan) const {
  std::vector<Totals> families(plan.families.size());
  std::lock_guard<std::mutex> lock(mu_);
  for (size_t i = 0; i < covered_.size(); ++i) {
    if (covered_[i].totals.has_value()) {
      families[plan.ranges[i].family] += *covered_[i].totals;
    }
  }
  return families;
}

size_t TransferLedger::UnsentRanges() const {
  std::lock_guard<std::mutex> lock(mu_);
  return static_cast<size_t>(
      std::count_if(covered_.begin(), covered_.end(), [](const Covered& one) {
        return !one.totals.has_value();
      }));
}

}  // namespace sstferry
