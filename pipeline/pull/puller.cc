#include "pipeline/pull/puller.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <mutex>
#include <optional>

#include "pipeline/base/last_transfer.h"
#include "pipeline/base/thread_priority.h"
#include "pipeline/disk/durable.h"
#include "pipeline/pull/deadline_watch.h"
#include "pipeline/pull/lane_client.h"
#include "pipeline/pull/other_file_fetch.h"
#include "pipeline/pull/part_compare.h"

namespace sstferry {
namespace {

using rocksdb::Status;
using std::chrono::steady_clock;

}  // namespace

Puller::Puller(const PullOptions& options, Dialer* dialer,
               const PullTargetFactory& make_target, bool plans)
    : options_(options),
      plans_(plans),
      failure_([this] { CloseAll(); }),
      report_(&options_, plans, &plan_, &state_, &link_),
      compression_(&options_, &state_.counters, &report_),
      exchange_(&options_, &plan_, &failure_, &report_),
      target_(make_target({&options_, &plan_, &state_, &failure_, &report_})),
      work_(std::make_unique<PullWorkspace>(&options_, plans, &state_, &report_,
                                            target_.get())),
      opener_(&options_, &plan_, &state_, &link_, &failure_, &report_,
              target_.get(), work_.get(), &exchange_, &compression_),
      link_(dialer, LinkOptions(), &failure_),
      verifier_(&plan_, &state_, &link_, &failure_, &report_, target_.get()) {
  FillState();
}

Puller::~Puller() = default;

void Puller::FillState() {
  SetMaxRate(options_.max_rate_bytes_per_sec);
  link_.ShareWith(&state_);
  state_.comparer = target_->comparer();
}

SourceLinkOptions Puller::LinkOptions() {
  SourceLinkOptions link;
  link.timeouts = options_.timeouts;
  if (options_.source.is_ssh() && !link.timeouts.first_answer.has_value()) {
    // Try to connect only once, because ssh itself reports why it failed.
    link.timeouts.first_answer = std::chrono::milliseconds(0);
  }
  link.log = options_.log;
  link.progress = [this] { return state_.counters.progress.load(); };
  link.on_loss = [this] { state_.retries++; };
  // Count a busy answer as progress. Otherwise a lane that waits for another
  // transfer slot would give up.
  link.on_busy = [this] { state_.counters.progress++; };
  link.on_stats = [this](const Stats& stats) {
    return compression_.OnStats(stats);
  };
  link.on_lane_thread = [this] {
    // The lanes of a refresh read the application's database, and may hold its
    // locks. So only lower their priority: they must make progress even if
    // other threads use all CPUs.
    if (!options_.full_rate) {
      state_.refreshes() ? LowerThreadPriority() : StepBack();
    }
  };
  return link;
}

Status Puller::Run(Summary* summary) {
  std::optional<DeadlineWatch> watch;
  watch.emplace();
  Status status = watch->Start(options_.deadline, &failure_);
  if (status.ok()) status = plans_ ? RunPlan() : RunSteps();
  const FailedPart seen_by =
      exchange_.ended_by_hook() ? FailedPart::kAfterSwap : FailedPart::kTarget;
  if (!status.ok() && exchange_.has_open_hooks()) {
    exchange_.CloseHooks().PermitUncheckedError();  // WorstOf() reports it
  }
  watch.reset();
  if (!status.ok()) {
    failure_.Set(status, {seen_by});
    status = exchange_.WorstOf(failure_.status(), failure_.place());
  }
  link_.End(status, place());
  const bool tried = !status.ok() && !plans_ && drill_ == nullptr;
  if (tried) {
    work_->SayHowToResume(status,
                          state_.ended.size() >= plan_.parts.size());
  }
  FillSummary(summary);
  opener_.CloseStore();
  target_->CloseDatabase();
  if (has_workspace_) {
    const Status removed = RemoveDrill();
    status = status.ok() ? removed : status;
  }
  return status;
}

// Removes the workspace of a drill. The journal is removed first, so that no
// later run resumes from the rest.
Status Puller::RemoveDrill() {
  Workspace* const workspace = work_->workspace();
  RETURN_IF_ERROR(workspace->Clear());
  return workspace->Discard();
}

void Puller::FillSummary(Summary* summary) const {
  report_.FillSummary(summary);
  if (state_.store != nullptr) {
    state_.store->FillSummary(summary);
  }
  if (target_->in_place() == nullptr) {
    exchange_.FillSummary(summary);
  }
  target_->FillSummary(summary);
  if (plans_) {
    FillPlan(summary);
  } else {
    summary->target_sequence = target_->last_sequence();
  }
}

void Puller::FillPlan(Summary* summary) const {
  for (const Family& family : plan_.families) {
    summary->entries += family.estimated_entries;
    summary->sst_bytes += family.estimated_bytes;
  }
  static constexpr const char* kActions[] = {
      "rebuild", "delta"};
  uint64_t files = plan_.clone.has_value() ? plan_.clone->files.size() : 0;
  for (const PlanItem& item : plan_.items) {
    files += item.file.empty() ? 0 : 1;
    PlanItemSummary line;
    line.column_family = plan_.families[item.family].description.name;
    line.begin = item.interval.begin;
    line.end = item.interval.end;
    line.file = item.file;
    line.bytes = item.bytes;
    line.action = kActions[static_cast<uint8_t>(item.action)];
    line.reason = item.reason;
    summary->items.push_back(std::move(line));
  }
  const FactsReply& facts = opener_.facts();
  if (target_->in_place() != nullptr || plan_.families.empty()) {
    return;  // only one method, or no plan was received
  }
  if (plan_.clone.has_value()) summary->sst_bytes = plan_.bytes();
  for (const PullMethod method : {PullMethod::kIngest, PullMethod::kClone}) {
    MethodSummary line;
    const bool clones = method == PullMethod::kClone;
    line.method = clones ? "clone" : "ingest";
    if (method == options_.method) {
      line.files = files;
      line.bytes = BytesToCome();
    } else {
      line.why_not = !clones                  ? ""
                     : facts.no_clone.empty() ? WhyNoClone(options_.selection)
                                              : facts.no_clone;
      line.files = clones ? facts.files : 0;
      line.bytes = clones ? facts.bytes : facts.chunk_bytes;
    }
    if (line.bytes > 0 || !line.why_not.empty() ||
        method == options_.method) {
      summary->methods.push_back(std::move(line));
    }
  }
}

Summary Puller::CompleteSummary() const {
  Summary summary;
  FillSummary(&summary);
  summary.state = "complete";
  return summary;
}

Status Puller::RunSteps() {
  Status status = RunEach({[this] { return opener_.OpenWorkspace(); }});
  // The workspace now belongs to this drill, which must remove it at the end.
  has_workspace_ = status.ok() && drill_ != nullptr;
  RETURN_IF_ERROR(status);
  status = RunEach({[this] { return opener_.Connect(); },
                    [this] { return opener_.PrepareTarget(); },
                    [this] { return CompareReused(); }});
  if (status.ok() && opener_.is_current()) {
    return RunEach({[this] { return EndUnchanged(); }});
  }
  if (status.ok()) {
    status = RunEach({[this] { return CheckExchange(); },
                      [this] { return opener_.WriteJournalHead(); },
                      [this] { return Transfer(); },
                      [this] { return FindUnchanged(), Status::OK(); },
                      [this] { return FetchOthers(); },
                      [this] { return Reconcile(); },
                      [this] { return FinishTarget(); },
                      [this] { return Publish(); }});
  }
  // Do not check for a cancellation here, because it is too late after the
  // rename.
  return status.ok() ? Settle() : status;
}

// Runs the first steps of a pull. If the pull would fail in one of them, the
// plan fails in the same way.
Status Puller::RunPlan() {
  RETURN_IF_ERROR(RunEach({[this] { return opener_.OpenWorkspace(); }}));
  if (work_->finishes_alone()) {
    return Status::OK();
  }
  RETURN_IF_ERROR(RunEach({[this] { return opener_.Connect(); },
                           [this] { return opener_.PrepareTarget(); }}));
  if (opener_.is_current()) {
    report_.Note(std::string("TARGET_DIR already holds the data of the "
                             "source: the ") +
                 PullModeName(options_.mode) + " leaves it as it is");
    return Status::OK();
  }
  PlanOthers();
  return CheckExchange();
}

Status Puller::CheckExchange() {
  return target_->in_place() == nullptr ? exchange_.CheckAhead(plans_)
                                        : Status::OK();
}

uint64_t Puller::BytesToCome() const {
  uint64_t bytes = 0;
  for (const Part& part : plan_.parts) {
    const bool here = part.id < state_.starts.size() &&
                      state_.starts[part.id].whole;
    bytes += here ? 0 : part.bytes;
  }
  return bytes;
}

Status Puller::RunEach(const std::vector<Step>& steps) {
  for (const Step& step : steps) {
    RETURN_IF_ERROR(failure_.failed() ? failure_.status() : step());
  }
  return Status::OK();
}

// Compares reused files with the source's. A file that differs is received from
// the source. If everything was received earlier, compares nothing: the
// verification at the end finds different files.
Status Puller::CompareReused() {
  const std::vector<uint32_t> reused = opener_.ReusedToCompare();
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
  report_.Say(std::to_string(different.size()) + " of " +
              std::to_string(reused.size()) +
              " units of files here differ from the source's and are fetched "
              "again" + (work_->verifies() ? "; check the disk here" : ""));
  return opener_.RejectReused(different);
}

Status Puller::SetLanes() {
  const uint32_t lanes = plan_.opened.lanes;
  if (lanes == 0 || lanes > options_.lanes) {
    return MakeStatus(EndState::kCorrupt,
                      "plan of the source: expected 1 to " +
                          std::to_string(options_.lanes) + " lanes, found " +
                          std::to_string(lanes));
  }
  link_.SetLanes(lanes, compression_.frame_flags());
  return Status::OK();
}

Status Puller::Transfer() {
  if (link_.session() == nullptr) {
    return Status::OK();  // everything was received earlier
  }
  report_.SetPhase("transfer");
  compression_.LanesStart();
  RETURN_IF_ERROR(SetLanes());
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

// Sets is_unchanged_ if the new database would have the same contents as the
// old one. A swap would then stop an application without need.
void Puller::FindUnchanged() {
  const std::vector<Totals>& all = state_.family_totals;
  is_unchanged_ = MayExchange(options_) && !options_.always_swap &&
                  std::all_of(all.begin(), all.end(),
                              [](const Totals& totals) {
                                return totals.chunks == 0;
                              }) &&
                  target_->HeldTheSame();
}

void Puller::PlanOthers() {
  if (target_->in_place() != nullptr) {
    return;  // files in TARGET_DIR stay there
  }
  NoteOtherFiles(options_.other_files, plan_.opened.other_files, &report_);
  uint64_t files = 0;
  uint64_t bytes = 0;
  for (const OtherFile& file : plan_.opened.other_files) {
    if (file.kept_back == KeptBack::kNo &&
        options_.other_files == OtherFiles::kCopy) {
      files++;
      bytes += file.bytes;
    }
  }
  report_.SetOtherFiles(files, bytes);
}

// Copies the application's own files. This happens before both sides agree on
// the totals, because the source may then release its snapshot.
Status Puller::FetchOthers() {
  if (work_->resumes_complete() && target_->in_place() == nullptr &&
      options_.other_files == OtherFiles::kIgnore) {
    return work_->workspace()->ClearOther();  // the earlier run may have copied
  }
  if (link_.session() == nullptr || work_->resumes_complete() ||
      target_->in_place() != nullptr || is_unchanged_) {
    return Status::OK();
  }
  const auto ask = [this](const std::string& name, uint64_t offset,
                          OtherFilePart* part) {
    if (failure_.failed()) {
      return failure_.status();
    }
    const Status asked = link_.session()->AskOtherFile({name, offset}, part);
    return asked.ok() ? state_.pace.Take(part->bytes.size()) : asked;
  };
  return FetchOtherFiles(options_.other_files, plan_.opened.other_files, ask,
                         work_->disk().get(), work_->workspace(), &report_);
}

Status Puller::Reconcile() {
  if (link_.session() == nullptr) {
    return Status::OK();  // both sides agreed in an earlier run
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
  // Also send the list of the parts that are complete, because a restarted
  // source does not have it.
  struct Finish theirs;
  Status status = link_.session()->Finish(ours, state_.ended, &theirs);
  report_.SetSourceStats(theirs.stats);
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
  report_.AddSeconds(TimedStep::kSync, SecondsSince(start));
  if (status.ok() && work_->verifies() && !opener_.resumes_exchange()) {
    status = Verify();
  }
  const steady_clock::time_point closing = steady_clock::now();
  if (status.ok() && !is_unchanged_) {
    status = target_->Close(work_->journal());
  }
  report_.AddSeconds(TimedStep::kSync, SecondsSince(closing));
  return status;
}

// Compares the data with the source's. After a difference, makes sure that the
// next run neither relies on the data nor resumes this pull.
Status Puller::Verify() {
  Status difference;
  const Status status = verifier_.Run(&difference);
  if (EndStateOf(status) == EndState::kCorrupt) {
    target_->OnDisagreement();
    const Status marked = work_->MarkUnverified(difference);
    if (!marked.ok()) {
      report_.Say(MessageOf(marked));
    }
  }
  return status;
}

Status Puller::Publish() {
  report_.SetPhase("swap");
  if (is_unchanged_) {
    link_.End(Status::OK(), {});
    return LeaveTarget();
  }
  const steady_clock::time_point start = steady_clock::now();
  const double deleted = report_.seconds(TimedStep::kDelete);
  Status status = target_->Record(CompleteSummary());
  if (status.ok() && failure_.failed()) {
    status = failure_.status();
  }
  if (status.ok() && drill_ != nullptr) {
    status = drill_(work_->workspace()->db_dir());
  } else if (status.ok() && target_->in_place() == nullptr) {
    if (MayExchange(options_)) {
      // Release the source, which is not needed any more. A failure of the
      // source must not interrupt the exchange, because an application waits
      // for the exchange.
      link_.End(Status::OK(), {});
    }
    status = exchange_.Publish([this] { return CheckNoNewFault(); },
                               [this] { return CompleteSummary(); });
  }
  report_.AddSeconds(
      TimedStep::kSwap,
      SecondsSince(start) - (report_.seconds(TimedStep::kDelete) - deleted));
  if (status.ok()) {
    report_.SetPublished();
  }
  return status;
}

// Checks for a new fault. If there is one, the next run starts over
// (JournalTransfer::mends), so this pull cannot be resumed.
Status Puller::CheckNoNewFault() {
  const Status status = target_->CheckNoNewFault();
  if (EndStateOf(status) == EndState::kCorrupt) {
    work_->SetResumable(false);
  }
  return status;
}

// Tells the source that this side has everything. Records that TARGET_DIR is
// equal to the source's snapshot.
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
  report_.SetSourceStats(theirs.stats);
  report_.SetVerified(work_->verifies());
  link_.End(status, {});
  return status.ok() ? LeaveTarget() : status;
}

// Leaves TARGET_DIR as it is, and records the end of the transfer. Removes the
// journal first, so that no later run uses data of this unfinished swap.
Status Puller::LeaveTarget() {
  RETURN_IF_ERROR(CheckNoNewFault());
  Workspace* const workspace = work_->workspace();
  const Summary complete = CompleteSummary();
  opener_.CloseStore();
  target_->CloseDatabase();
  RETURN_IF_ERROR(workspace->Clear());
  RETURN_IF_ERROR(workspace->PutIntoTarget(
      kLastTransferName, SummaryToJson(complete, complete.mode) + "\n"));
  report_.SetPublished();
  const Status removed = workspace->Discard();
  if (!removed.ok()) {
    report_.Say("the target is complete; the next refresh removes the "
                "leftovers in " + workspace->dir() + ": " +
                MessageOf(removed));
  }
  return Status::OK();
}

// Releases the source, because the target is complete. Then does the remaining
// work.
Status Puller::Settle() {
  link_.End(Status::OK(), {});
  return target_->in_place() != nullptr ? target_->in_place()->CompactAndClose()
                                        : Status::OK();
}

void Puller::Cancel() {
  failure_.Set(MakeStatus(EndState::kCancelled, "stopped on request"),
               {FailedPart::kTarget});
}

void Puller::CloseAll() {
  state_.pace.Close();
  link_.Close();
  opener_.StopStore();
}

}  // namespace sstferry
