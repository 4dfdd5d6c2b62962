#include "pipeline/disk/workspace.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <filesystem>

#include "format/journal.h"
#include "pipeline/base/database_open.h"
#include "pipeline/base/file_lock.h"
#include "pipeline/base/full_disk.h"
#include "pipeline/base/last_transfer.h"
#include "pipeline/base/other_accounts.h"
#include "pipeline/disk/access.h"
#include "pipeline/disk/attributes.h"
#include "pipeline/disk/database_files.h"
#include "pipeline/disk/durable.h"
#include "sstferry/descriptor.h"

namespace sstferry {
namespace {

namespace fs = std::filesystem;
using rocksdb::IOOptions;
using rocksdb::Status;

constexpr char kLockMark[] = "sstferry workspace 1\n";
// The first bytes of a journal. They include its first record.
constexpr size_t kJournalHeadBytes =
    kJournalMagicBytes + kJournalHeaderBytes + kMaxJournalPayloadBytes;

Status Errno(const std::string& what, int error) {
  const EndState state =
      IsOutOfRoom(error) ? EndState::kNoSpace : EndState::kInternal;
  return MakeStatus(state, what + ": " + strerror(error));
}

Status AtPath(const std::string& what, const Status& status) {
  return WithContext(status, EndStateOf(status), what);
}

std::string WithoutTrailingSlash(std::string path) {
  while (path.size() > 1 && path.back() == '/') {
    path.pop_back();
  }
  return path;
}

std::string ParentOfPath(const std::string& path) {
  const std::string parent = fs::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

// Returns the transfer id in the first record of the journal. Empty if this
// record is damaged.
std::string JournalTransferId(const std::string& journal) {
  JournalRecord record;
  JournalTransfer head;
  const bool known =
      CheckJournalMagic(journal).ok() &&
      ReadJournalRecord(journal, kJournalMagicBytes, &record).ok() &&
      record.type == JournalRecordType::kTransfer &&
      Decode(record.payload, &head).ok();
  return known ? ToHex(head.transfer_id) : "";
}

// Returns true if the workspace contains nothing of value. This is the case if
// its pull crashed while it created the workspace, or while it removed the last
// files. The directory then contains nothing, or only staging/, probe/ and a
// lock file. The mark in this file may be incomplete or consist of zeros.
bool IsBarelyBegun(const std::string& dir) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(dir, error)) {
    const std::string name = entry.path().filename();
    const bool is_part = name == "staging" || name == "probe";
    if (name != "lock" && (!is_part || !Workspace::IsOne(dir))) {
      return false;
    }
  }
  std::string mark = ReadStart(dir + "/lock", sizeof(kLockMark));
  while (!mark.empty() && mark.back() == '\0') {
    mark.pop_back();
  }
  return !error && std::string(kLockMark).rfind(mark, 0) == 0;
}

// Returns true if `dir` is a mount point. Also detects bind mounts, whose
// device number is that of the parent. Returns false if the kernel cannot
// report this (Linux before 5.8).
bool IsMountRoot(const std::string& dir) {
  struct statx info;
  return statx(AT_FDCWD, dir.c_str(), AT_SYMLINK_NOFOLLOW, 0, &info) == 0 &&
         (info.stx_attributes_mask & info.stx_attributes &
          STATX_ATTR_MOUNT_ROOT) != 0;
}

Status NothingThere(const std::string& target_dir) {
  return MakeStatus(EndState::kRefused,
                    "target " + target_dir +
                        ": expected a database to refresh, found nothing");
}

Status NoDatabase(const std::string& target_dir) {
  return MakeStatus(EndState::kRefused,
                    "target " + target_dir +
                        " is not empty and holds no database; name another "
                        "directory");
}

// Checks that the workspace's directory belongs to this user and was created by
// a pull. Returns OK if there is no such directory.
Status CheckDirectory(const std::string& dir) {
  std::error_code error;
  RETURN_IF_ERROR(CheckOwnDirectory(dir));
  if (fs::symlink_status(dir, error).type() != fs::file_type::not_found &&
      (!fs::is_directory(dir, error) ||
       (!Workspace::IsOne(dir) && !IsBarelyBegun(dir)))) {
    return MakeStatus(EndState::kRefused,
                      dir + " exists and was not made by sstferry; move it "
                      "away");
  }
  return Status::OK();
}

Status LockedByAnother(const std::string& target_dir, const std::string& lock) {
  return MakeStatus(EndState::kBusy, "target " + target_dir +
                                         ": another pull holds " + lock +
                                         "; wait until it ends");
}

}  // namespace

