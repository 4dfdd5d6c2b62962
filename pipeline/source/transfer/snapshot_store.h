// Keeps the transfers of a server: those whose target is connected, and those
// that a disconnected target may resume while their lease runs. Retained
// snapshots of an earlier process are only on disk until their target asks for
// them. The lease in each private directory is sufficient to resume, so servers
// need not know of each other.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "pipeline/source/transfer/leased_snapshots.h"
#include "pipeline/source/transfer/transfer.h"
#include "sstferry/rate_limited_log.h"
#include "sstferry/source.h"

namespace sstferry {

// The retained and active transfers of one server.
//
// Ownership: shares every transfer with its sessions; borrows the options.
// Threads:   all members from any thread; a thread of its own expires leases.
class SnapshotStore {
 public:
  SnapshotStore(const ServeOptions* options, TokenBucket* wire_bucket);
  SnapshotStore(const SnapshotStore&) = delete;
  SnapshotStore& operator=(const SnapshotStore&) = delete;
  ~SnapshotStore();

  // Starts to expire leases and to keep disk space free, if the options ask for
  // either.
  void Start();

  // Adds a transfer, which lanes can then find. If there are too many, releases
  // one (Replaceable()). kBusy if there is none, kCancelled after Stop().
  [[nodiscard]] rocksdb::Status Add(std::shared_ptr<Transfer> transfer);
  // Returns null if there is no such transfer.
  std::shared_ptr<Transfer> Find(const TransferId& id) const;
  // Resumes request.held_transfer with `control` as its target's connection. An
  // adopted transfer must still be pinned (Transfer::planned()).
  //   kSnapshotGone  there is no such transfer (any more).
  //   kBusy          another process has it.
  //   kDenied        `control` has another identity than the opener's.
  //   kRefused       the request differs; the message names the field.
  [[nodiscard]] rocksdb::Status Resume(const ServedDatabase& database,
                                       const OpenRequest& request,
                                       const Hello& target, std::string peer,
                                       Channel* control,
                                       std::shared_ptr<Transfer>* transfer);
  // Starts the lease of a transfer whose target's connection is closed. Returns
  // false if another connection has replaced that one.
  bool StartLease(const std::shared_ptr<Transfer>& transfer,
                  const Channel* control);
  // Writes the lease, so that the transfer outlives this process. Only logs a
  // failure.
  void WriteLease(const std::shared_ptr<Transfer>& transfer);
  // Lists the snapshots of databases with these names: those of this store and,
  // by their leases, those beside the databases. Only the owner of a transfer
  // sees more than the first bytes of its id.
  std::vector<HeldSnapshot> List(const std::set<std::string>& names,
                                 const PeerIdentity* peer);
  // Reports on the pulls of this store that have not ended.
  std::vector<TransferReport> Reports() const;
  // Releases the snapshot of a transfer that its target has dropped. Returns a
  // sentence for the target's operator.
  std::string Drop(const ServedDatabase& database, const TransferId& id,
                   const PeerIdentity* peer);
  // Removes a transfer that has ended.
  void Remove(const std::shared_ptr<Transfer>& transfer);

  // Expires leases, renews them and keeps disk space free. Called once per
  // ServeOptions::leases.tick.
  void Tick();
  // Removes leftovers of dead processes without a valid lease.
  void RemoveLeftovers();
  // Ends every transfer, but retains the snapshots of those with a lease for
  // the next process. Informs each target within a second.
  void Stop();

 private:
  struct Entry {
    std::shared_ptr<Transfer> transfer;
    uint64_t idle_since = 0;  // steady seconds; valid without a target
    uint64_t moved = 0;       // CurrentStats() when last looked at
    uint64_t moved_at = 0;    // steady seconds at which that had changed
  };
  using Entries = std::map<TransferId, Entry>;

  struct Idle {
    uint64_t seconds = 0;  // time without a target
    TransferId id{};
    std::string path;      // set: left by a dead process
  };

  uint64_t SteadySeconds() const;
  // Adds the transfer request.held_transfer from its lease on disk to entries_.
  // If the request is refused, the lease continues to run.
  [[nodiscard]] rocksdb::Status Adopt(const ServedDatabase& database,
                                      const OpenRequest& request,
                                      const Hello& target,
                                      const PeerIdentity* peer);
  void EndLeases();
  void EndIdleLanes();
  void RenewLeases();
  void KeepFree();
  bool ReleaseOldestIdle(const std::string& parent, const std::string& why);
  void ReleaseLargest(const std::string& parent, const std::string& why);
  void Log(LogLevel level, const std::string& text);
  // Logs what this process leaves on the disk as it ends, however much.
  void LogRetained(const Transfer& transfer) const;
  // Returns the entry that gives its place to a transfer of `owner`, or end().
  // The peer with the most transfers gives one up, if it has no fewer than
  // `owner` then would: the one that is idle for longest, else the one whose
  // connected target has taken nothing for longest, and for longer than the
  // stall timeout. REQUIRES: mu_ held.
  Entries::iterator Replaceable(const PeerIdentity& owner);
  // Notes which transfers moved since the last call. REQUIRES: mu_ held.
  void LookWhatMoved();
  // Ends the transfer, removes its snapshot unless another owner still has it,
  // and informs the application. REQUIRES: mu_ not held.
  void Release(std::shared_ptr<Transfer> transfer, const std::string& why);
  void EndAndLog(std::shared_ptr<Transfer> transfer, const std::string& why,
                 TransferReport* report);
  // Releases snapshots with a request file, if no target is connected.
  void HonourReleases();
  void TickLoop();

  const ServeOptions* const options_;
  TokenBucket* const wire_bucket_;
  const LeasedSnapshots leased_;  // of dead processes
  RateLimitedLog log_;          // targets cause its lines
  uint64_t ticks_ = 0;          // used by the ticker, as the next one
  uint64_t renewed_ = 0;        // steady seconds
  mutable std::mutex mu_;
  std::condition_variable changed_;
  Entries entries_;        // under mu_
  bool stopping_ = false;  // under mu_
  std::thread ticker_;
};

}  // namespace sstferry
