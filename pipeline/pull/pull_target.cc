#include "pipeline/pull/pull_target.h"

#include "pipeline/base/known_fault.h"
#include "pipeline/disk/target_directories.h"
#include "pipeline/pull/health.h"

namespace sstferry {

using rocksdb::Status;

// Adds reuse_dir, from which a clone links: it must not be the source's
// directory either.
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

Status PullTarget::ReadFault(FoundTarget* found) {
  workspace_ = found->workspace.get();
  if (options().adopts_old) {
    return Status::OK();  // known faults are older than the adoption
  }
  RETURN_IF_ERROR(ReadKnownFault(options().target_dir, &fault_));
  const bool is_unreadable = fault_.fault != ReplicaFault::kNone &&
                             fault_.id == TransferId();
  const Status status =
      is_unreadable && !is_only_planned()
          ? RecordFault(disk(), options().target_dir, &fault_)
          : Status::OK();
  found->fault = fault_;
  return status;
}

void PullTarget::SetInPlace(InPlaceTarget* in_place, rocksdb::DB* open) {
  in_place_ = in_place;
  open_db_ = open;
}

}  // namespace sstferry
