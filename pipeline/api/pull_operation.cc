// Runs a pull: joins a source's endpoint to a Puller, once for each attempted
// method. A plan does the same, but each Puller stops before it creates a file.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <system_error>

#include "pipeline/api/endpoint.h"
#include "pipeline/api/method_plans.h"
#include "pipeline/api/operation_parts.h"
#include "pipeline/api/swap_way.h"
#include "pipeline/archive/choose_set.h"
#include "pipeline/base/known_fault.h"
#include "pipeline/base/other_accounts.h"
#include "pipeline/base/standby_files.h"
#include "pipeline/base/standby_record.h"
#include "pipeline/disk/database_files.h"
#include "pipeline/disk/target_directories.h"
#include "pipeline/options/directories.h"
#include "pipeline/pull/clone_target.h"
#include "pipeline/pull/health.h"
#include "pipeline/pull/method_rule.h"
#include "pipeline/pull/puller.h"
#include "pipeline/pull/seed_target.h"
#include "pipeline/refresh/refresh.h"
#include "rocksdb/db.h"
#include "sstferry/target.h"

namespace sstferry {
namespace {

using rocksdb::Status;

// One attempt of a pull.
struct Attempt {
  // kAuto: as chunks, unless the rule chooses a clone, or chunks would lose
  // data.
  PullMethod method = PullMethod::kAuto;
  std::string reason;  // for Summary::method_reason
  std::string note;    // for the operator; empty: none
  // Discards what an earlier attempt of the same pull left.
  bool starts_over = false;
};

// Result of one attempt.
struct Outcome {
  Status status;
  FailurePlace place;
  OtherMethod other_method = OtherMethod::kNone;  // why the method was refused
  bool gives_way = false;  // a swap without links may succeed
};

bool IsRefusal(const Status& status) {
  const EndState state = EndStateOf(status);
  return state == EndState::kRefused || state == EndState::kIncompatible;
}

class PullOperation : public Operation {
 public:
  // `dialer`: null, or reaches the source; the name is in the options.
  PullOperation(const PullOptions& options, const OpenReplica& replica,
                bool plans = false, Dialer* dialer = nullptr)
      : options_(options),
        plans_(plans),
        dialer_(dialer),
        replica_(replica),
        max_rate_bytes_per_sec_(options.max_rate_bytes_per_sec) {}

  // Turns this into a drill, before Run().
  void SetDrill(std::function<Status(const std::string&)> drill) {
    drill_ = std::move(drill);
  }

  Status Run(Summary* summary) override {
    started_ = Clock::now();
    known_ = MethodInputOf(options_);
    known_.in_place = InPlace();
    known_.no_delta = WhyNoDelta();
    if (options_.if_absent && HasDatabase()) {
      return EndWithDatabase(summary);
    }
    const Attempt first = FirstAttempt();
    Outcome outcome = Try(first, summary);
    if (IsRefusedAsChunks(outcome.status)) {
      outcome = first.method == PullMethod::kAuto ? TryClone(outcome, summary)
                                                  : Explain(outcome);
    }
    if (plans_) {
      PlanOtherMethod(&outcome);
      methods_.FillSummary(known_, summary);
    }
    if (outcome.status.ok()) WarnIfItWentBack(summary);
    FinishSummary(outcome.status, outcome.place, summary);
    return outcome.status;
  }
  void Cancel() override { slot_.Cancel(); }
  void SetMaxRate(uint64_t bytes_per_sec) override {
    max_rate_bytes_per_sec_ = bytes_per_sec;
    slot_.ApplyMaxRate(max_rate_bytes_per_sec_);
  }
  Progress progress() const override { return slot_.progress(); }

 private:
  bool InPlace() const {
    return replica_.db != nullptr || known_.in_place;
  }

  // Returns why the swap of a clone may not use a delta; empty: it may.
  std::string WhyNoDelta() const {
    const SwapWay way = ChooseSwapWay(options_, PullMethod::kIngest);
    return way.links            ? ""
           : way.why_not.empty() ? "there is no database whose files could be "
                                   "linked"
                                 : way.why_not;
  }

  bool HasDatabase() const {
    std::error_code error;
    return std::filesystem::exists(options_.target_dir + "/CURRENT", error);
  }

