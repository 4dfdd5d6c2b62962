#include "pipeline/pull/pull_target.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <filesystem>
#include <system_error>

#include "format/coding.h"
#include "format/digest.h"
#include "format/end_state.h"
#include "pipeline/base/known_fault.h"
#include "pipeline/base/last_transfer.h"
#include "pipeline/disk/target_directories.h"
#include "pipeline/pull/health.h"

namespace sstferry {

using rocksdb::Status;

// Adds reuse_dir, from which a clone links files. The source must not be in
// that directory either.
Status PullTarget::Directories(std::vector<std::string>* dirs) const {
  RETURN_IF_ERROR(TargetDirectories(options(), open_db_, dirs));
  if (reuse_ != nullptr && !options().reuse_dir.empty()) {
    dirs->push_back(options().reuse_dir);
  }
  return Status::OK();
}

void PullTarget::SetUse(WorkspaceUse use,
                        const std::shared_ptr<rocksdb::FileSystem>& disk) {
  use_ = use;
  disk_ = disk;
}

const std::string& PullTarget::DirectoryOfFault() const {
  return reuse_ != nullptr && !options().reuse_dir.empty()
             ? options().reuse_dir
             : options().target_dir;
}

Status PullTarget::ReadFaultAgain() {
  if (options().adopts_old) {
    return Status::OK();  // all known faults are older than the adoption
  }
  return ReadKnownFault(DirectoryOfFault(), &fault_);
}

Status PullTarget::ReadFault(FoundTarget* found) {
  workspace_ = found->workspace.get();
  RETURN_IF_ERROR(ReadFaultAgain());
  const bool is_unreadable = fault_.fault != ReplicaFault::kNone &&
                             fault_.id == TransferId() &&
                             DirectoryOfFault() == options().target_dir;
  const Status status =
      is_unreadable && !is_only_planned()
          ? RecordFault(disk(), options().target_dir, &fault_)
          : Status::OK();
  found->fault = fault_;
  return status;
}

// Returns OK for an adoption (adopts_old), because it compares all reused files
// with the source's. An adoption also keeps the old database, in which the
// record of its fault remains.
Status PullTarget::CheckNoNewFault() const {
  if (options().adopts_old || !uses_old_files()) {
    return Status::OK();
  }
  const std::string& dir = DirectoryOfFault();
  HealthFile now;
  RETURN_IF_ERROR(ReadKnownFault(dir, &now));
  if (now.fault == ReplicaFault::kNone ||
      (fault_.fault != ReplicaFault::kNone && now.id == fault_.id)) {
    return Status::OK();
  }
  return MakeStatus(
      EndState::kCorrupt,
      "target " + options().target_dir +
          ": the new database was not used, because it shares files with " +
          dir + ", in which a fault was found after they were linked: " +
          FaultSentence(now) +
          "; run the same command again, which reuses no file without "
          "comparing it");
}

// Includes the creation time of the directory, because a new directory may get
// the inode number of a deleted one.
std::string PullTarget::OriginOfLinks() const {
  std::error_code error;
  const std::string path =
      std::filesystem::canonical(DirectoryOfFault(), error).string();
  struct statx info {};
  bool has_record = false;
  LastTransfer last;
  if (error ||
      statx(AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW,
            STATX_INO | STATX_BTIME, &info) != 0 ||
      !FindLastTransfer(path, &has_record, &last).ok()) {
    return "";
  }
  std::string text;
  PutBytes(&text, path);
  PutFixed64(&text, info.stx_ino);
  if ((info.stx_mask & STATX_BTIME) != 0) {
    PutFixed64(&text, static_cast<uint64_t>(info.stx_btime.tv_sec));
    PutFixed64(&text, info.stx_btime.tv_nsec);
  }
  PutBytes(&text, has_record ? last.transfer_id : "");
  const Access& access = lanes()->file_access;
  for (const uint32_t value : {access.owner, access.group, access.mode}) {
    PutFixed64(&text, value);
  }
  return ToHex(DigestOf(text));
}

bool PullTarget::IsFromOrigin(const JournalTargetFiles& recorded) const {
  const std::string now = OriginOfLinks();
  return !now.empty() && recorded.database_id.ends_with(now);
}

void PullTarget::SetInPlace(InPlaceTarget* in_place, rocksdb::DB* open) {
  in_place_ = in_place;
  open_db_ = open;
}

}  // namespace sstferry
