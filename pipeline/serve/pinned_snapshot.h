// A transfer's reference to the snapshot that it reads. The transfer may have a
// lease, by which a later process of the source finds the snapshot.
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
// Threads:   Share() must be called before all other functions. The others may
//            be called from any thread.
class PinnedSnapshot {
 public:
  explicit PinnedSnapshot(std::shared_ptr<SharedSnapshot> shared);
  ~PinnedSnapshot();
  PinnedSnapshot(const PinnedSnapshot&) = delete;
  PinnedSnapshot& operator=(const PinnedSnapshot&) = delete;

  // Makes the transfer read the snapshot `other` instead of its own.
  void Share(std::shared_ptr<SharedSnapshot> other);
  const std::shared_ptr<SharedSnapshot>& shared() const { return shared_; }

  const Snapshot& operator*() const { return shared_->snapshot(); }
  const Snapshot* operator->() const { return &shared_->snapshot(); }

  // Called when the transfer no longer reads the snapshot. If `keep` is true
  // and the transfer has a lease, the directory with the lease remains on the
  // disk.
  void Leave(bool keep);
  // Called before Leave(true) if the transfer loses its slot. Moves the lease
  // to another directory with links to the same files, from which no transfer
  // reads. Then a later transfer can adopt the snapshot immediately, even while
  // other transfers read it. If Park() fails, the snapshot can be adopted only
  // after all transfers have stopped reading it.
  [[nodiscard]] rocksdb::Status Park();
  bool parked() const { return parked_; }
  // Returns the private directory (sstferry's directory next to the database)
  // that contains the transfer's lease. Returns an empty path if there is no
  // lease.
  std::string lease_directory() const;
  bool has_lease() const { return has_lease_; }
  // Writes the lease, or replaces it. Fills the fields of `lease` that describe
  // the snapshot.
  [[nodiscard]] rocksdb::Status WriteLease(Lease lease, uint64_t wall_seconds);
  // Renews the lease of a snapshot that was adopted from another process. The
  // snapshot need not be opened yet. Does nothing for other snapshots.
  [[nodiscard]] rocksdb::Status RenewLease(uint64_t wall_seconds);

 private:
  std::shared_ptr<SharedSnapshot> shared_;
  std::atomic<bool> has_lease_{false};
  std::atomic<bool> parked_{false};
  mutable std::mutex lease_mu_;  // locked while the lease is written
  bool left_ = false;            // under lease_mu_, and all below
  bool borrows_ = false;         // has a directory: that of shared_, or linked_
  std::unique_ptr<PrivateDir> linked_;  // null after Leave()
  std::string linked_path_;
};

}  // namespace sstferry
