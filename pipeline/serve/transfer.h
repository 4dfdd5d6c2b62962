// One transfer at the source: its pinned snapshot, its plan, and the totals
// that its lanes have sent. The snapshot store, the lanes and the control
// session of the connected target share it.
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
// Threads: Pin() sets families() and parts() before any lane attaches; later
//   they do not change. All other members may be called from any thread.
class Transfer {
 public:
  // Makes a transfer that reads the snapshot `shared`; if it is null, the
  // transfer takes its own snapshot. If the request resumes an earlier
  // transfer, the new one gets the same id.
  Transfer(const ServedDatabase& database, const ServeOptions& serve,
           const OpenRequest& request, const Hello& target,
           std::string peer, ServerShares* shares,
           std::shared_ptr<SharedSnapshot> shared = nullptr);
  // Makes a transfer that adopts the snapshot in the directory `dir`. Another
  // process of this source has retained it with `lease`.
  Transfer(const ServedDatabase& database, const ServeOptions& serve,
           const Lease& lease, std::unique_ptr<PrivateDir> dir,
           ServerShares* shares);
  ~Transfer();

  // Takes the snapshot and plans the transfer, if no other caller has done so.
  // If another caller is doing it, waits for that. Refuses what cannot be
  // copied exactly, as far as this is known without reading the data.
  //   kSnapshotGone  the retained snapshot of another process cannot be used
  [[nodiscard]] rocksdb::Status Pin();
  // Writes the transfer's lease, which lasts --snapshot-ttl from now, or
  // replaces it. Does nothing if the snapshot is never retained: in a refresh
  // in place, a plan or a verify, for an archive or a database that is open in
  // this process, or if --snapshot-ttl is 0.
  [[nodiscard]] rocksdb::Status WriteLease(uint64_t wall_seconds);
  bool has_lease() const { return pinned_.has_lease(); }
  // Returns the directory that contains the lease. Returns an empty path if
  // there is no lease.
  std::string lease_directory() const { return pinned_.lease_directory(); }
  // Returns true if the snapshot is in the directory `parent`, and false before
  // the transfer is planned.
  bool IsIn(const std::string& parent) const {
    return planned_ && pinned_->directory().rfind(parent + "/", 0) == 0;
  }
  uint64_t pinned_bytes() const { return pinned_.shared()->pinned_bytes(); }
  const std::shared_ptr<SharedSnapshot>& shared() const {
    return pinned_.shared();
  }
  // Describes the snapshot for a list. The caller sets the number of readers
  // and the time until the lease ends. REQUIRES: planned().
  RetainedSnapshot Describe(uint64_t wall_seconds);
  bool is_refresh() const { return request_.mode == TransferMode::kRefresh; }
  bool is_clone() const { return request_.mode == TransferMode::kClone; }
  // Adds a note for the target's operator. REQUIRES: Announce() was not called.
  void AddNote(const std::string& note) { own_notes_.push_back(note); }

  // Sends the plan to the target in these frames: Opened, Family..., Parts...,
  // PlanItems (only if the request is for a plan), PlanEnd.
  [[nodiscard]] rocksdb::Status Announce(Channel* control, bool resumed);

  // Called when the target resumes the transfer with a new control connection.
  // Closes the previous connection.
  //   kRefused       the new request differs; the message names the field
  //   kSnapshotGone  the transfer has ended
  [[nodiscard]] rocksdb::Status Resume(const OpenRequest& request,
                                       const Hello& target, std::string peer,
                                       Channel* control);
  // Closes the control connection. As after Resume(), the session of the closed
  // connection does not end the transfer.
  void Dismiss();
  // Returns kRefused if the request differs from that of this transfer.
  [[nodiscard]] rocksdb::Status CheckSame(const OpenRequest& request,
                                          const Hello& target) const;
  // Removes the connection `control`, which closes. Returns false if another
  // connection has replaced it.
  bool Leave(const Channel* control) { return connections_.Leave(control); }
  // Called when a lane has waited for its target for the stall timeout. Tells
  // the target why, and closes its lanes. The target may resume. Does nothing
  // if the target connected less than the stall timeout ago, because the lane
  // may have waited on an earlier connection. REQUIRES: may_keep().
  void Detach(const rocksdb::Status& status, const std::string& where) {
    connections_.Detach(status, where, serve_.timeouts.stall);
  }
  // Returns why Detach() closed the lanes of the connected target. Returns OK
  // if they were not closed.
  rocksdb::Status detached() const { return connections_.detached(); }
  bool IsControl(const Channel* control) const {
    return connections_.IsControl(control);
  }
  bool has_control() const { return connections_.has_control(); }
  // Returns the address of the target and the subject of its certificate.
  std::string peer() const { return connections_.peer(); }
  // Returns true if families() and parts() are set. They do not change any more
  // then.
  bool planned() const { return planned_; }
  // Returns true if the source retains the snapshot while the target is
  // disconnected.
  bool may_keep() const {
    return request_.purpose == Purpose::kPull &&
           serve_.snapshot_ttl.count() > 0;
  }

  // Sets *port to the port of a lane, which is valid as long as the transfer.
  //   kCancelled  the transfer has ended
  //   kRefused    the target was not granted a lane with this number
  [[nodiscard]] rocksdb::Status Attach(uint32_t lane, LanePort** port);

