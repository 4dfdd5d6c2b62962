// One transfer at the source: a pinned snapshot, its plan, and what its lanes
// have sent. Shared by the snapshot store that keeps it, the control session of
// the target that is connected (if one is), and its lanes.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "format/message/messages.h"
#include "format/record/lease.h"
#include "pipeline/source/directory/private_dir.h"
#include "pipeline/source/transfer/pinned_snapshot.h"
#include "pipeline/source/transfer/transfer_connections.h"
#include "pipeline/source/transfer/transfer_ledger.h"
#include "pipeline/source/transfer/transfer_pace.h"
#include "pipeline/source/transfer/transfer_plan.h"
#include "pipeline/wire/channel.h"
#include "sstferry/source.h"

namespace sstferry {

// Threads: Pin() and the plan it fills happen before any lane attaches; after
//   that families() and ranges() are constant. All else from any thread.
class Transfer {
 public:
  Transfer(const ServedDatabase& database, const ServeOptions& serve,
           const OpenRequest& request, const Hello& target,
           std::string peer, TokenBucket* wire_bucket);
  // One that another process of this source held with `lease` in `dir`.
  Transfer(const ServedDatabase& database, const ServeOptions& serve,
           const Lease& lease, std::unique_ptr<PrivateDir> dir,
           TokenBucket* wire_bucket);
  ~Transfer();

  // Pins the snapshot and plans it. Every reason to refuse what cannot be
  // moved faithfully and can be known without reading the data is found here.
  // Does it once, whoever comes first; others wait.
  //   kSnapshotGone  the snapshot of another process cannot be gone on with.
  [[nodiscard]] rocksdb::Status Pin();
  // Writes the lease, or writes it again, with now as the time at which a
  // target was connected last. Nothing where the transfer is kept in this
  // process only: an application's own database, or no time to live.
  [[nodiscard]] rocksdb::Status WriteLease(uint64_t wall_seconds);
  bool has_lease() const { return pinned_.has_lease(); }
  // Whether its snapshot is (or will be) in that directory.
  bool IsIn(const std::string& parent) const {
    return planned_ && pinned_->directory().rfind(parent + "/", 0) == 0;
  }
  uint64_t pinned_bytes() const { return pinned_.pinned_bytes(); }
  // Of a planned one.
  const std::string& directory() const { return pinned_->directory(); }
  // What it is, but for who reads it and how long it is kept. REQUIRES:
  // planned().
  HeldSnapshot Describe(uint64_t wall_seconds);
  // Of a refresh, before Pin(): what the target remembers.
  void SetTargetMemory(TargetMemory memory) { memory_ = std::move(memory); }
  bool is_refresh() const { return request_.mode == TransferMode::kRefresh; }
  // Pin() plans this one instead of taking its own.
  void UseSnapshot(std::unique_ptr<Snapshot> snapshot) {
    pinned_.Use(std::move(snapshot));
  }
  // Pin() plans that of `held`, which is planned and continues as if nobody
  // shared it: once it has ended, reading fails with kCancelled.
  void ShareSnapshot(std::shared_ptr<Transfer> held) {
    std::shared_ptr<Snapshot> snapshot = held->pinned_.shared();
    pinned_.Share(std::move(held), std::move(snapshot));
  }

  const Transfer* shares() const { return pinned_.holder(); }
  // Before it is announced: something that the target's operator should know.
  void AddNote(const std::string& note) { own_notes_.push_back(note); }

  // The frames that tell the target about it: Opened, Family..., Ranges...,
  // PlanItems (for a plan), PlanEnd.
  [[nodiscard]] rocksdb::Status Announce(Channel* control, bool resumed);

  // Another control connection of the same target takes over: the one before
  // is closed. kRefused names the field in which what is asked for differs
  // from what was planned; kSnapshotGone when the transfer has ended.
  [[nodiscard]] rocksdb::Status Resume(const OpenRequest& request,
                                       const Hello& target, std::string peer,
                                       Channel* control);
  // What Resume() refuses of a request.
  [[nodiscard]] rocksdb::Status CheckSame(const OpenRequest& request,
                                          const Hello& target) const;
  // `control` is closing. False when another has taken over from it.
  bool Leave(const Channel* control) { return connections_.Leave(control); }
  bool IsControl(const Channel* control) const {
    return connections_.IsControl(control);
  }
  bool has_control() const { return connections_.has_control(); }
  // Families and ranges are there and constant.
  bool planned() const { return planned_; }
  // Whether it outlives a target that is gone.
  bool may_keep() const {
    return request_.purpose == Purpose::kPull &&
           serve_.snapshot_ttl.count() > 0;
  }

