#include "pipeline/pull/pull_workspace.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <vector>

#include "format/for_each_batch.h"
#include "format/limits.h"
#include "format/quantity.h"
#include "pipeline/base/full_disk.h"
#include "pipeline/disk/access.h"
#include "pipeline/disk/deferred_sync.h"
#include "pipeline/disk/durable.h"
#include "pipeline/disk/synced_files.h"
#include "pipeline/pull/direct_file.h"
#include "pipeline/pull/health.h"
#include "pipeline/pull/pull_identity.h"

namespace sstferry {

using rocksdb::Status;

namespace {

// Returns the reason if the snapshot is too old, or "". A snapshot of unknown
// age is too old.
std::string TooOld(std::chrono::seconds max_age, const Opened& opened) {
  if (max_age.count() <= 0) {
    return "";
  }
  const uint64_t now = static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::seconds>(
          std::chrono::system_clock::now().time_since_epoch())
          .count());
  const uint64_t taken = opened.taken_seconds;
  const std::optional<uint64_t> age = KnownAge(now, taken);
  return age.has_value() && *age <= static_cast<uint64_t>(max_age.count())
             ? ""
             : "was taken at " +
                   (taken == 0 ? "an unknown time" : Rfc3339(taken)) +
                   ", not within the last " +
                   std::to_string(max_age.count()) + " s";
}

}  // namespace

PullWorkspace::PullWorkspace(const PullOptions* options, bool plans,
                             LaneShared* lanes, PullReporter* report,
                             PullTarget* target)
    : options_(options),
      plans_(plans),
      lanes_(lanes),
      report_(report),
      target_(target),
      disk_(MakeAccessFileSystem(
          options->file_system != nullptr
              ? options->file_system
              : MakeDirectFileSystem(
                    MakeFullDiskFileSystem(rocksdb::FileSystem::Default())),
          Workspace::DirOf(options->target_dir))),
      verifies_(false) {
  if (options->verify) {
    DemandVerify();
  }
}

void PullWorkspace::DemandVerify() {
  verifies_ = true;
  report_->ExpectVerify();
}

Status PullWorkspace::Open() {
  return target_->ReadExisting(
      plans_ ? WorkspaceUse::kLook : WorkspaceUse::kPull, disk_, &found_);
}

Status PullWorkspace::ReadUnfinished() {
  if (!workspace()->has_unfinished()) {
    return Status::OK();
  }
  const Status status = ReadJournalState(
      disk_.get(), workspace()->journal_path(), &unfinished_);
  if (status.IsCorruption()) {
    report_->Say(
        "starting over, since the journal of the unfinished pull is damaged: " +
        MessageOf(status));
    return Status::OK();
  }
  if (status.IsIncomplete() || status.IsNotFound()) {
    return Status::OK();
  }
  return status.ok() ? JudgeUnfinished() : status;
}

// Decides whether to resume the pull of a complete journal. With --restart,
// drops the pull without comparing it with this command. The pull may belong to
// another command.
Status PullWorkspace::JudgeUnfinished() {
  const JournalTransfer& head = unfinished_.head;
  if (found_.transfer == head.transfer_id) {
    return Status::OK();
  }
  // Do not resume a drill, because it would report wrong times.
  if (head.mode == kDrillMode && head.mode == target_->mode()) {
    DropUnfinished("removing the leftovers of an unfinished drill");
    return Status::OK();
  }
  // An adopted former primary may still have the workspace of a pull that ran
  // before it became the primary. Drop that pull.
  if (options().adopts_old && (head.mode != target_->mode() ||
                               head.source != options().source.ToString())) {
    DropUnfinished("removing the leftovers of a pull of another kind");
    return Status::OK();
  }
  if (options().restart) {
    DropUnfinished("discarded the unfinished pull " +
                   ToHex(head.transfer_id) + " of " + head.source +
                   ", as --restart asks");
    return Status::OK();
  }
  // Start over: the journal must say that the result becomes a standby, so that
  // no pull resumes it. Keep the received files, because a follower has no
  // option --restart.
  if (head.mode == kCloneMode && target_->mode() == std::string(kFollowMode)) {
    DropUnfinished("starting over to make a standby, which takes the files "
                   "that the unfinished pull had received");
    KeepReceived();
    return Status::OK();
  }
  if (head.mends != found_.fault.id) {
    DropUnfinished("starting over, since the recorded fault of " +
                   (options().reuse_dir.empty() ? options().target_dir
                                                : options().reuse_dir) +
                   " has changed since the unfinished pull began");
    return Status::OK();
  }
  RETURN_IF_ERROR(
      CheckSameRequest(options(), target_->mode(), head, workspace()->dir()));
  if (!SurvivedReboots(head)) {
    DropUnfinished("starting over, since the machine was restarted and the "
                   "unfinished pull ran with --durability none");
    return Status::OK();
  }
  const std::string old = TooOld(options().max_age, unfinished_.plan.opened);
  if (!old.empty()) {
    DropUnfinished("starting over, since the snapshot of the unfinished pull " +
                   old);
    return Status::OK();
  }
  is_resuming_ = target_->IsAsLeft(unfinished_);
  if (!is_resuming_ && target_->reuse() != nullptr) {
    DropUnfinished("starting over with the files that were received, since the "
                   "directory from which files were linked was removed, "
                   "replaced or refreshed, or new files get another owner or "
                   "other permissions");
    KeepReceived();
  } else if (!is_resuming_) {
    DropUnfinished("starting over, since the target, or the directory from "
                   "which files were linked, changed after the unfinished pull "
                   "had stopped");
  }
  if (is_resuming_ && head.verify && !verifies_) {
    DemandVerify();
    report_->Say("keeping --verify, with which the pull was started");
  }
  return Status::OK();
}

