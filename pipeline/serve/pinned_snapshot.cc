#include "pipeline/serve/pinned_snapshot.h"

#include <utility>

#include "format/end_state.h"
#include "pipeline/snapshot/lease_file.h"

namespace sstferry {

using rocksdb::Status;

// An adopted snapshot already has the lease of this transfer.
PinnedSnapshot::PinnedSnapshot(std::shared_ptr<SharedSnapshot> shared)
    : shared_(std::move(shared)),
      has_lease_(shared_->adopted() != nullptr),
      borrows_(has_lease_) {
  shared_->Join();
}

PinnedSnapshot::~PinnedSnapshot() {
  if (!left_) {
    shared_->Leave();
  }
}

void PinnedSnapshot::Share(std::shared_ptr<SharedSnapshot> other) {
  other->Join();
  shared_->Leave();
  shared_ = std::move(other);
}

void PinnedSnapshot::Leave(bool keep) {
  std::lock_guard<std::mutex> lock(lease_mu_);
  if (left_) {
    return;
  }
  left_ = true;
  if (linked_ != nullptr) {
    linked_->Keep(keep);
    linked_.reset();  // safe: no transfer reads from linked_
  } else if (borrows_ && shared_->is_taken()) {
    shared_->TakeBack(keep);
  }
  shared_->Leave();
}

std::string PinnedSnapshot::lease_directory() const {
  std::lock_guard<std::mutex> lock(lease_mu_);
  return !has_lease_ || !shared_->is_taken() ? ""
         : !linked_path_.empty()             ? linked_path_
                               : shared_->snapshot().directory();
}

Status PinnedSnapshot::Park() {
  parked_ = true;
  std::lock_guard<std::mutex> lock(lease_mu_);
  if (left_ || !borrows_ || linked_ != nullptr || !shared_->is_taken()) {
    return Status::OK();
  }
  const std::string own = shared_->snapshot().directory();
  Lease lease;
  if (ReadLease(shared_->snapshot().own_path(), &lease) != LeaseState::kGood) {
    return MakeStatus(EndState::kSourceError,
                      "expected a lease in " + own + ", found none");
  }
  std::unique_ptr<PrivateDir> linked;
  Status status = shared_->Lend(&linked);
  if (status.ok()) status = sstferry::WriteLease(linked->own_path(), lease);
  if (status.ok()) {
    shared_->TakeBack(/*keep=*/false);
    linked_ = std::move(linked);
    linked_path_ = linked_->path();
  }
  return status;
}

Status PinnedSnapshot::WriteLease(Lease lease, uint64_t wall_seconds) {
  std::lock_guard<std::mutex> lock(lease_mu_);
  if (left_) {
    return Status::OK();
  }
  const Snapshot& snapshot = shared_->snapshot();
  lease.source_database_id = snapshot.database_id();
  lease.snapshot_sequence = snapshot.sequence();
  lease.read_only = snapshot.wal_not_flushed();
  lease.wal_bytes = snapshot.counters().wal_bytes_copied;
  lease.pinned_bytes = shared_->pinned_bytes();
  lease.created_seconds = shared_->taken_seconds();
  lease.renewed_seconds = wall_seconds;
  Status status = borrows_ ? Status::OK() : shared_->Lend(&linked_);
  borrows_ = borrows_ || status.ok();
  linked_path_ = linked_ != nullptr ? linked_->path() : "";
  if (status.ok()) {
    status = sstferry::WriteLease(
        linked_ != nullptr ? linked_->own_path() : snapshot.own_path(), lease);
  }
  has_lease_ = has_lease_ || status.ok();
  return status;
}

Status PinnedSnapshot::RenewLease(uint64_t wall_seconds) {
  std::lock_guard<std::mutex> lock(lease_mu_);
  if (left_ || shared_->adopted() == nullptr) {
    return Status::OK();
  }
  Lease lease = *shared_->adopted();
  lease.renewed_seconds = wall_seconds;
  return sstferry::WriteLease(shared_->adopted_path(), lease);
}

}  // namespace sstferry
