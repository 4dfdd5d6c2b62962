// One transfer's use of the snapshot that it reads, with the lease by which a
// later process of the source finds the snapshot.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "pipeline/serve/shared_snapshot.h"

namespace sstferry {

// One transfer's reference to a snapshot, and its lease.
//
// Ownership: shares the snapshot with other transfers.
// Threads:   Share() before all other calls; the rest from any thread.
class PinnedSnapshot {
 public:
  explicit PinnedSnapshot(std::shared_ptr<SharedSnapshot> shared);
  ~PinnedSnapshot();
  PinnedSnapshot(const PinnedSnapshot&) = delete;
  PinnedSnapshot& operator=(const PinnedSnapshot&) = delete;

  // Makes the transfer read `other` instead.
  void Share(std::shared_ptr<SharedSnapshot> other);
  const std::shared_ptr<SharedSnapshot>& shared() const { return shared_; }

  const Snapshot& operator*() const { return shared_->snapshot(); }
  const Snapshot* operator->() const { return &shared_->snapshot(); }

  // Called when the transfer has ended and no longer reads. If `keep` is true
  // and a lease was written, the lease and its directory outlive this object.
  void Leave(bool keep);
  // Moves the lease, if there is one, to a directory from which no transfer
  // reads. After Leave(true), a later transfer can then adopt the snapshot at
  // once, even if other transfers still read it. If Park() fails, the snapshot
  // can be adopted only when no transfer reads it.
  [[nodiscard]] rocksdb::Status Park();
  bool parked() const { return parked_; }
  // Returns the private directory with this transfer's lease; empty if it has
  // none.
  std::string lease_directory() const;
  bool has_lease() const { return has_lease_; }
  // Writes the lease, the first time or again. Sets the fields of `lease` that
  // the snapshot knows.
  [[nodiscard]] rocksdb::Status WriteLease(Lease lease, uint64_t wall_seconds);
  // Writes the lease of an adopted snapshot again, even if the snapshot is not
  // taken yet. Does nothing for other snapshots.
  [[nodiscard]] rocksdb::Status RenewLease(uint64_t wall_seconds);

 private:
  std::shared_ptr<SharedSnapshot> shared_;
  std::atomic<bool> has_lease_{false};
  std::atomic<bool> parked_{false};
  mutable std::mutex lease_mu_;  // held while the lease is written
  bool left_ = false;            // under lease_mu_, and all below
  bool borrows_ = false;         // uses the directory of shared_, or linked_
  std::unique_ptr<PrivateDir> linked_;  // until Leave()
  std::string linked_path_;
};

}  // namespace sstferry
