// One transfer at the source: a pinned snapshot, its plan, and the totals that
// its lanes have sent. The snapshot store, the control session of the connected
// target (if any) and the lanes share it.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "format/lease.h"
#include "format/messages.h"
#include "pipeline/serve/pinned_snapshot.h"
#include "pipeline/serve/transfer_connections.h"
#include "pipeline/serve/transfer_ledger.h"
#include "pipeline/serve/transfer_pace.h"
#include "pipeline/serve/transfer_plan.h"
#include "pipeline/snapshot/private_dir.h"
#include "pipeline/wire/channel.h"
#include "sstferry/source.h"

namespace sstferry {

// The state of one transfer.
//
// Threads: Pin() fills the plan before any lane attaches; after that families()
// and parts() are constant. All other members may be called from any thread.
class Transfer {
 public:
  // Reads `shared`; null: takes its own snapshot. If the request resumes a
  // transfer, this object has the id of that transfer.
  Transfer(const ServedDatabase& database, const ServeOptions& serve,
           const OpenRequest& request, const Hello& target,
           std::string peer, ServerShares* shares,
           std::shared_ptr<SharedSnapshot> shared = nullptr);
  // Adopts a snapshot that another process of this source retained with `lease`
  // in `dir`.
  Transfer(const ServedDatabase& database, const ServeOptions& serve,
           const Lease& lease, std::unique_ptr<PrivateDir> dir,
           ServerShares* shares);
  ~Transfer();

  // Pins the snapshot and plans the transfer. Refuses everything that cannot be
  // moved faithfully, as far as that can be known without reading the data. The
  // first caller does the work; concurrent callers wait.
  //   kSnapshotGone  the retained snapshot of another process cannot be used.
  [[nodiscard]] rocksdb::Status Pin();
  // Writes the lease, the first time or again; its time starts now. Does
  // nothing if the snapshot is never retained: if it is of an application's own
  // database, or the time to live is 0.
  [[nodiscard]] rocksdb::Status WriteLease(uint64_t wall_seconds);
  bool has_lease() const { return pinned_.has_lease(); }
  // Returns the private directory with the lease; empty if there is none.
  std::string lease_directory() const { return pinned_.lease_directory(); }
  // Returns true if the snapshot is in that directory. False before it is
  // planned.
  bool IsIn(const std::string& parent) const {
    return planned_ && pinned_->directory().rfind(parent + "/", 0) == 0;
  }
  uint64_t pinned_bytes() const { return pinned_.shared()->pinned_bytes(); }
  const std::shared_ptr<SharedSnapshot>& shared() const {
    return pinned_.shared();
  }
  // Describes the snapshot, except the number of its readers and the time left.
  // REQUIRES: planned().
  RetainedSnapshot Describe(uint64_t wall_seconds);
  bool is_refresh() const { return request_.mode == TransferMode::kRefresh; }
  bool is_clone() const { return request_.mode == TransferMode::kClone; }
  // Adds a note for the target's operator. REQUIRES: before Announce().
  void AddNote(const std::string& note) { own_notes_.push_back(note); }

  // Sends the frames that describe the transfer to the target: Opened,
  // Family..., Parts..., PlanItems (for a plan), PlanEnd.
  [[nodiscard]] rocksdb::Status Announce(Channel* control, bool resumed);

  // Resumes the transfer on another control connection of the same target, and
  // closes the previous one. kRefused names the field in which the request
  // differs from the planned one; kSnapshotGone if the transfer has ended.
  [[nodiscard]] rocksdb::Status Resume(const OpenRequest& request,
                                       const Hello& target, std::string peer,
                                       Channel* control);
  // Closes the control connection in the same way as Resume() closes the
  // previous one: its session does not end the transfer.
  void Dismiss();
  // Checks a request as Resume() does.
  [[nodiscard]] rocksdb::Status CheckSame(const OpenRequest& request,
                                          const Hello& target) const;
  // Called when `control` closes. Returns false if another connection has
  // replaced it.
  bool Leave(const Channel* control) { return connections_.Leave(control); }
  // Called when a lane has waited for the stall timeout. Tells the target why,
  // and closes its lanes. Does nothing if the target connected less than that
  // timeout ago: the wait proves nothing about the new connection. The target
  // may resume. REQUIRES: may_keep().
  void Detach(const rocksdb::Status& status, const std::string& where) {
    connections_.Detach(status, where, serve_.timeouts.stall);
  }
  // Returns why the connected target was detached; OK if it was not.
  rocksdb::Status detached() const { return connections_.detached(); }
  bool IsControl(const Channel* control) const {
    return connections_.IsControl(control);
  }
  bool has_control() const { return connections_.has_control(); }
  // Returns the address and certificate of the target.
  std::string peer() const { return connections_.peer(); }
  // Returns true when families and parts are set and constant.
  bool planned() const { return planned_; }
  // Returns true if the source retains the snapshot while no target is
  // connected.
  bool may_keep() const {
    return request_.purpose == Purpose::kPull &&
           serve_.snapshot_ttl.count() > 0;
  }

  // Returns the port of a lane, which is valid as long as the transfer. Returns
  // kCancelled if the transfer has ended, kRefused for a lane number that was
  // not granted.
  [[nodiscard]] rocksdb::Status Attach(uint32_t lane, LanePort** port);