Workspace::Workspace(std::string target_dir, Existing existing,
                     std::shared_ptr<rocksdb::FileSystem> file_system,
                     LogFunction log)
    : target_dir_(std::move(target_dir)),
      parent_(ParentOfPath(target_dir_)),
      dir_(DirOf(target_dir_)),
      existing_(existing),
      file_system_(std::move(file_system)),
      log_(std::move(log)) {}

std::string Workspace::DirOf(const std::string& target_dir) {
  return WithoutTrailingSlash(target_dir) + ".sstferry";
}

Status Workspace::CheckMine(const std::string& dir) {
  struct stat info;
  if (lstat(dir.c_str(), &info) != 0 || !S_ISDIR(info.st_mode) ||
      access(dir.c_str(), R_OK | X_OK) == 0) {
    return Status::OK();
  }
  return MakeStatus(EndState::kRefused,
                    dir + ": this process may not read the directory of user " +
                        std::to_string(info.st_uid) +
                        "; run the same command as root or as that user");
}

bool Workspace::IsOne(const std::string& dir) {
  return ReadStart(dir + "/lock", strlen(kLockMark)) == kLockMark;
}

Workspace::~Workspace() {
  if (lock_fd_ >= 0) {
    close(lock_fd_);
  }
}

Status Workspace::Open(const std::string& target_dir, Existing existing,
                       std::shared_ptr<rocksdb::FileSystem> file_system,
                       const LogFunction& log,
                       std::unique_ptr<Workspace>* workspace,
                       WorkspaceUse use, const std::string& next) {
  std::unique_ptr<Workspace> opened(
      new Workspace(WithoutTrailingSlash(target_dir), existing,
                    std::move(file_system), log));
  opened->use_ = use;
  opened->next_ = next;
  const Status status = opened->Open();
  if (status.ok()) {
    *workspace = std::move(opened);
  }
  return status;
}

Status Workspace::OpenBeside(const std::string& target_dir, bool open_here,
                             std::shared_ptr<rocksdb::FileSystem> file_system,
                             const LogFunction& log,
                             std::unique_ptr<Workspace>* workspace,
                             WorkspaceUse use) {
  std::unique_ptr<Workspace> opened(
      new Workspace(WithoutTrailingSlash(target_dir), Existing::kRefuse,
                    std::move(file_system), log));
  opened->use_ = use;
  opened->beside_ = true;
  opened->open_here_ = open_here;
  const Status status = opened->Open();
  if (status.ok()) {
    *workspace = std::move(opened);
  }
  return status;
}

// Makes all checks that change nothing. Does not examine an interrupted
// exchange, because TARGET_DIR then contains either the old or the new
// database.
Status Workspace::Look() {
  if (target_dir_.empty()) {
    return Status::OK();  // a plan without a target directory
  }
  Status status = CheckOnlyRoot(target_dir_, beside_ && !open_here_);
  if (status.ok()) status = CheckTarget();
  if (status.ok()) status = CheckDirectory(dir_);
  const std::string lock = dir_ + "/lock";
  return status.ok() && IsFileLocked(lock) ? LockedByAnother(target_dir_, lock)
                                           : status;
}

