// Keeps the transfers of a server. If the target of a transfer is disconnected,
// the transfer is kept until its lease expires, so that the target can resume
// it. A snapshot that an earlier process retained is only on the disk until its
// target requests it. The lease in its directory contains all that is needed to
// resume, so servers need not know each other.
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "pipeline/serve/leased_snapshots.h"
#include "pipeline/serve/pin_sets.h"
#include "pipeline/serve/return_times.h"
#include "pipeline/serve/share_windows.h"
#include "pipeline/serve/snapshot_order.h"
#include "pipeline/serve/transfer.h"
#include "pipeline/serve/transfer_places.h"
#include "sstferry/rate_limited_log.h"
#include "sstferry/source.h"

namespace sstferry {

// The active and the retained transfers of one server.
//
// Ownership: shares every transfer with its sessions; borrows the options.
// Threads:   all members from any thread. A thread that Start() starts expires
//            the leases.
class SnapshotStore {
 public:
  SnapshotStore(const ServeOptions* options, ServedDatabases* databases,
                ServerShares* shares);
  SnapshotStore(const SnapshotStore&) = delete;
  SnapshotStore& operator=(const SnapshotStore&) = delete;
  ~SnapshotStore();

  // Starts the thread that calls Tick(), if the options require it: for leases,
  // for shared snapshots, or to keep disk space free.
  void Start();

  // Returns the newest snapshot that the request can read, and keeps it until
  // the end of its window. This snapshot is not older than the target's data.
  // Its age is, or was when the target first asked, below
  // ServeOptions::share_snapshots. If there is no such snapshot, returns a new
  // one that has not been taken yet.
  std::shared_ptr<SharedSnapshot> Latest(const ServedDatabase& database,
                                         const OpenRequest& request);
  // Adds a transfer. Find() finds it from then on. If there are too many
  // transfers, another transfer may lose its slot (see
  // TransferPlaces::Insert()), but keeps its lease.
  //   kBusy       there is no free slot; the target must ask again after
  //               *retry_after
  //   kCancelled  after Stop()
  [[nodiscard]] rocksdb::Status Add(const std::shared_ptr<Transfer>& transfer,
                                    std::chrono::milliseconds* retry_after);
  // Returns the transfer with this id. Returns null if the store lacks it.
  std::shared_ptr<Transfer> Find(const TransferId& id) const;
  // Resumes the transfer request.named_transfer. `control` is the new
  // connection of its target. If the transfer is adopted from its lease, it is
  // not planned() yet, and the caller must call Pin().
  //   kSnapshotGone  there is no such transfer, or no longer
  //   kBusy          another process uses the snapshot; or no slot is free
  //                  (then sets *retry_after, and the lease starts again)
  //   kDenied        another identity has opened the transfer
  //   kRefused       the request differs; the message names the field
  [[nodiscard]] rocksdb::Status Resume(const ServedDatabase& database,
                                       const OpenRequest& request,
                                       const Hello& target, std::string peer,
                                       Channel* control,
                                       std::shared_ptr<Transfer>* transfer,
                                       std::chrono::milliseconds* retry_after);
  // Called after the connection `control` of a transfer's target was closed.
  // Starts the time of the transfer's lease. Returns false if another
  // connection has replaced `control`.
  bool StartLease(const std::shared_ptr<Transfer>& transfer,
                  const Channel* control);
  // Called after the snapshot of the transfer was taken. Records its position
  // in the order of snapshots. If the database has unknown options, logs a
  // warning. REQUIRES: the transfer is planned.
  void Took(const Transfer& transfer);
  // Writes the transfer's lease, so that a later process can resume the
  // transfer. If that fails, only logs a warning.
  void WriteLease(const std::shared_ptr<Transfer>& transfer);
  // Lists the snapshots of databases with these names. The list contains the
  // snapshots of this store and leased snapshots on the disk. It contains the
  // complete id of a transfer only if `peer` owns the transfer.
  std::vector<RetainedSnapshot> List(const std::set<std::string>& names,
                                 const PeerIdentity* peer);
  // Returns a report on each pull of this store that has not ended.
  std::vector<TransferReport> Reports() const;
  // Releases the snapshot of a transfer that its target no longer wants, even
  // if a connection of this target is still open here. Returns a sentence that
  // tells the target's operator what happened.
  std::string Drop(const ServedDatabase& database, const TransferId& id,
                   const PeerIdentity* peer);
  // Removes a transfer after it has ended.
  void Remove(const std::shared_ptr<Transfer>& transfer);

  // Returns the databases that were pinned together, for later pulls.
  PinSets* pins() { return &pins_; }

