// A pull: a source's endpoint joined to a Puller, once for each method that is
// tried. A plan: the same, but each Puller stops before it makes a name.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <set>

#include "pipeline/operation/endpoint.h"
#include "pipeline/operation/method_choice.h"
#include "pipeline/operation/method_plans.h"
#include "pipeline/operation/operation_parts.h"
#include "pipeline/operation/source_choice.h"
#include "pipeline/options/directories.h"
#include "pipeline/target/disk/target_directories.h"
#include "pipeline/target/fill/clone_target.h"
#include "pipeline/target/fill/refresh_target.h"
#include "pipeline/target/fill/repair_target.h"
#include "pipeline/target/fill/seed_target.h"
#include "pipeline/target/memory/target_state.h"
#include "pipeline/target/pull/puller.h"
#include "pipeline/target/session/backoff.h"
#include "rocksdb/db.h"
#include "sstferry/target.h"

namespace sstferry {
namespace {

using rocksdb::Status;

// How one attempt ended.
struct Outcome {
  Status status;
  std::string where;
  bool left_out = false;  // refused only for what chunks would leave out
  bool source_failed = false;  // so that another one may do
};

// For the first answer of a source, where nobody says how long.
constexpr std::chrono::milliseconds kFirstAnswer{10'000};

bool IsRefusal(const Status& status) {
  const EndState state = EndStateOf(status);
  return state == EndState::kRefused || state == EndState::kIncompatible;
}

// A repair asks the source for the families of its ranges alone.
PullOptions WithFamiliesOf(const PullOptions& asked) {
  PullOptions options = asked;
  std::set<std::string> names;
  for (const FamilyRange& range : asked.ranges) {
    names.insert(range.column_family);
  }
  options.selection.families.insert(options.selection.families.end(),
                                    names.begin(), names.end());
  options.compact_deltas = asked.compact_deltas && asked.ranges.empty();
  return options;
}

Status CheckRanges(const PullOptions& options, bool in_place) {
  if (options.ranges.empty()) {
    return Status::OK();
  }
  const bool plain = options.visibility == Visibility::kAll &&
                     options.selection.families.empty() &&
                     options.selection.interval == KeyInterval() &&
                     options.compare == CompareMode::kFiles &&
                     !options.adopt && !options.drop_missing &&
                     !options.verify;
  if (!plain || options.ranges.size() > kMaxListedRanges) {
    return MakeStatus(EndState::kRefused,
                      "listed ranges: expected at most " +
                          std::to_string(kMaxListedRanges) +
                          " of them, found " +
                          std::to_string(options.ranges.size()) +
                          "; and a refresh with visibility all, without a "
                          "selection, compare, adopt, drop_missing and verify");
  }
  return in_place ? Status::OK()
                  : MakeStatus(EndState::kRefused,
                               "target " + options.target_dir +
                                   ": expected a replica to repair, found "
                                   "none; a pull without --ranges makes one");
}

Status CheckOptions(const PullOptions& options, bool in_place) {
  const Status status = CheckRanges(options, in_place);
  return status.ok() ? CheckSources(options, in_place) : status;
}

class PullOperation : public Operation {
 public:
  PullOperation(const PullOptions& options, const OpenReplica& replica,
                bool plans = false)
      : options_(WithFamiliesOf(options)),
        plans_(plans),
        options_status_(CheckOptions(
            options, replica.db != nullptr || RefreshesInPlace(options))),
        replica_(replica),
        max_rate_bytes_per_sec_(options.max_rate_bytes_per_sec) {}

  Status Run(Summary* summary) override {
    started_ = Clock::now();
    if (!options_status_.ok()) {
      FinishSummary(options_status_, "target", summary);
      return options_status_;
    }
    const MethodChoice choice = FirstChoice(options_);
    Outcome outcome = Try(choice, summary);
    if (IsRefusedAsChunks(outcome.status)) {
      outcome = choice.method == PullMethod::kAuto
                    ? TryClone(outcome, summary)
                    : Explain(outcome);
    }
    if (plans_) {
      PlanOtherMethod(&outcome);
      methods_.FillSummary(summary);
    }
    FinishSummary(outcome.status, outcome.where, summary);
    if (!summary->different_ranges.empty() && InPlace()) {
      summary->repair = "sstferry pull " +
                        ShellWord(options_.source.ToString()) + " " +
                        ShellWord(summary->target) +
                        " --mode refresh --ranges FILE";
    }
    return outcome.status;
  }
  void Cancel() override {
    stop_.Stop();
    slot_.Cancel();
  }
  void SetMaxRate(uint64_t bytes_per_sec) override {
    max_rate_bytes_per_sec_ = bytes_per_sec;
    slot_.ApplyMaxRate(max_rate_bytes_per_sec_);
  }
  Progress progress() const override { return slot_.progress(); }

 private:
  bool InPlace() const {
    return replica_.db != nullptr || RefreshesInPlace(options_);
  }

  // Plans the method, too, that the pull does not take, to compare both.
  void PlanOtherMethod(Outcome* outcome) {
    const EndState state = EndStateOf(outcome->status);
    const bool planned = state == EndState::kOk ||
                         state == EndState::kNoSpace ||
                         state == EndState::kBusy;
    for (const PullMethod method : {PullMethod::kIngest, PullMethod::kClone}) {
      if (methods_.has(method)) {
        continue;
      }
      const std::string why =
          method == PullMethod::kClone ? WhyNoClone(options_) : "";
      if (!why.empty()) {
        methods_.TakeWhyNot(method, why);
      } else if (planned && methods_.has(PullMethod::kClone) !=
                                methods_.has(PullMethod::kIngest)) {
        MethodChoice other;
        other.method = method;
        Summary unused;
        const Outcome tried = Try(other, &unused);
        if (EndStateOf(tried.status) == EndState::kCancelled) {
          *outcome = tried;
        }
      }
    }
  }

  // After a refusal that is marked as one of chunks.
  Outcome TryClone(const Outcome& refused, Summary* summary) {
    Summary of_clone;
    Outcome outcome = Try(CloneInstead(refused.status), &of_clone);
    if (!IsRefusal(outcome.status)) {
      *summary = std::move(of_clone);
      return outcome;
    }
    if (!refused.left_out) {
      return {WithoutClone(refused.status, MessageOf(outcome.status)),
              refused.where};
    }
    *summary = Summary();
    outcome = Try(ChunksNevertheless(outcome.status), summary);
    return IsRefusedAsChunks(outcome.status) ? Explain(outcome) : outcome;
  }

  // Adds to a refusal why the attempt does not become a clone.
  Outcome Explain(const Outcome& refused) const {
    const std::string why = replica_.db != nullptr
                                ? "the database is refreshed where it is open"
                            : options_.method == PullMethod::kIngest
                                ? "--method ingest was asked for"
                                : WhyNoClone(options_);
    return {WithoutClone(refused.status, why), refused.where};
  }

  Outcome Try(const MethodChoice& choice, Summary* summary) {
    return options_.more_sources.empty()
               ? TryOnce(OptionsOf(choice, options_.restart), choice, summary)
               : TryEach(choice, summary);
  }

  // Each source as the first one, until a pull from it ends well, or with a
  // failure that is not the source's.
  Outcome TryEach(MethodChoice choice, Summary* summary) {
    bool restart = options_.restart;
    const std::string begun = restart || choice.starts_over
                                  ? ""
                                  : UnfinishedSource(options_.target_dir);
    std::vector<SourceAddress> sources = SourcesInOrder(options_, begun);
    BackoffOptions waits;
    waits.give_up_after = options_.wait_for_source.value_or(
        std::min(kFirstAnswer, options_.retry_for));
    Backoff backoff(waits);
    std::vector<std::string> notes;
    std::chrono::milliseconds wait{0};
    SourceTally tally;
    Outcome outcome;
    do {
      for (size_t i = 0; i < sources.size();) {
        PullOptions options = OptionsOf(choice, restart);
        options.source = sources[i];
        options.more_sources = sources;
        options.more_sources.erase(options.more_sources.begin() +
                                   static_cast<ptrdiff_t>(i));
        // A pull that was begun is worth some time; else the next one may do.
        options.wait_for_source = options.source.ToString() == begun
                                      ? waits.give_up_after
                                      : std::chrono::milliseconds(0);
        *summary = Summary();
        outcome = TryOnce(options, choice, summary);
        tally.Add(options.source, outcome.status, outcome.source_failed,
                  *summary);
        tally.Fill(options_, summary);
        summary->notes.insert(summary->notes.begin(), notes.begin(),
                              notes.end());
        if (!outcome.source_failed || !MayTryAnother(outcome.status)) {
          return outcome;
        }
        AddNote(options.source, outcome.status, &notes);
        restart = false;
        // Nothing that came from a source that sent what is not so is kept.
        choice.starts_over = EndStateOf(outcome.status) == EndState::kCorrupt;
        if (MayTryAgain(outcome.status)) {
          ++i;
        } else {
          sources.erase(sources.begin() + static_cast<ptrdiff_t>(i));
        }
      }
    } while (!sources.empty() && backoff.Next(&wait) && !stop_.WaitFor(wait));
    return outcome;
  }

  void AddNote(const SourceAddress& source, const Status& status,
               std::vector<std::string>* notes) const {
    const std::string note = "source " + source.ToString() + ": " +
                             EndStateName(EndStateOf(status)) + ": " +
                             MessageOf(status) +
                             ": another source is asked first";
    if (std::find(notes->begin(), notes->end(), note) == notes->end()) {
      notes->push_back(note);
      if (options_.log) options_.log(LogLevel::kWarning, note);
    }
  }

  // The other sources of a clone.
  std::vector<OtherSource> OthersOf(const PullOptions& options) const {
    std::vector<OtherSource> others;
    if (options.method != PullMethod::kClone) {
      return others;
    }
    for (const SourceAddress& address : options.more_sources) {
      others.push_back({address, [address, tls = options.tls](
                                     std::unique_ptr<Dialer>* dialer) {
                          return MakeServerDialer(address, tls, dialer);
                        }});
    }
    return others;
  }

  Outcome TryOnce(PullOptions options, const MethodChoice& choice,
                  Summary* summary) {
    std::unique_ptr<Endpoint> endpoint;
    Outcome outcome = {CheckApartFromSource(
                           options, TargetDirectories(options, replica_.db)),
                       "source"};
    if (outcome.status.ok()) {
      outcome.status = Endpoint::Open(
          EndpointFor(options.source, options.lanes, options), &endpoint);
    }
    if (!outcome.status.ok()) {
      return outcome;
    }
    options.source.name = endpoint->name();
    Puller puller(options, endpoint->dialer(),
                  [this](const PullContext* context) {
                    return MakeTarget(context);
                  },
                  OthersOf(options), plans_);
    puller.ExplainMethod(choice.reason, choice.note);
    const bool starts = slot_.Set(&puller);
    slot_.ApplyMaxRate(max_rate_bytes_per_sec_);
    outcome.status = starts ? puller.Run(summary) : CancelledBeforeStart();
    outcome.where = puller.error_where();
    outcome.left_out = puller.left_out();
    outcome.source_failed = !outcome.status.ok() && puller.source_failed();
    if (plans_) {
      methods_.Take(options.method, outcome.status, outcome.left_out,
                    puller.plan(), puller.BytesToCome());
    }
    slot_.Clear(puller.progress());
    return outcome;
  }

  PullOptions OptionsOf(const MethodChoice& choice, bool restart) const {
    PullOptions options = options_;
    options.method = choice.method;
    options.restart = restart || choice.starts_over;
    if (options.deadline.count() > 0) {
      const auto passed =
          std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() -
                                                                started_);
      options.deadline = std::max(std::chrono::milliseconds(1),
                                  options.deadline - passed);
    }
    return options;
  }

  std::unique_ptr<PullTarget> MakeTarget(const PullContext* context) const {
    if (!options_.ranges.empty()) {
      return std::make_unique<RepairTarget>(context, replica_);
    }
    if (InPlace()) {
      return std::make_unique<RefreshTarget>(context, replica_);
    }
    if (context->options->method == PullMethod::kClone) {
      return std::make_unique<CloneTarget>(context);
    }
    return std::make_unique<SeedTarget>(context);
  }

  const PullOptions options_;
  const bool plans_;
  const Status options_status_;  // why nothing is tried
  const OpenReplica replica_;
  Clock::time_point started_;  // of Run()
  std::atomic<uint64_t> max_rate_bytes_per_sec_;
  WorkerSlot<Puller> slot_;
  StopSignal stop_;  // ends a wait for the next source
  MethodPlans methods_;  // of a plan
};

}  // namespace

std::unique_ptr<Operation> MakePull(const PullOptions& options) {
  return std::make_unique<PullOperation>(options, OpenReplica());
}

std::unique_ptr<Operation> MakePlan(const PullOptions& options) {
  if (!options.source.is_directory() && options.source.name.empty()) {
    return MakeNames(options);
  }
  PullOptions plan = options;
  plan.log = nullptr;  // what is found is in the summary
  // A source that is not there now is what a plan is asked to find.
  plan.retry_for = std::chrono::milliseconds(0);
  plan.wait_for_source = std::chrono::milliseconds(0);
  return std::make_unique<PullOperation>(plan, OpenReplica(), /*plans=*/true);
}

std::unique_ptr<Operation> MakeRefresh(const PullOptions& options,
                                       const OpenReplica& replica) {
  PullOptions refresh = options;
  refresh.mode = PullMode::kRefresh;
  refresh.target_dir = replica.db->GetName();
  refresh.replace = false;
  return std::make_unique<PullOperation>(refresh, replica);
}

}  // namespace sstferry
