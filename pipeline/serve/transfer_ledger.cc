#include "pipeline/serve/transfer_ledger.h"

#include <algorithm>

#include "format/end_state.h"

namespace sstferry {

using rocksdb::Status;

void TransferLedger::Begin(size_t parts) {
  std::lock_guard<std::mutex> lock(mu_);
  covered_.resize(parts);
}

void TransferLedger::RecordPart(const PartEnd& end, const Totals& held) {
  std::lock_guard<std::mutex> lock(mu_);
  Totals all = held;
  all += end.totals;
  covered_[end.part_id] = {all, true};
}

Status TransferLedger::RecordHeld(const Held& held) {
  std::lock_guard<std::mutex> lock(mu_);
  for (const HeldPart& part : held.parts) {
    if (part.part_id >= covered_.size()) {
      return MakeStatus(EndState::kCorrupt,
                        "held: expected a part below " +
                            std::to_string(covered_.size()) + ", found " +
                            std::to_string(part.part_id));
    }
    Covered& covered = covered_[part.part_id];
    // Does not compare chunks or SST bytes: the same entries may be sent again
    // in other files.
    if (covered.sent &&
        (covered.totals->entries != part.totals.entries ||
         covered.totals->key_value_bytes != part.totals.key_value_bytes)) {
      return MakeStatus(EndState::kCorrupt,
                        "held: part " + std::to_string(part.part_id) +
                            ": sent " +
                            std::to_string(covered.totals->entries) +
                            " entries, the target has " +
                            std::to_string(part.totals.entries));
    }
    covered.totals = part.totals;
  }
  return Status::OK();
}

std::vector<Totals> TransferLedger::FamilyTotals(
    const TransferPlan& plan) const {
  std::vector<Totals> families(plan.families.size());
  std::lock_guard<std::mutex> lock(mu_);
  for (size_t i = 0; i < covered_.size(); ++i) {
    if (covered_[i].totals.has_value()) {
      families[plan.parts[i].family] += *covered_[i].totals;
    }
  }
  return families;
}

size_t TransferLedger::UnsentParts() const {
  std::lock_guard<std::mutex> lock(mu_);
  return static_cast<size_t>(
      std::count_if(covered_.begin(), covered_.end(), [](const Covered& one) {
        return !one.totals.has_value();
      }));
}

}  // namespace sstferry