Status Workspace::Open() {
  if (use_ == WorkspaceUse::kLook) {
    return Look();
  }
  Status status = CheckOnlyRoot(target_dir_, beside_ && !open_here_);
  std::error_code error;
  if (status.ok() && !fs::exists(dir_ + "/exchange", error)) {
    status = CheckTarget();  // fails before any file is created
  }
  if (status.ok()) {
    status = Lock();
  }
  if (status.ok()) {
    status = FindSwap();
  }
  // Checks again, now that this object has the lock.
  if (status.ok()) {
    status = CheckTarget();
  }
  return status.ok() && target_exists_ && existing_ != Existing::kRefuse
             ? CheckMovable()
             : status;
}

// Checks that an exchange will be possible. This happens before data is sent
// and before the application stops. REQUIRES: this object has locked the
// workspace.
Status Workspace::CheckMovable() {
  Status status = CheckLayer();
  // Does not test this after a complete exchange. The exchange is not repeated,
  // and the test would fail on a full disk.
  if (status.ok() && swap_state_ != SwapState::kExchanged &&
      swap_state_ != SwapState::kRetired) {
    status = CheckExchange();
  }
  return status.ok() ? status : GiveUp(status);
}

Status Workspace::GiveUp(const Status& why) {
  const Status removed =
      IsBarelyBegun(dir_) ? RemoveWorkspace() : Status::OK();
  if (!removed.ok() && log_) {
    log_(LogLevel::kWarning, MessageOf(removed));
  }
  return why;
}

Status Workspace::TryAttributes() {
  std::error_code error;
  const bool is_exchanged = swap_state_ == SwapState::kExchanged ||
                            swap_state_ == SwapState::kRetired;
  if (use_ == WorkspaceUse::kLook || is_exchanged ||
      !fs::is_directory(target_dir_, error)) {
    return Status::OK();
  }
  const std::string probe = dir_ + "/probe";
  RETURN_IF_ERROR(RemoveParts({"probe"}, [] {}));
  RETURN_IF_ERROR(CreateDirectory(probe));
  Status status = CopyAttributes(target_dir_, probe);
  RETURN_IF_ERROR(RemoveParts({"probe"}, [] {}));
  if (status.ok()) {
    status = CopyInherited(target_dir_, dir_);
  }
  if (EndStateOf(status) == EndState::kRefused) {
    status = MakeStatus(EndState::kRefused,
                        "target " + target_dir_ + ": " + SentenceOf(status),
                        InPlace());
  }
  return status.ok() ? status : GiveUp(status);
}

// Checks that the file system can exchange two names atomically. NFS, 9p and
// most FUSE file systems cannot. The only way to find out is to try.
Status Workspace::CheckExchange() {
  const std::string probe = dir_ + "/probe";
  RETURN_IF_ERROR(RemoveParts({"probe"}, [] {}));
  RETURN_IF_ERROR(CreateDirectory(probe));
  RETURN_IF_ERROR(CreateDirectory(probe + "/a"));
  RETURN_IF_ERROR(CreateDirectory(probe + "/b"));
  const Status exchanged =
      ExchangeNames(file_system_.get(), probe + "/a", probe + "/b");
  FaultPoint("Workspace:ExchangeProbed");
  RETURN_IF_ERROR(RemoveParts({"probe"}, [] {}));
  return EndStateOf(exchanged) != EndState::kRefused
             ? exchanged
             : MakeStatus(
                   EndState::kRefused,
                   "target " + target_dir_ +
                       ": expected a file system that exchanges two names in "
                       "one step, found one that cannot, such as NFS, 9p or "
                       "FUSE; only a refresh in place, which renames no "
                       "directory, can update this replica",
                   InPlace());
}

