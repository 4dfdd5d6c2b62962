// The snapshot that a transfer reads, and the lease under which a later process
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

// Ownership: borrows `database` and `serve`.
// Threads:   Use(), Share() and Take() before all else, one at a time; the
//   rest from any thread.
class PinnedSnapshot {
 public:
  // `families`: empty for all. `cancelled` is asked while the snapshot is
  // taken, and by reads of it later.
  PinnedSnapshot(const ServedDatabase& database, const ServeOptions& serve,
                 std::vector<std::string> families,
                 std::function<bool()> cancelled);
  // One that another process of this source retained with `lease` in `dir`.
  PinnedSnapshot(const ServedDatabase& database, const ServeOptions& serve,
                 const Lease& lease, std::unique_ptr<PrivateDir> dir,
                 std::function<bool()> cancelled);
  ~PinnedSnapshot();
  PinnedSnapshot(const PinnedSnapshot&) = delete;
  PinnedSnapshot& operator=(const PinnedSnapshot&) = delete;

  // Take() takes none of its own but this one.
  void Use(std::unique_ptr<Snapshot> snapshot);
  // The same with that of `holder`, which keeps it.
  void Share(std::shared_ptr<Transfer> holder,
             std::shared_ptr<Snapshot> snapshot);
  //   kSnapshotGone  that of another process cannot be used.
  [[nodiscard]] rocksdb::Status Take();

  bool is_taken() const { return snapshot_ != nullptr; }
  const Snapshot& operator*() const { return *snapshot_; }
  const Snapshot* operator->() const { return snapshot_.get(); }
  const std::shared_ptr<Snapshot>& shared() const { return snapshot_; }
  const Transfer* holder() const { return holder_.get(); }
  // The lease it was found with; null: it is of this process.
  const Lease* adopted() const {
    return adopted_.has_value() ? &*adopted_ : nullptr;
  }

  // Sums up what it keeps on the disk. REQUIRES: is_taken().
  void Measure();
  uint64_t pinned_bytes() const { return pinned_bytes_; }
  uint64_t read_bytes() const { return read_bytes_; }
  // When it was taken, by wall clock; 0: no lease was written yet.
  uint64_t created_seconds() const;

  // Whether it outlives this object; one that is shared is its holder's.
  void Keep(bool keep);
  bool has_lease() const { return has_lease_; }
  // Writes the lease, or writes it again: `lease` without what the snapshot
  // itself knows.
  [[nodiscard]] rocksdb::Status WriteLease(Lease lease, uint64_t wall_seconds);

 private:
  [[nodiscard]] rocksdb::Status TakeOwn();
  [[nodiscard]] rocksdb::Status TakeAdopted();
  SnapshotOptions Options();

  const ServedDatabase& database_;
  const ServeOptions& serve_;
  const std::vector<std::string> families_;
  const std::function<bool()> cancelled_;
  std::optional<Lease> adopted_;
  std::unique_ptr<PrivateDir> adopted_dir_;  // until the snapshot has it
  std::atomic<uint64_t> read_bytes_{0};  // counted by the snapshot, goes after
  std::shared_ptr<Transfer> holder_;     // null: its own
  std::shared_ptr<Snapshot> snapshot_;
  uint64_t pinned_bytes_ = 0;
  std::atomic<bool> has_lease_{false};
  mutable std::mutex lease_mu_;
  uint64_t created_seconds_ = 0;  // under lease_mu_
};

}  // namespace sstferry
