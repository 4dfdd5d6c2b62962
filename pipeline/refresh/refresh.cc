#include "pipeline/refresh/refresh.h"

#include "pipeline/refresh/linked_target.h"
#include "pipeline/refresh/refresh_source.h"
#include "pipeline/refresh/refresh_target.h"

namespace sstferry {

std::unique_ptr<RefreshAtSource> MakeRefreshAtSource(const Snapshot& snapshot,
                                                     TransferPlan* plan) {
  return std::make_unique<RefreshSource>(snapshot, plan);
}

std::unique_ptr<PullTarget> MakeRefreshTarget(const TargetInputs& inputs,
                                              const OpenReplica& replica) {
  return std::make_unique<RefreshTarget>(inputs, replica);
}

std::unique_ptr<PullTarget> MakeLinkedTarget(const TargetInputs& inputs) {
  return std::make_unique<LinkedTarget>(inputs);
}

}  // namespace sstferry
