#include "pipeline/api/standby_cut.h"

#include <memory>
#include <string>

namespace sstferry {

using rocksdb::Status;

Status MakeStandbyCut(const PullOptions& options, const CutRequest& request,
                      const std::string& source_name, Dialer* dialer,
                      Standby* standby, WorkerSlot<Puller>* slot,
                      Summary* summary) {
  PullOptions cut = options;
  cut.source.name = source_name;
  SetCutOptions(request, standby, &cut);
  BorrowedDialer borrowed(dialer);
  Puller puller(cut, &borrowed, [&](const TargetInputs& inputs) {
    return std::make_unique<StandbyTarget>(inputs, request, standby);
  });
  const Status status =
      slot->Set(&puller) ? puller.Run(summary) : CancelledBeforeStart();
  slot->Clear(puller.progress());
  FinishSummary(status, puller.place(), summary);
  return status;
}

}  // namespace sstferry
