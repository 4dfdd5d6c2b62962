// The source's side of a refresh in place. Checks that a target may ingest new
// entries above older ones. Cuts the families into parts. Makes the object that
// serves the comparisons of a lane.
#pragma once

#include <memory>
#include <vector>

#include "pipeline/serve/refresh_at_source.h"
#include "pipeline/serve/transfer_plan.h"
#include "pipeline/serve/transfer_planner.h"
#include "rocksdb/options.h"

namespace sstferry {

class RefreshSource : public RefreshAtSource {
 public:
  RefreshSource(const Snapshot& snapshot, TransferPlan* plan)
      : snapshot_(snapshot), plan_(plan) {}

  [[nodiscard]] rocksdb::Status Decide(const PlanOrder& order,
                                       const TransferFamily& family) override;
  uint64_t BytesToSend(const TransferFamily& family) const override;
  [[nodiscard]] rocksdb::Status Cut(const PlanOrder& order,
                                    uint64_t target_bytes,
                                    TransferFamily* family) override;
  std::unique_ptr<LaneDeltas> MakeDeltas(
      const TransferId& salt) const override;

  // --- for lanes -------------------------------------------------------------
  rocksdb::DB* db() const { return snapshot_.db(); }
  const TransferFamily& family(const Part& part) const {
    return plan_->sources[part.family];
  }
  // Returns the options of the tables that delta chunks become.
  const rocksdb::Options& delta_options(const Part& part) const {
    return families_[part.family].delta_options;
  }

 private:
  // The decisions about one family.
  struct Decided {
    rocksdb::Options delta_options;
    PartNeed need = PartNeed::kSend;
  };

  // Searches the WALs and the tables of the family for a SingleDelete.
  //   kRefused  the application uses SingleDelete, or may use it
  [[nodiscard]] rocksdb::Status CheckSingleDeletes(
      const PlanOrder& order, const TransferFamily& family) const;
  // Returns the description of the family that the target receives.
  const Family& told(const TransferFamily& family) const {
    return plan_->families[family.index];
  }
  // Adds items to the output of the command `plan`: one for each part from
  // index `first_part` on.
  void AddItems(PartNeed need, size_t first_part);

  const Snapshot& snapshot_;
  TransferPlan* const plan_;
  std::vector<Decided> families_;  // by index of the family
};

}  // namespace sstferry