// Checks that TARGET_DIR can be renamed. overlayfs cannot rename a directory of
// a lower layer, such as a container image, and returns EXDEV. The only way to
// find out is to try. The attempt changes nothing: it renames TARGET_DIR to the
// name of the workspace, which is not empty, so every file system refuses it.
// But overlayfs checks the layer first.
Status Workspace::CheckLayer() const {
  struct statfs info {};
  if (statfs(target_dir_.c_str(), &info) != 0 ||
      info.f_type != OVERLAYFS_SUPER_MAGIC ||
      access((dir_ + "/lock").c_str(), F_OK) != 0) {
    return Status::OK();
  }
  if (rename(target_dir_.c_str(), dir_.c_str()) == 0) {
    return MakeStatus(EndState::kInternal,
                      "target " + target_dir_ +
                          ": a test whether it can be renamed moved it to " +
                          dir_ + ", although that directory has files; move "
                          "it back");
  }
  return errno != EXDEV
             ? Status::OK()
             : MakeStatus(EndState::kRefused,
                          "target " + target_dir_ +
                              " is in a lower layer of overlayfs, such as a "
                              "container's image, where no directory can be "
                              "renamed; pull into a directory of a volume",
                          InPlace());
}

// Checks that the names next to TARGET_DIR are not too long, before data is
// sent. These are the name of the workspace, and the name of the old database
// after a swap.
Status Workspace::CheckName() const {
  constexpr char kLongestSuffix[] = ".sstferry-old-20261127T183820Z-1000";
  const long limit = pathconf(parent_.c_str(), _PC_NAME_MAX);
  const size_t most =
      (limit < 0 ? NAME_MAX : static_cast<size_t>(limit)) -
      (beside_ || existing_ == Existing::kRefresh
           ? dir_.size() - target_dir_.size()
           : sizeof(kLongestSuffix) - 1);
  const size_t found = fs::path(target_dir_).filename().native().size();
  return found <= most
             ? Status::OK()
             : MakeStatus(EndState::kRefused,
                          "target " + target_dir_ +
                              ": name too long: expected at most " +
                              std::to_string(most) + " bytes, found " +
                              std::to_string(found) +
                              " (sstferry makes longer names beside it)");
}

Status Workspace::CheckTarget() {
  struct stat parent_info;
  if (stat(parent_.c_str(), &parent_info) != 0) {
    return MakeStatus(EndState::kRefused, "target " + target_dir_ +
                                              ": its parent directory " +
                                              parent_ + " does not exist; "
                                              "make it first");
  }
  if (access(parent_.c_str(), W_OK | X_OK) != 0) {
    return MakeStatus(EndState::kRefused,
                      "target " + target_dir_ + ": cannot write in its parent "
                      "directory " + parent_ + " (" + strerror(errno) +
                      "); name a TARGET_DIR in a writable directory");
  }
  RETURN_IF_ERROR(CheckName());
  struct stat info;
  target_exists_ = false;
  if (lstat(target_dir_.c_str(), &info) != 0) {
    return errno != ENOENT ? Errno(target_dir_, errno)
           : beside_       ? NothingThere(target_dir_)
                           : Status::OK();
  }
  if (!S_ISDIR(info.st_mode)) {
    return MakeStatus(EndState::kRefused,
                      "target " + target_dir_ +
                          ": expected a directory or nothing, found a file "
                          "or a link");
  }
  if (info.st_dev != parent_info.st_dev ||
      info.st_ino == parent_info.st_ino || IsMountRoot(target_dir_)) {
    return MakeStatus(EndState::kRefused,
                      "target " + target_dir_ +
                          " is a mount point, which cannot be exchanged; use "
                          "a sub-directory such as " + target_dir_ + "/db");
  }
  std::error_code error;
  const bool empty = fs::is_empty(target_dir_, error);
  if (error) {
    return MakeStatus(EndState::kRefused,
                      "target " + target_dir_ + ": " + error.message());
  }
  if (empty) {
    return beside_ ? NothingThere(target_dir_) : Status::OK();
  }
  return CheckNonEmpty();
}

