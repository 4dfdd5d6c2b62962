// Makes cuts for a standby: clones that have a standby's CURRENT and its record
// (format/follow_file.h).
#pragma once

#include <string>

#include "format/follow_file.h"
#include "format/journal.h"
#include "format/messages_follow.h"
#include "pipeline/follow/audit.h"
#include "pipeline/follow/standby.h"
#include "pipeline/pull/clone_target.h"
#include "sstferry/options.h"

namespace sstferry {

// A request for a cut.
struct CutRequest {
  CutReason reason = CutReason::kFirst;
  std::string note = {};  // from the source: the cause
  bool exact_filters = false;  // FollowRequest::exact_filters from this cut on
  // FollowEnd::judged, if the reason is kNewLife.
  FollowJudged continued = {};
  // The standby has a fault, perhaps one that could not be recorded: the cut
  // compares all files that it keeps with the source's.
  bool compares = false;

  // Returns true if records that arrive while the cut is built continue it.
  bool continues() const {
    return reason == CutReason::kCutEvery || reason == CutReason::kMaxReplay;
  }
};

// Sets the options of the pull that makes a cut for the standby; this pull is a
// swap with the clone method. The pull's hooks keep the standby consistent
// across the exchange. If `audit` is not null, they also call it to link and
// copy what it compares after the exchange. `standby` and `audit` must outlive
// the pull.
//   kBusy  a process has opened the database that the standby adopts
[[nodiscard]] rocksdb::Status SetCutOptions(const CutRequest& request,
                                            Standby* standby,
                                            StandbyAudit* audit,
                                            PullOptions* options);

class StandbyTarget : public CloneTarget {
 public:
  StandbyTarget(const TargetInputs& inputs, const CutRequest& request,
                Standby* standby)
      : CloneTarget(inputs,
                    inputs.options->adopts_old ? kAdoptMode : kFollowMode),
        request_(request),
        standby_(standby) {}

 protected:
  [[nodiscard]] rocksdb::Status NameManifest(const std::string& dir,
                                             const Access& access) override;

 private:
  const CutRequest request_;
  Standby* const standby_;
};

}  // namespace sstferry
