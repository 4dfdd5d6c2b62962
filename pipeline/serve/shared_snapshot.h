// One snapshot of a server, with everything that its transfers share: its
// directory, its disk space, and plans that several targets use.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "format/lease.h"
#include "pipeline/parts/part_store.h"
#include "pipeline/serve/transfer_plan.h"
#include "pipeline/snapshot/pinned_files.h"
#include "pipeline/snapshot/private_dir.h"
#include "pipeline/snapshot/snapshot.h"
#include "rocksdb/status.h"
#include "sstferry/source.h"

namespace sstferry {

// A plan, and the store from which its parts are read.
struct SharedPlan {
  TransferPlan plan;
  std::unique_ptr<PartStore> parts;
};

// Returns seconds of the steady clock, which is never set.
uint64_t SteadySeconds(const LeaseEnvironment& environment);

// A snapshot that is taken once and read by several transfers.
//
// Ownership: owns the snapshot, which its plans must not outlive; borrows
//            `serve`.
// Threads:   TakeOf() and Use() before all other calls; the other functions
//            from any thread.
class SharedSnapshot {
 public:
  SharedSnapshot(const ServedDatabase& database, const ServeOptions& serve,
                 const OpenRequest& request);
  // Adopts a snapshot that another process of this source retained with `lease`
  // in `dir`.
  SharedSnapshot(const ServedDatabase& database, const ServeOptions& serve,
                 const Lease& lease, std::unique_ptr<PrivateDir> dir);
  SharedSnapshot(const SharedSnapshot&) = delete;
  SharedSnapshot& operator=(const SharedSnapshot&) = delete;

  // Time at which this object was made, in SteadySeconds().
  uint64_t begun_seconds() const { return begun_seconds_; }
  // The snapshot's number in the order of a server's snapshots
  // (serve/snapshot_order.h); 0: none. REQUIRES: one thread at a time.
  uint64_t order() const { return order_; }
  void set_order(uint64_t order) { order_ = order; }
  // Returns the kind of a request. Requests of one kind can read the same
  // snapshots.
  static std::string KindOf(const std::string& database,
                            const OpenRequest& request);
  const std::string& kind() const { return kind_; }
  // Returns true if this request can read the snapshot.
  bool Serves(const std::string& database, const OpenRequest& request) const;

  // Counts a transfer that takes or reads the snapshot. While the count is 0,
  // taking and reading fail with kCancelled.
  void Join() { ++readers_; }
  void Leave() { --readers_; }

  // Makes Take() use the files that were pinned before.
  void TakeOf(std::shared_ptr<const PinnedFiles> pinned) {
    pinned_ = std::move(pinned);
  }
  bool is_pinned() const { return pinned_ != nullptr; }
  // Makes Take() use this snapshot instead of taking one.
  void Use(std::unique_ptr<Snapshot> snapshot);
  // Takes the snapshot, unless another caller has taken it; concurrent callers
  // wait.
  // Errors are those of Snapshot::Create(), and:
  //   kSnapshotGone  the retained snapshot of another process cannot be used.
  [[nodiscard]] rocksdb::Status Take();
  bool is_taken() const { return taken_; }
  // Returns true if the last Take() failed: no transfer should then join it.
  bool failed() const { return failed_; }
  // REQUIRES: is_taken().
  const Snapshot& snapshot() const { return *snapshot_; }
  // Returns the lease of an adopted snapshot; null if this process took the
  // snapshot.
  const Lease* adopted() const {
    return adopted_.has_value() ? &*adopted_ : nullptr;
  }

  // Returns the directory of an adopted snapshot; empty if this process took
  // the snapshot.
  const std::string& adopted_path() const { return adopted_path_; }

  // Returns the plan with this key. The first caller makes it; concurrent
  // callers wait. If making it failed, or no transfer has the plan any more,
  // the next caller makes it again. With an empty key the plan is not shared.
  // `budget` is for its spooled chunks.
  [[nodiscard]] rocksdb::Status Plan(
      const std::string& key,
      const std::function<rocksdb::Status(TransferPlan*)>& make,
      uint64_t chunk_bytes, const std::shared_ptr<SpoolBudget>& budget,
      std::shared_ptr<const SharedPlan>* plan);

  uint64_t pinned_bytes() const { return pinned_bytes_; }
  uint64_t read_bytes() const { return read_bytes_; }
  void CountRead(uint64_t bytes) { read_bytes_ += bytes; }
  // Time at which Take() began, in seconds since 1970; 0 before. For snapshots
  // that were pinned or retained earlier, or are of an archive, the time at
  // which they were taken.
  uint64_t taken_seconds() const { return taken_seconds_; }

  // Returns a time that is not before the last flush, in seconds since 1970:
  // the last write of the MANIFEST, or the start of Take() if that is earlier.
  // The snapshot lacks writes after the last flush that skipped the WAL. 0:
  // unknown, or no process has the database open, or a WAL has an entry.
  uint64_t unlogged_since_seconds() const { return unlogged_since_seconds_; }

  // Lends a reader a directory from which another process can adopt the
  // snapshot. The first reader gets the snapshot's own directory; later readers
  // get *linked, a directory with links to the same files.
  [[nodiscard]] rocksdb::Status Lend(std::unique_ptr<PrivateDir>* linked);
  // Takes back the snapshot's own directory. `keep`: the directory outlives
  // this object; otherwise it is removed with this object.
  void TakeBack(bool keep);

 private:
  [[nodiscard]] rocksdb::Status MakePlan(
      const std::function<rocksdb::Status(TransferPlan*)>& make,
      uint64_t chunk_bytes, const std::shared_ptr<SpoolBudget>& budget,
      std::shared_ptr<const SharedPlan>* plan) const;
  [[nodiscard]] rocksdb::Status TakeOwn();
  [[nodiscard]] rocksdb::Status TakeAdopted();
  SnapshotOptions Options();

  const ServedDatabase database_;
  const ServeOptions& serve_;
  const std::vector<std::string> families_;
  const bool as_files_;
  const std::optional<KeyInterval> interval_;
  const std::string kind_;
  const uint64_t begun_seconds_;
  uint64_t order_ = 0;
  const std::optional<Lease> adopted_;
  const std::string adopted_path_;
  std::shared_ptr<const PinnedFiles> pinned_;
  std::unique_ptr<PrivateDir> adopted_dir_;  // null after Take()
  // snapshot_ adds to this counter, so it must be destroyed after snapshot_.
  std::atomic<uint64_t> read_bytes_{0};
  std::atomic<int> readers_{0};          // destroyed after snapshot_, too

  std::mutex take_mu_;                   // held while the snapshot is taken
  std::unique_ptr<Snapshot> snapshot_;   // constant once taken_
  std::atomic<bool> taken_{false};
  std::atomic<bool> failed_{false};
  std::atomic<uint64_t> pinned_bytes_{0};
  std::atomic<uint64_t> taken_seconds_{0};
  std::atomic<uint64_t> unlogged_since_seconds_{0};

  std::mutex plan_mu_;  // held while a plan is made
  // Weak: a plan ends with its last reader, because a target may request any
  // number of plans.
  std::map<std::string, std::weak_ptr<const SharedPlan>> plans_;

  std::mutex lend_mu_;
  bool prepared_ = false;  // under lend_mu_
  bool lent_ = false;      // under lend_mu_
};

}  // namespace sstferry
