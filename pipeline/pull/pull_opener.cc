#include "pipeline/pull/pull_opener.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "pipeline/disk/durable.h"
#include "pipeline/disk/free_space.h"
#include "pipeline/options/replica_options.h"
#include "pipeline/pull/exchange.h"
#include "pipeline/pull/plan_check.h"
#include "pipeline/pull/pull_identity.h"
#include "pipeline/pull/pull_reporter.h"
#include "pipeline/pull/pull_target.h"
#include "pipeline/pull/pull_workspace.h"
#include "pipeline/pull/replica.h"

namespace sstferry {

using rocksdb::Status;

namespace {

// How long lanes wait for others to make room.
constexpr std::chrono::milliseconds kSpaceWait{60'000};

// Returns true for a database or a journal that is not what a pull leaves
// behind.
bool IsDamage(const Status& status) {
  return status.IsCorruption() || status.IsInvalidArgument();
}

}  // namespace

bool MayCloneCompacted(const PullOptions& options) {
  return options.mode == PullMode::kSeed && !options.replace &&
         !options.latest_snapshot && !options.snapshot_of.has_value();
}

PullOpener::PullOpener(const PullContext* context,
                       PullCompression* compression, Plan* plan)
    : context_(context), compression_(compression), plan_(plan) {}

Status PullOpener::OpenWorkspace() {
  Exchange* const exchange = context_->exchange;
  Status status = context_->work->Open();
  if (status.ok()) {
    status = context_->target->Inspect();
  }
  if (status.ok()) {
    status = exchange->FinishEarlier();
  }
  if (status.ok()) {
    status = context_->work->ReadUnfinished();
  }
  if (!status.ok()) {
    return status;
  }
  resumes_exchange_ = exchange->CanResume();
  if (exchange->has_open_hooks() && !resumes_exchange_) {
    // The application must not wait for what comes now.
    status = exchange->CloseHooks();
    if (!status.ok()) {
      return status;
    }
  }
  return context_->work->Prepare();
}

Status PullOpener::Connect() {
  if (resumes_exchange_) {
    UsePlanOfJournal();
    const Status status = CheckStillSource();
    return status.ok() ? context_->exchange->Resume() : status;
  }
  if (!context_->work->is_resuming()) {
    Status opened = OpenSession(SnapshotUse::kNew);
    if (opened.ok()) {
      opened = CheckNothingLeftOut();
    }
    if (!opened.ok()) {
      // Nothing was begun; what stays of it is only in the way.
      context_->workspace->Discard().PermitUncheckedError();
    }
    return opened;
  }
  // Complete, and nothing to compare: the source is only told that it may let
  // its snapshot go.
  const JournalState& unfinished = context_->work->unfinished();
  const bool needs_source =
      !unfinished.complete || context_->state->verify;
  SourceLink* const link = context_->link;
  FirstFailure* const failure = context_->failure;
  using Tolerated = SourceLink::Tolerated;
  link->Tolerate(needs_source ? Tolerated::kSnapshotGone : Tolerated::kAny);
  Status status = OpenSession(SnapshotUse::kResume);
  if (status.ok()) {
    status = CheckSamePlan(*plan_, unfinished, context_->workspace->dir());
  }
  const bool gone = EndStateOf(status) == EndState::kSnapshotGone;
  const bool tolerable =
      !status.ok() && (gone || !needs_source) && !failure->failed();
  if (tolerable) {
    link->Drop(status);
  }
  link->Tolerate(Tolerated::kNothing);
  if (!tolerable) {
    return failure->failed() ? failure->status() : status;
  }
  if (!needs_source) {
    const Status still = gone ? CheckStillSource() : Status::OK();
    if (!still.ok()) {
      return still;
    }
    UsePlanOfJournal();
    context_->report->Say("everything had come: finished without the source (" +
                          MessageOf(status) + ")");
    return failure->status();
  }
  const std::string why = MessageOf(status);
  status = OpenSessionInstead();
  return status.ok() ? StartAnew("the source no longer has the snapshot of "
                                 "the unfinished pull (" + why + ")",
                                 /*keeps=*/true)
                     : status;
}

void PullOpener::UsePlanOfJournal() {
  *plan_ = context_->work->unfinished().plan;
  context_->report->SetPlannedBytes(plan_->bytes());
}

OpenRequest PullOpener::MakeRequest(SnapshotUse use) const {
  OpenRequest request =
      MakeOpenRequest(options(), options().source.name,
                      context_->plans ? Purpose::kPlan : Purpose::kPull);
  if (request.application.empty() && use != SnapshotUse::kResume) {
    request.application = ReleaseName(
        ReleaseOfReplica(context_->disk, options().target_dir));
  }
  request.compression = compression_->Choose();
  request.compression_level = options().compression_level;
  if (options().snapshot_of.has_value()) {
    request.snapshot_use = SnapshotUse::kShare;
    request.named_transfer = *options().snapshot_of;
  } else if (options().latest_snapshot &&
             context_->target->FindOwnTransfer(&request.newer_than)) {
    request.snapshot_use = SnapshotUse::kLatest;
  }
  context_->work->FillRequest(use, &request);
  if (context_->state->refreshes) {
    request.mode = TransferMode::kRefresh;
    request.compare = context_->state->compare;
  }
  return request;
}

Status PullOpener::OpenSession(SnapshotUse use) {
  context_->report->SetPhase("connect");
  Status status = context_->link->Connect();
  if (!status.ok()) {
    return status;
  }
  if (use == SnapshotUse::kNew) {
    status = CheckNotCompacted();
    if (!status.ok()) {
      return status;
    }
  }
  context_->report->SetPhase("snapshot");
  asked_ = MakeRequest(use);
  context_->state->chunk_bytes = asked_.chunk_bytes;
  SourceSession* const session = context_->link->session();
  if ((asked_.snapshot_use == SnapshotUse::kLatest ||
       asked_.snapshot_use == SnapshotUse::kShare) &&
      (session->source().features & kFeatureShare) == 0) {
    return MakeStatus(EndState::kIncompatible,
                      "--snapshot: expected a source that shares snapshots, "
                      "found " + session->source().software +
                          ": upgrade it, or pull a new one");
  }
  if (asked_.mode == TransferMode::kClone &&
      (session->source().features & kFeatureClone) == 0) {
    return MakeStatus(EndState::kIncompatible,
                      "--method clone: expected a source that can be cloned, "
                      "found " + session->source().software +
                          ": upgrade it, or use --method ingest");
  }
  if (use == SnapshotUse::kNew) {
    ReplicaRecord replica;
    context_->target->Describe(&replica);
    session->SetReplicaRecord(std::move(replica));
  }
  *plan_ = Plan();
  status = session->Open(asked_, plan_);
  context_->report->SetPlannedBytes(plan_->bytes());
  if (status.ok() && options().on_transfer) {
    options().on_transfer(ToHex(plan_->opened.transfer_id));
  }
  if (status.ok()) {
    // Where the source turns out to be on this machine.
    status = CheckApartFromPlaces(options(), context_->target->Directories(),
                                  plan_->opened.places);
  }
  if (status.ok()) {
    for (const std::string& note : plan_->opened.notes) {
      context_->report->Log(LogLevel::kInfo, "note: " + note);
    }
    status = ChooseSourceId(options(), &plan_->opened.source_database_id);
  }
  return status.ok() ? context_->target->CheckSnapshot() : status;
}

Status PullOpener::CheckNothingLeftOut() const {
  if (!plan_->leaves_out || options().method != PullMethod::kAuto) {
    return Status::OK();
  }
  context_->report->result()->left_out = true;
  const std::vector<std::string>& notes = plan_->opened.notes;
  return RefuseAsChunks(EndState::kRefused,
                        notes.empty() ? "chunks would leave something out"
                                      : notes.front());
}

Status PullOpener::CheckNotCompacted() {
  SourceLink* const link = context_->link;
  constexpr uint64_t kNeeded = kFeatureFacts | kFeatureClone;
  if (options().method != PullMethod::kAuto || !MayCloneCompacted(options()) ||
      context_->work->is_resuming() ||
      (link->session()->source().features & kNeeded) != kNeeded) {
    return Status::OK();
  }
  FactsReply facts;
  const Status status =
      link->session()->AskFacts({options().source.name}, &facts);
  if (!status.ok() || !facts.is_compacted) {
    return status;
  }
  link->End(Status::OK(), {});
  context_->report->result()->is_compacted = true;
  return RefuseAsChunks(EndState::kRefused,
                        "the source's database is compacted, and so is a "
                        "clone of it");
}

// What has come is finished without the source, but not against its will: an
// operator who has put another database there expects that one. A source that
// does not answer says nothing.
Status PullOpener::CheckStillSource() {
  SourceLink* const link = context_->link;
  FactsReply facts;
  link->Tolerate(SourceLink::Tolerated::kAny);
  Status asked = link->Connect();
  if (asked.ok() &&
      (link->session()->source().features & kFeatureFacts) != 0) {
    asked = link->session()->AskFacts({options().source.name}, &facts);
  }
  link->Drop(asked);
  link->Tolerate(SourceLink::Tolerated::kNothing);
  const JournalTransfer& head = context_->work->unfinished().head;
  if (facts.database_id.empty() || head.source_database_id.empty()) {
    return context_->failure->status();
  }
  Plan now;
  now.opened.source_database_id = facts.database_id;
  return CheckSameSource(options(), now, head, context_->workspace->dir());
}

// A new snapshot of the same source.
Status PullOpener::OpenSessionInstead() {
  const Status status = OpenSession(SnapshotUse::kNew);
  return status.ok()
             ? CheckSameSource(options(), *plan_,
                               context_->work->unfinished().head,
                               context_->workspace->dir())
             : status;
}

Status PullOpener::StartAnew(const std::string& why, bool keeps) {
  context_->report->Say("starting anew: " + why);
  context_->target->CloseStore();
  context_->target->Drop();
  return context_->work->StartAnew(keeps && context_->target->KeepsFiles());
}

// The complete database is damaged: now the source is needed after all.
Status PullOpener::StartOver(const Status& damage) {
  Status status = OpenSessionInstead();
  if (!status.ok()) {
    return WithContext(status, EndStateOf(status),
                       "what the unfinished pull left is damaged (" +
                           MessageOf(damage) + "), and its source");
  }
  status = StartAnew("what the unfinished pull left is damaged (" +
                         MessageOf(damage) + ")",
                     /*keeps=*/false);
  return status.ok() ? PrepareTarget() : status;
}

Status PullOpener::CheckPlan() {
  const bool cloned = context_->state->clone != nullptr;
  if (cloned != plan_->clone.has_value()) {
    return MakeStatus(EndState::kCorrupt,
                      "plan: expected one of the method that was asked for, "
                      "found another");
  }
  if (cloned) {
    return Status::OK();  // its units cover all files
  }
  std::vector<const rocksdb::Comparator*> orders;
  for (const PullFamily& family : context_->state->families) {
    orders.push_back(family.comparator);
  }
  return CheckTiling(*plan_, options().selection.interval, orders);
}

Status PullOpener::PrepareTarget() {
  context_->report->SetPhase("plan");
  PullState* const state = context_->state;
  Status status = CheckFamilies(*plan_, options().selection.families);
  state->families.clear();
  if (status.ok()) {
    status = context_->target->BuildFamilies();
  }
  if (status.ok()) {
    status = CheckPlan();
  }
  if (!status.ok()) {
    return status;
  }
  const SourceSession* const session = context_->link->session();
  state->family_totals.assign(plan_->families.size(), Totals());
  state->family_compared = state->family_totals;
  state->parts = &plan_->parts;
  state->starts.assign(plan_->parts.size(), PartStart());
  state->transfer_id = plan_->opened.transfer_id;
  state->staging_dir = context_->workspace->staging_dir();
  const bool begins = !context_->work->is_resuming();
  if (!begins) {
    status = context_->target->Reopen();
    status = status.ok() ? AdoptUnfinished() : status;
    if (!IsDamage(status)) {
      return status.ok() ? CheckSpace() : status;
    }
    if (session == nullptr) {
      return StartOver(status);
    }
    status = StartAnew("what the unfinished pull left is damaged (" +
                           MessageOf(status) + ")",
                       /*keeps=*/false);
    if (!status.ok()) {
      return status;
    }
  }
  std::vector<uint32_t> reused;
  status = context_->target->Reuse(&reused);
  CountUnchanged(reused);
  if (status.ok()) {
    status = CheckSpace();
    if (!status.ok() && begins && reused.empty()) {
      // Nothing was begun; what stays of it is only in the way.
      context_->workspace->Discard().PermitUncheckedError();
    }
  }
  return status.ok() && !context_->plans ? context_->target->Create()
                                         : status;
}

void PullOpener::CountUnchanged(const std::vector<uint32_t>& reused) {
  PullState* const state = context_->state;
  const std::set<uint32_t> here(reused.begin(), reused.end());
  std::lock_guard<std::mutex> lock(state->mu);
  for (const Part& part : plan_->parts) {
    if (part.need == PartNeed::kUnchanged || here.count(part.id) != 0) {
      state->starts[part.id].whole = true;
      state->ended.push_back({part.id, Totals()});
      state->counters.planned_bytes_done += part.bytes;
    }
  }
}

Status PullOpener::RejectReused(const std::vector<uint32_t>& different) {
  std::vector<uint32_t> parts;
  const Status status =
      context_->target->RejectReused(different, &parts);
  if (!status.ok()) {
    return status;
  }
  PullState* const state = context_->state;
  const std::set<uint32_t> missing(parts.begin(), parts.end());
  {
    std::lock_guard<std::mutex> lock(state->mu);
    std::erase_if(state->ended, [&missing](const ReceivedPart& part) {
      return missing.count(part.part_id) != 0;
    });
    for (const uint32_t id : missing) {
      state->starts[id] = PartStart();
      state->counters.planned_bytes_done -= plan_->parts[id].bytes;
    }
  }
  return CheckSpace();
}

// Takes over what the unfinished pull had got, down to the last chunk that is
// recorded and whole.
Status PullOpener::AdoptUnfinished() {
  PullTarget* const target = context_->target;
  const JournalState& unfinished = context_->work->unfinished();
  ReceivedChunks received;
  Status status = context_->work->ReopenJournal();
  if (status.ok()) {
    status = target->FindReceived(unfinished, &received);
  }
  if (status.ok() && unfinished.complete && received.chunks_lost > 0) {
    status = MakeStatus(EndState::kCorrupt,
                        "a complete pull lost " +
                            std::to_string(received.chunks_lost) + " chunks");
  }
  if (status.ok()) {
    target->OpenStore(context_->work->journal());
    status = target->Begin();
  }
  if (status.ok()) {
    StageClock clock(&context_->state->counters.stages, Stage::kIngest);
    status = target->store()->AddRecorded(received.staged, &clock);
  }
  if (status.ok()) {
    FaultPoint("Puller:StagedIngested");
    status = target->ClearStaging(received);
  }
  for (const JournalPartDone& done : received.ended) {
    status = status.ok() ? target->store()->EndPart(done) : status;
  }
  if (status.ok()) {
    CountReceived(received);
    context_->work->SetResumable(true);
  }
  return status;
}

void PullOpener::CountReceived(const ReceivedChunks& received) {
  PullState* const state = context_->state;
  state->starts = received.starts;
  std::lock_guard<std::mutex> lock(state->mu);
  for (const Part& part : plan_->parts) {
    const PartStart& start = received.starts[part.id];
    if (start.whole) {
      state->family_totals[part.family] += start.received;
      state->ended.push_back({part.id, start.received});
    }
    state->counters.planned_bytes_done +=
        start.whole ? part.bytes
                    : std::min(part.bytes, start.received.sst_bytes);
  }
  state->chunks_built = received.chunks_built;
  state->chunks_delta = received.chunks_delta;
  state->chunks_cloned = received.chunks_cloned;
  state->chunks_unchecked = received.chunks_unchecked;
  context_->report->result()->received = received.totals;
  context_->report->Say(
      "resumes the unfinished pull " +
      ToHex(context_->work->unfinished().head.transfer_id) + ": " +
      std::to_string(received.totals.chunks) + " chunks with " +
      std::to_string(received.totals.sst_bytes) + " bytes are here" +
      (received.chunks_lost == 0
           ? ""
           : ", " + std::to_string(received.chunks_lost) +
                 " recorded ones were lost or damaged and come again"));
}

// The disk must have room for what is still to come.
Status PullOpener::CheckSpace() {
  std::vector<Part> left;
  for (Part part : plan_->parts) {
    const PartStart& start = context_->state->starts[part.id];
    if (!start.whole) {
      part.bytes -=
          std::min(part.bytes, start.received.sst_bytes);
      left.push_back(std::move(part));
    }
  }
  SpaceNeed need =
      SpaceNeedOf(left, context_->state->chunk_bytes, options().lanes);
  if (context_->plans) {
    return PlanSpace(need, /*is_needed=*/!left.empty());
  }
  if (left.empty()) {
    return Status::OK();
  }
  const std::string dir = context_->workspace->dir();
  if (options().mode == PullMode::kRefresh) {
    need.reserve_bytes = ReserveOf(dir, options().min_free_percent);
    KeepFree(need.reserve_bytes);
  }
  return CheckFreeSpace(context_->file_system.get(), dir, need,
                        options().replace);
}

// The workspace, which is not made, is to lie beside TARGET_DIR.
Status PullOpener::PlanSpace(SpaceNeed need, bool is_needed) {
  PullResult* const result = context_->report->result();
  if (context_->target->dir().empty()) {
    result->needed_bytes = need.bytes();
    return Status::OK();
  }
  need.present_bytes = BytesBelow(context_->workspace->dir());
  result->needed_bytes = need.bytes();
  const std::string dir =
      std::filesystem::absolute(context_->workspace->dir()).parent_path();
  if (is_needed && options().mode == PullMode::kRefresh) {
    need.reserve_bytes = ReserveOf(dir, options().min_free_percent);
  }
  const Status status = FreeBytes(context_->file_system.get(), dir,
                                  &result->free_bytes);
  return status.ok() ? CheckFreeSpace(context_->file_system.get(), dir, need,
                                      options().replace)
                     : status;
}

// A source whose lanes are not read from takes that for a while only.
void PullOpener::KeepFree(uint64_t reserve_bytes) {
  context_->state->space = nullptr;
  space_.reset();
  if (reserve_bytes > 0) {
    space_ = std::make_unique<SpaceGate>(
        context_->file_system.get(), context_->workspace->dir(), reserve_bytes,
        std::min(options().stall_timeout / 2, kSpaceWait),
        context_->failure->stop(), [this](const std::string& text) {
          context_->report->Log(LogLevel::kWarning, text);
        });
    context_->state->space = space_.get();
  }
}

Status PullOpener::WriteJournalHead() {
  if (context_->work->is_resuming()) {
    return Status::OK();
  }
  const Status status = context_->work->CreateJournal(asked_);
  if (!status.ok()) {
    return status;
  }
  context_->target->OpenStore(context_->work->journal());
  FaultPoint("Puller:HeadWritten");
  return context_->target->Begin();
}

}  // namespace sstferry
