#include "pipeline/api/swap_way.h"

#include "format/end_state.h"
#include "format/journal.h"
#include "pipeline/base/known_fault.h"
#include "pipeline/base/last_transfer.h"
#include "pipeline/pull/target_state.h"

namespace sstferry {

SwapWay ChooseSwapWay(const PullOptions& options, PullMethod method) {
  if (options.mode != PullMode::kSwap || method == PullMethod::kClone) {
    return {};
  }
  // Continues an unfinished swap in the way in which it began, even if
  // TARGET_DIR was removed: a complete new database does not need it any more,
  // and an incomplete one gives up linking.
  const std::string begun =
      options.restart ? "" : UnfinishedMode(options.target_dir);
  if (!begun.empty() && begun != kInPlaceMode) {
    return {begun == kLinkedMode, ""};
  }
  LastTransfer last;
  if (!ReadLastTransfer(options.target_dir, &last)) {
    return {};
  }
  if (options.adopt) {
    return {false, "--adopt trusts no file of the old database"};
  }
  if (!options.selection.families.empty() ||
      !(options.selection.interval == KeyInterval())) {
    return {false, "only a part of the source is selected"};
  }
  if (options.source.is_archive()) {
    return {false, "an archive cannot be compared"};
  }
  HealthFile fault;
  const rocksdb::Status known = ReadKnownFault(options.target_dir, &fault);
  if (!known.ok()) {
    return {false, MessageOf(known)};
  }
  if (fault.fault != ReplicaFault::kNone) {
    return {false, FaultSentence(fault)};
  }
  return {true, ""};
}

}  // namespace sstferry