  // Ends the transfer with a failure. The first failure becomes the end state,
  // is sent to the target on the control connection, and stops every lane.
  void Fail(const rocksdb::Status& status, const std::string& where);
  // Ends the transfer like Fail(), but retains a leased snapshot for later.
  void Suspend(const rocksdb::Status& status, const std::string& where);
  // Suspends a transfer that loses its slot to another one: its target can
  // resume from the lease, even in this process. REQUIRES: has_lease().
  void Park(const rocksdb::Status& status, const std::string& where);
  bool parked() const { return pinned_.parked(); }
  // Returns the status with the paths of the snapshot's files replaced by the
  // paths of the database's files.
  rocksdb::Status InDatabaseNames(const rocksdb::Status& status) const;
  // Ends the transfer after the target reported success, and stops every lane.
  void End();
  bool ended() const { return ended_.load(std::memory_order_relaxed); }
  rocksdb::Status status() const;
  std::string error_where() const;

  // Closes all attached lanes. Called when the target will not connect again.
  void CloseLanes() { connections_.CloseLanes(); }

  // Totals of each part that the lanes have sent.
  TransferLedger* ledger() { return &ledger_; }
  // Checks that symbolic links of the snapshot still lead to the files that
  // were linked (CheckLinkedFiles()).
  [[nodiscard]] rocksdb::Status CheckSnapshotFiles() const;
  // Returns the totals of each family over the parts sent or received so far.
  Finish FinalTotals() const;
  Stats CurrentStats() const;
  TransferReport Report() const;

  // Returns true if the target may request the application's files. In a
  // refresh, only a swap by links requests them; the source does not know
  // whether the refresh is such a swap.
  bool has_other_files() const { return request_.purpose == Purpose::kPull; }
  // Reads one of the application's files, like ReadOtherFile().
  [[nodiscard]] rocksdb::Status ReadOther(const std::string& name,
                                          std::string* contents,
                                          bool* is_private) const;

  // Receives log lines about the transfer, of any level. May be null.
  const LogFunction& log() const { return serve_.log; }
  const TransferId& id() const { return id_; }
  const OpenRequest& request() const { return request_; }
  const std::string& name() const { return database_.name; }
  // Returns false if the transfer reads an archive, or an application's own
  // database in the same process.
  bool has_directory() const { return !database_.directory.empty(); }
  uint32_t lanes() const { return connections_.lanes(); }  // granted
  const Snapshot& snapshot() const { return *pinned_; }
  rocksdb::DB* db() const { return pinned_->db(); }
  const TransferPlan& plan() const { return *plan_; }
  const std::vector<TransferFamily>& families() const {
    return plan_->sources;
  }
  const std::vector<Part>& parts() const { return plan_->parts; }
  // Return the file of a unit, and the location of its bytes.
  const CloneFile& unit_file(const Part& unit) const {
    return plan_->clone->files[unit.file];
  }
  UnitPlace unit_place(const Part& unit) const;
  // Returns true if the clone's files are on this machine; the files of a
  // restore are not.
  bool has_own_files() const { return pinned_->units() == nullptr; }
  // REQUIRES: has_own_files()
  std::string file_path(const CloneFile& file) const;
  // Returns true if no later unit belongs to the same file.
  bool is_last_unit(const Part& unit) const {
    return unit.id + 1 == parts().size() ||
           parts()[unit.id + 1].file != unit.file;
  }
  // Returns the store from which the lanes read parts. REQUIRES: planned().
  PartStore* part_store() const { return parts_; }
  // Counts bytes that were read from the snapshot's files.
  void CountRead(uint64_t bytes) { pinned_.shared()->CountRead(bytes); }
  TransferCounters* counters() { return &counters_; }
  TransferPace* pace() { return &pace_; }
  std::chrono::milliseconds peer_timeout() const {
    return serve_.timeouts.peer;
  }
  // Limit of a lane's sends: a target that answers but receives no byte on any
  // lane for the stall timeout is too slow.
  WaitLimit send_limit() const {
    return {serve_.timeouts.stall, Clock::time_point::max(),
            &counters_.sst_bytes};
  }
  bool target_takes_entities() const {
    return (target_.features & kFeatureEntities) != 0 &&
           (!plan_->application.is_known() ||
            plan_->application >= kReadsIngestedEntities);
  }
  // Sets the first control connection.
  void set_control(Channel* control) { connections_.Join(control); }
  // Sets the identity of the target that opened the transfer; lanes must have
  // the same. REQUIRES: before lanes can connect.
  void set_owner(const PeerIdentity* owner) {
    owner_ = owner != nullptr ? *owner : PeerIdentity();
  }
  const PeerIdentity& owner() const { return owner_; }
  bool IsOwner(const PeerIdentity* peer) const {
    return (peer != nullptr ? *peer : PeerIdentity()) == owner_;
  }

 private:
  void FailAnd(const rocksdb::Status& status, const std::string& where,
               bool keep);
  [[nodiscard]] rocksdb::Status PinOnce();
  [[nodiscard]] rocksdb::Status MakePlan();
  // Ends the transfer's use of its part store.
  void LeaveStore();
  std::string database_dir() const;
  void AddOtherFiles(Opened* opened) const;

  const ServedDatabase database_;
  const ServeOptions& serve_;
  const OpenRequest request_;
  const Hello target_;
  PeerIdentity owner_;
  const std::chrono::steady_clock::time_point started_;
  const TransferId id_;
  const uint32_t plan_lanes_;  // number of lanes first granted; the plan is
                               // made for it
  std::vector<std::string> own_notes_;  // in addition to the plan's notes

  std::atomic<bool> ended_{false};
  PinnedSnapshot pinned_;
  // Shared with transfers that have the same plan; empty until planned.
  std::shared_ptr<const TransferPlan> plan_ =
      std::make_shared<TransferPlan>();
  PartStore* parts_ = nullptr;  // valid as long as plan_
  std::atomic<bool> is_target_{false};  // counted as a target by parts_
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
