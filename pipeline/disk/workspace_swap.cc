// Exchanges the workspace's db/ with TARGET_DIR, and completes an exchange that
// a crash interrupted.
#include <filesystem>

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

namespace fs = std::filesystem;
using rocksdb::IOOptions;
using rocksdb::Status;

constexpr size_t kMaxSwapRecordBytes = 4096;

Status Strange(const std::string& record, const std::string& dir) {
  return MakeStatus(EndState::kRefused,
                    record + ": expected the record of " + dir +
                        ", found the record of another directory; if you do "
                        "not need " + dir + ", remove its parent directory");
}

}  // namespace

// Finds the step at which an earlier swap stopped, whatever happened to
// TARGET_DIR since. db/ may be deleted only if it certainly is the new
// database.
Status Workspace::FindSwap() {
  const std::string path = dir_ + "/exchange";
  std::error_code error;
  swap_state_ = SwapState::kNone;
  if (!fs::exists(path, error)) {
    return error ? MakeStatus(EndState::kInternal,
                              path + ": " + error.message())
                 : Status::OK();
  }
  if (!swap_.DecodeFrom(ReadStart(path, kMaxSwapRecordBytes))) {
    return Strange(path, db_dir());
  }
  const std::string old = IdentityOf(old_dir());
  if (!old.empty()) {
    swap_state_ = SwapState::kRetired;
    return old == swap_.old_identity ? Status::OK() : Strange(path, old_dir());
  }
  const std::string found = IdentityOf(db_dir());
  // The swap's --after-swap may still have to run.
  const bool is_of_swap =
      !swap_.by_refresh && existing_ != Existing::kSwap;
  if (found == swap_.new_identity) {
    // before_swap may have stopped the application. A process that has the
    // database open here needs no after_swap.
    if (is_of_swap && !open_here_) {
      return LeftToSwap();
    }
    swap_state_ = existing_ != Existing::kRefuse ? SwapState::kBegun
                                                 : SwapState::kNone;
    return Status::OK();
  }
  const bool in_place = IdentityOf(target_dir_) == swap_.new_identity;
  const bool was_new = swap_.old_identity == kNoDirectory;
  if (found.empty() ? !(in_place && was_new) : found != swap_.old_identity) {
    return found.empty() ? Status::OK() : Strange(path, db_dir());
  }
  if (!in_place) {
    return MakeStatus(
        EndState::kRefused,
        db_dir() + " is the database that the swap of transfer " +
            swap_.transfer_id + " took from " + target_dir_ +
            ", and the new database is missing; move the old one back to " +
            target_dir_ + ", then run the same command again");
  }
  if (is_of_swap) {
    return LeftToSwap();
  }
  swap_state_ = SwapState::kExchanged;
  return Status::OK();
}

bool Workspace::AwaitsAfterSwap(const std::string& target_dir) {
  const std::string dir = DirOf(target_dir);
  ExchangeRecord record;
  if (!record.DecodeFrom(ReadStart(dir + "/exchange", kMaxSwapRecordBytes)) ||
      record.by_refresh) {
    return false;
  }
  const std::string old = IdentityOf(dir + "/db");
  return IdentityOf(dir + "/old").empty() &&
         IdentityOf(target_dir) == record.new_identity &&
         (old.empty() ? kNoDirectory : old) == record.old_identity;
}

Status Workspace::LeftToSwap() const {
  return MakeStatus(EndState::kRefused,
                    "target " + target_dir_ + ": the swap of transfer " +
                        swap_.transfer_id +
                        " was interrupted before its --after-swap; only the "
                        "same swap completes it");
}

Status Workspace::BeginSwap(const std::string& transfer_id, bool adopts_old) {
  swap_.transfer_id = transfer_id;
  swap_.adopts_old = adopts_old && target_exists_;
  swap_.by_refresh = existing_ == Existing::kRefresh;
  swap_.new_identity = IdentityOf(db_dir());
  swap_.old_identity = target_exists_ ? IdentityOf(target_dir_) : kNoDirectory;
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
  if (status.ok() &&
      (target_exists_ != existed ||
       (existed && IdentityOf(target_dir_) != swap_.old_identity))) {
    status = MakeStatus(EndState::kRefused,
                        "target " + target_dir_ + ": the directory was " +
                            (!target_exists_ ? "removed"
                             : existed       ? "replaced"
                                             : "made") +
                            " after the exchange began");
  }
  if (status.ok() && existed) {
    status = CheckExchangeable(target_dir_, InPlace());
  }
  DatabaseLock lock;  // from here on, no process can open the old database
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
    // An adopted database is kept complete, and its application may write to
    // its files, so none of them is linked.
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

// Moves the old database out of the workspace before removing `exchange`: if a
// later run finds no db/, the exchange is complete.
Status Workspace::RetireOld(bool keeps, std::string* path) {
  path->clear();
  if ((keeps || swap_.adopts_old) && !IdentityOf(db_dir()).empty()) {
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
  if (IdentityOf(db_dir()).empty()) {  // there was no old database
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
