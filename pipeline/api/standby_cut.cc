#include "pipeline/api/standby_cut.h"

#include <memory>
#include <string>

namespace sstferry {

using rocksdb::Status;

namespace {

void SayWhatIsKept(const FollowFile& before, const FollowFile& now,
                   const LogFunction& log) {
  if (log && now.lost_dir != before.lost_dir) {
    log(LogLevel::kWarning,
        "the source came back with at least " +
            std::to_string(now.lost_sequences) +
            " sequences less than the standby had; the standby's WALs are kept "
            "in " + now.lost_dir);
  }
  if (log && now.unproven_dirs != before.unproven_dirs) {
    log(LogLevel::kInfo,
        "the source was opened again and does not show whether it has all that "
        "the standby had; the standby's WALs are kept in " +
            now.unproven_dirs.back() + ", as the last " +
            std::to_string(kMaxUnprovenDirs) + " of this kind");
  }
}

}  // namespace

Status MakeStandbyCut(const PullOptions& options, const CutRequest& request,
                      const std::string& source_name, Dialer* dialer,
                      Standby* standby, WorkerSlot<Puller>* slot,
                      Summary* summary, StandbyAudit* audit) {
  const FollowFile before = standby->record();
  PullOptions cut = options;
  cut.source.name = source_name;
  // Its findings must be known before the pull looks for a fault.
  if (audit != nullptr) audit->End();
  SetCutOptions(request, standby, audit, &cut);
  BorrowedDialer borrowed(dialer);
  Puller puller(cut, &borrowed, [&](const TargetInputs& inputs) {
    return std::make_unique<StandbyTarget>(inputs, request, standby);
  });
  const Status status =
      slot->Set(&puller) ? puller.Run(summary) : CancelledBeforeStart();
  slot->Clear(puller.progress());
  FinishSummary(status, puller.place(), summary);
  SayWhatIsKept(before, standby->record(), options.log);
  if (audit != nullptr && !status.ok()) audit->Drop();
  return status;
}

}  // namespace sstferry