Status Workspace::CheckNonEmpty() {
  const bool must_be_closed =
      (beside_ && !open_here_) || existing_ == Existing::kRefresh;
  const std::string user = must_be_closed ? DatabaseUser(target_dir_) : "";
  if (!user.empty()) {
    return MakeStatus(EndState::kBusy,
                      "target " + target_dir_ + ": " + user +
                          " holds its LOCK; that process can refresh it "
                          "through the library, or a swap can replace it with "
                          "hooks that stop and start that process");
  }
  if (beside_) {
    return Status::OK();
  }
  if (existing_ == Existing::kRefuse) {
    return RefuseNonEmpty();
  }
  target_exists_ = true;
  return Status::OK();
}

// Returns the id of a pull that has renamed db/ to TARGET_DIR but ended before
// it removed its workspace. The proof is that db/ does not exist, and
// last_transfer.json has the same id as the journal. Returns "" if there is no
// such pull.
std::string Workspace::FinishedTransfer() const {
  std::error_code error;
  if (!fs::exists(journal_path(), error) ||
      fs::symlink_status(db_dir(), error).type() !=
          fs::file_type::not_found) {
    return "";
  }
  const std::string id =
      JournalTransferId(ReadStart(journal_path(), kJournalHeadBytes));
  LastTransfer last;
  return !id.empty() && ReadLastTransfer(target_dir_, &last) &&
                 last.transfer_id == id
             ? id
             : "";
}

Status Workspace::RefuseNonEmpty() {
  std::string found = " is not empty";
  if (use_ == WorkspaceUse::kPull &&
      (!FinishedTransfer().empty() || IsBarelyBegun(dir_))) {
    Status status = lock_fd_ < 0 ? Lock() : Status::OK();
    // Checks again after locking, because the other pull may have ended
    // meanwhile.
    const std::string id = status.ok() ? FinishedTransfer() : "";
    if (status.ok() && id.empty() && IsBarelyBegun(dir_)) {
      // An earlier pull has removed everything else.
      status = RemoveWorkspace();
    }
    if (!status.ok()) {
      return status;
    }
    if (!id.empty()) {
      found = " is complete (transfer " + id +
              " filled it, but ended before it had removed " + dir_;
      status = RemoveWorkspace();
      found += status.ok() ? ", which this command removed)"
                           : ", which this command cannot remove: " +
                                 MessageOf(status) + ")";
    }
  }
  if (!HoldsDatabase(target_dir_)) {
    return NoDatabase(target_dir_);
  }
  LastTransfer last;
  const bool is_replica = ReadLastTransfer(target_dir_, &last);
  return MakeStatus(
      EndState::kRefused,
      "target " + target_dir_ + found +
          (!is_replica ? " and holds a database that was not pulled; name "
                         "another directory (sstferry swap --adopt replaces "
                         "that database)"
           : next_.empty() ? " and holds a replica; name another directory"
                           : " and holds a replica"),
      is_replica ? next_ : "");
}

Status Workspace::Lock() {
  const std::string path = dir_ + "/lock";
  Status status = CheckDirectory(dir_);
  if (status.ok()) {
    status = CreateDirectory(dir_);
  }
  if (status.ok()) {
    FaultPoint("Workspace:Created");
    status = CreateLockFile(path);
  }
  FaultPoint("Workspace:LockMade");
  if (!status.ok()) {
    return status;
  }
  lock_fd_ = OpenToLock(path).Release();
  if (lock_fd_ < 0) {
    return Errno("open " + path, errno);
  }
  status = LockFile(lock_fd_, path);
  if (!status.ok()) {
    return EndStateOf(status) == EndState::kBusy
               ? LockedByAnother(target_dir_, path)
               : status;
  }
  struct stat held;
  struct stat named;
  if (fstat(lock_fd_, &held) != 0 || stat(path.c_str(), &named) != 0 ||
      held.st_ino != named.st_ino) {
    // Another pull had the lock. It has just ended and removed the file.
    return MakeStatus(EndState::kBusy, "target " + target_dir_ +
                                           ": another pull ended just now; "
                                           "run the same command again");
  }
  status = WriteLockMark(path);
  FaultPoint("Workspace:Locked");
  // Makes the mark durable before anything else is created in the workspace.
  return status.ok() ? SyncAll(file_system_.get(), {}, {dir_, parent_})
                     : status;
}