// Compares the text of SOURCE. Database ids are not enough, because all sets of
// an archive and all copies of a database have the same id.
bool PullWorkspace::may_end_alone() const {
  return resumes_complete() && !options().adopts_old &&
         unfinished_.head.source == options().source.ToString();
}

void PullWorkspace::DropUnfinished(const std::string& why) {
  report_->Say(why);
  dropped_ = unfinished_.head.transfer_id;
}

// Keeps the files that the dropped pull received, so that the new pull can use
// them.
void PullWorkspace::KeepReceived() {
  earlier_ = std::move(unfinished_);
  unfinished_ = JournalState();
}

// Tells the user of a plan that the pull would first complete an exchange or
// resume an unfinished pull. Then forgets the unfinished pull, and the plan
// starts from nothing, because only the pull may use the snapshot that the
// source retains for it.
void PullWorkspace::TellOfUnfinished() {
  std::error_code error;
  if (std::filesystem::exists(workspace()->dir() + "/exchange", error)) {
    report_->Note("an exchange was interrupted: the pull completes it "
                  "first");
  }
  if (is_resuming_) {
    finishes_alone_ = may_end_alone() && !verifies_;
    report_->Note(
        "the pull resumes transfer " + ToHex(unfinished_.head.transfer_id) +
        (finishes_alone_
             ? ", of which all data has arrived"
             : ": " + FormatBytes(unfinished_.planned_bytes_done()) +
                   " of about " + FormatBytes(unfinished_.plan.bytes()) +
                   " have arrived; this plan shows the numbers of a new "
                   "pull"));
  }
  is_resuming_ = false;
  unfinished_ = JournalState();
  earlier_.reset();
  dropped_.reset();
}

Status PullWorkspace::Prepare() {
  if (plans_) {
    TellOfUnfinished();
  }
  ChooseDurability();
  if (is_resuming_) {
    return RecordCommand();
  }
  RETURN_IF_ERROR(workspace()->Clear(
      earlier_.has_value() ? KeptOfDb::kEarlier : KeptOfDb::kNothing));
  return target_->TakeCopy(&found_);
}

// Records the command that resumes the pull, if it differs from the recorded
// one. `sstferry status` then shows the new command with its hooks.
Status PullWorkspace::RecordCommand() {
  JournalTransfer head = unfinished_.head;
  if (options().command_line == head.command_line ||
      options().command_line.size() > kMaxCommandLineBytes) {
    return Status::OK();
  }
  head.command_line = options().command_line;
  const std::string path = workspace()->journal_path();
  std::unique_ptr<JournalFile> journal;
  RETURN_IF_ERROR(
      JournalFile::Reopen(disk_.get(), path, unfinished_.bytes, &journal));
  RETURN_IF_ERROR(journal->Append(JournalRecordType::kTransfer, head));
  RETURN_IF_ERROR(journal->Sync());
  RETURN_IF_ERROR(journal->Close());
  unfinished_.head = std::move(head);
  const rocksdb::IOStatus sized = disk_->GetFileSize(
      path, rocksdb::IOOptions(), &unfinished_.bytes, nullptr);
  return WithContext(sized, EndState::kInternal, path);
}

// Keeps the durability of the unfinished pull. If that pull did not sync its
// chunks, syncs of single files now would not cover them. Only a sync of
// everything does.
void PullWorkspace::ChooseDurability() {
  const bool asked = options().durability == Durability::kChunk;
  const bool durable = is_resuming_ ? unfinished_.head.durable : asked;
  if (durable != asked) {
    report_->Say(std::string("keeping --durability ") +
                          (asked ? "none" : "chunk") +
                          ", with which the pull was started");
  }
  if (is_resuming_ && unfinished_.head.chunk_bytes != options().chunk_bytes) {
    report_->Say("keeping --chunk-bytes " +
                          std::to_string(unfinished_.head.chunk_bytes) +
                          ", with which the pull was started");
  }
  file_system_ = durable ? MakeSyncedFilesFileSystem(disk_)
                         : MakeDeferredSyncFileSystem(disk_);
  lanes_->sync_chunks = durable;
  lanes_->file_system = file_system_.get();
}

