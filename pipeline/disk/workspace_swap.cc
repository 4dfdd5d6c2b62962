// Exchanges the workspace's db/ with TARGET_DIR, and completes an exchange that
// a crash interrupted.
#include "pipeline/base/file_lock.h"
#include "pipeline/base/last_transfer.h"
#include "pipeline/disk/database_files.h"
#include "pipeline/disk/durable.h"
#include "pipeline/disk/exchange_record.h"
#include "pipeline/disk/old_directories.h"
#include "pipeline/disk/other_files.h"
#include "pipeline/disk/paced_removal.h"
#include "pipeline/disk/workspace.h"

namespace sstferry {
namespace {

using rocksdb::IOOptions;
using rocksdb::Status;

constexpr size_t kMaxSwapRecordBytes = 4096;

// Returns a refusal for a directory in the workspace that cannot be identified.
// It may be the new database, the old database or something else, so nothing is
// done to it.
Status Strange(const std::string& record, const std::string& dir) {
  return MakeStatus(EndState::kRefused,
                    record + ": expected the record of " + dir +
                        ", found a damaged record or that of other "
                        "directories, as after a copy or in a new mount of "
                        "overlayfs; " + dir +
                        " may be the only copy of a database: move it out of "
                        "its parent directory, start the application if a "
                        "swap has stopped it, then run the same command again");
}

// Returns which database db/ must contain between the exchange and RetireOld().
Exchanged OldOf(const ExchangeRecord& record) {
  return record.old_identity == kNoDirectory ? Exchanged::kNothing
                                             : Exchanged::kOld;
}

}  // namespace

// Finds the step at which an earlier swap stopped. TARGET_DIR may have changed
// since then in any way. A later step may delete db/, so db/ must certainly be
// the new database.
Status Workspace::FindSwap() {
  const std::string path = dir_ + "/exchange";
  swap_state_ = SwapState::kNone;
  bool is_recorded = false;
  std::string text;
  RETURN_IF_ERROR(ReadRecord(path, kMaxSwapRecordBytes, &is_recorded, &text));
  if (!is_recorded) {
    return Status::OK();
  }
  if (!swap_.DecodeFrom(text)) {
    return Strange(path, db_dir());
  }
  Exchanged found = Exchanged::kNothing;
  RETURN_IF_ERROR(FindExchanged(swap_, old_dir(), &found));
  if (found != Exchanged::kNothing) {
    swap_state_ = SwapState::kRetired;
    return found == Exchanged::kOld ? Status::OK() : Strange(path, old_dir());
  }
  RETURN_IF_ERROR(FindExchanged(swap_, db_dir(), &found));
  // True: the exchange belongs to a swap, whose --after-swap may still have to
  // run. Then only a swap may complete it.
  const bool is_of_swap =
      !swap_.by_refresh && existing_ != Existing::kSwap;
  if (found == Exchanged::kNew) {
    // The before_swap hook may have stopped the application, so only a swap may
    // continue. But if this process has the database open, the application is
    // running and needs no after_swap.
    if (is_of_swap && !open_here_) {
      return LeftToSwap();
    }
    swap_state_ = existing_ != Existing::kRefuse ? SwapState::kBegun
                                                 : SwapState::kNone;
    return Status::OK();
  }
  Exchanged target = Exchanged::kNothing;
  RETURN_IF_ERROR(FindExchanged(swap_, target_dir_, &target));
  const bool in_place = target == Exchanged::kNew;
  const bool was_new = swap_.old_identity == kNoDirectory;
  if (found == Exchanged::kAnother) {
    return Strange(path, db_dir());
  }
  if (found == Exchanged::kNothing && !(in_place && was_new)) {
    return Status::OK();
  }
  if (!in_place) {
    const bool is_gone = target == Exchanged::kNothing;
    return MakeStatus(
        EndState::kRefused,
        db_dir() + " is the database that the swap of transfer " +
            swap_.transfer_id + " took from " + target_dir_ +
            (is_gone
                 ? ", but the new database is no longer there; move the old "
                   "database back to " + target_dir_
                 : ", and what is there now may be the new database (copied, "
                   "or without its " + std::string(kLastTransferName) +
                       "), with all writes since then, or another database; "
                       "if it is the new one, move " + db_dir() +
                       " out of its parent directory; if not, move it away "
                       "and move " + db_dir() + " to its place; start the "
                       "application if a swap has stopped it") +
            ", then run the same command again");
  }
  if (is_of_swap) {
    return LeftToSwap();
  }
  swap_state_ = SwapState::kExchanged;
  return Status::OK();
}

Status Workspace::FindAwaitedAfterSwap(const std::string& target_dir,
                                       bool* awaits) {
  *awaits = false;
  const std::string dir = DirOf(target_dir);
  bool is_recorded = false;
  std::string text;
  RETURN_IF_ERROR(ReadRecord(dir + "/exchange", kMaxSwapRecordBytes,
                             &is_recorded, &text));
  ExchangeRecord record;
  if (!record.DecodeFrom(text) || record.by_refresh) {
    return Status::OK();
  }
  Exchanged retired = Exchanged::kNothing;
  Exchanged old = Exchanged::kNothing;
  Exchanged target = Exchanged::kNothing;
  RETURN_IF_ERROR(FindExchanged(record, dir + "/old", &retired));
  RETURN_IF_ERROR(FindExchanged(record, dir + "/db", &old));
  RETURN_IF_ERROR(FindExchanged(record, target_dir, &target));
  *awaits = retired == Exchanged::kNothing && target == Exchanged::kNew &&
            old == OldOf(record);
  return Status::OK();
}

Status Workspace::LeftToSwap() const {
  return MakeStatus(EndState::kRefused,
                    "target " + target_dir_ + ": the swap of transfer " +
                        swap_.transfer_id +
                        " was interrupted; run the same swap again" +
                        (swap_.has_after_swap ? ", with its --after-swap"
                                              : ""));
}

Status Workspace::CheckMayComplete(bool has_after_swap) const {
  const bool is_open = swap_state_ == SwapState::kBegun ||
                       swap_state_ == SwapState::kExchanged;
  return is_open && swap_.has_after_swap && !has_after_swap ? LeftToSwap()
                                                            : Status::OK();
}

Status Workspace::BeginSwap(const std::string& transfer_id, bool adopts_old,
                            bool has_after_swap) {
  swap_.transfer_id = transfer_id;
  swap_.adopts_old = adopts_old && target_exists_;
  swap_.by_refresh = existing_ == Existing::kRefresh;
  swap_.has_after_swap = has_after_swap;
  swap_.old_identity = kNoDirectory;
  RETURN_IF_ERROR(FindInode(db_dir(), &swap_.new_identity));
  if (target_exists_) {
    RETURN_IF_ERROR(FindInode(target_dir_, &swap_.old_identity));
  }
  RETURN_IF_ERROR(
      WriteDurably(file_system_.get(), dir_ + "/exchange", swap_.Encode()));
  FaultPoint("Workspace:ExchangeRecorded");
  swap_state_ = SwapState::kBegun;
  return Status::OK();
}

Status Workspace::Swap(const std::function<Status()>& last_check,
                       std::vector<std::string>* kept) {
  const bool existed = target_exists_;
  Status status = CheckTarget();
  std::string inode;
  if (status.ok() && existed) {
    status = FindInode(target_dir_, &inode);
  }
  if (status.ok() && (target_exists_ != existed ||
                      (existed && inode != swap_.old_identity))) {
    status = MakeStatus(EndState::kRefused,
                        "target " + target_dir_ +
                            ": the before-swap hook or another process " +
                            (!target_exists_ ? "removed"
                             : existed       ? "replaced"
                                             : "created") +
                            " the directory after the exchange began, so "
                            "nothing was exchanged; find out which one did "
                            "this, then run the same command again");
  }
  if (status.ok() && existed) {
    status = CheckExchangeable(target_dir_, InPlace());
  }
  DatabaseLock lock;  // while this exists, no process can open the old database
  if (status.ok() && existed) {
    status = lock.Take(target_dir_, /*makes=*/true);
    if (EndStateOf(status) == EndState::kBusy &&
        existing_ == Existing::kSwap) {
      status = WithContext(status, EndState::kBusy,
                           "--before-swap must stop the process that uses the "
                           "old database, and --after-swap must start it "
                           "again");
    }
  }
  if (status.ok()) {
    // Links no file of an adopted database. The database is kept complete, and
    // its application may still write to its files.
    const bool takes_others = existed && !swap_.adopts_old;
    status = PlaceOtherFiles(file_system_.get(), other_dir(),
                             takes_others ? target_dir_ : "", db_dir(), kept);
  }
  Descriptor names;
  if (status.ok()) {
    status = LockDirectory(dir_, &names);
  }
  if (status.ok()) {
    status = last_check();
  }
  if (!status.ok()) {
    return status;
  }
  if (existed) {
    status = ExchangeNames(file_system_.get(), db_dir(), target_dir_);
  } else {
    status = WithContext(file_system_->RenameFile(db_dir(), target_dir_,
                                                  IOOptions(), nullptr),
                         EndState::kInternal,
                         "rename " + db_dir() + " to " + target_dir_);
  }
  if (status.ok()) {
    swap_state_ = SwapState::kExchanged;
    FaultPoint("Workspace:NamesExchanged");
    status = SyncDirectory(file_system_.get(), parent_);
  }
  if (status.ok()) {
    FaultPoint("Workspace:Exchanged");
  }
  return status;
}

// Moves the old database out of the workspace, and only then removes
// `exchange`. So if a later run finds no db/, it knows that the exchange is
// complete. The record says whether there was an old database. Examines db/
// once, and refuses if it contradicts the record.
Status Workspace::RetireOld(bool keeps, std::string* path) {
  path->clear();
  Exchanged found = Exchanged::kNothing;
  RETURN_IF_ERROR(FindExchanged(swap_, db_dir(), &found));
  if (found != OldOf(swap_)) {
    return Strange(dir_ + "/exchange", db_dir());
  }
  if ((keeps || swap_.adopts_old) && found == Exchanged::kOld) {
    RETURN_IF_ERROR(
        swap_.adopts_old
            ? NameAdopted(target_dir_, path)
            : MarkOldDirectory(file_system_.get(), target_dir_, db_dir(),
                               path));
    RETURN_IF_ERROR(RenameToNew(file_system_.get(), db_dir(), *path));
    FaultPoint("Workspace:OldKept");
    RETURN_IF_ERROR(SyncAll(file_system_.get(), {}, {dir_, parent_}));
    RETURN_IF_ERROR(RemoveParts({"exchange"}, [] {}));
    swap_state_ = SwapState::kNone;
    return Status::OK();
  }
  Status status;
  if (found == Exchanged::kNothing) {  // there was no old database
    status = RemoveParts({"exchange"}, [] {});
  } else {
    status = RenameToNew(file_system_.get(), db_dir(), old_dir());
  }
  if (status.ok()) {
    FaultPoint("Workspace:OldRetired");
    status = SyncDirectory(file_system_.get(), dir_);
  }
  if (status.ok()) {
    swap_state_ = SwapState::kRetired;
  }
  return status;
}

Status Workspace::RemoveOld(uint64_t bytes_per_sec, StopSignal* stop) {
  Status status =
      RemoveTreePaced(file_system_.get(), old_dir(), bytes_per_sec, stop);
  if (status.ok()) {
    status = SyncDirectory(file_system_.get(), dir_);
  }
  if (status.ok()) {
    swap_state_ = SwapState::kNone;
  }
  return status;
}

}  // namespace sstferry
