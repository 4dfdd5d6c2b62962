#include "pipeline/pull/new_directory_target.h"

#include "pipeline/base/last_transfer.h"
#include "pipeline/disk/attributes.h"
#include "pipeline/disk/durable.h"
#include "pipeline/disk/other_files.h"
#include "pipeline/pull/health.h"
#include "pipeline/pull/replica.h"

namespace sstferry {

using rocksdb::Status;

namespace {

// Returns how the pull treats a TARGET_DIR that is not empty.
Existing ExistingOf(const PullOptions& options) {
  return options.mode == PullMode::kPull      ? Existing::kRefuse
         : options.mode == PullMode::kRefresh ? Existing::kRefresh
                                              : Existing::kSwap;
}

// Returns the command to suggest if this command does not suit TARGET_DIR.
// Keeps the source of this command: a user who gives an archive wants to
// restore the archive, not to refresh from the replica's own source.
std::string Instead(const PullOptions& options) {
  if (options.mode == PullMode::kRefresh) {
    return InPlaceCommand(options);
  }
  return options.source.is_archive()
             ? SwapCommand(options)
             : "sstferry refresh " + ShellWord(options.source.ToString()) +
                   " " + ShellWord(options.target_dir) +
                   SelectionWords(TextOf(options.selection));
}

Status AtTarget(const PullOptions& options, const Status& status) {
  return WithContext(status, EndStateOf(status),
                     "target " + options.target_dir);
}

}  // namespace

Status OpenForNewDirectory(const PullOptions& options, WorkspaceUse use,
                           const std::shared_ptr<rocksdb::FileSystem>& disk,
                           LaneShared* lanes,
                           std::unique_ptr<Workspace>* workspace) {
  // Use `disk`, which syncs at once. The record of an exchange must be durable
  // before the exchange.
  Access access;
  RETURN_IF_ERROR(ChooseAccess(options, &access));
  lanes->file_access = access.OfFiles();
  RETURN_IF_ERROR(Workspace::Open(options.target_dir, ExistingOf(options),
                                  disk, options.log, workspace, use,
                                  Instead(options)));
  const Status status = (*workspace)->TryAttributes();
  if (!status.ok()) workspace->reset();
  return status;
}

Status RecordNewDirectory(const NewDirectory& made, const Summary& summary) {
  const std::string dir = made.workspace->db_dir();
  SyncBatch* const files = made.last_files;
  RETURN_IF_ERROR(WriteDurably(files, dir + "/" + kLastTransferName,
                               SummaryToJson(summary, summary.mode) + "\n"));
  FaultPoint("Puller:SummaryWritten");
  Access access;  // chosen again: TARGET_DIR may have changed
  RETURN_IF_ERROR(ChooseAccess(*made.options, &access));
  if (made.shared_files != nullptr && access.OfFiles() != *made.shared_files) {
    return MakeStatus(EndState::kRefused,
                      "target " + made.options->target_dir +
                          ": the owner or permissions of new files changed "
                          "after this pull had linked files of the old "
                          "database; run the same command again");
  }
  RETURN_IF_ERROR(RemovePlacedFiles(files, dir));
  RETURN_IF_ERROR(
      AtTarget(*made.options, CopyAttributes(made.options->target_dir, dir)));
  RETURN_IF_ERROR(SetTreeAccess(files, dir, access));
  std::vector<std::string> kept;  // not used: there is no old_dir
  RETURN_IF_ERROR(PlaceOtherFiles(files, made.workspace->other_dir(),
                                  /*old_dir=*/"", dir, &kept));
  FaultPoint("Puller:AccessSet");
  return made.syncs_at_once ? files->Run() : SyncTree(made.disk, dir);
}

Status NewDirectoryTarget::ReadExisting(
    WorkspaceUse use, const std::shared_ptr<rocksdb::FileSystem>& disk,
    FoundTarget* found) {
  SetUse(use, disk);
  RETURN_IF_ERROR(
      OpenForNewDirectory(options(), use, disk, lanes(), &found->workspace));
  return ReadFault(found);
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
    // If TARGET_DIR is complete but the workspace is still there, the journal
    // shows to which transfer the workspace belongs.
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
  return RecordNewDirectory(
      {&options(), workspace(), lanes()->sync_chunks, last_files(), disk(),
       uses_old_files() ? &lanes()->file_access : nullptr},
      summary);
}

}  // namespace sstferry
