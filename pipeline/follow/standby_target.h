// Makes cuts for a standby. A cut is a clone that has a standby's CURRENT and
// its record (format/follow_file.h).
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
  std::string note = {};  // the cause, in the source's words
  // Value for FollowRequest::exact_filters from this cut on.
  bool exact_filters = false;
  // FollowEnd::judged of the answer that required this cut, if the reason is
  // kNewLife.
  FollowJudged continued = {};
  // True: the standby has a fault, which perhaps could not be recorded. Then
  // the cut compares all files that it keeps with the source's files.
  bool compares = false;

  // Returns true if records may be appended while the cut is built, because the
  // cut is only scheduled.
  bool continues() const {
    return reason == CutReason::kCutEvery || reason == CutReason::kMaxReplay;
  }
};

// Sets the options of the pull that makes a cut for the standby. This pull is a
// swap with the clone method. Its hooks call `standby` before and after the
// exchange, so that no record is lost. If `audit` is not null, the hook before
// the exchange also calls audit->Prepare(). `standby` and `audit` must outlive
// the pull.
//   kBusy  a process has opened the database that the standby adopts
[[nodiscard]] rocksdb::Status SetCutOptions(const CutRequest& request,
                                            Standby* standby,
                                            StandbyAudit* audit,
                                            PullOptions* options);

class StandbyTarget : public CloneTarget {
 public:
  // If `takes_any` is true, the source may be another database than that of the
  // existing standby.
  StandbyTarget(const TargetInputs& inputs, const CutRequest& request,
                bool takes_any, Standby* standby)
      : CloneTarget(inputs,
                    inputs.options->adopts_old ? kAdoptMode : kFollowMode),
        request_(request),
        takes_any_(takes_any),
        standby_(standby) {}

  // Also checks, before any file is sent, which database the source is.
  //   kRefused  it is another database than that of the standby
  [[nodiscard]] rocksdb::Status BuildFamilies() override;

 protected:
  [[nodiscard]] rocksdb::Status NameManifest(const std::string& dir,
                                             const Access& access) override;

 private:
  const CutRequest request_;
  const bool takes_any_;
  Standby* const standby_;
};

}  // namespace sstferry
