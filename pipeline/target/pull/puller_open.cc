// The first steps of a Puller: up to a database and a journal that lanes can
// fill, new ones or those of an unfinished pull.
#include <algorithm>

#include "format/message/for_each_batch.h"
#include "pipeline/target/disk/deferred_sync.h"
#include "pipeline/target/disk/durable.h"
#include "pipeline/target/disk/free_space.h"
#include "pipeline/target/disk/synced_files.h"
#include "pipeline/target/journal/pull_identity.h"
#include "pipeline/target/pull/puller.h"
#include "pipeline/target/session/plan_check.h"

namespace sstferry {

using rocksdb::Status;

namespace {

// How long lanes wait for others to make room.
constexpr std::chrono::milliseconds kSpacePatience{60'000};

// Of a database or a journal that is not what a pull leaves behind.
bool IsDamage(const Status& status) {
  return status.IsCorruption() || status.IsInvalidArgument();
}

// Why the snapshot is too old; empty: it is not. One of a time that is not known
// is as old as can be.
std::string TooOld(std::chrono::seconds max_age, const Opened& opened) {
  if (max_age.count() <= 0) {
    return "";
  }
  const uint64_t now = static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::seconds>(
          std::chrono::system_clock::now().time_since_epoch())
          .count());
  const uint64_t taken = opened.taken_seconds;
  const uint64_t age = now - std::min(now, taken);
  return age <= static_cast<uint64_t>(max_age.count())
             ? ""
             : "is of " +
                   (taken == 0 ? "an unknown time" : Rfc3339(taken)) +
                   ", which is longer ago than " +
                   std::to_string(max_age.count()) + " s";
}

}  // namespace

void Puller::Say(const std::string& note) {
  notes_.push_back(note);
  Log(LogLevel::kWarning, note);
}

Status Puller::OpenWorkspace() {
  // Before a name is made.
  Status status = is_swap() ? CheckTargetReplica() : Status::OK();
  if (status.ok()) {
    status = target_->OpenWorkspace(&workspace_);
    context_.workspace = workspace_.get();
  }
  if (status.ok()) {
    status = target_->Inspect();
  }
  if (status.ok()) {
    status = FinishEarlierSwap();
  }
  hooks_open_ = status.ok() && workspace_->swap_state() == SwapState::kBegun;
  if (status.ok() && workspace_->has_unfinished()) {
    status = ReadUnfinished();
  }
  if (!status.ok()) {
    return status;
  }
  goes_on_with_swap_ = CanGoOnWithSwap();
  if (hooks_open_ && !goes_on_with_swap_) {
    // The application must not wait for what comes now.
    status = CallAfterSwap(workspace_->swap_transfer(), /*exchanged=*/false);
    if (!status.ok()) {
      return status;
    }
  }
  ChooseDurability();
  return resuming_ ? Status::OK() : workspace_->Clear();
}

// Whether there is something to go on from: sets resuming_.
Status Puller::ReadUnfinished() {
  const Status status = ReadJournalState(
      disk_.get(), workspace_->journal_path(), &unfinished_);
  if (status.IsCorruption()) {
    Say("starting anew, since the journal of the unfinished pull is damaged: " +
        MessageOf(status));
    return Status::OK();
  }
  if (status.IsIncomplete() || status.IsNotFound()) {
    return Status::OK();
  }
  if (!status.ok()) {
    return status;
  }
  const JournalTransfer& head = unfinished_.head;
  if (target_->HasEnded(head)) {
    return Status::OK();
  }
  if (options_.restart) {
    Say("dropped the unfinished pull " + ToHex(head.transfer_id) +
        " as asked");
    dropped_ = head.transfer_id;
    return Status::OK();
  }
  const Status same =
      CheckSameRequest(options_, target_->mode(), head, workspace_->dir());
  if (!same.ok()) {
    return same;
  }
  if (!SurvivedReboots(head)) {
    Say("starting anew, since the machine went down and the unfinished pull "
        "was one with --durability none");
    dropped_ = head.transfer_id;
    return Status::OK();
  }
  const std::string old = TooOld(options_.max_age, unfinished_.opened);
  if (!old.empty()) {
    Say("starting anew, since the snapshot of the unfinished pull " + old);
    dropped_ = head.transfer_id;
    return Status::OK();
  }
  const Status judged = target_->CheckAsLeft(unfinished_, &resuming_);
  if (judged.ok() && !resuming_) {
    Say("starting anew, since the target was written to after the unfinished "
        "pull had stopped");
    dropped_ = head.transfer_id;
  }
  return judged;
}

// What was begun without syncs ends with a sync of everything, and the other
// way round.
void Puller::ChooseDurability() {
  const bool asked = options_.durability == Durability::kChunk;
  state_.sync_chunks = resuming_ ? unfinished_.head.durable : asked;
  if (state_.sync_chunks != asked) {
    Say(std::string("goes on with --durability ") +
        (asked ? "none" : "chunk") + ", as the pull was begun");
  }
  if (resuming_ && unfinished_.head.chunk_bytes != options_.chunk_bytes) {
    Say("goes on with --chunk-bytes " +
        std::to_string(unfinished_.head.chunk_bytes) +
        ", as the pull was begun");
  }
  file_system_ = state_.sync_chunks ? MakeSyncedFilesFileSystem(disk_)
                                    : MakeDeferredSyncFileSystem(disk_);
  state_.file_system = file_system_.get();
  context_.file_system = file_system_;
}

Status Puller::StartAnew(const std::string& why) {
  Say("starting anew: " + why);
  {
    std::lock_guard<std::mutex> lock(mu_);
    ingestor_.reset();
  }
  journal_.reset();
  target_->Drop();
  resuming_ = false;
  unfinished_ = JournalState();
  ChooseDurability();
  return workspace_->Clear();
}

Status Puller::Connect() {
  if (goes_on_with_swap_) {
    return GoOnWithSwap();
  }
  if (!resuming_) {
    const Status opened = OpenSession(SnapshotUse::kNew);
    if (!opened.ok()) {
      // Nothing was begun; what stays of it is only in the way.
      workspace_->Discard().PermitUncheckedError();
    }
    return opened;
  }
  // Complete, and nothing to compare: the source is only told that it may let
  // its snapshot go.
  const bool needs_source = !unfinished_.complete || options_.verify;
  using Tolerated = SourceLink::Tolerated;
  link_.Tolerate(needs_source ? Tolerated::kSnapshotGone : Tolerated::kAny);
  Status status = OpenSession(SnapshotUse::kResume);
  if (status.ok()) {
    status = CheckSamePlan(plan_, unfinished_, workspace_->dir());
  }
  const bool gone = EndStateOf(status) == EndState::kSnapshotGone;
  const bool tolerable =
      !status.ok() && (gone || !needs_source) && !failure_.failed();
  if (!tolerable) {
    link_.Tolerate(Tolerated::kNothing);
    return failure_.failed() ? failure_.status() : status;
  }
  link_.Drop(status);
  link_.Tolerate(Tolerated::kNothing);
  if (!needs_source) {
    plan_ = PlanOf(unfinished_);
    planned_bytes_ = plan_.estimated_bytes;
    Say("everything had come: finished without the source (" +
        MessageOf(status) + ")");
    return failure_.failed() ? failure_.status() : Status::OK();
  }
  const std::string why = MessageOf(status);
  status = OpenSession(SnapshotUse::kNew);
  if (status.ok()) {
    status = CheckSameSource(options_, plan_, unfinished_.head,
                             workspace_->dir());
  }
  return status.ok() ? StartAnew("the source no longer has the snapshot of "
                                 "the unfinished pull (" + why + ")")
                     : status;
}

Status Puller::OpenSession(SnapshotUse use) {
  SetPhase("connect");
  Status status = link_.Connect();
  if (!status.ok()) {
    return status;
  }
  SetPhase("snapshot");
  OpenRequest request =
      MakeOpenRequest(options_, options_.source.name, Purpose::kPull);
  request.compression = ChooseCompression();
  request.compression_level = options_.compression_level;
  request.snapshot_use = use;
  if (use == SnapshotUse::kResume) {
    request.held_transfer = unfinished_.head.transfer_id;
    request.families = unfinished_.head.families;
    request.chunk_bytes = unfinished_.head.chunk_bytes;
  } else if (dropped_.has_value()) {
    request.snapshot_use = SnapshotUse::kInstead;
    request.held_transfer = *dropped_;
  }
  if (use == SnapshotUse::kNew) {
    TargetMemory memory;
    target_->Describe(&memory);
    link_.session()->SetMemory(std::move(memory));
  }
  if (state_.replaces) {
    request.mode = TransferMode::kRefresh;
    request.compare = options_.compare;
  }
  asked_ = request;
  state_.chunk_bytes = request.chunk_bytes;
  plan_ = SourcePlan();
  status = link_.session()->Open(request, &plan_);
  planned_bytes_ = plan_.estimated_bytes;
  if (status.ok()) {
    // Where the source turns out to be on this machine.
    status = CheckApartFromPlaces(options_, target_->Directories(),
                                  plan_.opened.places);
  }
  return status.ok() ? CheckSource() : status;
}

Status Puller::CheckPlan() {
  std::vector<const rocksdb::Comparator*> orders;
  for (const PullFamily& family : state_.families) {
    orders.push_back(family.comparator);
  }
  return CheckTiling(plan_, options_.selection.interval, orders);
}

Status Puller::PrepareTarget() {
  SetPhase("plan");
  Status status = CheckFamilies(plan_, options_.selection.families);
  state_.families.clear();
  if (status.ok()) {
    status = target_->BuildFamilies();
  }
  if (status.ok()) {
    status = CheckPlan();
  }
  if (!status.ok()) {
    return status;
  }
  state_.family_totals.assign(plan_.families.size(), Totals());
  state_.ranges = &plan_.ranges;
  state_.starts.assign(plan_.ranges.size(), RangeStart());
  state_.takes_carried =
      options_.carry != CarryMode::kNever && link_.session() != nullptr &&
      (link_.session()->source().features & kFeatureCarry) != 0;
  state_.staging_dir = workspace_->staging_dir();
  if (resuming_) {
    status = target_->Reopen();
    status = status.ok() ? AdoptUnfinished() : status;
    if (!IsDamage(status)) {
      return status.ok() ? CheckSpace() : status;
    }
    if (link_.session() == nullptr) {
      return StartOver(status);
    }
    status = StartAnew("what the unfinished pull left is damaged (" +
                       MessageOf(status) + ")");
    if (!status.ok()) {
      return status;
    }
  }
  CountUnchanged();
  status = CheckSpace();
  return status.ok() ? target_->Create() : status;
}

// What was complete is damaged: now the source is needed after all.
Status Puller::StartOver(const Status& damage) {
  Status status = OpenSession(SnapshotUse::kNew);
  if (status.ok()) {
    status = CheckSameSource(options_, plan_, unfinished_.head,
                             workspace_->dir());
  }
  if (!status.ok()) {
    return WithContext(status, EndStateOf(status),
                       "what the unfinished pull left is damaged (" +
                           MessageOf(damage) + "), and its source");
  }
  status = StartAnew("what the unfinished pull left is damaged (" +
                     MessageOf(damage) + ")");
  return status.ok() ? PrepareTarget() : status;
}

void Puller::CountUnchanged() {
  std::lock_guard<std::mutex> lock(state_.mu);
  for (const Range& range : plan_.ranges) {
    if (range.need == RangeNeed::kUnchanged) {
      state_.starts[range.id].whole = true;
      state_.ended.push_back({range.id, Totals()});
      state_.counters.planned_bytes_done += range.estimated_bytes;
    }
  }
}

// Takes over what the unfinished pull had got, down to the last chunk that is
// recorded and whole.
Status Puller::AdoptUnfinished() {
  HeldChunks held;
  Status status =
      JournalFile::Reopen(disk_.get(), workspace_->journal_path(),
                          unfinished_.bytes, &journal_);
  if (status.ok()) {
    status = target_->FindHeld(unfinished_, &held);
  }
  if (status.ok() && unfinished_.complete && held.chunks_lost > 0) {
    status = MakeStatus(EndState::kCorrupt,
                        "a complete pull lost " +
                            std::to_string(held.chunks_lost) + " chunks");
  }
  if (status.ok()) {
    MakeIngestor();
    status = target_->Begin();
  }
  if (status.ok()) {
    StageClock clock(&state_.counters.stages, Stage::kIngest);
    status = ingestor_->IngestRecorded(held.staged, &clock);
  }
  if (status.ok()) {
    FaultPoint("Puller:StagedIngested");
    status = target_->ClearStaging(held);
  }
  for (const JournalRangeDone& done : held.ended) {
    status = status.ok() ? ingestor_->EndRange(done) : status;
  }
  if (status.ok()) {
    CountHeld(held);
    can_go_on_ = true;
  }
  return status;
}

void Puller::CountHeld(const HeldChunks& held) {
  state_.starts = held.starts;
  std::lock_guard<std::mutex> lock(state_.mu);
  for (const Range& range : plan_.ranges) {
    const RangeStart& start = held.starts[range.id];
    if (start.whole) {
      state_.family_totals[range.family] += start.held;
      state_.ended.push_back({range.id, start.held});
    }
    state_.counters.planned_bytes_done +=
        start.whole ? range.estimated_bytes
                    : std::min(range.estimated_bytes, start.held.sst_bytes);
  }
  state_.chunks_built = held.chunks_built;
  state_.chunks_carried = held.chunks_carried;
  state_.chunks_unchecked = held.chunks_unchecked;
  state_.sst_bytes_carried = held.sst_bytes_carried;
  held_ = held.totals;
  Say("goes on with the unfinished pull " +
      ToHex(unfinished_.head.transfer_id) + ": " +
      std::to_string(held_.chunks) + " chunks with " +
      std::to_string(held_.sst_bytes) + " bytes are here" +
      (held.chunks_lost == 0
           ? ""
           : ", " + std::to_string(held.chunks_lost) +
                 " recorded ones were lost or damaged and come again"));
}

// Of what is still to come.
Status Puller::CheckSpace() {
  std::vector<Range> left;
  for (Range range : plan_.ranges) {
    const RangeStart& start = state_.starts[range.id];
    if (!start.whole) {
      range.estimated_bytes -=
          std::min(range.estimated_bytes, start.held.sst_bytes);
      left.push_back(std::move(range));
    }
  }
  if (left.empty()) {
    return Status::OK();
  }
  SpaceNeed need = SpaceNeedOf(left, state_.chunk_bytes, options_.lanes);
  if (options_.mode == PullMode::kRefresh) {
    need.reserve_bytes =
        ReserveOf(workspace_->dir(), options_.min_free_percent);
    KeepFree(need.reserve_bytes);
  }
  return CheckFreeSpace(file_system_.get(), workspace_->dir(), need,
                        options_.replace);
}

// A source whose lanes are not read from takes that for a while only.
void Puller::KeepFree(uint64_t reserve_bytes) {
  state_.space = nullptr;
  space_.reset();
  if (reserve_bytes > 0) {
    space_ = std::make_unique<SpaceGate>(
        file_system_.get(), workspace_->dir(), reserve_bytes,
        std::min(options_.stall_timeout / 2, kSpacePatience), failure_.stop(),
        [this](const std::string& text) { Log(LogLevel::kWarning, text); });
    state_.space = space_.get();
  }
}

void Puller::MakeIngestor() {
  std::unique_ptr<Ingestor> made = target_->MakeIngestor(journal_.get());
  std::lock_guard<std::mutex> lock(mu_);
  ingestor_ = std::move(made);
  state_.ingestor = ingestor_.get();
}

Status Puller::WriteJournalHead() {
  if (resuming_) {
    return Status::OK();
  }
  // Not on the file system that defers syncs: SyncTree() passes it by.
  Status status = JournalFile::Create(disk_.get(), workspace_->journal_path(),
                                      &journal_);
  if (status.ok()) {
    status = journal_->Append(JournalRecordType::kTransfer,
                              MakeJournalHead(options_, target_->mode(),
                                              asked_, plan_));
  }
  if (status.ok()) {
    status = journal_->Append(JournalRecordType::kOpened, plan_.opened);
  }
  for (const Family& family : plan_.families) {
    if (status.ok()) {
      status = journal_->Append(JournalRecordType::kFamily, family);
    }
  }
  if (status.ok()) {
    status = ForEachBatch(plan_.covers, [this](std::vector<Cover> batch) {
      return journal_->Append(JournalRecordType::kCovers,
                              Covers{std::move(batch)});
    });
  }
  for (const Range& range : plan_.ranges) {
    if (status.ok()) {
      status = journal_->Append(JournalRecordType::kRange, JournalRange{range});
    }
  }
  FaultPoint("Puller:JournalWritten");
  if (status.ok()) {
    status = journal_->Sync();
  }
  FaultPoint("Puller:JournalSynced");
  if (status.ok()) {
    status = SyncDirectory(disk_.get(), workspace_->dir());
  }
  if (status.ok()) {
    MakeIngestor();
    can_go_on_ = true;
    FaultPoint("Puller:HeadWritten");
    status = target_->Begin();
  }
  return status;
}

// A pull that ends in one of these states keeps its snapshot at the source.
void Puller::SayHowToGoOn(const Status& status) {
  const EndState state = EndStateOf(status);
  if (state == EndState::kSnapshotGone) {
    Say("the source let its snapshot go: the same command starts anew");
  } else if ((MayGoOnAfter(state) ||
              (workspace_ != nullptr &&
               workspace_->swap_state() == SwapState::kBegun)) &&
             can_go_on_) {
    // A refresh is planned by what its target told, which no lease holds.
    const bool ends_with_us = state_.replaces &&
                              options_.source.is_directory() &&
                              state_.ended.size() < plan_.ranges.size();
    Say(ends_with_us
            ? "the source's snapshot ends with this process: run the same "
              "command to start over with a new one"
            : "what has come is kept in " + workspace_->dir() +
                  ": run the same command to resume");
  }
}

}  // namespace sstferry
