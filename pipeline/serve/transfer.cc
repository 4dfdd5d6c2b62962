#include "pipeline/serve/transfer.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "format/for_each_batch.h"
#include "format/limits.h"
#include "pipeline/base/known_fault.h"
#include "pipeline/base/random_id.h"
#include "pipeline/base/rocksdb_compat.h"
#include "pipeline/base/this_machine.h"
#include "pipeline/options/directories.h"
#include "pipeline/serve/clone_planner.h"
#include "pipeline/serve/transfer_planner.h"
#include "pipeline/snapshot/other_files.h"
#include "pipeline/snapshot/retained_snapshots.h"
#include "pipeline/snapshot/posix_files.h"

namespace sstferry {
namespace {

using rocksdb::Slice;
using rocksdb::Status;
using std::chrono::steady_clock;

uint32_t GrantedLanes(const OpenRequest& request, const ServeOptions& serve) {
  return std::clamp(request.lanes, 1u, std::min(serve.max_lanes, kMaxLanes));
}

// Returns the key of the plan for a request. Requests with equal keys get the
// same plan of a snapshot. The key contains everything that the plan depends
// on, and nothing else; for example, it does not contain the target's
// directory.
std::string PlanKey(const OpenRequest& request, const Hello& target,
                    uint32_t plan_lanes) {
  OpenRequest asked;
  asked.database = request.database;
  asked.purpose = request.purpose;
  asked.mode = request.mode;
  asked.families = request.families;
  asked.interval = request.interval;
  asked.chunk_bytes = request.chunk_bytes;
  asked.lanes = plan_lanes;
  asked.application = request.application;
  Hello can;
  can.features = target.features;
  can.max_format_version = target.max_format_version;
  std::string key;
  Encode(asked, &key);
  Encode(can, &key);
  return key;
}

}  // namespace

Transfer::Transfer(const ServedDatabase& database, const ServeOptions& serve,
                   const OpenRequest& request, const Hello& target,
                   std::string peer, ServerShares* shares,
                   std::shared_ptr<SharedSnapshot> shared)
    : database_(database),
      serve_(serve),
      request_(request),
      target_(target),
      started_(steady_clock::now()),
      id_(request.snapshot_use == SnapshotUse::kResume ? request.named_transfer
                                                       : RandomId()),
      plan_lanes_(GrantedLanes(request, serve)),
      pinned_(shared != nullptr ? std::move(shared)
                                : std::make_shared<SharedSnapshot>(
                                      database, serve, request)),
      pace_(shares, database.directory),
      connections_(plan_lanes_, std::move(peer)) {
  pace_.Set(request, target);
}

Transfer::Transfer(const ServedDatabase& database, const ServeOptions& serve,
                   const Lease& lease, std::unique_ptr<PrivateDir> dir,
                   ServerShares* shares)
    : database_(database),
      serve_(serve),
      request_(lease.request),
      target_(lease.target),
      owner_{lease.owner_subject, lease.owner_names},
      started_(steady_clock::now()),
      id_(lease.transfer_id),
      plan_lanes_(lease.plan_lanes),
      pinned_(std::make_shared<SharedSnapshot>(database, serve, lease,
                                               std::move(dir))),
      pace_(shares, database.directory),
      connections_(plan_lanes_, "") {
  pace_.Set(request_, target_);
}

Transfer::~Transfer() {
  LeaveStore();
}

Status Transfer::Pin() {
  std::lock_guard<std::mutex> lock(pin_mu_);
  if (planned_) {
    return Status::OK();
  }
  return ended() ? MakeStatus(EndState::kCancelled,
                              "the transfer ended before its snapshot was "
                              "pinned")
                 : PinOnce();
}

Status Transfer::PinOnce() {
  const steady_clock::time_point start = steady_clock::now();
  SharedSnapshot* const shared = pinned_.shared().get();
  // A verify may read a replica that has a known fault.
  Status status = request_.purpose == Purpose::kVerify
                      ? Status::OK()
                      : CheckNoKnownFault(database_dir());
  if (status.ok() && is_clone()) status = CheckCloneRequest(request_);
  if (status.ok()) status = shared->Take();
  snapshot_micros_ = MicrosSince(start);
  if (status.ok()) status = MakePlan();
  if (status.ok() && shared->adopted() != nullptr &&
      shared->adopted()->transfer_id == id_ &&
      !(plan_->Digest() == shared->adopted()->plan)) {
    status = MakeStatus(EndState::kSnapshotGone,
                        "the plan of the retained snapshot differs from the "
                        "one that was recorded with it");
  }
  plan_micros_ = MicrosSince(start) - snapshot_micros_;
  std::lock_guard<std::mutex> lock(mu_);
  if (status.ok()) {
    ledger_.Begin(plan_->parts.size());
    planned_ = true;
  }
  return status;
}

// Makes the plan, or uses the plan of another transfer. A plan for a refresh is
// not shared, because it depends on the column families of the target.
Status Transfer::MakePlan() {
  const auto make = [this](TransferPlan* plan) {
    plan->unknown_options = FindUnknownOptions(pinned_->options_text());
    if (is_clone()) {
      RETURN_IF_ERROR(PlanClone(*pinned_, request_, plan));
      return CheckPlanSize(*plan);
    }
    const PlanOrder asked = {request_, target_, plan_lanes_,
                             [this] { return ended(); }};
    RETURN_IF_ERROR(TransferPlanner(*pinned_, asked,
                                    pace_.shares()->make_refresh(), plan)
                        .Run());
    return CheckPlanSize(*plan);
  };
  std::shared_ptr<const SharedPlan> shared;
  RETURN_IF_ERROR(pinned_.shared()->Plan(
      is_refresh() ? std::string() : PlanKey(request_, target_, plan_lanes_),
      make, request_.chunk_bytes, pace_.shares()->spool_budget(), &shared));
  parts_ = shared->parts.get();
  plan_ = std::shared_ptr<const TransferPlan>(shared, &shared->plan);
  parts_->AddTarget();
  is_target_ = true;
  return Status::OK();
}

void Transfer::LeaveStore() {
  if (is_target_.exchange(false)) {
    parts_->RemoveTarget();
  }
}

Status Transfer::CheckSame(const OpenRequest& request,
                           const Hello& target) const {
  const auto differs = [](const std::string& field) {
    return MakeStatus(EndState::kRefused,
                      "resume: the target asks with another " + field +
                          " than when the transfer was opened; --restart "
                          "begins a new transfer");
  };
  constexpr uint64_t kPlanFeatures = kFeatureEntities | kFeatureMarkedBlocks;
  if (request.database != request_.database) return differs("database");
  if (request.purpose != request_.purpose) return differs("purpose");
  if (request.families != request_.families) return differs("families");
  if (!(request.interval == request_.interval)) return differs("interval");
  if (request.chunk_bytes != request_.chunk_bytes) {
    return differs("chunk_bytes");
  }
  if (request.application != request_.application) {
    return differs("application");
  }
  if (request.mode != request_.mode) return differs("mode");
  if ((target.features & kPlanFeatures) != (target_.features & kPlanFeatures)) {
    return differs("features");
  }
  if (target.max_format_version != target_.max_format_version) {
    return differs("max_format_version");
  }
  return Status::OK();
}

Status Transfer::Resume(const OpenRequest& request, const Hello& target,
                        std::string peer, Channel* control) {
  RETURN_IF_ERROR(CheckSame(request, target));
  std::lock_guard<std::mutex> lock(mu_);
  if (ended()) {
    return MakeStatus(EndState::kSnapshotGone,
                      "transfer " + ToHex(id_) + " has just ended");
  }
  pace_.Set(request, target);
  connections_.Replace(control, std::move(peer),
                       GrantedLanes(request, serve_));
  return Status::OK();
}

void Transfer::Dismiss() {
  connections_.Replace(/*control=*/nullptr, connections_.peer(), lanes());
}

std::string Transfer::database_dir() const {
  return database_.db != nullptr ? database_.db->GetName()
                                 : database_.directory;
}

Status Transfer::ReadOther(const std::string& name, std::string* contents,
                           bool* is_private) const {
  return ReadOtherFile(database_dir(), name, contents, is_private);
}

// Adds the list of the application's own files to *opened. If they cannot be
// listed, adds a note; the transfer then continues without these files.
void Transfer::AddOtherFiles(Opened* opened) const {
  if (request_.purpose == Purpose::kVerify || database_dir().empty()) {
    return;
  }
  uint64_t unlisted = 0;
  const Status status =
      ListOtherFiles(database_dir(), &opened->other_files, &unlisted);
  std::string note;
  if (!status.ok()) {
    note = "the application's other files are not sent: " + MessageOf(status);
  } else if (unlisted > 0) {
    note = "the application's other files: only the first " +
           std::to_string(kMaxOtherFiles) + " in " + database_dir() +
           " are sent, " + std::to_string(unlisted) + " more are not sent";
  }
  if (!note.empty() && opened->notes.size() < kMaxNotes) {
    opened->notes.push_back(note);
  }
}

Status Transfer::Announce(Channel* control, bool resumed) {
  Opened opened = plan_->opened;
  DescribeSource(*pinned_, *plan_, &opened);
  opened.transfer_id = id_;
  opened.lanes = lanes();
  opened.resumed = resumed;
  opened.lease_seconds = may_keep() ? serve_.snapshot_ttl.count() : 0;
  opened.notes = JoinNotes(std::move(opened.notes), own_notes_);
  opened.snapshot_micros = snapshot_micros_;
  opened.plan_micros = plan_micros_;
  std::vector<std::string> dirs;
  if (database_.db != nullptr) {
    dirs = DirectoriesOf(database_.db);
  } else if (has_directory()) {
    // Ignores errors. If OPTIONS do not name a directory for the WALs, the
    // snapshot found the WALs in the database directory.
    DirectoriesOf(database_.directory, &dirs).PermitUncheckedError();
  }
  if (!database_.wal_dir.empty()) {
    dirs.push_back(database_.wal_dir);
  }
  opened.places = PlacesOf(dirs);
  opened.taken_seconds = pinned_.shared()->taken_seconds();
  opened.unlogged_since_seconds = pinned_.shared()->unlogged_since_seconds();
  AddOtherFiles(&opened);
  return EncodePlan(opened, *plan_,
                    [control](FrameType type, const std::string& payload) {
                      return control->Send(type, payload);
                    });
}

UnitPlace Transfer::unit_place(const Part& unit) const {
  return has_own_files() ? UnitPlace{file_path(unit_file(unit))}
                         : UnitPlace{{}, pinned_->units()};
}

std::string Transfer::file_path(const CloneFile& file) const {
  return pinned_->own_path() + "/db/" + CloneFileName(file);
}

Status Transfer::WriteLease(uint64_t wall_seconds) {
  if (!planned_) {
    // There was no free slot, so the transfer was not planned. It has a lease
    // only if its snapshot was adopted.
    return pinned_.RenewLease(wall_seconds);
  }
  // A refresh in place needs no lease, because it cannot resume after its
  // source has restarted.
  if (!may_keep() || is_refresh() || database_.directory.empty()) {
    return Status::OK();
  }
  Lease lease;
  std::error_code error;
  lease.transfer_id = id_;
  lease.database = database_.name;
  lease.directory =
      std::filesystem::canonical(database_.directory, error).string();
  lease.request = request_;
  lease.target = target_;
  lease.owner_subject = owner_.subject;
  lease.owner_names = owner_.names;
  lease.plan_lanes = plan_lanes_;
  lease.plan = plan_->Digest();
  lease.ttl_seconds = std::min<uint64_t>(
      static_cast<uint64_t>(serve_.snapshot_ttl.count()), kMaxLeaseSeconds);
  lease.readers = has_control() ? 1 : 0;
  return pinned_.WriteLease(std::move(lease), wall_seconds);
}

RetainedSnapshot Transfer::Describe(uint64_t wall_seconds) {
  RetainedSnapshot retained;
  retained.transfer_id = id_;
  retained.database = database_.name;
  retained.snapshot_sequence = pinned_->sequence();
  retained.pinned_bytes = pinned_bytes();
  retained.target = ShownTarget(request_.target, owner_.subject);
  if (retained.target.empty()) {
    retained.target = peer();
  }
  retained.age_seconds =
      wall_seconds -
      std::min(wall_seconds, pinned_.shared()->taken_seconds());
  return retained;
}

Status Transfer::Attach(uint32_t lane, LanePort** port) {
  if (ended()) {
    return MakeStatus(EndState::kCancelled, "lane: the transfer has ended");
  }
  return connections_.Attach(lane, port);
}

void Transfer::Fail(const Status& status, const std::string& where) {
  FailAnd(status, where, false);
}

void Transfer::Suspend(const Status& status, const std::string& where) {
  FailAnd(status, where, true);
}

void Transfer::Park(const Status& status, const std::string& where) {
  pinned_.Park().PermitUncheckedError();
  FailAnd(status, where, true);
}

Status Transfer::InDatabaseNames(const Status& status) const {
  const std::string dir = database_dir();
  return dir.empty() ? status
                     : sstferry::InDatabaseNames(
                           status, planned_ ? pinned_->own_path() + "/db/" : "",
                           dir);
}

void Transfer::FailAnd(const Status& status, const std::string& where,
                       bool keep) {
  std::lock_guard<std::mutex> lock(mu_);
  if (ended_.exchange(true)) {
    return;
  }
  status_ = status;
  error_where_ = where;
  // Also keeps an adopted snapshot that was cancelled before it was planned. It
  // can be adopted again.
  pinned_.Leave(keep ||
                (!planned_ && EndStateOf(status) == EndState::kCancelled));
  LeaveStore();
  pace_.Close();
  connections_.End(status, where);
}

void Transfer::End() {
  std::lock_guard<std::mutex> lock(mu_);
  if (!ended_.exchange(true)) {
    pinned_.Leave(/*keep=*/false);
    LeaveStore();
    pace_.Close();
    connections_.StopLanes();
  }
}

Status Transfer::status() const {
  std::lock_guard<std::mutex> lock(mu_);
  return status_;
}

std::string Transfer::error_where() const {
  std::lock_guard<std::mutex> lock(mu_);
  return error_where_;
}

Status Transfer::CheckSnapshotFiles() const {
  return has_own_files() ? CheckLinkedFiles(pinned_->own_path() + "/db")
                         : Status::OK();
}

Finish Transfer::FinalTotals() const {
  Finish finish;
  finish.families = ledger_.FamilyTotals(*plan_);
  finish.stats = CurrentStats();
  return finish;
}

Stats Transfer::CurrentStats() const {
  Stats stats;
  stats.entries = counters_.entries;
  stats.sst_bytes = counters_.sst_bytes;
  stats.wire_bytes = counters_.wire_bytes;
  stats.read_build_micros = counters_.stages.micros(Stage::kReadBuild);
  stats.send_wait_micros = counters_.stages.micros(Stage::kSendWait);
  stats.idle_micros = counters_.stages.micros(Stage::kIdle);
  stats.read_bytes = pinned_.shared()->read_bytes();
  stats.send_blocked_micros = counters_.send_blocked_micros;
  stats.held_cpu_micros = counters_.stages.micros(Stage::kHeldCpu);
  stats.held_io_micros = counters_.stages.micros(Stage::kHeldIo);
  stats.held_latency_micros = counters_.stages.micros(Stage::kHeldLatency);
  return stats;
}

TransferReport Transfer::Report() const {
  TransferReport report;
  report.transfer_id = ToHex(id_);
  report.name = database_.name;
  report.peer = connections_.peer();
  report.status = status();
  report.error_where = error_where();
  report.entries = counters_.entries;
  report.sst_bytes = counters_.sst_bytes;
  report.wire_bytes = counters_.wire_bytes;
  report.seconds = static_cast<double>(MicrosSince(started_)) / 1e6;
  report.connected = connections_.has_control();
  if (planned_) {
    report.stage_seconds["snapshot"] = snapshot_micros_ / 1e6;
    report.stage_seconds["plan"] = plan_micros_ / 1e6;
    report.unknown_options = plan_->unknown_options.count;
  }
  const StageTotals& stages = counters_.stages;
  report.stage_seconds["read_build"] = stages.micros(Stage::kReadBuild) / 1e6;
  report.stage_seconds["send_wait"] = stages.micros(Stage::kSendWait) / 1e6;
  report.stage_seconds["held_cpu"] = stages.micros(Stage::kHeldCpu) / 1e6;
  report.stage_seconds["held_io"] = stages.micros(Stage::kHeldIo) / 1e6;
  report.stage_seconds["held_latency"] =
      stages.micros(Stage::kHeldLatency) / 1e6;
  report.stage_seconds["idle"] = stages.micros(Stage::kIdle) / 1e6;
  return report;
}

}  // namespace sstferry