  // Expires and renews leases, and keeps disk space free. Called at the
  // interval ServeOptions::leases.tick.
  void Tick();
  // Removes private directories of ended processes that have no valid lease. A
  // private directory contains the files of a snapshot.
  void RemoveLeftovers();
  // Ends every transfer, and informs each target for at most a second.
  // Snapshots with a lease remain on the disk for the next process.
  void Stop();
  // Blocks until the thread of Start() has ended. After that, the store calls
  // callbacks in ServeOptions, such as `log`, only within calls of its own
  // functions. REQUIRES: Stop() was called. Only one thread calls Join().
  void Join();

 private:
  struct Idle {
    uint64_t seconds = 0;  // since the target left
    TransferId id{};
    std::string path;      // empty if this process has the transfer
  };

  uint64_t SteadySeconds() const {
    return sstferry::SteadySeconds(options_->leases);
  }
  // Waits while the transfer is in leaving_, because its lease is being
  // prepared. REQUIRES: *lock holds mu_.
  void AwaitLease(const TransferId& id, std::unique_lock<std::mutex>* lock);
  // Finds the lease of request.named_transfer on the disk, and adds a transfer
  // that reads its snapshot. If the request is refused, the time of the lease
  // continues.
  [[nodiscard]] rocksdb::Status Adopt(const ServedDatabase& database,
                                      const OpenRequest& request,
                                      const Hello& target,
                                      const PeerIdentity* peer,
                                      std::chrono::milliseconds* retry_after);
  // Adds a transfer to entries_. If another transfer loses its slot, sets
  // *evicted to it and adds its id to leaving_. Returns false if no slot is
  // free. REQUIRES: mu_ is locked.
  bool Place(const std::shared_ptr<Transfer>& transfer,
             std::shared_ptr<Transfer>* evicted);
  // Records that the target of `transfer` takes a snapshot of its own. If
  // several targets do this for one database within a minute, returns a line
  // for the log that suggests sharing a snapshot. REQUIRES: mu_ is locked.
  std::string CountTaker(const Transfer& transfer);
  // Ends a transfer that lost its slot to another one and is in leaving_. If it
  // has a lease, its target can resume it later. REQUIRES: mu_ is not locked.
  void Evict(std::shared_ptr<Transfer> evicted);
  // Returns the transfer with this id; null if it is missing. REQUIRES: mu_ is
  // locked.
  std::shared_ptr<Transfer> FindLocked(const TransferId& id) const;
  void EndLeases();
  void RenewLeases();
  void KeepFree();
  bool ReleaseOldestIdle(const std::string& parent, const std::string& why);
  void ReleaseLargest(const std::string& parent, const std::string& why);
  void Log(LogLevel level, const std::string& text);
  // Logs that this process leaves the snapshot of `transfer` on the disk.
  // Unlike Log(), does not limit the rate.
  void LogRetained(const Transfer& transfer) const;
  // Ends the transfer and calls on_transfer_end of the options. The snapshot is
  // removed when no other transfer uses it. REQUIRES: mu_ is not locked.
  void Release(std::shared_ptr<Transfer> transfer, const std::string& why);
  void EndAndLog(std::shared_ptr<Transfer> transfer, const std::string& why,
                 TransferReport* report);
  // Releases the snapshots whose directories contain a release request. Ignores
  // the request if a target is connected.
  void HonourReleases();
  void TickLoop();

  const ServeOptions* const options_;
  const uint64_t started_seconds_ = SteadySeconds();
  ServerShares* const shares_;
  const LeasedSnapshots leased_;  // snapshots of earlier processes
  RateLimitedLog log_;          // limits lines that targets can cause
  ShareWindows windows_;
  PinSets pins_;
  uint64_t ticks_ = 0;          // only Tick() uses it
  // Parent directory -> last message of RemoveLeftovers(). A message is logged
  // only if it is new.
  std::map<std::string, std::string> failed_sweeps_;
  uint64_t renewed_ = 0;        // time of the last renewal; steady seconds
  mutable std::mutex mu_;
  std::condition_variable changed_;
  TransferPlaces entries_;  // under mu_
  ReturnTimes returns_;     // under mu_
  SnapshotOrder order_;     // under mu_
  std::set<TransferId> leaving_;  // under mu_; their leases are not ready yet
  // own_takers_: for each database, the targets that took snapshots of their
  // own, and when. told_to_share_: for each database, when the log suggested
  // sharing a snapshot. Times are seconds of the steady clock. Under mu_.
  std::map<std::string, std::map<std::string, uint64_t>> own_takers_;
  std::map<std::string, uint64_t> told_to_share_;
  bool stopping_ = false;  // under mu_
  std::thread ticker_;
};

}  // namespace sstferry
