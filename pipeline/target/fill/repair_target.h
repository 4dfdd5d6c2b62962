// A database of which only listed key intervals are made equal to the source's
// snapshot, all at once: PullOptions::ranges.
//
// What the target remembers stays that of its last whole refresh, because the
// rest of it does. Only interval records that meet a listed interval are
// doubted: the next refresh compares them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "pipeline/target/fill/refresh_target.h"

namespace sstferry {

class RepairTarget : public RefreshTarget {
 public:
  using RefreshTarget::RefreshTarget;

  const char* mode() const override { return kRefreshListedMode; }
  CompareMode compare() const override { return CompareMode::kListed; }
  bool TakesPlaceOf(const JournalTransfer& /*head*/) const override {
    return false;
  }
  [[nodiscard]] rocksdb::Status CheckAsLeft(const JournalState& journal,
                                            bool* as_left) override;
  void Describe(TargetMemory* memory) const override;
  void FillSummary(Summary* summary) const override;

 protected:
  // kRefused: it does not remember a whole transfer, or a range is not one.
  [[nodiscard]] rocksdb::Status CheckJudged() override;
  [[nodiscard]] rocksdb::Status MakeRecord(const JournalState* journal,
                                           CoverFile* covers) override;
  [[nodiscard]] rocksdb::Status WriteRecord() override;
  // That of the last whole transfer stays.
  [[nodiscard]] rocksdb::Status WriteSummary(const Summary&) override {
    return rocksdb::Status::OK();
  }

 private:
  std::vector<FamilyRange> listed_;  // by family, in key order, disjoint
};

}  // namespace sstferry