  // Warns if the source is at an older sequence than the replica was: writes
  // since then are missing there, and now here.
  void WarnIfItWentBack(Summary* summary) const {
    if (summary->sequence_new >= summary->sequence_old) {
      return;
    }
    const std::string text =
        "the source went back: it is at sequence " +
        std::to_string(summary->sequence_new) + ", but " +
        options_.target_dir + " was a copy of its sequence " +
        std::to_string(summary->sequence_old) +
        "; was the source restored from an older copy?";
    if (options_.log) options_.log(LogLevel::kWarning, text);
    summary->notes.push_back(text);
  }

  // A pull gives its directory the final name only when the directory is
  // complete, so an existing database is complete.
  Status EndWithDatabase(Summary* summary) const {
    HealthFile fault;
    Status status = ReadKnownFault(options_.target_dir, &fault);
    if (status.ok() && fault.fault != ReplicaFault::kNone) {
      status = FaultStatus(options_, fault);
    }
    summary->mode = PullModeName(options_.mode);
    summary->source = options_.source.ToString();
    summary->target = options_.target_dir;
    summary->state = status.ok() ? "present" : "";
    summary->notes.push_back(options_.target_dir +
                             " holds a database already: nothing was pulled "
                             "(--if-absent)");
    FinishSummary(status, {FailedPart::kTarget}, summary);
    return status;
  }

  // Leaves the choice to the attempt if it depends on the source.
  Attempt FirstAttempt() const {
    const MethodDecision decision = DecideMethod(known_);
    const bool is_certain = known_.in_place ||
                            known_.asked != PullMethod::kAuto ||
                            !known_.no_clone.empty() ||
                            !known_.no_chunks.empty() ||
                            known_.unfinished == PullMethod::kClone;
    Attempt attempt;
    attempt.method = is_certain ? decision.method : PullMethod::kAuto;
    attempt.reason = decision.reason;
    return attempt;
  }

  // Returns the attempt that the rule chooses after a refused one.
  Attempt NextAttempt() const {
    const MethodDecision decision = DecideMethod(known_);
    Attempt attempt;
    attempt.method = decision.method;
    attempt.reason = decision.reason;
    attempt.starts_over = true;
    return attempt;
  }

  // Also plans the method that the pull does not use, to compare both.
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
          method == PullMethod::kClone ? known_.no_clone : "";
      if (!why.empty()) {
        methods_.TakeWhyNot(method, why);
      } else if (planned && methods_.has(PullMethod::kClone) !=
                                methods_.has(PullMethod::kIngest)) {
        Attempt other;
        other.method = method;
        Summary unused;
        const Outcome tried = Try(other, &unused);
        if (EndStateOf(tried.status) == EndState::kCancelled) {
          *outcome = tried;
        }
      }
    }
  }

  // Tries a clone after a refusal that is specific to chunks.
  Outcome TryClone(const Outcome& refused, Summary* summary) {
    Summary of_clone;
    const std::string why = MessageOf(refused.status);
    const bool left_out = refused.other_method == OtherMethod::kLeftOut;
    const bool by_rule = refused.other_method == OtherMethod::kRule;
    known_.unfinished.reset();
    if (!by_rule) {
      (left_out ? known_.left_out : known_.no_chunks) = why;
    }
    Attempt clone = NextAttempt();
    if (!by_rule) {
      clone.note = "clones the database, because chunks cannot hold all of "
                   "it: " +
                   why;
    }
    Outcome outcome = Try(clone, &of_clone);
    if (outcome.other_method == OtherMethod::kDelta) {
      outcome = TryDelta(&of_clone);
    }
    if (!IsRefusal(outcome.status)) {
      *summary = std::move(of_clone);
      return outcome;
    }
    if (!left_out && !by_rule) {
      return {WithoutClone(refused.status, SentenceOf(outcome.status),
                           NextOf(outcome.status)),
              refused.place};
    }
    *summary = Summary();
    known_.no_clone = "a clone is refused: " + MessageOf(outcome.status);
    Attempt chunks = NextAttempt();
    if (left_out) {
      chunks.note = "moves the database as chunks, which do not hold all of "
                    "it, because " + known_.no_clone;
    }
    outcome = Try(chunks, summary);
    return IsRefusedAsChunks(outcome.status) ? Explain(outcome) : outcome;
  }