  // The place of a lane, which lives as long as the transfer. kCancelled when
  // the transfer has ended already; kRefused for a lane number not granted.
  [[nodiscard]] rocksdb::Status Attach(uint32_t lane, LanePort** port);

  // The first failure wins: it becomes the transfer's end, is sent to the
  // target on the control channel, and stops every lane.
  void Fail(const rocksdb::Status& status, const std::string& where);
  // The same, but what has a lease is left for the next process.
  void Suspend(const rocksdb::Status& status, const std::string& where);
  // The target said that all went well: stops every lane, too.
  void End();
  bool ended() const { return ended_.load(std::memory_order_relaxed); }
  rocksdb::Status status() const;
  std::string error_where() const;

  // Closes all lanes that are attached, and parks none: their target is gone
  // for good.
  void CloseLanes() { connections_.CloseLanes(); }

  // What its lanes sent, range by range.
  TransferLedger* ledger() { return &ledger_; }
  // The totals of every family, over the ranges sent or held so far.
  Finish FinalTotals() const;
  Stats CurrentStats() const;
  TransferReport Report() const;

  const TransferId& id() const { return id_; }
  const OpenRequest& request() const { return request_; }
  const std::string& name() const { return database_.name; }
  uint32_t lanes() const { return connections_.lanes(); }  // granted
  rocksdb::DB* db() const { return pinned_->db(); }
  const std::vector<TransferFamily>& families() const {
    return plan_.families;
  }
  const std::vector<Range>& ranges() const { return plan_.ranges; }
  // The file that a range is; null for one that is rebuilt.
  const CarriedFile* carried(uint32_t range_id) const {
    return plan_.CarriedAt(range_id);
  }
  TransferCounters* counters() { return &counters_; }
  TransferPace* pace() { return &pace_; }
  std::chrono::milliseconds peer_timeout() const {
    return serve_.peer_timeout;
  }
  // Of a lane's sends: a target that is there and takes no byte for so long, on
  // whatever lane, is too slow.
  WaitLimit send_limit() const {
    return {serve_.stall_timeout, Clock::time_point::max(),
            &counters_.sst_bytes};
  }
  const OperatorRegistry& registry() const { return serve_.registry; }
  bool target_takes_entities() const {
    return (target_.features & kFeatureEntities) != 0;
  }
  // Its first one.
  void set_control(Channel* control) { connections_.Join(control); }
  // Who opened it: lanes must come from the same. Set before lanes can come.
  void set_owner(const PeerIdentity* owner) {
    owner_ = owner != nullptr ? *owner : PeerIdentity();
  }
  bool IsOwner(const PeerIdentity* peer) const {
    return (peer != nullptr ? *peer : PeerIdentity()) == owner_;
  }

 private:
  void FailAnd(const rocksdb::Status& status, const std::string& where,
               bool keep);
  [[nodiscard]] rocksdb::Status PinOnce();

  const ServedDatabase database_;
  const ServeOptions& serve_;
  const OpenRequest request_;
  const Hello target_;
  PeerIdentity owner_;
  const std::chrono::steady_clock::time_point started_;
  const TransferId id_;
  const uint32_t plan_lanes_;  // granted first, and planned for
  TargetMemory memory_;        // of a refresh
  std::vector<std::string> own_notes_;  // that are not the plan's

  std::atomic<bool> ended_{false};  // asked by the snapshot, goes after it
  PinnedSnapshot pinned_;
  TransferPlan plan_;
  std::mutex pin_mu_;
  std::atomic<bool> planned_{false};
  uint64_t snapshot_micros_ = 0;
  uint64_t plan_micros_ = 0;
  TransferCounters counters_;
  TransferLedger ledger_;
  TransferPace pace_;

  mutable std::mutex mu_;
  rocksdb::Status status_;   // under mu_
  std::string error_where_;  // under mu_
  TransferConnections connections_;
};

}  // namespace sstferry