Status Workspace::CreateDirectory(const std::string& path) {
  return AtPath("create " + path, file_system_->CreateDirIfMissing(
                                  path, IOOptions(), nullptr));
}

// Creates the lock file. Does not change an existing file, because another pull
// may have locked it.
Status Workspace::CreateLockFile(const std::string& path) {
  std::unique_ptr<rocksdb::FSWritableFile> file;
  rocksdb::IOStatus status = file_system_->ReopenWritableFile(
      path, rocksdb::FileOptions(), &file, nullptr);
  if (status.ok()) {
    status = file->Close(IOOptions(), nullptr);
  }
  return AtPath("open " + path, status);
}

// Writes the mark into the lock file. REQUIRES: this object has locked the file
// with flock(). Closing other descriptors does not release such a lock; it
// would release an fcntl() lock.
Status Workspace::WriteLockMark(const std::string& path) {
  std::unique_ptr<rocksdb::FSRandomRWFile> file;
  rocksdb::IOStatus status = file_system_->NewRandomRWFile(
      path, rocksdb::FileOptions(), &file, nullptr);
  if (status.ok()) {
    status = file->Write(0, kLockMark, IOOptions(), nullptr);
  }
  if (status.ok()) {
    status = file->Fsync(IOOptions(), nullptr);
  }
  if (file != nullptr) {
    const rocksdb::IOStatus closed = file->Close(IOOptions(), nullptr);
    status = status.ok() ? closed : status;
  }
  return AtPath("write " + path, status);
}

bool Workspace::has_unfinished() const {
  std::error_code error;
  return fs::exists(journal_path(), error) &&
         (beside_ || fs::is_directory(db_dir(), error));
}

Status Workspace::ClearStagingBut(const std::set<std::string>& names) {
  std::vector<std::string> found;
  Status status = AtPath("list " + staging_dir(),
                     file_system_->GetChildren(staging_dir(), IOOptions(),
                                               &found, nullptr));
  for (const std::string& name : found) {
    if (status.ok() && name != "." && name != ".." && names.count(name) == 0) {
      status = RemoveTree(file_system_.get(), staging_dir() + "/" + name);
    }
  }
  return status.ok() ? SyncDirectory(file_system_.get(), staging_dir())
                     : status;
}

Status Workspace::ClearStaging() {
  const auto removed_one = [] { FaultPoint("Workspace:LeftoverRemoved"); };
  RETURN_IF_ERROR(swap_state_ == SwapState::kBegun
                      ? RemoveParts({"staging"}, removed_one)
                      : RemoveParts({"exchange", "staging"}, removed_one));
  RETURN_IF_ERROR(CreateDirectory(staging_dir()));
  return SyncDirectory(file_system_.get(), dir_);
}

// Removes the named parts of the workspace in this order. Each removal is
// durable before the next removal begins.
Status Workspace::RemoveParts(std::initializer_list<const char*> names,
                              void (*removed_one)()) {
  for (const char* name : names) {
    const std::string path = dir_ + "/" + name;
    std::error_code error;
    if (fs::symlink_status(path, error).type() == fs::file_type::not_found) {
      continue;
    }
    Status status = RemoveTree(file_system_.get(), path);
    if (status.ok()) {
      removed_one();
      status = SyncDirectory(file_system_.get(), dir_);
    }
    if (!status.ok()) {
      return status;
    }
  }
  return Status::OK();
}

