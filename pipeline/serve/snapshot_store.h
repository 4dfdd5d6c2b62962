// Keeps the transfers of a server: those with a connected target, and those
// that a disconnected target may resume while their lease runs. Snapshots that
// an earlier process retained are only on disk until their targets request
// them. The lease in each private directory is sufficient to resume, so servers
// need not know about each other.
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

// The retained and active transfers of one server.
//
// Ownership: shares every transfer with its sessions; borrows the options.
// Threads:   all members from any thread; a thread of its own expires leases.
class SnapshotStore {
 public:
  SnapshotStore(const ServeOptions* options, ServedDatabases* databases,
                ServerShares* shares);
  SnapshotStore(const SnapshotStore&) = delete;
  SnapshotStore& operator=(const SnapshotStore&) = delete;
  ~SnapshotStore();

  // Starts to expire leases and to keep disk space free, if the options ask for
  // either.
  void Start();

  // Returns the newest snapshot of this server that the request can read, and
  // keeps it until the end of its window. The snapshot is not older than the
  // target's data, and is now (or was, when the target first asked) younger
  // than ServeOptions::share_snapshots. If there is none, returns a new
  // snapshot, which has not been taken yet.
  std::shared_ptr<SharedSnapshot> Latest(const ServedDatabase& database,
                                         const OpenRequest& request);
  // Adds a transfer, which lanes can find from then on. If there are too many
  // transfers, another one loses its slot (TransferPlaces::Insert()), but not
  // its lease.
  //   kBusy       there is no free transfer slot; the target should ask again
  //               after *retry_after
  //   kCancelled  after Stop()
  [[nodiscard]] rocksdb::Status Add(const std::shared_ptr<Transfer>& transfer,
                                    std::chrono::milliseconds* retry_after);
  // Returns null if there is no such transfer.
  std::shared_ptr<Transfer> Find(const TransferId& id) const;
  // Resumes request.named_transfer with `control` as its target's connection.
  // An adopted transfer is not Transfer::planned(); the caller must pin it.
  //   kSnapshotGone  there is no such transfer (any more).
  //   kBusy          another process uses it; or, with *retry_after set, there
  //                  is no free transfer slot, and its lease starts again.
  //   kDenied        the identity of `control` differs from the opener's.
  //   kRefused       the request differs; the message names the field.
  [[nodiscard]] rocksdb::Status Resume(const ServedDatabase& database,
                                       const OpenRequest& request,
                                       const Hello& target, std::string peer,
                                       Channel* control,
                                       std::shared_ptr<Transfer>* transfer,
                                       std::chrono::milliseconds* retry_after);
  // Starts the lease of a transfer after its target's connection was closed.
  // Returns false if another connection has replaced that one.
  bool StartLease(const std::shared_ptr<Transfer>& transfer,
                  const Channel* control);
  // Records that the transfer's snapshot is taken, and logs a warning about
  // unknown options. REQUIRES: it is planned.
  void Took(const Transfer& transfer);
  // Writes the lease, so that the transfer outlives this process. A failure is
  // only logged.
  void WriteLease(const std::shared_ptr<Transfer>& transfer);
  // Lists the snapshots of databases with these names: snapshots of this store
  // and, from their leases, snapshots beside the databases. Only the owner of a
  // transfer gets its complete id.
  std::vector<RetainedSnapshot> List(const std::set<std::string>& names,
                                 const PeerIdentity* peer);
  // Returns reports on the pulls of this store that have not ended.
  std::vector<TransferReport> Reports() const;
  // Releases the snapshot of a transfer that its target has dropped; the
  // target's previous connection may still be open here. Returns a sentence for
  // the target's operator.
  std::string Drop(const ServedDatabase& database, const TransferId& id,
                   const PeerIdentity* peer);
  // Removes a transfer that has ended.
  void Remove(const std::shared_ptr<Transfer>& transfer);

  // Returns the databases that were pinned together for later pulls.
  PinSets* pins() { return &pins_; }

