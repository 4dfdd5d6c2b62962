#include "pipeline/pull/new_directory_target.h"

#include "pipeline/base/last_transfer.h"
#include "pipeline/disk/durable.h"
#include "pipeline/disk/other_files.h"
#include "pipeline/pull/interval_records.h"
#include "pipeline/pull/exchange.h"
#include "pipeline/pull/pull_reporter.h"
#include "pipeline/pull/replica.h"

namespace sstferry {

using rocksdb::Status;

Status NewDirectoryTarget::OpenWorkspace(
    std::unique_ptr<Workspace>* workspace) {
  // Before a name is made.
  Status status =
      is_exchanged() ? context().exchange->CheckTarget() : Status::OK();
  // Never the file system that defers syncs: the record of an exchange must
  // be on disk before the exchange.
  const Existing existing = is_exchanged()      ? Existing::kRefresh
                            : options().replace ? Existing::kReplace
                                                : Existing::kRefuse;
  Access access;
  if (status.ok()) {
    status = ChooseAccess(options(), &access);
    state()->file_access = access.OfFiles();
  }
  return status.ok()
             ? Workspace::Open(options().target_dir, existing, context().disk,
                               options().log, workspace,
                               context().workspace_use())
             : status;
}

Status NewDirectoryTarget::CheckSnapshot() {
  return is_exchanged()      ? context().exchange->CheckTarget()
         : options().replace ? CheckReplaced(options(),
                                             plan().opened.source_database_id)
                             : Status::OK();
}

SyncBatch* NewDirectoryTarget::last_files() {
  if (last_files_ == nullptr) {
    last_files_ = std::make_shared<SyncBatch>(context().disk);
  }
  return last_files_.get();
}

Status NewDirectoryTarget::Close(JournalFile* journal) {
  Status status = CloseFiles();
  if (status.ok()) {
    // Once TARGET_DIR is complete, it says whose workspace this was.
    status = journal->Sync();
  }
  if (status.ok()) {
    status = journal->Close();
  }
  FaultPoint("Puller:DatabaseClosed");
  if (status.ok()) {
    const std::string dir = context().workspace->db_dir();
    status = state()->sync_chunks ? SyncDirectory(last_files(), dir)
                                  : SyncTree(context().disk.get(), dir);
  }
  FaultPoint("Puller:DatabaseSynced");
  return status;
}

Status NewDirectoryTarget::Record(const Summary& summary) {
  const std::string dir = context().workspace->db_dir();
  Status status = WriteSourceRecord(last_files(), dir, plan());
  if (status.ok()) {
    status = WriteIntervals(last_files(), dir, intervals_);
  }
  if (status.ok()) {
    status = WriteDurably(last_files(),
                          dir + "/" + kLastTransferName,
                          SummaryToJson(summary, "pull") + "\n");
  }
  FaultPoint("Puller:SummaryWritten");
  Access access;  // the place that it takes may have been changed since
  if (status.ok()) {
    status = ChooseAccess(options(), &access);
  }
  if (status.ok()) {
    status = RemovePlacedFiles(last_files(), dir);
  }
  if (status.ok()) {
    status = SetTreeAccess(last_files(), dir, access);
  }
  if (status.ok()) {
    std::vector<std::string> kept;  // of a TARGET_DIR, which comes later
    status = PlaceOtherFiles(last_files(), context().workspace->other_dir(),
                             /*old_dir=*/"", dir, &kept);
  }
  FaultPoint("Puller:AccessSet");
  if (status.ok()) {
    status = state()->sync_chunks ? last_files()->Run()
                                  : SyncTree(context().disk.get(), dir);
  }
  return status;
}

Status NewDirectoryTarget::Publish() {
  if (is_exchanged()) {
    return context().exchange->Run();
  }
  std::string note;
  const Status status = context().workspace->Publish(
      ToHex(plan().opened.transfer_id), &replaced_, &note);
  if (!note.empty()) {
    context().report->Say(note);
  }
  return status;
}

void NewDirectoryTarget::FillSummary(Summary* summary) const {
  summary->mode = "seed";
  summary->replaced = replaced_;
  if (is_exchanged()) {
    context().exchange->FillSummary(summary);
  }
}

}  // namespace sstferry
