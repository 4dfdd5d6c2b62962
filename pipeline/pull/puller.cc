#include "pipeline/pull/puller.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <mutex>
#include <optional>

#include "pipeline/base/thread_priority.h"
#include "pipeline/disk/durable.h"
#include "pipeline/pull/deadline_watch.h"
#include "pipeline/pull/lane_client.h"
#include "pipeline/pull/other_file_fetch.h"

namespace sstferry {
namespace {

using rocksdb::Status;
using std::chrono::steady_clock;

// For the first answer of a source, where nobody says how long.
constexpr std::chrono::milliseconds kFirstAnswer{10'000};

}  // namespace

Puller::Puller(const PullOptions& options, Dialer* dialer,
               const PullTargetFactory& make_target, bool plans)
    : options_(options),
      failure_([this] { CloseAll(); }),
      report_(&context_),
      compression_(&context_),
      exchange_(&context_),
      link_(dialer, LinkOptions(), &failure_),
      opener_(&context_, &compression_, &plan_),
      verifier_(&context_) {
  FillState();
  FillContext(make_target, plans);
}

Puller::~Puller() = default;

void Puller::FillState() {
  SetMaxRate(options_.max_rate_bytes_per_sec);
  state_.guard = &link_.guard();
  state_.open_lane = [this](uint32_t lane, Channel** channel) {
    return link_.OpenLane(lane, channel);
  };
  state_.verify = options_.verify;
  state_.compare = options_.compare;
  state_.retry_for = options_.retry_for;
  state_.chunk_time = options_.stall_timeout;
  state_.stop = failure_.stop();
  state_.log = options_.log;
  state_.index = [this](const Part& part, const KeyInterval& piece,
                        GroupIndex* index, std::optional<std::string>* rest) {
    return target_->IndexPart(part, piece, index, rest);
  };
  state_.outermost = [this](const Part& part, const KeyInterval& piece,
                            std::optional<std::string>* first,
                            std::optional<std::string>* last) {
    return target_->FindOutermost(part, piece, first, last);
  };
}

void Puller::FillContext(const PullTargetFactory& make_target, bool plans) {
  context_.options = &options_;
  context_.plans = plans;
  context_.failure = &failure_;
  context_.link = &link_;
  context_.state = &state_;
  context_.plan = &plan_;
  context_.report = &report_;
  context_.exchange = &exchange_;
  target_ = make_target(&context_);
  context_.target = target_.get();
  work_ = std::make_unique<PullWorkspace>(&context_);
  context_.work = work_.get();
}

SourceLinkOptions Puller::LinkOptions() {
  SourceLinkOptions link;
  link.connect_timeout = options_.connect_timeout;
  link.peer_timeout = options_.peer_timeout;
  link.stall_timeout = options_.stall_timeout;
  link.retry_for = options_.retry_for;
  link.first_answer_within = options_.wait_for_source.value_or(
      std::min(kFirstAnswer, options_.retry_for));
  link.log = options_.log;
  link.progress = [this] { return state_.counters.progress.load(); };
  link.on_loss = [this] { state_.retries++; };
  // Lanes that lost their transfer's place wait for another one.
  link.on_busy = [this] { state_.counters.progress++; };
  link.on_stats = [this](const Stats& stats) {
    return compression_.OnStats(stats);
  };
  link.on_lane_thread = [this] {
    if (options_.low_priority && state_.refreshes) {
      LowerThreadPriority();
    }
  };
  return link;
}

Status Puller::Run(Summary* summary) {
  std::optional<DeadlineWatch> watch;
  watch.emplace(options_.deadline, &failure_);
  Status status = context_.plans ? RunPlan() : RunSteps();
  const FailedPart seen_by =
      exchange_.ended_by_hook() ? FailedPart::kAfterSwap : FailedPart::kTarget;
  if (!status.ok() && exchange_.has_open_hooks()) {
    exchange_.CloseHooks().PermitUncheckedError();  // WorstOf() says it
  }
  watch.reset();
  if (!status.ok()) {
    failure_.Set(status, {seen_by});
    status = exchange_.WorstOf(failure_.status(), failure_.place());
  }
  link_.End(TellsSource(status), place());
  const bool tried = !status.ok() && !context_.plans;
  if (tried) {
    work_->SayHowToResume(status);
  }
  report_.FillSummary(summary);
  target_->CloseStore();
  target_->Drop();
  return status;
}

// The mark of a refusal tells the source that this target comes back for a
// clone.
Status Puller::TellsSource(const Status& status) const {
  return IsRefusedAsChunks(status) && options_.method != PullMethod::kAuto
             ? MakeStatus(EndStateOf(status), MessageOf(status))
             : status;
}

Status Puller::RunSteps() {
  Status status = RunEach({[this] { return opener_.OpenWorkspace(); },
                           [this] { return opener_.Connect(); },
                           [this] { return opener_.PrepareTarget(); },
                           [this] { return CompareReused(); }});
  if (status.ok() && target_->is_current()) {
    return RunEach({[this] { return EndUnchanged(); }});
  }
  if (status.ok()) {
    status = RunEach({[this] { return opener_.WriteJournalHead(); },
                      [this] { return Transfer(); },
                      [this] { return FetchOthers(); },
                      [this] { return Reconcile(); },
                      [this] { return FinishTarget(); },
                      [this] { return Publish(); }});
  }
  // A cancellation that came after the rename came too late.
  return status.ok() ? Settle() : status;
}

// The first steps of RunSteps(). Whatever would end the pull in them ends the
// plan in the same way.
Status Puller::RunPlan() {
  Status status = RunEach({[this] { return opener_.OpenWorkspace(); }});
  if (status.ok() && work_->finishes_alone()) {
    return status;
  }
  if (status.ok()) {
    status = RunEach({[this] { return opener_.Connect(); },
                      [this] { return opener_.PrepareTarget(); }});
  }
  if (status.ok() && target_->is_current()) {
    report_.Note("TARGET_DIR holds what the source holds: the pull leaves it "
                 "as it is");
    return status;
  }
  if (status.ok()) {
    PlanOthers();
  }
  return status.ok() ? exchange_.CheckAhead() : status;
}

uint64_t Puller::BytesToCome() const {
  uint64_t bytes = 0;
  for (const Part& part : plan_.parts) {
    const bool here = part.need == PartNeed::kUnchanged ||
                      (part.id < state_.starts.size() &&
                       state_.starts[part.id].whole);
    bytes += here ? 0 : part.bytes;
  }
  return bytes;
}

Status Puller::RunEach(const std::vector<Step>& steps) {
  for (const Step& step : steps) {
    const Status status = failure_.failed() ? failure_.status() : step();
    if (!status.ok()) {
      return status;
    }
  }
  return Status::OK();
}

// Files that differ come like all others. A complete pull has nothing left to
// receive: there the verify at its end finds them.
Status Puller::CompareReused() {
  const std::vector<uint32_t> reused = target_->ReusedToCompare();
  if (work_->resumes_complete() || reused.empty() ||
      link_.session() == nullptr) {
    return Status::OK();
  }
  std::vector<uint32_t> different;
  Status status = SetLanes();
  if (status.ok()) status = verifier_.Compare(reused, &different);
  if (!status.ok() || different.empty()) {
    return status;
  }
  report_.Say((state_.verify ? "verify found " : "a comparison found ") +
              std::to_string(different.size()) + " of " +
              std::to_string(reused.size()) +
              " units of files that this machine has to differ from the "
              "source's: they come from the source" +
              (state_.verify ? "; check the disk here" : ""));
  return opener_.RejectReused(different);
}

Status Puller::SetLanes() {
  const uint32_t lanes = plan_.opened.lanes;
  if (lanes == 0 || lanes > options_.lanes) {
    return MakeStatus(EndState::kCorrupt,
                      "plan: expected 1 to " +
                          std::to_string(options_.lanes) + " lanes, found " +
                          std::to_string(lanes));
  }
  link_.SetLanes(lanes, compression_.frame_flags());
  return Status::OK();
}

Status Puller::Transfer() {
  if (link_.session() == nullptr) {
    return Status::OK();  // all is here
  }
  report_.SetPhase("transfer");
  compression_.LanesStart();
  Status status = SetLanes();
  if (!status.ok()) {
    return status;
  }
  scheduler_ = std::make_unique<PartScheduler>(
      plan_.parts, state_.starts, plan_.opened.lanes,
      [this](uint32_t part_id) {
        return state_.clone != nullptr && state_.clone->IsTail(part_id);
      });
  state_.scheduler = scheduler_.get();
  return link_.RunLanes([this](uint32_t lane) { RunLane(lane); });
}

void Puller::RunLane(uint32_t lane) {
  link_.FailLane(LaneClient(&state_, lane).Run(),
                 FailurePlace::Lane(FailedPart::kTargetLane, lane));
}

void Puller::PlanOthers() {
  NoteOtherFiles(context_);
  for (const OtherFile& file : plan_.opened.other_files) {
    if (file.kept_back == KeptBack::kNo &&
        options_.other_files == OtherFiles::kCopy) {
      report_.result()->other_files++;
      report_.result()->other_files_bytes += file.bytes;
    }
  }
}

// Before both sides agree on the totals: then all has come that can be asked
// for.
Status Puller::FetchOthers() {
  return link_.session() == nullptr || work_->resumes_complete() ||
                 state_.refreshes
             ? Status::OK()
             : FetchOtherFiles(context_);
}

Status Puller::Reconcile() {
  if (link_.session() == nullptr) {
    return Status::OK();  // both sides agreed before
  }
  JournalComplete complete;
  struct Finish ours;
  {
    std::lock_guard<std::mutex> lock(state_.mu);
    ours.families = state_.family_totals;
  }
  for (const Totals& totals : ours.families) {
    complete.totals += totals;
  }
  // With those that came in this run: the source may have been restarted.
  struct Finish theirs;
  Status status = link_.session()->Finish(ours, state_.ended, &theirs);
  report_.result()->source_stats = theirs.stats;
  if (status.ok() && !work_->resumes_complete()) {
    JournalFile* const journal = work_->journal();
    status = journal->Append(JournalRecordType::kComplete, complete);
    status = status.ok() ? journal->Sync() : status;
  }
  if (status.ok()) {
    FaultPoint("Puller:TotalsAgreed");
  }
  return status;
}

Status Puller::FinishTarget() {
  report_.SetPhase("sync");
  const steady_clock::time_point start = steady_clock::now();
  Status status = target_->Finish();
  report_.result()->sync_seconds += SecondsSince(start);
  if (status.ok() && state_.verify && !opener_.resumes_exchange()) {
    status = verifier_.Run();
  }
  const steady_clock::time_point closing = steady_clock::now();
  if (status.ok()) {
    status = target_->Close(work_->journal());
  }
  report_.result()->sync_seconds += SecondsSince(closing);
  return status;
}

Status Puller::Publish() {
  report_.SetPhase("swap");
  PullResult* const result = report_.result();
  const steady_clock::time_point start = steady_clock::now();
  const double deleted = result->delete_seconds;
  Summary summary = report_.summary();
  summary.state = "complete";
  Status status = target_->Record(summary);
  if (status.ok() && failure_.failed()) {
    status = failure_.status();
  }
  if (status.ok()) {
    status = target_->Publish();
  }
  result->swap_seconds =
      SecondsSince(start) - (result->delete_seconds - deleted);
  if (status.ok()) {
    report_.SetPublished();
  }
  return status;
}

// The source learns that all is here; the target, what it is current with.
Status Puller::EndUnchanged() {
  report_.SetPhase("swap");
  struct Finish ours;
  struct Finish theirs;
  std::vector<ReceivedPart> ended;
  {
    std::lock_guard<std::mutex> lock(state_.mu);
    ours.families = state_.family_totals;
    ended = state_.ended;
  }
  Status status = link_.session()->Finish(ours, ended, &theirs);
  report_.result()->source_stats = theirs.stats;
  report_.result()->verified = state_.verify;
  link_.End(status, {});
  Summary summary = report_.summary();
  summary.state = "complete";
  if (status.ok()) status = target_->Keep(summary);
  if (!status.ok()) {
    return status;
  }
  report_.SetPublished();
  const Status removed = context_.workspace->Discard();
  if (!removed.ok()) {
    report_.Say("the target is complete, but what is left in " +
                context_.workspace->dir() +
                " is for the next refresh to remove: " + MessageOf(removed));
  }
  return Status::OK();
}

// The target is complete: the source need not wait for the rest.
Status Puller::Settle() {
  link_.End(Status::OK(), {});
  return target_->Settle();
}

void Puller::Cancel() {
  failure_.Set(MakeStatus(EndState::kCancelled, "stopped on request"),
               {FailedPart::kTarget});
}

void Puller::CloseAll() {
  state_.pace.Close();
  link_.Close();
  target_->StopStore();
}

}  // namespace sstferry
