// One transfer at the source: a pinned snapshot, its plan, and what its lanes
// have sent. Shared by the snapshot store that keeps it, the control session of
// the target that is connected (if one is), and its lanes.
// Over 250 lines because sessions, lanes and the store all ask one transfer.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "format/message/messages.h"
#include "format/record/lease.h"
#include "pipeline/source/directory/private_dir.h"
#include "pipeline/source/plan/planner.h"
#include "pipeline/source/snapshot/snapshot.h"
#include "pipeline/source/transfer/lane_port.h"
#include "pipeline/source/transfer/transfer_parts.h"
#include "pipeline/wire/channel.h"
#include "pipeline/wire/token_bucket.h"
#include "rocksdb/options.h"
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
  bool has_lease() const { return has_lease_; }
  // Whether its snapshot is (or will be) in that directory.
  bool IsIn(const std::string& parent) const {
    return planned_ && snapshot_->directory().rfind(parent + "/", 0) == 0;
  }
  uint64_t pinned_bytes() const { return pinned_bytes_; }
  // Of a planned one.
  const std::string& directory() const { return snapshot_->directory(); }
  // What it is, but for who reads it and how long it is kept. REQUIRES:
  // planned().
  HeldSnapshot Describe(uint64_t wall_seconds);
  // Of a refresh, before Pin(): what the target remembers.
  void SetTargetMemory(TargetMemory memory) { memory_ = std::move(memory); }
  bool is_refresh() const { return request_.mode == TransferMode::kRefresh; }
  // Pin() plans this one instead of taking its own.
  void UseSnapshot(std::unique_ptr<Snapshot> snapshot) {
    snapshot_ = std::move(snapshot);
  }
  // Pin() plans that of `held`, which is planned and goes on as if nobody
  // shared it: once it has ended, reading fails with kCancelled.
  void ShareSnapshot(std::shared_ptr<Transfer> held) {
    snapshot_ = held->snapshot_;
    notes_ = snapshot_->notes();
    shares_ = std::move(held);
  }

  const Transfer* shares() const { return shares_.get(); }
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
  bool Leave(const Channel* control);
  bool IsControl(const Channel* control) const;
  bool has_control() const { return has_control_; }
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
  // Waits for Fail() or End(); false when neither came in time.
  bool AwaitEnd(std::chrono::milliseconds limit);
  rocksdb::Status status() const;
  std::string error_where() const;

  // Closes all lanes that are attached, and parks none: their target is gone
  // for good.
  void CloseLanes();

  // A range was sent to its end; `held` is what the target had of it before.
  void RecordRange(const RangeEnd& end, const struct Totals& held);
  // What the target holds without having got it from this process. kCorrupt
  // for a range that is not planned, and where this process counted otherwise.
  [[nodiscard]] rocksdb::Status RecordHeld(const Held& held);
  // The totals of every family, over the ranges sent or held so far.
  Finish Totals() const;
  // Ranges that were neither sent to their end nor are held.
  size_t UnsentRanges() const;
  Stats CurrentStats() const;
  TransferReport Report() const;

  const TransferId& id() const { return id_; }
  const OpenRequest& request() const { return request_; }
  const std::string& name() const { return database_.name; }
  uint32_t lanes() const;  // granted
  rocksdb::DB* db() const { return snapshot_->db(); }
  const std::vector<TransferFamily>& families() const { return families_; }
  const std::vector<Range>& ranges() const { return ranges_; }
  // The file that a range is; null for one that is rebuilt.
  const CarriedFile* carried(uint32_t range_id) const {
    const auto found = carried_.find(range_id);
    return found == carried_.end() ? nullptr : &found->second;
  }
  TransferCounters* counters() { return &counters_; }
  TokenBucket* rate_bucket() { return &rate_bucket_; }
  TokenBucket* wire_bucket() { return wire_bucket_; }
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
  // What the target asked for, where its Hello allows it.
  WireCompression compression() const { return compression_; }
  int compression_level() const { return compression_level_; }
  // Whether lanes compress now.
  bool compressing() const {
    return compressing_.load(std::memory_order_relaxed);
  }
  void set_compressing(bool on) { compressing_ = on; }
  // Its first one.
  void set_control(Channel* control);
  // Who opened it: lanes must come from the same. Set before lanes can come.
  void set_owner(const PeerIdentity* owner) {
    owner_ = owner != nullptr ? *owner : PeerIdentity();
  }
  bool IsOwner(const PeerIdentity* peer) const {
    return (peer != nullptr ? *peer : PeerIdentity()) == owner_;
  }

 private:
  // A range that the target has, or will have once it has got what was sent.
  struct Covered {
    std::optional<struct Totals> totals;
    bool sent = false;  // by this process
  };

  void SetPace(const OpenRequest& request, const Hello& target);
  void FailAnd(const rocksdb::Status& status, const std::string& where,
               bool keep);
  [[nodiscard]] rocksdb::Status PinOnce();
  [[nodiscard]] rocksdb::Status AdoptSnapshot();
  SnapshotOptions snapshot_options();
  // Whether it outlives this transfer; one that is shared is not ours to keep.
  void KeepSnapshot(bool keep);
  Digest128 PlanDigest() const;
  [[nodiscard]] rocksdb::Status PinSnapshot();
  [[nodiscard]] rocksdb::Status CheckNames() const;
  [[nodiscard]] rocksdb::Status DescribeFamilies();
  [[nodiscard]] rocksdb::Status PlanFamilies();
  [[nodiscard]] rocksdb::Status PlanFilesOf(size_t index);
  [[nodiscard]] rocksdb::Status DecideCarryingOf(size_t index);
  [[nodiscard]] rocksdb::Status CutFamilyAt(size_t index,
                                            uint64_t target_bytes);
  Backings BackingsOf(size_t index) const;
  void CompareFamilyAt(size_t index);
  uint64_t BytesToRebuild(const TransferFamily& family) const;
  struct FilePart {
    const FilePlan* file = nullptr;
    uint64_t of = 1;  // so many parts
  };
  std::vector<std::vector<FilePart>> PartsOf(
      const TransferFamily& family) const;
  void AddUnchanged(const PlanSegment& segment,
                    const std::vector<FilePart>& files,
                    TransferFamily* family);
  [[nodiscard]] rocksdb::Status CutSegment(const PlanSegment& segment,
                                           const std::vector<FilePart>& files,
                                           uint64_t target_bytes,
                                           TransferFamily* family);
  void AddCovers(const PlanSegment& segment, size_t first_range,
                 const Backings& backings);
  void AddSegmentItem(const TransferFamily& family,
                      const PlanSegment& segment, size_t first_range);
  [[nodiscard]] rocksdb::Status BoundCarried(FamilyPlan* plan);
  void AddPlanItems(const TransferFamily& family);
  // Chunks may have blocks that only RocksDB 11.1 and later reads.
  bool target_reads_marked_blocks() const {
    return (target_.features & kFeatureMarkedBlocks) != 0;
  }
  PlannerOptions planner_options() const;
  PlannerFamily planner_family(const TransferFamily& family) const;
  [[nodiscard]] rocksdb::Status ChooseFormat(TransferFamily* family);
  [[nodiscard]] rocksdb::Status SendPlanItems(Channel* control);
  void StopLanes();  // under mu_

  const ServedDatabase database_;
  const ServeOptions& serve_;
  const OpenRequest request_;
  const Hello target_;
  PeerIdentity owner_;
  TokenBucket* const wire_bucket_;
  const std::chrono::steady_clock::time_point started_;
  const TransferId id_;
  const uint32_t plan_lanes_;  // granted first, and planned for
  std::optional<Lease> adopted_;
  std::unique_ptr<PrivateDir> adopted_dir_;  // until the snapshot has it

  // Asked and counted by the snapshot: they go after it.
  std::atomic<bool> ended_{false};
  std::atomic<uint64_t> read_bytes_{0};
  std::shared_ptr<Transfer> shares_;  // whose snapshot it is; null: its own
  std::shared_ptr<Snapshot> snapshot_;
  std::vector<NamedValue> database_options_;
  std::vector<TransferFamily> families_;
  std::vector<Range> ranges_;
  std::unordered_map<uint32_t, CarriedFile> carried_;  // by range id
  uint64_t carried_files_ = 0;
  std::vector<PlanItem> items_;  // only for a plan
  TargetMemory memory_;          // of a refresh
  std::vector<Cover> covers_;    // what the target is to remember
  uint64_t nonce_ = 0;           // of this plan
  std::vector<std::string> notes_;
  std::vector<std::string> own_notes_;  // that are not the snapshot's
  std::mutex pin_mu_;
  std::atomic<bool> planned_{false};
  uint64_t pinned_bytes_ = 0;
  std::mutex lease_mu_;
  uint64_t created_seconds_ = 0;         // under lease_mu_
  std::atomic<bool> has_lease_{false};
  uint64_t snapshot_micros_ = 0;
  uint64_t plan_micros_ = 0;
  TransferCounters counters_;
  TokenBucket rate_bucket_;
  std::atomic<WireCompression> compression_{WireCompression::kNone};
  std::atomic<int> compression_level_{0};
  std::atomic<bool> compressing_{false};

  std::atomic<bool> has_control_{false};  // what control_ says

  mutable std::mutex mu_;
  std::condition_variable has_ended_;
  rocksdb::Status status_;         // under mu_
  std::string error_where_;        // under mu_
  uint32_t lanes_ = 0;             // under mu_
  std::string peer_;               // under mu_
  Channel* control_ = nullptr;     // under mu_; null: no target is connected
  const std::vector<std::unique_ptr<LanePort>> ports_;  // by lane number
  std::vector<Covered> covered_;   // under mu_, by range id
};

}  // namespace sstferry
