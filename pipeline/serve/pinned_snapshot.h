// One transfer's hold on the snapshot that it reads, and the lease with which a
// later process of the source finds it.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "pipeline/serve/shared_snapshot.h"

namespace sstferry {

// Ownership: shares the snapshot with other transfers.
// Threads:   Share() before all other calls; the rest from any thread.
class PinnedSnapshot {
 public:
  explicit PinnedSnapshot(std::shared_ptr<SharedSnapshot> shared);
  ~PinnedSnapshot();
  PinnedSnapshot(const PinnedSnapshot&) = delete;
  PinnedSnapshot& operator=(const PinnedSnapshot&) = delete;

  // Reads that snapshot instead.
  void Share(std::shared_ptr<SharedSnapshot> other);
  const std::shared_ptr<SharedSnapshot>& shared() const { return shared_; }

  const Snapshot& operator*() const { return shared_->snapshot(); }
  const Snapshot* operator->() const { return &shared_->snapshot(); }

  // The transfer has ended and reads nothing any more. True: a lease that was
  // written, and the directory with it, outlives this object.
  void Leave(bool keep);
  // Moves the lease, if there is one, to a directory that nobody reads from, so
  // that it can be adopted as soon as Leave(true) returns, whoever still reads
  // the snapshot. If that fails, it can be adopted once nobody reads it.
  [[nodiscard]] rocksdb::Status Park();
  bool parked() const { return parked_; }
  // The private directory with this transfer's lease; empty: it has none.
  std::string lease_directory() const;
  bool has_lease() const { return has_lease_; }
  // Writes the lease, the first time or again. Fills in the fields of `lease`
  // that the snapshot itself knows.
  [[nodiscard]] rocksdb::Status WriteLease(Lease lease, uint64_t wall_seconds);
  // Writes the lease of an adopted snapshot again, which may not be taken yet.
  // Does nothing for another one.
  [[nodiscard]] rocksdb::Status RenewLease(uint64_t wall_seconds);

 private:
  std::shared_ptr<SharedSnapshot> shared_;
  std::atomic<bool> has_lease_{false};
  std::atomic<bool> parked_{false};
  mutable std::mutex lease_mu_;  // held while the lease is written
  bool left_ = false;            // under lease_mu_, and all below
  bool borrows_ = false;         // a directory, of shared_ or linked_
  std::unique_ptr<PrivateDir> linked_;  // until Leave()
  std::string linked_path_;
};

}  // namespace sstferry
