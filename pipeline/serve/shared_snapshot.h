// A snapshot of a server, with everything that its transfers share: its
// directory, its disk space, and the plans that several targets use.
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

// A plan, and the store that reads or builds the parts of the plan.
struct SharedPlan {
  TransferPlan plan;
  std::unique_ptr<PartStore> parts;
};

// Returns the time of the steady clock, in seconds. Nobody can set this clock.
uint64_t SteadySeconds(const LeaseEnvironment& environment);

// A snapshot that is taken once and that several transfers read.
//
// Ownership: owns the snapshot, which must outlive the plans; borrows `serve`.
// Threads:   TakeOf() and Use() must be called before all other functions. The
//            other functions may be called from any thread.
class SharedSnapshot {
 public:
  SharedSnapshot(const ServedDatabase& database, const ServeOptions& serve,
                 const OpenRequest& request);
  // Adopts the snapshot in the directory `dir`. Another process of this source
  // has retained it with `lease`.
  SharedSnapshot(const ServedDatabase& database, const ServeOptions& serve,
                 const Lease& lease, std::unique_ptr<PrivateDir> dir);
  SharedSnapshot(const SharedSnapshot&) = delete;
  SharedSnapshot& operator=(const SharedSnapshot&) = delete;

  // Returns the time at which this object was made, as SteadySeconds() does.
  uint64_t begun_seconds() const { return begun_seconds_; }
  // The position of the snapshot in the order in which the server took its
  // snapshots (see serve/snapshot_order.h); 0: none. REQUIRES: one thread at a
  // time.
  uint64_t order() const { return order_; }
  void set_order(uint64_t order) { order_ = order; }
  // Returns a key that is equal for requests that can read the same snapshots.
  // It consists of the database, the column families, and whether the request
  // is a clone.
  static std::string KindOf(const std::string& database,
                            const OpenRequest& request);
  const std::string& kind() const { return kind_; }
  // Returns true if a transfer with this request can read the snapshot.
  bool Serves(const std::string& database, const OpenRequest& request) const;

  // Join() counts a transfer that takes or reads the snapshot. Leave() removes
  // the transfer from the count. While the count is 0, taking and reading fail
  // with kCancelled.
  void Join() { ++readers_; }
  void Leave() { --readers_; }

  // Makes Take() use files that were pinned earlier.
  void TakeOf(std::shared_ptr<const PinnedFiles> pinned) {
    pinned_ = std::move(pinned);
  }
  bool is_pinned() const { return pinned_ != nullptr; }
  // Makes this object use `snapshot`. Take() then takes no snapshot.
  void Use(std::unique_ptr<Snapshot> snapshot);
  // Takes the snapshot if no other caller has taken it. If another caller is
  // taking it, waits until that caller is done. Returns the errors of
  // Snapshot::Create(), and:
  //   kSnapshotGone  the retained snapshot of another process cannot be used
  [[nodiscard]] rocksdb::Status Take();
  bool is_taken() const { return taken_; }
  // Returns true if the last Take() failed. No transfer must join the snapshot
  // then.
  bool failed() const { return failed_; }
  // REQUIRES: is_taken().
  const Snapshot& snapshot() const { return *snapshot_; }
  // Returns the lease of a snapshot that another process took. Returns null if
  // this process took the snapshot.
  const Lease* adopted() const {
    return adopted_.has_value() ? &*adopted_ : nullptr;
  }

  // Returns the directory of a snapshot that another process took. Returns an
  // empty path if this process took the snapshot.
  const std::string& adopted_path() const { return adopted_path_; }

  // Returns the plan with the key `key`. The first caller makes the plan with
  // `make`; callers that come meanwhile wait for it. If `make` failed, or if no
  // transfer has the plan any more, the next caller makes it again. A plan with
  // an empty key is not shared. `budget` limits the files in which its chunks
  // are stored (spools).
  [[nodiscard]] rocksdb::Status Plan(
      const std::string& key,
      const std::function<rocksdb::Status(TransferPlan*)>& make,
      uint64_t chunk_bytes, const std::shared_ptr<SpoolBudget>& budget,
      std::shared_ptr<const SharedPlan>* plan);

  uint64_t pinned_bytes() const { return pinned_bytes_; }
  uint64_t read_bytes() const { return read_bytes_; }
  void CountRead(uint64_t bytes) { read_bytes_ += bytes; }
  // Returns the point in time of the snapshot, in seconds since 1970; 0 before
  // Take(). This usually is the start of Take(). A snapshot that was pinned or
  // retained earlier, or that is in an archive, has an earlier point in time.
  uint64_t taken_seconds() const { return taken_seconds_; }

  // Returns a time since which writes that skipped the WAL may be missing from
  // the snapshot, in seconds since 1970: the last write of the MANIFEST or the
  // start of Take(), whichever is earlier. It is not before the last flush.
  // Returns 0 if the time is unknown, if no process has the database open, or
  // if a WAL has an entry.
  uint64_t unlogged_since_seconds() const { return unlogged_since_seconds_; }

  // Gives a reader a directory in which another process can adopt the snapshot.
  // The first reader gets the snapshot's own directory, and *linked remains
  // null. Later readers get *linked, a new directory with links to the same
  // files.
  [[nodiscard]] rocksdb::Status Lend(std::unique_ptr<PrivateDir>* linked);
  // Takes the snapshot's own directory back from the reader that got it from
  // Lend(). If `keep` is true, the directory remains on the disk; otherwise the
  // destructor removes it.
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
  // Declared before snapshot_, because snapshot_ uses both counters until its
  // destructor has ended.
  std::atomic<uint64_t> read_bytes_{0};
  std::atomic<int> readers_{0};          // transfers between Join() and Leave()

  std::mutex take_mu_;                   // locked while the snapshot is taken
  std::unique_ptr<Snapshot> snapshot_;   // constant after taken_ is set
  std::atomic<bool> taken_{false};
  std::atomic<bool> failed_{false};
  std::atomic<uint64_t> pinned_bytes_{0};
  std::atomic<uint64_t> taken_seconds_{0};
  std::atomic<uint64_t> unlogged_since_seconds_{0};

  std::mutex plan_mu_;  // locked while a plan is made
  // Does not keep plans alive: a plan is destroyed with its last reader.
  // Otherwise a target could fill the memory by requesting many plans.
  std::map<std::string, std::weak_ptr<const SharedPlan>> plans_;

  std::mutex lend_mu_;
  bool prepared_ = false;  // under lend_mu_
  bool lent_ = false;      // under lend_mu_
};

}  // namespace sstferry