// Empties the workspace. Removes the journal before the data, because without a
// journal no later pull tries to resume.
Status Workspace::Clear(KeptOfDb kept) {
  if (use_ == WorkspaceUse::kLook) return Status::OK();
  const auto removed_one = [] { FaultPoint("Workspace:LeftoverRemoved"); };
  Status status =
      RemoveParts({"old", "exchange", "probe", "journal", "staging", "other"},
                  removed_one);
  if (status.ok()) status = CreateDirectory(staging_dir());
  if (status.ok() && kept == KeptOfDb::kEarlier) {
    status = AtPath("rename " + db_dir(), file_system_->RenameFile(
        db_dir(), earlier_dir(), IOOptions(), nullptr));
  }
  if (status.ok() && kept != KeptOfDb::kAll) {
    status = RemoveParts({"db"}, removed_one);
  }
  if (status.ok() && !beside_) status = CreateDirectory(db_dir());
  if (!status.ok()) {
    return status;
  }
  swap_state_ = SwapState::kNone;
  FaultPoint("Workspace:DirectoriesMade");
  return Status::OK();  // the names become durable together with the journal
}

Status Workspace::ClearOther() {
  RETURN_IF_ERROR(RemoveParts({"other"}, [] {}));
  return CreateDirectory(other_dir());
}

// Writes a file in staging/ and renames it into TARGET_DIR. Opens no existing
// file in TARGET_DIR, because another account may own the directory.
Status Workspace::PutIntoTarget(const std::string& name,
                                const rocksdb::Slice& contents) {
  const std::string made = staging_dir() + "/" + name;
  Access access;
  RETURN_IF_ERROR(WriteDurably(file_system_.get(), made, contents));
  RETURN_IF_ERROR(AccessBeside(target_dir_, &access));
  RETURN_IF_ERROR(SetAccess(made, access));
  RETURN_IF_ERROR(AtPath(
      "rename " + made, file_system_->RenameFile(made, target_dir_ + "/" + name,
                                                 IOOptions(), nullptr)));
  return SyncDirectory(file_system_.get(), target_dir_);
}

Status Workspace::Discard() {
  if (use_ == WorkspaceUse::kLook) return Status::OK();
  const Status status = AtPath("remove " + db_dir(),
                           RemoveTree(file_system_.get(), db_dir()));
  return status.ok() ? RemoveWorkspace() : status;
}

Status Workspace::Publish(std::string* note) {
  note->clear();
  Status status = AtPath(
      "rename " + db_dir() + " to " + target_dir_,
      file_system_->RenameFile(db_dir(), target_dir_, IOOptions(), nullptr));
  if (status.ok()) {
    FaultPoint("Workspace:Renamed");
    status = SyncDirectory(file_system_.get(), parent_);
  }
  if (!status.ok()) {
    return status;
  }
  FaultPoint("Workspace:Published");
  const Status removed = RemoveWorkspace();
  if (!removed.ok()) {
    *note = "the target is complete, but its workspace could not be removed; "
            "remove " + dir_ + " by hand: " + MessageOf(removed);
  }
  return Status::OK();
}

Status Workspace::RemoveWorkspace() {
  // Removes the lock file last, because its mark proves that sstferry created
  // the workspace. It does not matter whether staging/ or the journal is
  // removed first.
  const auto removed_one = [] { FaultPoint("Workspace:PartRemoved"); };
  Status status =
      RemoveParts({"old", "exchange", "probe", "other"}, removed_one);
  const auto remove = [&](const std::string& path) {
    if (status.ok()) status = RemoveTree(file_system_.get(), path);
    if (status.ok()) removed_one();
  };
  remove(staging_dir());
  remove(journal_path());
  if (status.ok()) status = SyncDirectory(file_system_.get(), dir_);
  remove(dir_ + "/lock");
  if (!status.ok()) {
    return status;
  }
  // Fails if db/ still exists, because the directory is then not empty.
  return AtPath("remove " + dir_,
            file_system_->DeleteDir(dir_, IOOptions(), nullptr));
}

}  // namespace sstferry