  // Ends the transfer with a failure. The first failure becomes the end state
  // of the transfer. Sends the end state to the target and stops every lane.
  void Fail(const rocksdb::Status& status, const std::string& where);
  // Ends the transfer like Fail(), but leaves a snapshot with a lease on the
  // disk.
  void Suspend(const rocksdb::Status& status, const std::string& where);
  // Suspends a transfer that has lost its slot to another transfer. Its target
  // can resume it from the lease, also while this process runs. REQUIRES:
  // has_lease().
  void Park(const rocksdb::Status& status, const std::string& where);
  bool parked() const { return pinned_.parked(); }
  // Replaces the paths of the snapshot's files in the message of `status` by
  // the paths of the database's files.
  rocksdb::Status InDatabaseNames(const rocksdb::Status& status) const;
  // Called after the target has reported success. Ends the transfer and stops
  // every lane.
  void End();
  bool ended() const { return ended_.load(std::memory_order_relaxed); }
  rocksdb::Status status() const;
  std::string error_where() const;

  // Closes all attached lanes. Called when the target will not connect lanes
  // again.
  void CloseLanes() { connections_.CloseLanes(); }

  // Records the totals of each part that was sent.
  TransferLedger* ledger() { return &ledger_; }
  // A file that cannot be hard-linked is a symbolic link in the snapshot.
  // Checks that these links still lead to the same files (see
  // CheckLinkedFiles()).
  [[nodiscard]] rocksdb::Status CheckSnapshotFiles() const;
  // Returns for each family the totals of the parts that were sent or that the
  // target already has.
  Finish FinalTotals() const;
  Stats CurrentStats() const;
  TransferReport Report() const;

  // Returns true if the target may request the application's own files. This is
  // the case in every pull: a refresh needs the files only if it is a swap by
  // links, but the source does not know this.
  bool has_other_files() const { return request_.purpose == Purpose::kPull; }
  // Reads one of the application's own files, like ReadOtherFile().
  [[nodiscard]] rocksdb::Status ReadOther(const std::string& name,
                                          std::string* contents,
                                          bool* is_private) const;

  // Returns the function that gets the log lines of the transfer. May be null.
  const LogFunction& log() const { return serve_.log; }
  const TransferId& id() const { return id_; }
  const OpenRequest& request() const { return request_; }
  const std::string& name() const { return database_.name; }
  // Returns false if the transfer reads an archive, or a database that is open
  // in this process.
  bool has_directory() const { return !database_.directory.empty(); }
  uint32_t lanes() const { return connections_.lanes(); }  // granted
  const Snapshot& snapshot() const { return *pinned_; }
  rocksdb::DB* db() const { return pinned_->db(); }
  const TransferPlan& plan() const { return *plan_; }
  const std::vector<TransferFamily>& families() const {
    return plan_->sources;
  }
  const std::vector<Part>& parts() const { return plan_->parts; }
  // unit_file() returns the file of a unit. unit_place() returns where the
  // bytes of the unit are.
  const CloneFile& unit_file(const Part& unit) const {
    return plan_->clone->files[unit.file];
  }
  UnitPlace unit_place(const Part& unit) const;
  // Returns true if the clone's files are on this machine. The files of an
  // archive are not.
  bool has_own_files() const { return pinned_->units() == nullptr; }
  // Returns the path of a file in the snapshot. REQUIRES: has_own_files().
  std::string file_path(const CloneFile& file) const;
  // Returns true if `unit` is the last unit of its file.
  bool is_last_unit(const Part& unit) const {
    return unit.id + 1 == parts().size() ||
           parts()[unit.id + 1].file != unit.file;
  }
  // Returns the store from which the lanes read parts. REQUIRES: planned().
  PartStore* part_store() const { return parts_; }
  // Adds to the number of bytes that were read from the snapshot's files.
  void CountRead(uint64_t bytes) { pinned_.shared()->CountRead(bytes); }
  TransferCounters* counters() { return &counters_; }
  TransferPace* pace() { return &pace_; }
  std::chrono::milliseconds peer_timeout() const {
    return serve_.timeouts.peer;
  }
  // Returns the limit for one send on a lane. The target is too slow if it
  // answers, but receives no byte on any lane for the stall timeout.
  WaitLimit send_limit() const {
    return {serve_.timeouts.stall, Clock::time_point::max(),
            &counters_.sst_bytes};
  }
  bool target_takes_entities() const {
    return (target_.features & kFeatureEntities) != 0 &&
           (!plan_->application.is_known() ||
            plan_->application >= kReadsIngestedEntities);
  }
  // Sets the first control connection of the transfer.
  void set_control(Channel* control) { connections_.Join(control); }
  // Sets the identity of the target that opened the transfer. Its data
  // connections (lanes) must have the same identity. REQUIRES: the target does
  // not know the transfer's id yet, so it cannot connect a lane.
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
  // Tells the part store that this transfer no longer reads from it.
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
  std::vector<std::string> own_notes_;  // added to the notes of the plan

  std::atomic<bool> ended_{false};
  PinnedSnapshot pinned_;
  // Transfers with the same plan share it. Empty until planned_ is true.
  std::shared_ptr<const TransferPlan> plan_ =
      std::make_shared<TransferPlan>();
  PartStore* parts_ = nullptr;  // valid as long as plan_
  std::atomic<bool> is_target_{false};  // parts_ counts this target
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
