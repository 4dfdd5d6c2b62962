#include "pipeline/pull/new_directory_target.h"

#include "pipeline/base/last_transfer.h"
#include "pipeline/disk/durable.h"
#include "pipeline/disk/other_files.h"
#include "pipeline/pull/refresh_records.h"

namespace sstferry {

using rocksdb::Status;

Status NewDirectoryTarget::ReadExisting(
    WorkspaceUse use, const std::shared_ptr<rocksdb::FileSystem>& disk,
    FoundTarget* found) {
  SetUse(use, disk);
  // Never the file system that defers syncs: the record of an exchange must
  // be on disk before the exchange.
  const Existing existing =
      is_exchanged() ? Existing::kSwap : Existing::kRefuse;
  Access access;
  Status status = ChooseAccess(options(), &access);
  lanes()->file_access = access.OfFiles();
  if (status.ok()) {
    status = Workspace::Open(options().target_dir, existing, disk,
                             options().log, &found->workspace, use);
  }
  return status.ok() ? ReadFault(found) : status;
}

SyncBatch* NewDirectoryTarget::last_files() {
  if (last_files_ == nullptr) {
    last_files_ = std::make_shared<SyncBatch>(shared_disk());
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
    const std::string dir = workspace()->db_dir();
    status = lanes()->sync_chunks ? SyncDirectory(last_files(), dir)
                                  : SyncTree(disk(), dir);
  }
  FaultPoint("Puller:DatabaseSynced");
  return status;
}

Status NewDirectoryTarget::Record(const Summary& summary) {
  const std::string dir = workspace()->db_dir();
  Status status = WriteSourceRecord(last_files(), dir, plan());
  if (status.ok()) {
    status = WriteIntervals(last_files(), dir, intervals_);
  }
  if (status.ok()) {
    status = WriteDurably(last_files(), dir + "/" + kLastTransferName,
                          SummaryToJson(summary, summary.mode) + "\n");
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
    status = PlaceOtherFiles(last_files(), workspace()->other_dir(),
                             /*old_dir=*/"", dir, &kept);
  }
  FaultPoint("Puller:AccessSet");
  if (status.ok()) {
    status = lanes()->sync_chunks ? last_files()->Run()
                                  : SyncTree(disk(), dir);
  }
  return status;
}

}  // namespace sstferry
