// A cut of a standby: a clone that gets the record of a standby in CURRENT's
// place (format/follow_file.h).
#pragma once

#include <string>

#include "format/follow_file.h"
#include "format/messages_follow.h"
#include "pipeline/follow/audit.h"
#include "pipeline/follow/standby.h"
#include "pipeline/pull/clone_target.h"
#include "sstferry/options.h"

namespace sstferry {

// Asks for a cut.
struct CutRequest {
  CutReason reason = CutReason::kFirst;
  std::string note = {};  // of the source: what asks for it
  bool exact_filters = false;  // FollowRequest's, from this cut on
  // Records that come while the cut is built belong behind it.
  bool continues() const {
    return reason == CutReason::kCutEvery || reason == CutReason::kMaxReplay;
  }
};

// Makes `options` those of the pull that makes a cut of DIR: a swap by a clone,
// whose hooks take the standby across the exchange. `standby` and `audit` (may be
// null), which prepares the next slice, must outlive the pull.
//   kBusy  a process has opened the database that is adopted
[[nodiscard]] rocksdb::Status SetCutOptions(const CutRequest& request,
                                            Standby* standby,
                                            StandbyAudit* audit,
                                            PullOptions* options);

class StandbyTarget : public CloneTarget {
 public:
  StandbyTarget(const TargetInputs& inputs, const CutRequest& request,
                Standby* standby)
      : CloneTarget(inputs), request_(request), standby_(standby) {}

 protected:
  [[nodiscard]] rocksdb::Status NameManifest(const std::string& dir,
                                             const Access& access) override;

 private:
  const CutRequest request_;
  Standby* const standby_;
};

}  // namespace sstferry
