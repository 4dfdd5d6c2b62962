#include "pipeline/target/fill/new_directory_target.h"

#include "pipeline/base/last_transfer.h"
#include "pipeline/target/disk/durable.h"
#include "pipeline/target/memory/cover_record.h"
#include "pipeline/target/pull/exchange.h"
#include "pipeline/target/pull/pull_reporter.h"

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
                               options().log, workspace)
             : status;
}

Status NewDirectoryTarget::CheckSnapshot() {
  return is_exchanged() ? context().exchange->CheckTarget() : Status::OK();
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
    rocksdb::FileSystem* const disk = context().disk.get();
    const std::string dir = context().workspace->db_dir();
    status = state()->sync_chunks ? SyncDirectory(disk, dir)
                                  : SyncTree(disk, dir);
  }
  FaultPoint("Puller:DatabaseSynced");
  return status;
}

Status NewDirectoryTarget::Record(const Summary& summary) {
  const std::string dir = context().workspace->db_dir();
  Status status =
      WriteSourceRecord(context().file_system.get(), dir, plan());
  if (status.ok()) {
    status = WriteCovers(context().file_system.get(), dir, covers_);
  }
  if (status.ok()) {
    status = WriteDurably(context().file_system.get(),
                          dir + "/" + kLastTransferName,
                          SummaryToJson(summary, "pull") + "\n");
  }
  FaultPoint("Puller:SummaryWritten");
  Access access;  // the place that it takes may have been changed since
  if (status.ok()) {
    status = ChooseAccess(options(), &access);
  }
  if (status.ok()) {
    status = SetTreeAccess(context().disk.get(), dir, access);
  }
  FaultPoint("Puller:AccessSet");
  if (status.ok() && !state()->sync_chunks) {
    status = SyncTree(context().disk.get(), dir);
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
