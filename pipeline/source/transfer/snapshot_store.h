// The transfers of a server: those whose target is connected, and those whose
// target is gone and may come back while their lease runs. Those of a process
// before this one are only on disk, until their target asks for them: the lease
// in each private directory says all, so servers need not know of each other.
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

#include "pipeline/source/transfer/transfer.h"
#include "sstferry/source.h"

namespace sstferry {

// Ownership: shares every transfer with its sessions; borrows the options.
// Threads:   all members from any thread; a ticker of its own lets leases run
//   out.
class SnapshotStore {
 public:
  SnapshotStore(const ServeOptions* options, TokenBucket* wire_bucket);
  SnapshotStore(const SnapshotStore&) = delete;
  SnapshotStore& operator=(const SnapshotStore&) = delete;
  ~SnapshotStore();

  // Lets leases run out and keeps disk space free, where either is asked for;
  // before that the store is as it was made.
  void Start();

  // Makes a transfer known to lanes. When there are too many, the one that
  // nobody has been connected to for longest makes room; kRefused when all are
  // in use, kCancelled after Stop().
  [[nodiscard]] rocksdb::Status Add(std::shared_ptr<Transfer> transfer);
  // Null: not here.
  std::shared_ptr<Transfer> Find(const TransferId& id) const;
  // `control` becomes the connection of the target of request.held_transfer,
  // which may have to be pinned again (Transfer::planned()).
  //   kSnapshotGone  there is no such transfer (any more).
  //   kBusy          another process has it.
  //   kDenied        `control` has another identity than who opened it.
  //   kRefused       the request is another one; names the field.
  [[nodiscard]] rocksdb::Status Resume(const ServedDatabase& database,
                                       const OpenRequest& request,
                                       const Hello& target, std::string peer,
                                       Channel* control,
                                       std::shared_ptr<Transfer>* transfer);
  // The target's connection is gone: its lease begins to run. False when
  // another connection has taken over from it.
  bool StartLease(const std::shared_ptr<Transfer>& transfer,
                  const Channel* control);
  // Makes the transfer outlive this process; a failure is only logged.
  void WriteLease(const std::shared_ptr<Transfer>& transfer);
  // Of databases with these names: what is held here and, with a lease, beside
  // them. Of a transfer's id only its owner is told more than the first bytes.
  std::vector<HeldSnapshot> List(const std::set<std::string>& names,
                                 const PeerIdentity* peer);
  // Releases what the target of that transfer does not need any more; a
  // sentence for its operator.
  std::string Drop(const ServedDatabase& database, const TransferId& id,
                   const PeerIdentity* peer);
  // The transfer has ended.
  void Remove(const std::shared_ptr<Transfer>& transfer);

  // What the ticker does once per ServeOptions::leases.tick.
  void Tick();
  // Removes what dead processes left and no lease keeps.
  void RemoveLeftovers();
  // Ends every transfer, leaving those with a lease for the next process; each
  // target is told within a second.
  void Stop();

 private:
  struct Entry {
    std::shared_ptr<Transfer> transfer;
    uint64_t idle_since = 0;  // steady seconds; while no target is connected
  };
  using Entries = std::map<TransferId, Entry>;

  struct Idle {
    uint64_t seconds = 0;  // without a target
    TransferId id{};
    std::string path;      // set: of another process, and dead
  };

  uint64_t SteadySeconds() const;
  // How leases on disk run: those of our databases not longer than ours.
  LeaseRules rules() const;
  bool IsOurs(const Lease& lease) const;
  // What is on disk of request.held_transfer becomes one of entries_, unless
  // the request is refused: its lease then runs on.
  [[nodiscard]] rocksdb::Status Adopt(const ServedDatabase& database,
                                      const OpenRequest& request,
                                      const Hello& target,
                                      const PeerIdentity* peer);
  void EndLeases();
  void RenewLeases();
  void KeepFree();
  bool ReleaseOldestIdle(const std::string& parent, const std::string& why);
  void ReleaseLargest(const std::string& parent, const std::string& why);
  void Log(LogLevel level, const std::string& text) const;
  // Under mu_: the idle one whose lease began first; end() when there is none.
  Entries::iterator OldestIdle();
  // Not under mu_: ends it, removes its snapshot unless somebody else still
  // has it, tells the application.
  void Release(std::shared_ptr<Transfer> transfer, const std::string& why);
  void EndAndLog(std::shared_ptr<Transfer> transfer, const std::string& why,
                 TransferReport* report);
  // Those that `release` asks for, where no target is connected.
  void HonourReleases();
  bool DropLeftover(const ServedDatabase& database, const TransferId& id,
                    const PeerIdentity* peer, std::string* note);
  void TickLoop();

  const ServeOptions* const options_;
  TokenBucket* const wire_bucket_;
  std::set<std::string> parents_;                    // of private directories
  std::map<std::string, std::string> directories_;  // served, real, by name
  uint64_t ticks_ = 0;          // the ticker's, and below
  uint64_t renewed_ = 0;        // steady seconds
  mutable std::mutex mu_;
  std::condition_variable changed_;
  Entries entries_;        // under mu_
  bool stopping_ = false;  // under mu_
  std::thread ticker_;
};

}  // namespace sstferry