  // Expires leases, renews them and keeps disk space free. Called once per
  // ServeOptions::leases.tick.
  void Tick();
  // Removes directories without a valid lease whose processes have ended.
  void RemoveLeftovers();
  // Ends every transfer, but retains snapshots with a lease for the next
  // process. Informs each target within a second.
  void Stop();

 private:
  struct Idle {
    uint64_t seconds = 0;  // time without a target
    TransferId id{};
    std::string path;      // set: left by a process that has ended
  };

  uint64_t SteadySeconds() const {
    return sstferry::SteadySeconds(options_->leases);
  }
  // Blocks while the transfer is in leaving_, that is, until its lease is
  // ready. REQUIRES: *lock holds mu_.
  void AwaitLease(const TransferId& id, std::unique_lock<std::mutex>* lock);
  // Adds the transfer request.named_transfer to entries_, from its lease on
  // disk. If the request is refused, the lease continues to run.
  [[nodiscard]] rocksdb::Status Adopt(const ServedDatabase& database,
                                      const OpenRequest& request,
                                      const Hello& target,
                                      const PeerIdentity* peer,
                                      std::chrono::milliseconds* retry_after);
  // Calls TransferPlaces::Insert(), and adds *evicted to leaving_. REQUIRES:
  // mu_ is held.
  bool Place(const std::shared_ptr<Transfer>& transfer,
             std::shared_ptr<Transfer>* evicted);
  // Returns a line for the log if several targets, among them the target of
  // `transfer`, each take a snapshot of one database at about the same time.
  // REQUIRES: mu_ is held.
  std::string CountTaker(const Transfer& transfer);
  // Ends the transfer, which is in leaving_, because another one needs its
  // slot. Its target can resume from the lease, if it has one. REQUIRES: mu_ is
  // not held.
  void Evict(std::shared_ptr<Transfer> evicted);
  // Returns null if there is no such transfer. REQUIRES: mu_ is held.
  std::shared_ptr<Transfer> FindLocked(const TransferId& id) const;
  void EndLeases();
  void RenewLeases();
  void KeepFree();
  bool ReleaseOldestIdle(const std::string& parent, const std::string& why);
  void ReleaseLargest(const std::string& parent, const std::string& why);
  void Log(LogLevel level, const std::string& text);
  // Logs that this process leaves the snapshot on the disk. The rate is not
  // limited.
  void LogRetained(const Transfer& transfer) const;
  // Ends the transfer, removes its snapshot unless another owner still has it,
  // and informs the application. REQUIRES: mu_ is not held.
  void Release(std::shared_ptr<Transfer> transfer, const std::string& why);
  void EndAndLog(std::shared_ptr<Transfer> transfer, const std::string& why,
                 TransferReport* report);
  // Releases snapshots whose directory has a release request, unless a target
  // is connected.
  void HonourReleases();
  void TickLoop();

  const ServeOptions* const options_;
  const uint64_t started_seconds_ = SteadySeconds();
  ServerShares* const shares_;
  const LeasedSnapshots leased_;  // leases that earlier processes left
  RateLimitedLog log_;          // targets can cause these lines
  ShareWindows windows_;
  PinSets pins_;
  uint64_t ticks_ = 0;          // used only by Tick()
  // By parent: the last message of RemoveLeftovers(), which is logged once.
  std::map<std::string, std::string> failed_sweeps_;
  uint64_t renewed_ = 0;        // steady seconds
  mutable std::mutex mu_;
  std::condition_variable changed_;
  TransferPlaces entries_;  // under mu_
  ReturnTimes returns_;     // under mu_
  SnapshotOrder order_;     // under mu_
  std::set<TransferId> leaving_;  // under mu_; their leases are not ready yet
  // Database -> target that took its own snapshot -> time, in seconds of the
  // steady clock. told_to_share_: when the log last said that they could share
  // a snapshot. Under mu_.
  std::map<std::string, std::map<std::string, uint64_t>> own_takers_;
  std::map<std::string, uint64_t> told_to_share_;
  bool stopping_ = false;  // under mu_
  std::thread ticker_;
};

}  // namespace sstferry