Status PullWorkspace::StartAnew(bool keeps) {
  journal_.reset();
  is_resuming_ = false;
  earlier_.reset();
  if (keeps) {
    KeepReceived();
  }
  unfinished_ = JournalState();
  ChooseDurability();
  RETURN_IF_ERROR(workspace()->Clear(target_->keeps_copy() ? KeptOfDb::kAll
                                     : keeps ? KeptOfDb::kEarlier
                                             : KeptOfDb::kNothing));
  return target_->TakeCopy(&found_);
}

void PullWorkspace::FillRequest(SnapshotUse use, OpenRequest* request) const {
  if (use == SnapshotUse::kResume) {
    request->snapshot_use = use;
    request->named_transfer = unfinished_.head.transfer_id;
    request->families = unfinished_.head.families;
    request->chunk_bytes = unfinished_.head.chunk_bytes;
    request->application = unfinished_.head.application;
  } else if (dropped_.has_value() &&
             request->snapshot_use != SnapshotUse::kShare) {
    if (request->snapshot_use == SnapshotUse::kNew) {
      request->snapshot_use = SnapshotUse::kInstead;
    }
    request->named_transfer = *dropped_;
  }
}

Status PullWorkspace::CreateJournal(const OpenRequest& asked,
                                    const Plan& plan) {
  // Create the journal in the file system that syncs at once. SyncTree(), which
  // syncs everything at the end, does not sync the journal.
  Status status = JournalFile::Create(disk_.get(),
                                      workspace()->journal_path(), &journal_);
  JournalTransfer head = MakeJournalHead(
      options(), target_->mode(), asked, plan);
  head.verify = verifies_;
  head.mends = found_.fault.id;
  if (status.ok()) {
    status = journal_->Append(JournalRecordType::kTransfer, head);
  }
  if (status.ok()) {
    status = AppendPlan(plan);
  }
  FaultPoint("Puller:JournalWritten");
  if (status.ok()) {
    status = journal_->Sync();
  }
  FaultPoint("Puller:JournalSynced");
  if (status.ok()) {
    status = SyncDirectory(disk_.get(), workspace()->dir());
  }
  is_resumable_ = status.ok();
  return status;
}

Status PullWorkspace::AppendPlan(const Plan& plan) {
  return EncodePlan(plan.opened, plan,
                    [this](FrameType type, const std::string& payload) {
                      return journal_->Append(JournalRecordType::kPlan,
                                              JournalPlan{type, 0, payload});
                    });
}

Status PullWorkspace::ReopenJournal() {
  const Status status =
      JournalFile::Reopen(disk_.get(), workspace()->journal_path(),
                          unfinished_.bytes, &journal_);
  // Sync the directory, because an earlier run may not have synced the names of
  // the journal and of other files in it.
  return status.ok() ? SyncDirectory(disk_.get(), workspace()->dir())
                     : status;
}

// Records a difference only for a target that contains files of TARGET_DIR. Any
// other new directory was not published, so no reader uses it.
Status PullWorkspace::MarkUnverified(const Status& difference) {
  is_resumable_ = false;
  Status status;
  if (!difference.ok() && target_->comparer() != nullptr) {
    HealthFile fault = MakeFault(ReplicaFault::kDifferent,
                                 MessageOf(difference), options().selection);
    status = RecordFault(disk_.get(), options().target_dir, &fault);
  }
  const Status removed = RemoveJournal();
  return status.ok() ? removed : status;
}

Status PullWorkspace::RemoveJournal() {
  const rocksdb::IOStatus deleted = disk_->DeleteFile(
      workspace()->journal_path(), rocksdb::IOOptions(), nullptr);
  return deleted.ok() ? SyncDirectory(disk_.get(), workspace()->dir())
                      : Status(deleted);
}

// Tells the user that the same command resumes the pull, but only if it can.
// This side must have the journal, and the source must keep its snapshot after
// such a failure (MayGoOnAfter()).
void PullWorkspace::SayHowToResume(const Status& status, bool has_all) const {
  const EndState state = EndStateOf(status);
  if (state == EndState::kSnapshotGone) {
    report_->Say(
        "the source no longer has the snapshot; run the same command to start "
        "over");
    return;
  }
  const bool is_kept =
      is_resumable_ && (MayGoOnAfter(state) ||
                        workspace()->swap_state() == SwapState::kBegun);
  if (!is_kept) {
    return;
  }
  // Here the source is part of this process. A refresh in place from such a
  // source keeps no snapshot that another process could take over.
  const bool ends_with_us =
      lanes_->refreshes() && options().source.is_directory() && !has_all;
  report_->Say(
      ends_with_us ? "the snapshot is lost when this process ends; run the "
                     "same command to start over with a new snapshot"
                   : "partial data is kept in " + workspace()->dir() +
                         "; run the same command to resume");
}

}  // namespace sstferry
