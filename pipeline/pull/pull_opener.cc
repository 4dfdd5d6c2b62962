#include "pipeline/pull/pull_opener.h"

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <limits>
#include <set>

#include "format/quantity.h"
#include "pipeline/base/last_transfer.h"
#include "pipeline/disk/durable.h"
#include "pipeline/disk/free_space.h"
#include "pipeline/disk/target_directories.h"
#include "pipeline/options/replica_options.h"
#include "pipeline/pull/plan_check.h"
#include "pipeline/pull/pull_identity.h"
#include "pipeline/pull/replica.h"

namespace sstferry {

using rocksdb::Status;

namespace {

// Maximum time that lanes wait for free space.
constexpr std::chrono::milliseconds kSpaceWait{60'000};

// Minimum difference between the clocks that is reported.
constexpr uint64_t kWrongSourceClockSeconds = 5;

uint64_t ClockSeconds() {
  return static_cast<uint64_t>(std::max<std::time_t>(std::time(nullptr), 0));
}

// Compares the source's clock with this machine's. The source took the snapshot
// before it answered. If the snapshot is new, the source took it after this
// machine asked. Returns a warning if the times contradict this, or "".
std::string CompareClocks(uint64_t taken, uint64_t asked, uint64_t answered,
                          bool is_new) {
  const bool is_ahead = taken > answered;
  const uint64_t wrong = is_ahead                  ? taken - answered
                         : is_new && taken < asked ? asked - taken
                                                   : 0;
  return wrong < kWrongSourceClockSeconds
             ? ""
             : "the clock of the source is " +
                   FormatMillis(static_cast<int64_t>(wrong) * 1000) +
                   (is_ahead ? " ahead of" : " behind") +
                   " this machine's: the age of this replica is wrong by the "
                   "same amount; correct the wrong clock";
}

// Returns true if the status means that a database or a journal is damaged.
bool IsDamage(const Status& status) {
  return status.IsCorruption() || status.IsInvalidArgument();
}

}  // namespace

PullOpener::PullOpener(const PullOptions* options, Plan* plan,
                       LaneShared* lanes, SourceLink* link,
                       FirstFailure* failure, PullReporter* report,
                       PullTarget* target, PullWorkspace* work,
                       Exchange* exchange, PullCompression* compression)
    : options_(options),
      plan_(plan),
      lanes_(lanes),
      link_(link),
      failure_(failure),
      report_(report),
      target_(target),
      work_(work),
      exchange_(exchange),
      compression_(compression) {}

void PullOpener::OpenStore() {
  std::unique_ptr<ChunkStore> made = target_->MakeStore(work_->journal());
  std::lock_guard<std::mutex> lock(mu_);
  store_ = std::move(made);
  lanes_->store = store_.get();
}

void PullOpener::StopStore() {
  std::lock_guard<std::mutex> lock(mu_);
  if (store_ != nullptr) {
    store_->Stop();
  }
}

void PullOpener::CloseStore() {
  std::lock_guard<std::mutex> lock(mu_);
  lanes_->store = nullptr;
  store_.reset();
}

Status PullOpener::OpenWorkspace() {
  if (target_->in_place() == nullptr) {
    RETURN_IF_ERROR(exchange_->CheckTarget());  // before a name is created
  }
  RETURN_IF_ERROR(work_->Open());
  RETURN_IF_ERROR(exchange_->FinishEarlier(work_->workspace()));
  RETURN_IF_ERROR(work_->ReadUnfinished());
  resumes_exchange_ = exchange_->CanResume(*work_);
  if (exchange_->has_open_hooks() && !resumes_exchange_) {
    // The exchange will not happen now. Tell the application before the
    // following steps, so that it does not wait for them.
    RETURN_IF_ERROR(exchange_->CloseHooks());
  }
  return work_->Prepare();
}

Status PullOpener::Connect() {
  if (resumes_exchange_) {
    UsePlanOfJournal();
    RETURN_IF_ERROR(CheckNotOlder(work_->unfinished().head.snapshot_sequence));
    RETURN_IF_ERROR(CheckStillSource());
    return exchange_->Resume();
  }
  if (!work_->is_resuming()) {
    const Status opened = OpenSession(SnapshotUse::kNew);
    if (!opened.ok()) {
      // Nothing has started, so remove the empty workspace.
      work_->workspace()->Discard().PermitUncheckedError();
    }
    return opened;
  }
  // If everything was received and nothing is compared, the source is only told
  // that it may release its snapshot. If this command names another source,
  // such as another set of an archive, that source must show that it has the
  // received data.
  const JournalState& unfinished = work_->unfinished();
  const bool needs_source = !work_->may_end_alone() || work_->verifies();
  using Tolerated = SourceLink::Tolerated;
  link_->Tolerate(needs_source ? Tolerated::kSnapshotGone : Tolerated::kAny);
  Status status = OpenSession(SnapshotUse::kResume);
  if (status.ok()) {
    status = CheckSamePlan(*plan_, unfinished);
  }
  const bool gone = EndStateOf(status) == EndState::kSnapshotGone;
  const bool tolerable =
      !status.ok() && (gone || !needs_source) && !failure_->failed();
  if (tolerable) {
    link_->Drop(status);
  }
  link_->Tolerate(Tolerated::kNothing);
  if (!tolerable) {
    return failure_->failed() ? failure_->status() : status;
  }
  if (!needs_source) {
    RETURN_IF_ERROR(gone ? CheckStillSource() : Status::OK());
    UsePlanOfJournal();
    RETURN_IF_ERROR(CheckNotOlder(plan_->opened.snapshot_sequence));
    report_->Say(
        "all data had already arrived; finished without the source (" +
        MessageOf(status) + ")");
    return failure_->status();
  }
  RETURN_IF_ERROR(OpenSessionInstead());
  return StartAnew("the source no longer has the snapshot of the unfinished "
                   "pull (" + MessageOf(status) + ")",
                   /*keeps=*/true);
}

void PullOpener::UsePlanOfJournal() {
  *plan_ = work_->unfinished().plan;
  report_->SetPlannedBytes(plan_->bytes());
}

std::string PullOpener::ApplicationOf() const {
  const std::string asked =
      MakeOpenRequest(options(), "", Purpose::kPull).application;
  return asked.empty() && !options().adopts_old
             ? ReleaseName(
                   ReleaseOfReplica(work_->disk(), options().target_dir))
             : asked;
}

OpenRequest PullOpener::MakeRequest(SnapshotUse use) const {
  OpenRequest request =
      MakeOpenRequest(options(), options().source.name,
                      work_->plans() ? Purpose::kPlan : Purpose::kPull);
  if (use != SnapshotUse::kResume) {
    request.application = ApplicationOf();
  }
  request.compression =
      compression_->Choose(link_->session()->source());
  request.compression_level = options().compression_level;
  if (options().snapshot_of.has_value()) {
    request.snapshot_use = SnapshotUse::kShare;
    request.named_transfer = *options().snapshot_of;
  } else if (options().latest_snapshot &&
             FindOwnTransfer(options().target_dir, &request.newer_than)) {
    request.snapshot_use = SnapshotUse::kLatest;
  }
  work_->FillRequest(use, &request);
  if (lanes_->refreshes()) {
    request.mode = TransferMode::kRefresh;
    if (use == SnapshotUse::kNew) {
      request.replica_families = work_->found().families;
    }
  }
  return request;
}

Status PullOpener::OpenSession(SnapshotUse use) {
  report_->SetPhase("connect");
  RETURN_IF_ERROR(link_->Connect());
  if (use == SnapshotUse::kNew) {
    RETURN_IF_ERROR(AskSource());
  }
  report_->SetPhase("snapshot");
  asked_ = MakeRequest(use);
  lanes_->chunk_bytes = asked_.chunk_bytes;
  SourceSession* const session = link_->session();
  *plan_ = Plan();
  const uint64_t asked_seconds = ClockSeconds();
  Status status = session->Open(asked_, plan_);
  // Skip this for an archive, because the time of a set is the time of its
  // push.
  if (status.ok() && !options().source.is_archive()) {
    const std::string wrong = CompareClocks(
        plan_->opened.taken_seconds, asked_seconds, ClockSeconds(),
        asked_.snapshot_use == SnapshotUse::kNew && !plan_->opened.resumed);
    if (!wrong.empty()) {
      report_->Log(LogLevel::kWarning, wrong);
    }
  }
  const EndState ended = EndStateOf(status);
  if (use == SnapshotUse::kNew && (ended == EndState::kRefused ||
                                   ended == EndState::kIncompatible)) {
    target_->OnDisagreement();
  }
  report_->SetPlannedBytes(plan_->bytes());
  if (status.ok() && options().on_transfer) {
    options().on_transfer(ToHex(plan_->opened.transfer_id));
  }
  if (status.ok()) {
    // Check that the target's directories are not the source's. Only the plan
    // shows whether the source is on this machine.
    std::vector<std::string> dirs;
    status = target_->Directories(&dirs);
    if (status.ok()) {
      status = CheckApartFromPlaces(options(), dirs, plan_->opened.places);
    }
  }
  if (status.ok()) {
    for (const std::string& note : plan_->opened.notes) {
      report_->Log(LogLevel::kInfo, "note: " + note);
    }
    status = ChooseSourceId(options(), &plan_->opened.source_database_id);
  }
  // Check again that the replica does not become a copy of another database:
  // now the source's id is known.
  if (status.ok() && target_->in_place() == nullptr) {
    status = exchange_->CheckTarget();
  }
  return status.ok() ? CheckNotOlder(plan_->opened.snapshot_sequence) : status;
}

// Checks that the source is not older than a database to which an application
// has written.
Status PullOpener::CheckNotOlder(uint64_t sequence) const {
  return target_->in_place() == nullptr
             ? CheckSourceNotOlder(work_->disk().get(), options(), sequence)
             : target_->in_place()->CheckNotTakenOver(sequence);
}

Status PullOpener::AskSource() {
  const bool asks = asks_clonable_ || work_->plans();
  if (!asks || work_->is_resuming() || options().source.is_archive()) {
    return Status::OK();
  }
  RETURN_IF_ERROR(link_->session()->AskFacts(
      {options().source.name, options().selection.families, /*for_pull=*/true,
       ApplicationOf()},
      &facts_));
  if (!asks_clonable_ || facts_.no_clone.empty()) {
    return Status::OK();
  }
  link_->End(Status::OK(), {});
  return MakeStatus(EndState::kRefused, facts_.no_clone);
}

// Asks the source which database it has. The pull could end without the source,
// but if an operator has replaced the source's database, the user expects the
// new one. If the source does not answer, the pull continues.
Status PullOpener::CheckStillSource() {
  FactsReply facts;
  link_->Tolerate(SourceLink::Tolerated::kAny);
  Status asked = link_->Connect();
  if (asked.ok()) {
    asked = link_->session()->AskFacts({options().source.name, {}, false, ""},
                                       &facts);
  }
  link_->Drop(asked);
  link_->Tolerate(SourceLink::Tolerated::kNothing);
  const JournalTransfer& head = work_->unfinished().head;
  if (facts.database_id.empty() || head.source_database_id.empty()) {
    return failure_->status();
  }
  Plan now;
  now.opened.source_database_id = facts.database_id;
  return CheckSameSource(options(), now, head, work_->workspace()->dir());
}

// Requests a new snapshot, and refuses a source with another database. In an
// adoption, the data may have been received from an earlier source. Then no
// received data matches, and everything is received again.
Status PullOpener::OpenSessionInstead() {
  const Status status = OpenSession(SnapshotUse::kNew);
  return status.ok() && !options().adopts_old
             ? CheckSameSource(options(), *plan_,
                               work_->unfinished().head,
                               work_->workspace()->dir())
             : status;
}

Status PullOpener::StartAnew(const std::string& why, bool keeps) {
  report_->Say("starting over: " + why);
  CloseStore();
  target_->CloseDatabase();
  return work_->StartAnew(keeps && target_->reuse() != nullptr);
}

// Starts over a pull that had received everything, but is damaged. The source
// was not asked before, but is needed now.
Status PullOpener::StartOver(const Status& damage) {
  Status status = OpenSessionInstead();
  if (!status.ok()) {
    return WithContext(status, EndStateOf(status),
                       "the unfinished pull cannot be resumed (" +
                           MessageOf(damage) + "), and its source failed");
  }
  status = StartAnew("the unfinished pull cannot be resumed (" +
                         MessageOf(damage) + ")",
                     /*keeps=*/false);
  return status.ok() ? PrepareTarget() : status;
}

Status PullOpener::CheckPlan() {
  const bool cloned = target_->reuse() != nullptr;
  if (cloned != plan_->clone.has_value()) {
    return MakeStatus(EndState::kCorrupt,
                      "plan: expected a plan for the requested method, found "
                      "one for another method");
  }
  if (cloned) {
    return Status::OK();  // the units cover all files
  }
  std::vector<const rocksdb::Comparator*> orders;
  for (const PullFamily& family : lanes_->families) {
    orders.push_back(family.comparator);
  }
  return CheckTiling(*plan_, options().selection.interval, orders);
}

// Adopts the data that an unfinished pull received. If it is damaged, drops it
// and makes a new target. If the unfinished pull had received everything, the
// source was not asked yet, so StartOver() asks it first.
Status PullOpener::PrepareTarget() {
  report_->SetPhase("plan");
  RETURN_IF_ERROR(CheckFamilies(*plan_, options().selection.families));
  lanes_->families.clear();
  RETURN_IF_ERROR(target_->BuildFamilies());
  RETURN_IF_ERROR(CheckPlan());
  lanes_->family_totals.assign(plan_->families.size(), Totals());
  lanes_->parts = &plan_->parts;
  lanes_->starts.assign(plan_->parts.size(), PartStart());
  lanes_->transfer_id = plan_->opened.transfer_id;
  lanes_->staging_dir = work_->workspace()->staging_dir();
  const bool begins = !work_->is_resuming();
  if (!begins) {
    const Status status = AdoptUnfinished();
    if (!IsDamage(status)) {
      return status.ok() ? CheckSpace() : status;
    }
    if (link_->session() == nullptr) {
      return StartOver(status);
    }
    RETURN_IF_ERROR(StartAnew("the unfinished pull cannot be resumed (" +
                                  MessageOf(status) + ")",
                              /*keeps=*/false));
  }
  RETURN_IF_ERROR(FindReused());
  const Status status = CheckSpace();
  if (!status.ok() && begins && reused_.linked.empty()) {
    // Nothing has started, so remove the empty workspace.
    work_->workspace()->Discard().PermitUncheckedError();
  }
  return status.ok() && !work_->plans()
             ? target_->Create(work_->file_system(), &held_)
             : status;
}

Status PullOpener::FindReused() {
  reused_ = ReusedParts();
  Status status;
  if (target_->reuse() != nullptr) {
    bool verify = work_->verifies();
    status = target_->reuse()->FindReused(work_->earlier(), &verify, &reused_);
    if (verify && !work_->verifies()) {
      work_->DemandVerify();
    }
  }
  CountUnchanged();
  return status;
}

void PullOpener::CountUnchanged() {
  const std::set<uint32_t> here(reused_.linked.begin(), reused_.linked.end());
  std::lock_guard<std::mutex> lock(lanes_->mu);
  for (const Part& part : plan_->parts) {
    if (reused_.is_current || here.count(part.id) != 0) {
      lanes_->starts[part.id].whole = true;
      lanes_->ended.push_back({part.id, Totals()});
      lanes_->counters.planned_bytes_done += part.bytes;
    }
  }
}

Status PullOpener::RejectReused(const std::vector<uint32_t>& different) {
  const ReusedParts before = reused_;
  RETURN_IF_ERROR(target_->reuse()->RejectReused(different, &reused_));
  const std::set<uint32_t> was(before.linked.begin(), before.linked.end());
  const std::set<uint32_t> kept(reused_.linked.begin(), reused_.linked.end());
  std::set<uint32_t> missing;
  for (const Part& part : plan_->parts) {
    if ((before.is_current || was.count(part.id) != 0) &&
        kept.count(part.id) == 0) {
      missing.insert(part.id);
    }
  }
  {
    std::lock_guard<std::mutex> lock(lanes_->mu);
    std::erase_if(lanes_->ended, [&missing](const ReceivedPart& part) {
      return missing.count(part.part_id) != 0;
    });
    for (const uint32_t id : missing) {
      lanes_->starts[id] = PartStart();
      lanes_->counters.planned_bytes_done -= plan_->parts[id].bytes;
    }
  }
  return CheckSpace();
}

// Counts nothing until all steps have succeeded. If a step finds damage, the
// pull starts over, and the counts would be wrong.
Status PullOpener::AdoptUnfinished() {
  const JournalState& unfinished = work_->unfinished();
  ReceivedChunks received;
  RETURN_IF_ERROR(
      target_->Reopen(work_->file_system(), unfinished, &received));
  RETURN_IF_ERROR(work_->ReopenJournal());
  if (unfinished.complete && received.chunks_lost > 0) {
    return MakeStatus(EndState::kCorrupt,
                      "all chunks had arrived, but " +
                          std::to_string(received.chunks_lost) +
                          " of them are now missing or damaged");
  }
  OpenStore();
  {
    StageClock clock(&lanes_->counters.stages, Stage::kIngest);
    RETURN_IF_ERROR(store_->AddRecorded(received.staged, &clock));
  }
  FaultPoint("Puller:StagedIngested");
  Workspace* const workspace = work_->workspace();
  RETURN_IF_ERROR(received.waited_for.has_value()
                      ? workspace->ClearStagingBut(*received.waited_for)
                      : workspace->ClearStaging());
  for (const JournalPartDone& done : received.ended) {
    RETURN_IF_ERROR(store_->EndPart(done));
  }
  reused_ = received.reused;
  CountReceived(received);
  work_->SetResumable(true);
  return Status::OK();
}

void PullOpener::CountReceived(const ReceivedChunks& received) {
  lanes_->starts = received.starts;
  std::lock_guard<std::mutex> lock(lanes_->mu);
  for (const Part& part : plan_->parts) {
    const PartStart& start = received.starts[part.id];
    if (start.whole) {
      lanes_->family_totals[part.family] += start.received;
      lanes_->ended.push_back({part.id, start.received});
    }
    lanes_->counters.planned_bytes_done +=
        start.whole ? part.bytes
                    : std::min(part.bytes, start.received.sst_bytes);
  }
  static_cast<LaneCounts&>(*lanes_) = received;
  report_->SetReceived(received.totals);
  report_->Say(
      "resuming transfer " + ToHex(work_->unfinished().head.transfer_id) +
      ": " + FormatCount(received.totals.chunks, "chunk") + " with " +
      FormatBytes(received.totals.sst_bytes) + " are already here" +
      (received.chunks_lost == 0
           ? ""
           : ", " + std::to_string(received.chunks_lost) +
                 " recorded chunks were lost or damaged and are fetched "
                 "again"));
}

// Checks that the disk has room for the data that is still missing. For
// example, if 40 MB of a part of 64 MB have been received, the part needs 24
// MB.
Status PullOpener::CheckSpace() {
  std::vector<Part> left;
  for (Part part : plan_->parts) {
    const PartStart& start = lanes_->starts[part.id];
    if (!start.whole) {
      part.bytes -=
          std::min(part.bytes, start.received.sst_bytes);
      left.push_back(std::move(part));
    }
  }
  SpaceNeed need =
      SpaceNeedOf(left, lanes_->chunk_bytes, options().lanes);
  if (work_->plans()) {
    return PlanSpace(need, /*is_needed=*/!left.empty());
  }
  if (left.empty()) {
    return Status::OK();
  }
  const std::string dir = work_->workspace()->dir();
  if (options().mode != PullMode::kPull) {
    need.reserve_bytes = ReserveOf(dir, options().min_free_percent);
    KeepFree(need.reserve_bytes);
  }
  return CheckFreeSpace(work_->file_system().get(), dir, need);
}

// Checks the disk on which the pull would make its workspace. A plan makes no
// workspace, so the directory above the workspace is checked.
Status PullOpener::PlanSpace(SpaceNeed need, bool is_needed) {
  if (options().target_dir.empty()) {
    report_->SetSpace(need.bytes(), 0);
    return Status::OK();
  }
  need.present_bytes = BytesBelow(work_->workspace()->dir());
  const uint64_t needed_bytes = need.bytes();
  const std::string dir =
      std::filesystem::absolute(work_->workspace()->dir()).parent_path();
  if (is_needed && options().mode != PullMode::kPull) {
    need.reserve_bytes = ReserveOf(dir, options().min_free_percent);
  }
  uint64_t free_bytes = 0;
  rocksdb::FileSystem* const files = work_->file_system().get();
  const Status status = FreeBytes(files, dir, &free_bytes);
  const bool is_known = free_bytes != std::numeric_limits<uint64_t>::max();
  report_->SetSpace(needed_bytes, is_known ? free_bytes : 0);
  return status.ok() ? CheckFreeSpace(files, dir, need) : status;
}

// Makes lanes wait while less than the reserve is free, but at most for half a
// stall timeout. If a lane waited for the whole timeout, the source would give
// up on it.
void PullOpener::KeepFree(uint64_t reserve_bytes) {
  lanes_->space = nullptr;
  space_.reset();
  if (reserve_bytes > 0) {
    space_ = std::make_unique<SpaceGate>(
        lanes_->file_system, work_->workspace()->dir(), reserve_bytes,
        std::min(options().timeouts.stall / 2, kSpaceWait), failure_->stop(),
        [this](const std::string& text) {
          report_->Log(LogLevel::kWarning, text);
        });
    lanes_->space = space_.get();
  }
}

Status PullOpener::WriteJournalHead() {
  if (work_->is_resuming()) {
    return Status::OK();
  }
  RETURN_IF_ERROR(work_->CreateJournal(asked_, *plan_));
  OpenStore();
  FaultPoint("Puller:HeadWritten");
  if (held_.has_value()) {
    RETURN_IF_ERROR(
        work_->journal()->Append(JournalRecordType::kTargetFiles, *held_));
  }
  return target_->reuse() != nullptr ? RecordReused() : Status::OK();
}

// Records each linked part as done without a chunk. FindLinked() of a later run
// recognizes linked files by these records. The links are already durable.
Status PullOpener::RecordReused() {
  Status status;
  for (const uint32_t id : reused_.linked) {
    status = status.ok() ? store_->EndPart({id, Totals()}) : status;
  }
  if (status.ok() && !reused_.linked.empty()) {
    StageClock clock(&lanes_->counters.stages, Stage::kSync);
    status = store_->Flush(&clock);
  }
  FaultPoint("CloneTarget:ReuseRecorded");
  return status;
}

}  // namespace sstferry
