// The snapshot that a transfer reads, and the lease with which a later process
// of the source finds it.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "format/record/lease.h"
#include "pipeline/source/directory/private_dir.h"
#include "pipeline/source/snapshot/snapshot.h"
#include "rocksdb/status.h"
#include "sstferry/source.h"

namespace sstferry {

class Transfer;

// Takes, shares or adopts the snapshot of one transfer.
//
// Ownership: borrows `database` and `serve`.
// Threads:   Use(), Share() and Take() before all other calls, one at a time;
// the rest from any thread.
class PinnedSnapshot {
 public:
  // `cancelled` is polled while the snapshot is taken, and later by reads of
  // it.
  PinnedSnapshot(const ServedDatabase& database, const ServeOptions& serve,
                 const OpenRequest& request, std::function<bool()> cancelled);
  // For a snapshot that another process of this source retained with `lease` in
  // `dir`.
  PinnedSnapshot(const ServedDatabase& database, const ServeOptions& serve,
                 const Lease& lease, std::unique_ptr<PrivateDir> dir,
                 std::function<bool()> cancelled);
  ~PinnedSnapshot();
  PinnedSnapshot(const PinnedSnapshot&) = delete;
  PinnedSnapshot& operator=(const PinnedSnapshot&) = delete;

  // Makes Take() use this snapshot instead of taking one.
  void Use(std::unique_ptr<Snapshot> snapshot);
  // Makes Take() use the snapshot of `holder`, which keeps it.
  void Share(std::shared_ptr<Transfer> holder, const PinnedSnapshot& its);
  // Takes the snapshot. Errors as Snapshot::Create(), and:
  //   kSnapshotGone  the retained snapshot of another process cannot be used.
  [[nodiscard]] rocksdb::Status Take();

  bool is_taken() const { return snapshot_ != nullptr; }
  const Snapshot& operator*() const { return *snapshot_; }
  const Snapshot* operator->() const { return snapshot_.get(); }
  const Transfer* holder() const { return holder_.get(); }
  // The lease of an adopted snapshot; null if this process took it.
  const Lease* adopted() const {
    return adopted_.has_value() ? &*adopted_ : nullptr;
  }

  // Measures the disk space that the snapshot pins. REQUIRES: is_taken().
  void Measure();
  uint64_t pinned_bytes() const { return pinned_bytes_; }
  uint64_t read_bytes() const { return read_bytes_; }
  void CountRead(uint64_t bytes) { read_bytes_ += bytes; }
  // When Take() began, in seconds since 1970; 0 before.
  uint64_t taken_seconds() const { return taken_seconds_; }

  // True: the snapshot outlives this object. No effect on a shared one.
  void Keep(bool keep);
  bool has_lease() const { return has_lease_; }
  // Writes the lease, the first time or again. Fills in the fields of `lease`
  // that the snapshot itself knows.
  [[nodiscard]] rocksdb::Status WriteLease(Lease lease, uint64_t wall_seconds);

 private:
  [[nodiscard]] rocksdb::Status TakeOwn();
  [[nodiscard]] rocksdb::Status TakeAdopted();
  SnapshotOptions Options();

  const ServedDatabase& database_;
  const ServeOptions& serve_;
  const std::vector<std::string> families_;
  const bool as_files_;
  const std::function<bool()> cancelled_;
  std::optional<Lease> adopted_;
  std::unique_ptr<PrivateDir> adopted_dir_;  // until the snapshot owns it
  std::atomic<uint64_t> read_bytes_{0};  // counted by, and outlives, snapshot
  std::shared_ptr<Transfer> holder_;     // null: own snapshot
  std::shared_ptr<Snapshot> snapshot_;
  uint64_t pinned_bytes_ = 0;
  std::atomic<bool> has_lease_{false};
  std::mutex lease_mu_;  // held while the lease is written
  std::atomic<uint64_t> taken_seconds_{0};
};

}  // namespace sstferry