  // Tries to send the changes since a replica that is a clone, and otherwise
  // the files that the replica lacks.
  Outcome TryDelta(Summary* summary) {
    Attempt delta = NextAttempt();
    delta.method = PullMethod::kAuto;  // as chunks, if they leave nothing out
    *summary = Summary();
    Outcome outcome = TryOnce(delta, /*links=*/true, summary);
    if (!outcome.gives_way && !IsRefusal(outcome.status)) {
      return outcome;
    }
    known_.no_delta = MessageOf(outcome.status);
    known_.swap.reset();
    Attempt clone = NextAttempt();
    clone.note =
        "sends whole files that the replica does not have, not only what "
        "changed: " +
        known_.no_delta;
    *summary = Summary();
    return Try(clone, summary);
  }

  // Adds to a refusal why no clone is attempted.
  Outcome Explain(const Outcome& refused) const {
    const bool swap_would_clone = options_.mode == PullMode::kRefresh &&
                                  WhyNoClone(options_.selection).empty();
    const std::string why =
        replica_.db != nullptr ? "the database is refreshed where it is open"
        : swap_would_clone
            ? known_.no_clone
        : options_.method == PullMethod::kIngest
            ? "--method ingest was given; without --method, a clone is tried"
            : known_.no_clone;
    return {WithoutClone(refused.status, why,
                         swap_would_clone && replica_.db == nullptr
                             ? ReplaceCommand(options_)
                             : NextOf(refused.status)),
            refused.place};
  }

  // Returns `refusal` with the reason why no clone was made instead.
  static Status WithoutClone(const Status& refusal, const std::string& why,
                             const std::string& next) {
    return MakeStatus(EndStateOf(refusal),
                      SentenceOf(refusal) + "; cannot clone instead: " + why,
                      next);
  }

  // Makes an attempt, and another one without links if the old database cannot
  // be linked.
  Outcome Try(const Attempt& attempt, Summary* summary) {
    const SwapWay way = InPlace() ? SwapWay()
                                  : ChooseSwapWay(options_, attempt.method);
    Attempt anew = attempt;
    std::string why = way.why_not;
    if (way.links) {
      const Outcome outcome = TryOnce(attempt, /*links=*/true, summary);
      if (!outcome.gives_way) {
        return outcome;
      }
      why = MessageOf(outcome.status);
      anew.starts_over = true;
      *summary = Summary();
    }
    if (!why.empty()) {
      anew.note += (anew.note.empty() ? "" : "; ") +
                   ("builds the new database without the files of the old "
                    "one: " + why);
    }
    return TryOnce(anew, /*links=*/false, summary);
  }

  Outcome TryOnce(const Attempt& attempt, bool links, Summary* summary) {
    std::unique_ptr<Endpoint> endpoint;
    Outcome outcome = {CheckNoStandby(), {FailedPart::kTarget}};
    if (outcome.status.ok() && replica_.db == nullptr) {
      outcome.status = CheckOutsideOfDatabases(options_.target_dir);
    }
    if (!outcome.status.ok()) {
      return outcome;
    }
    outcome = {CheckApartFromSource(
                   options_, TargetDirectories(options_, replica_.db)),
               {FailedPart::kSource}};
    if (outcome.status.ok() && dialer_ == nullptr) {
      outcome.status = Endpoint::Open(
          EndpointFor(options_.source, options_.lanes, options_), &endpoint);
    }
    if (!outcome.status.ok()) {
      return outcome;
    }
    std::optional<BorrowedDialer> borrowed;
    if (dialer_ != nullptr) {
      borrowed.emplace(dialer_);
    }
    Puller puller(OptionsOf(attempt, borrowed.has_value()
                                        ? options_.source.name
                                        : endpoint->name()),
                  borrowed.has_value() ? &*borrowed : endpoint->dialer(),
                  [this, links](const TargetInputs& inputs) {
                    return MakeTarget(inputs, links);
                  },
                  plans_);
    puller.ExplainMethod(known_, attempt.reason, attempt.note);
    puller.SetDrill(drill_);
    const bool starts = slot_.Set(&puller);
    slot_.ApplyMaxRate(max_rate_bytes_per_sec_);
    outcome.status = starts ? puller.Run(summary) : CancelledBeforeStart();
    outcome.place = puller.place();
    outcome.other_method = puller.other_method();
    known_.sizes = puller.method_input().sizes;
    known_.swap = puller.method_input().swap;
    outcome.gives_way = links && puller.gives_way() && !outcome.status.ok();
    if (outcome.gives_way) {
      slot_.Clear(puller.progress());
      return outcome;
    }
    if (plans_ && outcome.other_method != OtherMethod::kRule) {
      methods_.Take(attempt.method, outcome.status,
                    outcome.other_method != OtherMethod::kNone, puller.plan(),
                    puller.BytesToCome());
    }
    slot_.Clear(puller.progress());
    return outcome;
  }

