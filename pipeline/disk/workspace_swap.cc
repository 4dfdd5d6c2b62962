// Exchanges the workspace's db/ with TARGET_DIR, and completes an exchange that
// a crash interrupted.
#include <filesystem>

#include "pipeline/base/last_transfer.h"
#include "pipeline/disk/database_files.h"
#include "pipeline/disk/durable.h"
#include "pipeline/disk/exchange_record.h"
#include "pipeline/disk/other_files.h"
#include "pipeline/disk/paced_removal.h"
#include "pipeline/disk/workspace.h"

namespace sstferry {
namespace {

namespace fs = std::filesystem;
using rocksdb::IOOptions;
using rocksdb::Status;

constexpr size_t kMaxRecordBytes = 4096;

Status Strange(const std::string& record, const std::string& dir) {
  return MakeStatus(EndState::kRefused,
                    record + ": expected the record of " + dir +
                        ", found the record of another directory; if you do "
                        "not need " + dir + ", remove its parent directory");
}

}  // namespace

Status Workspace::RecordExchange(const std::string& transfer_id,
                                 ExchangeRecord* record) {
  record->transfer_id = transfer_id;
  record->new_identity = IdentityOf(db_dir());
  record->old_identity =
      target_exists_ ? IdentityOf(target_dir_) : kNoDirectory;
  record->refresh = existing_ == Existing::kRefresh;
  const Status status =
      WriteDurably(file_system_.get(), dir_ + "/exchange", record->Encode());
  if (status.ok()) {
    FaultPoint("Workspace:ExchangeRecorded");
  }
  return status;
}

// Completes an exchange. Lets db/ be deleted only if it is known to be the new
// database, whatever happened to TARGET_DIR since.
Status Workspace::FinishExchange() {
  const std::string path = dir_ + "/exchange";
  std::error_code error;
  swap_state_ = SwapState::kNone;
  if (!fs::exists(path, error)) {
    return error ? MakeStatus(EndState::kInternal,
                              path + ": " + error.message())
                 : Status::OK();
  }
  ExchangeRecord record;
  const bool whole = record.DecodeFrom(ReadStart(path, kMaxRecordBytes));
  if (whole && record.refresh) {
    bool finished = false;
    const Status status = FinishSwap(record, &finished);
    if (!status.ok() || finished) {
      return status;
    }
  }
  const std::string found = IdentityOf(db_dir());
  if (whole && (found.empty() || found == record.new_identity)) {
    return Status::OK();  // completed, or recorded and not begun
  }
  if (!whole || found != record.old_identity) {
    return Strange(path, db_dir());
  }
  const std::string kept = target_dir_ + ".old-" + record.transfer_id;
  Status status = RenameToNew(file_system_.get(), db_dir(), kept);
  if (status.ok()) {
    FaultPoint("Workspace:OldMoved");
    status = SyncDirectory(file_system_.get(), parent_);
  }
  if (status.ok() && log_) {
    log_(LogLevel::kWarning,
         "completed the exchange of transfer " + record.transfer_id +
             " that was interrupted; the old database is " + kept);
  }
  return status;
}

// Finds out where the swap of an earlier refresh stopped. *finished is false if
// that is none of its steps or this pull is no refresh; then the caller keeps
// what a refresh would delete.
Status Workspace::FinishSwap(const ExchangeRecord& record, bool* finished) {
  swap_ = record;
  const std::string old = IdentityOf(old_dir());
  if (!old.empty()) {
    *finished = true;
    swap_state_ = SwapState::kRetired;
    return old == record.old_identity
               ? Status::OK()
               : Strange(dir_ + "/exchange", old_dir());
  }
  if (existing_ != Existing::kRefresh) {
    return Status::OK();
  }
  const std::string found = IdentityOf(db_dir());
  const bool in_place = IdentityOf(target_dir_) == record.new_identity;
  if (found == record.new_identity) {
    swap_state_ = SwapState::kBegun;
  } else if (in_place && (found == record.old_identity ||
                          (found.empty() &&
                           record.old_identity == kNoDirectory))) {
    swap_state_ = SwapState::kExchanged;
  }
  *finished = swap_state_ != SwapState::kNone;
  return Status::OK();
}

Status Workspace::Exchange(const std::string& transfer_id,
                           std::string* old_dir) {
  DatabaseLock lock;  // no process opens the old database from here on
  Status status = CheckReplaceable(target_dir_);
  if (status.ok()) {
    status = lock.Take(target_dir_);
  }
  if (!status.ok()) {
    return status;
  }
  *old_dir = target_dir_ + ".old-" + transfer_id;
  ExchangeRecord record;
  status = RecordExchange(transfer_id, &record);
  if (status.ok()) {
    status = ExchangeNames(file_system_.get(), db_dir(), target_dir_);
  }
  if (status.ok()) {
    FaultPoint("Workspace:NamesExchanged");
    status = SyncDirectory(file_system_.get(), parent_);
  }
  if (!status.ok()) {
    return status;
  }
  FaultPoint("Workspace:Exchanged");
  return RenameToNew(file_system_.get(), db_dir(), *old_dir);
}

Status Workspace::BeginSwap(const std::string& transfer_id) {
  const Status status = RecordExchange(transfer_id, &swap_);
  if (status.ok()) {
    swap_state_ = SwapState::kBegun;
  }
  return status;
}

Status Workspace::Swap(std::vector<std::string>* kept) {
  const bool existed = target_exists_;
  Status status = CheckTarget();
  if (status.ok() &&
      (target_exists_ != existed ||
       (existed && IdentityOf(target_dir_) != swap_.old_identity))) {
    status = MakeStatus(EndState::kRefused,
                        "target " + target_dir_ + ": expected the directory "
                        "that was there when the exchange began, found " +
                            (target_exists_ ? "another" : "none"));
  }
  if (status.ok() && existed) {
    status = CheckExchangeable(target_dir_);
  }
  DatabaseLock lock;  // no process opens the old database from here on
  if (status.ok() && existed) {
    status = lock.Take(target_dir_);
    if (EndStateOf(status) == EndState::kBusy) {
      status = WithContext(status, EndState::kBusy,
                           "--before-swap must stop the process that uses the "
                           "old database, and --after-swap must start it "
                           "again");
    }
  }
  if (status.ok()) {
    status = PlaceOtherFiles(file_system_.get(), other_dir(),
                             existed ? target_dir_ : "", db_dir(), kept);
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

Status Workspace::RetireOld() {
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
