// One snapshot of a server, with what the transfers that read it share: its
// directory, its disk space, and plans that are the same for several targets.
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

// A plan, and what its parts are read from.
struct SharedPlan {
  TransferPlan plan;
  std::unique_ptr<PartStore> parts;
};

// Seconds of a clock that nobody sets.
uint64_t SteadySeconds(const LeaseEnvironment& environment);

// Ownership: owns the snapshot, which its plans must not outlive; borrows
//            `serve`.
// Threads:   TakeOf() and Use() before all other calls; the rest from any thread.
class SharedSnapshot {
 public:
  SharedSnapshot(const ServedDatabase& database, const ServeOptions& serve,
                 const OpenRequest& request);
  // For a snapshot that another process of this source retained with `lease` in
  // `dir`.
  SharedSnapshot(const ServedDatabase& database, const ServeOptions& serve,
                 const Lease& lease, std::unique_ptr<PrivateDir> dir);
  SharedSnapshot(const SharedSnapshot&) = delete;
  SharedSnapshot& operator=(const SharedSnapshot&) = delete;

  // When this object was made, by SteadySeconds().
  uint64_t begun_seconds() const { return begun_seconds_; }
  // Its place in the order of a server's snapshots (retained/snapshot_order.h);
  // 0: none. REQUIRES: one thread at a time.
  uint64_t order() const { return order_; }
  void set_order(uint64_t order) { order_ = order; }
  // Requests of one kind can read the same snapshots.
  static std::string KindOf(const std::string& database,
                            const OpenRequest& request);
  const std::string& kind() const { return kind_; }
  // True if a request like this one can read it.
  bool Serves(const std::string& database, const OpenRequest& request) const;

  // Counts a transfer that takes or reads the snapshot. While there is none,
  // taking and reading it fail with kCancelled.
  void Join() { ++readers_; }
  void Leave() { --readers_; }

  // Makes Take() make the snapshot of what was pinned before.
  void TakeOf(std::shared_ptr<const PinnedFiles> pinned) {
    pinned_ = std::move(pinned);
  }
  bool is_pinned() const { return pinned_ != nullptr; }
  // Makes Take() use this snapshot instead of taking one.
  void Use(std::unique_ptr<Snapshot> snapshot);
  // Takes the snapshot, unless another caller has; concurrent callers wait.
  // Errors as Snapshot::Create(), and:
  //   kSnapshotGone  the retained snapshot of another process cannot be used.
  [[nodiscard]] rocksdb::Status Take();
  bool is_taken() const { return taken_; }
  // True if the last Take() failed: nobody should join it.
  bool failed() const { return failed_; }
  // REQUIRES: is_taken().
  const Snapshot& snapshot() const { return *snapshot_; }
  // The lease of an adopted snapshot; null if this process took it.
  const Lease* adopted() const {
    return adopted_.has_value() ? &*adopted_ : nullptr;
  }

  // The directory of an adopted snapshot; empty if this process took it.
  const std::string& adopted_path() const { return adopted_path_; }

  // Returns the plan of that key, which the first caller makes; concurrent
  // callers wait. A plan that failed, or that nobody has any more, is made
  // again by the next caller. An empty key: nobody else gets this plan.
  // `budget` is that of its chunks.
  [[nodiscard]] rocksdb::Status Plan(
      const std::string& key,
      const std::function<rocksdb::Status(TransferPlan*)>& make,
      uint64_t chunk_bytes, const std::shared_ptr<SpoolBudget>& budget,
      std::shared_ptr<const SharedPlan>* plan);

  uint64_t pinned_bytes() const { return pinned_bytes_; }
  uint64_t read_bytes() const { return read_bytes_; }
  void CountRead(uint64_t bytes) { read_bytes_ += bytes; }
  // When Take() began, in seconds since 1970; 0 before.
  uint64_t taken_seconds() const { return taken_seconds_; }

  // Where a process has the database open and no WAL holds an entry: when its
  // MANIFEST was last written, in seconds since 1970, and never after Take()
  // began. Its last flush was not later. 0: not so, or not known.
  uint64_t unlogged_since_seconds() const { return unlogged_since_seconds_; }

  // Gives a directory from which another process can adopt the snapshot to one
  // of its readers: its own directory to the first, *linked to a later one, a
  // directory with links to the same files.
  [[nodiscard]] rocksdb::Status Lend(std::unique_ptr<PrivateDir>* linked);
  // Takes its own directory back. `keep`: it outlives this object, as it does
  // not by default.
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
  std::unique_ptr<PrivateDir> adopted_dir_;  // until the snapshot owns it
  std::atomic<uint64_t> read_bytes_{0};  // counted by, and outlives, snapshot_
  std::atomic<int> readers_{0};          // the same

  std::mutex take_mu_;                   // held while the snapshot is taken
  std::unique_ptr<Snapshot> snapshot_;   // constant once taken_
  std::atomic<bool> taken_{false};
  std::atomic<bool> failed_{false};
  std::atomic<uint64_t> pinned_bytes_{0};
  std::atomic<uint64_t> taken_seconds_{0};
  std::atomic<uint64_t> unlogged_since_seconds_{0};

  std::mutex plan_mu_;  // held while a plan is made
  // Its readers own a plan: a target may ask for any number of different ones.
  std::map<std::string, std::weak_ptr<const SharedPlan>> plans_;

  std::mutex lend_mu_;
  bool prepared_ = false;  // under lend_mu_
  bool lent_ = false;      // under lend_mu_
};

}  // namespace sstferry
