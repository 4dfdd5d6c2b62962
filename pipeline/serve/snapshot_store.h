// Keeps the transfers of a server: those whose target is connected, and those
// that a disconnected target may resume while their lease runs. Retained
// snapshots of an earlier process are only on disk until their target asks for
// them. The lease in each private directory is sufficient to resume, so servers
// need not know of each other.
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

  // Returns the snapshot that this server began last and this request can read,
  // if it is younger than ServeOptions::share_snapshots, or was when the target
  // first asked, and not older than what the target holds; else one to be
  // taken. Keeps it so long.
  std::shared_ptr<SharedSnapshot> Latest(const ServedDatabase& database,
                                         const OpenRequest& request);
  // Adds a transfer, which lanes can then find. If there are too many, another
  // one gives its place up (Replaceable()), not its lease.
  //   kBusy       there is none; its target asks again after *retry_after
  //   kCancelled  after Stop()
  [[nodiscard]] rocksdb::Status Add(const std::shared_ptr<Transfer>& transfer,
                                    std::chrono::milliseconds* retry_after);
  // Returns null if there is no such transfer.
  std::shared_ptr<Transfer> Find(const TransferId& id) const;
  // Resumes request.named_transfer with `control` as its target's connection.
  // An adopted transfer must still be pinned (Transfer::planned()).
  //   kSnapshotGone  there is no such transfer (any more).
  //   kBusy          another process has it, or, with *retry_after set, there
  //   is
  //                  no place for it. Its lease begins anew then.
  //   kDenied        `control` has another identity than the opener's.
  //   kRefused       the request differs; the message names the field.
  [[nodiscard]] rocksdb::Status Resume(const ServedDatabase& database,
                                       const OpenRequest& request,
                                       const Hello& target, std::string peer,
                                       Channel* control,
                                       std::shared_ptr<Transfer>* transfer,
                                       std::chrono::milliseconds* retry_after);
  // Starts the lease of a transfer whose target's connection is closed. Returns
  // false if another connection has replaced that one.
  bool StartLease(const std::shared_ptr<Transfer>& transfer,
                  const Channel* control);
  // Remembers that the transfer's snapshot is taken, and warns of what is not
  // known about it. REQUIRES: planned.
  void Took(const Transfer& transfer);
  // Writes the lease, so that the transfer outlives this process. Only logs a
  // failure.
  void WriteLease(const std::shared_ptr<Transfer>& transfer);
  // Lists the snapshots of databases with these names: those of this store and,
  // by their leases, those beside the databases. Only the owner of a transfer
  // sees more than the first bytes of its id.
  std::vector<RetainedSnapshot> List(const std::set<std::string>& names,
                                 const PeerIdentity* peer);
  // Reports on the pulls of this store that have not ended.
  std::vector<TransferReport> Reports() const;
  // Releases the snapshot of a transfer that its target has dropped, whose
  // earlier connection may still be open here. Returns a sentence for the
  // target's operator.
  std::string Drop(const ServedDatabase& database, const TransferId& id,
                   const PeerIdentity* peer);
  // Removes a transfer that has ended.
  void Remove(const std::shared_ptr<Transfer>& transfer);

  // Databases that were pinned together, for pulls that will ask for them.
  PinSets* pins() { return &pins_; }

  // Expires leases, renews them and keeps disk space free. Called once per
  // ServeOptions::leases.tick.
  void Tick();
  // Removes leftovers of dead processes without a valid lease.
  void RemoveLeftovers();
  // Ends every transfer, but retains the snapshots of those with a lease for
  // the next process. Informs each target within a second.
  void Stop();

 private:
  struct Idle {
    uint64_t seconds = 0;  // time without a target
    TransferId id{};
    std::string path;      // set: left by a dead process
  };

  uint64_t SteadySeconds() const {
    return sstferry::SteadySeconds(options_->leases);
  }
  // Blocks until the transfer is not one that leaves its place: what is known
  // of it then is what stays. REQUIRES: *lock holds mu_.
  void AwaitLease(const TransferId& id, std::unique_lock<std::mutex>* lock);
  // Adds the transfer request.named_transfer from its lease on disk to
  // entries_. If the request is refused, the lease continues to run.
  [[nodiscard]] rocksdb::Status Adopt(const ServedDatabase& database,
                                      const OpenRequest& request,
                                      const Hello& target,
                                      const PeerIdentity* peer,
                                      std::chrono::milliseconds* retry_after);
  // TransferPlaces::Insert(), and adds *evicted to leaving_. REQUIRES: mu_
  // held.
  bool Place(const std::shared_ptr<Transfer>& transfer,
             std::shared_ptr<Transfer>* evicted);
  // Returns the line for the log if this is one of several targets that each
  // take a snapshot of a database at about the same time. REQUIRES: mu_ held.
  std::string CountTaker(const Transfer& transfer);
  // Ends the transfer, which is in leaving_, for another that needs its place.
  // It can be resumed from its lease, if it has one. REQUIRES: mu_ not held.
  void Evict(std::shared_ptr<Transfer> evicted);
  // Returns null if there is no such transfer. REQUIRES: mu_ held.
  std::shared_ptr<Transfer> FindLocked(const TransferId& id) const;
  void EndLeases();
  void RenewLeases();
  void KeepFree();
  bool ReleaseOldestIdle(const std::string& parent, const std::string& why);
  void ReleaseLargest(const std::string& parent, const std::string& why);
  void Log(LogLevel level, const std::string& text);
  // Logs what this process leaves on the disk as it ends, however much.
  void LogRetained(const Transfer& transfer) const;
  // Ends the transfer, removes its snapshot unless another owner still has it,
  // and informs the application. REQUIRES: mu_ not held.
  void Release(std::shared_ptr<Transfer> transfer, const std::string& why);
  void EndAndLog(std::shared_ptr<Transfer> transfer, const std::string& why,
                 TransferReport* report);
  // Releases snapshots with a request file, if no target is connected.
  void HonourReleases();
  void TickLoop();

  const ServeOptions* const options_;
  const uint64_t started_seconds_ = SteadySeconds();
  ServerShares* const shares_;
  const LeasedSnapshots leased_;  // of dead processes
  RateLimitedLog log_;          // targets cause its lines
  ShareWindows windows_;
  PinSets pins_;
  uint64_t ticks_ = 0;          // used by the ticker, as the next one
  uint64_t renewed_ = 0;        // steady seconds
  mutable std::mutex mu_;
  std::condition_variable changed_;
  TransferPlaces entries_;  // under mu_
  ReturnTimes returns_;     // under mu_
  SnapshotOrder order_;     // under mu_
  std::set<TransferId> leaving_;  // under mu_; their leases are not ready
  // Database -> target that took a snapshot of its own -> when, in steady
  // seconds; and when the log said that they could share. Under mu_.
  std::map<std::string, std::map<std::string, uint64_t>> own_takers_;
  std::map<std::string, uint64_t> told_to_share_;
  bool stopping_ = false;  // under mu_
  std::thread ticker_;
};

}  // namespace sstferry
