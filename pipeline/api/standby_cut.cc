#include "pipeline/api/standby_cut.h"

#include <memory>
#include <string>
#include <system_error>

#include "format/end_state.h"
#include "format/quantity.h"
#include "pipeline/disk/workspace.h"
#include "pipeline/snapshot/posix_files.h"

namespace sstferry {

using rocksdb::Status;

namespace {

void SayWhatIsKept(const FollowFile& before, const FollowFile& now,
                   const LogFunction& log) {
  if (log && now.lost_dir != before.lost_dir) {
    // If this fails, the message below names only the WALs, which the directory
    // contains in any case.
    FileId current;
    FileIdOfName(now.lost_dir + "/CURRENT", &current).PermitUncheckedError();
    const bool is_database = current.exists();
    log(LogLevel::kWarning,
        "the reopened source lacks at least the last " +
            std::to_string(now.lost_sequences) +
            " sequence numbers that the standby had; " +
            (is_database ? "the standby's state is kept as the database "
                         : "the standby's WALs are kept in ") +
            now.lost_dir);
  }
  if (log && now.unproven_dirs != before.unproven_dirs) {
    log(LogLevel::kInfo,
        "the source was reopened or began another MANIFEST, and nothing "
        "proves that it has everything that the standby had; the standby's "
        "WALs are kept in " +
            now.unproven_dirs.back() + " (the newest " +
            std::to_string(kMaxUnprovenDirs) + " such directories stay)");
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
  // Ends the audit now, so that its fault is recorded before the pull reads the
  // recorded fault.
  if (audit != nullptr) audit->End();
  RETURN_IF_ERROR(SetCutOptions(request, standby, audit, &cut));
  BorrowedDialer borrowed(dialer);
  Puller puller(cut, &borrowed, [&](const TargetInputs& inputs) {
    return std::make_unique<StandbyTarget>(inputs, request, options.adopt,
                                           standby);
  });
  const Status status =
      slot->Set(&puller) ? puller.Run(summary) : CancelledBeforeStart();
  slot->Clear(puller.progress());
  FinishSummary(status, puller.place(), summary);
  SayWhatIsKept(before, standby->record(), options.log);
  if (cut.adopts_old && summary->exchanged && options.log) {
    options.log(LogLevel::kInfo,
                "adopted " + options.target_dir + ": " +
                    FormatCount(summary->files_reused, "file") + " with " +
                    FormatBytes(summary->bytes_reused) +
                    " compared and linked, " +
                    FormatCount(summary->files_cloned, "file") + " sent");
  }
  if (audit != nullptr && !status.ok()) audit->Drop();
  return status;
}

Status KeepAdopted(const std::string& dir,
                   const std::shared_ptr<rocksdb::FileSystem>& file_system,
                   const LogFunction& log) {
  FileId exchange;
  RETURN_IF_ERROR(
      FileIdOfName(Workspace::DirOf(dir) + "/exchange", &exchange));
  if (!exchange.exists()) {
    return Status::OK();
  }
  std::unique_ptr<Workspace> workspace;
  RETURN_IF_ERROR(Workspace::Open(dir, Existing::kSwap, file_system, log,
                                  &workspace));
  if (workspace->swap_state() != SwapState::kExchanged ||
      !workspace->adopts_old()) {
    return Status::OK();
  }
  std::string kept;
  RETURN_IF_ERROR(workspace->RetireOld(/*keeps=*/true, &kept));
  if (log) {
    log(LogLevel::kInfo, "the replaced database is kept in " + kept);
  }
  return Status::OK();
}

}  // namespace sstferry