  // A follower may be running there; a pull must not replace its standby.
  Status CheckNoStandby() const {
    return replica_.db == nullptr && IsStandby(options_.target_dir)
               ? MakeStatus(EndState::kRefused,
                            "target " + options_.target_dir +
                                " is a standby, which only its follower "
                                "makes current",
                            MendStandbyCommand(options_.source.ToString(),
                                               options_.target_dir))
               : Status::OK();
  }

  PullOptions OptionsOf(const Attempt& attempt,
                        const std::string& source_name) const {
    PullOptions options = options_;
    options.source.name = source_name;
    options.method = attempt.method;
    options.restart = options.restart || attempt.starts_over;
    if (options.deadline.count() > 0) {
      const auto passed =
          std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() -
                                                                started_);
      options.deadline = std::max(std::chrono::milliseconds(1),
                                  options.deadline - passed);
    }
    return options;
  }

  std::unique_ptr<PullTarget> MakeTarget(const TargetInputs& inputs,
                                         bool links) const {
    if (InPlace()) {
      return MakeRefreshTarget(inputs, replica_);
    }
    if (inputs.options->method == PullMethod::kClone) {
      return std::make_unique<CloneTarget>(inputs, drill_ != nullptr);
    }
    return links ? MakeLinkedTarget(inputs)
                 : std::make_unique<SeedTarget>(inputs);
  }

  const PullOptions options_;
  const bool plans_;
  Dialer* const dialer_;
  const OpenReplica replica_;
  std::function<Status(const std::string&)> drill_;  // null: not a drill
  MethodInput known_;  // input for the choice of the method
  Clock::time_point started_;  // by Run()
  std::atomic<uint64_t> max_rate_bytes_per_sec_;
  WorkerSlot<Puller> slot_;
  MethodPlans methods_;  // for a plan
};

PullOptions WithArchive(PullOptions options) {
  FindArchive(&options.source);
  return options;
}

}  // namespace

std::optional<uint32_t> AccountOfTarget(const std::string& target_dir) {
  std::optional<uid_t> account;
  const bool known =
      geteuid() == 0 && FindOtherAccount(target_dir, &account).ok();
  return known && account.has_value() ? std::optional<uint32_t>(*account)
                                      : std::nullopt;
}

std::unique_ptr<Operation> MakePull(const PullOptions& options) {
  return std::make_unique<PullOperation>(WithArchive(options), OpenReplica());
}

std::unique_ptr<Operation> MakePullThrough(const PullOptions& options,
                                           Dialer* dialer) {
  return std::make_unique<PullOperation>(options, OpenReplica(),
                                         /*plans=*/false, dialer);
}

std::unique_ptr<Operation> MakeDrill(
    const PullOptions& options,
    std::function<Status(const std::string&)> drill, Dialer* dialer) {
  PullOptions clone = WithArchive(options);
  clone.mode = PullMode::kPull;
  clone.method = PullMethod::kClone;
  auto operation = std::make_unique<PullOperation>(
      clone, OpenReplica(), /*plans=*/false, dialer);
  operation->SetDrill(std::move(drill));
  return operation;
}

std::unique_ptr<Operation> MakePlan(const PullOptions& options) {
  PullOptions plan = WithArchive(options);
  if (!plan.source.is_directory() && !plan.source.is_archive() &&
      plan.source.name.empty()) {
    return MakeNames(options);
  }
  plan.log = nullptr;  // findings are in the summary
  // A plan should report an unreachable source instead of waiting for it.
  plan.timeouts.retry = std::chrono::milliseconds(0);
  plan.timeouts.first_answer = std::chrono::milliseconds(0);
  return std::make_unique<PullOperation>(plan, OpenReplica(), /*plans=*/true);
}

std::unique_ptr<Operation> MakeRefresh(const PullOptions& options,
                                       const OpenReplica& replica) {
  PullOptions refresh = options;
  refresh.mode = PullMode::kRefresh;
  refresh.target_dir = replica.db->GetName();
  return std::make_unique<PullOperation>(refresh, replica);
}

}  // namespace sstferry
