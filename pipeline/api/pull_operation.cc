// Runs a pull: chooses the method, and connects a source's endpoint to a
// Puller. A plan does the same, but stops before the Puller creates a file.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <system_error>

#include "format/end_state.h"
#include "format/journal.h"
#include "pipeline/api/endpoint.h"
#include "pipeline/api/operation_parts.h"
#include "pipeline/archive/choose_set.h"
#include "pipeline/base/known_fault.h"
#include "pipeline/base/last_transfer.h"
#include "pipeline/base/other_accounts.h"
#include "pipeline/base/standby_record.h"
#include "pipeline/disk/database_files.h"
#include "pipeline/disk/target_directories.h"
#include "pipeline/options/directories.h"
#include "pipeline/pull/clone_target.h"
#include "pipeline/pull/health.h"
#include "pipeline/pull/method_rule.h"
#include "pipeline/pull/puller.h"
#include "pipeline/pull/replica.h"
#include "pipeline/pull/seed_target.h"
#include "pipeline/pull/target_state.h"
#include "pipeline/refresh/refresh.h"
#include "rocksdb/db.h"
#include "sstferry/target.h"

namespace sstferry {
namespace {

using rocksdb::Status;

// The way in which a swap that does not clone builds its new directory: from
// links to the old database's files plus the changes, or from scratch.
struct SwapWay {
  bool links = false;
  // Why the swap does not link files, for the operator; empty: linking was not
  // expected.
  std::string why_not;
};

// Returns the way for an attempt by `method`. If the workspace has an
// unfinished pull, returns that pull's way. The swap gives up linking later if
// the old database or the source turns out to be unsuitable
// (LinkedTarget::gives_way()).
SwapWay ChooseSwapWay(const PullOptions& options, PullMethod method) {
  if (options.mode != PullMode::kSwap || method == PullMethod::kClone) {
    return {};
  }
  // Continues an unfinished swap in the way in which it began. If TARGET_DIR is
  // no longer the directory from which it linked, it links again, or gives up
  // linking later.
  const std::string begun =
      options.restart ? "" : UnfinishedMode(options.target_dir);
  if (!begun.empty() && begun != kInPlaceMode) {
    return {begun == kLinkedMode, ""};
  }
  LastTransfer last;
  if (!ReadLastTransfer(options.target_dir, &last)) {
    return {};
  }
  if (options.adopt) {
    return {false, "--adopt trusts no file of the old database"};
  }
  if (!options.selection.families.empty() ||
      !(options.selection.interval == KeyInterval())) {
    return {false, "only a part of the source is selected"};
  }
  if (options.source.is_archive()) {
    return {false, "an archive cannot be compared"};
  }
  HealthFile fault;
  const Status known = ReadKnownFault(options.target_dir, &fault);
  if (!known.ok()) {
    return {false, MessageOf(known)};
  }
  if (fault.fault != ReplicaFault::kNone) {
    return {false, FaultSentence(fault)};
  }
  return {true, ""};
}

// Result of one attempt.
struct Outcome {
  Status status;
  FailurePlace place;
  std::string no_clone{};  // why the source refuses a clone; or empty
  bool gives_way = false;  // a swap without links may succeed
};

class PullOperation : public Operation {
 public:
  // `dialer` reaches the source; null: opens an endpoint. The options contain
  // the database's name.
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
    known_.is_open = replica_.db != nullptr;
    if (options_.if_absent && HasCurrent(options_.target_dir)) {
      return EndWithDatabase(summary);
    }
    Outcome outcome = Try(DecideMethod(known_), summary);
    if (!outcome.no_clone.empty()) {
      known_.no_clone = "a clone is refused: " + outcome.no_clone;
      *summary = Summary();
      outcome = Try(DecideMethod(known_), summary);
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
  // Warns if the source's sequence number is lower than the replica's was: the
  // source has lost later writes, and now the replica has lost them too.
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

  // Ends the pull with a note that target_dir holds a database. That database
  // is complete, because a pull renames its directory only when it is complete.
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
                             " holds a database already: nothing was pulled");
    FinishSummary(status, {FailedPart::kTarget}, summary);
    return status;
  }

  // Attempts the pull. If the old database's files cannot be linked, attempts
  // it again without links.
  Outcome Try(MethodDecision decision, Summary* summary) {
    // An archive contains only files, which can always be cloned.
    decision.asks_source &= !options_.source.is_archive();
    const SwapWay way = ChooseSwapWay(options_, decision.method);
    std::string why = way.why_not;
    bool starts_over = false;
    if (way.links) {
      const Outcome outcome =
          TryOnce(decision, "", starts_over, /*links=*/true, summary);
      if (!outcome.gives_way) {
        return outcome;
      }
      why = MessageOf(outcome.status);
      starts_over = true;
      *summary = Summary();
    }
    const std::string note =
        why.empty() ? ""
                    : "builds the new database without the files of the old "
                      "one: " + why;
    return TryOnce(decision, note, starts_over, /*links=*/false, summary);
  }

  // Attempts the pull once. `note`: for the operator; may be empty.
  // `starts_over`: discards files of an earlier attempt of the same pull.
  Outcome TryOnce(const MethodDecision& decision, const std::string& note,
                  bool starts_over, bool links, Summary* summary) {
    std::unique_ptr<Endpoint> endpoint;
    Outcome outcome = {Status::OK(), {FailedPart::kTarget}};
    if (replica_.db == nullptr) {
      outcome.status = CheckNoStandby(options_);
      if (outcome.status.ok()) {
        outcome.status = CheckOutsideOfDatabases(options_.target_dir);
      }
    }
    if (!outcome.status.ok()) {
      return outcome;
    }
    std::vector<std::string> dirs;
    outcome.status = TargetDirectories(options_, replica_.db, &dirs);
    if (outcome.status.ok()) {
      outcome = {CheckApartFromSource(options_, dirs), {FailedPart::kSource}};
    }
    if (outcome.status.ok() && dialer_ == nullptr) {
      outcome.status = Endpoint::Open(
          EndpointFor(options_), &endpoint);
    }
    if (!outcome.status.ok()) {
      return outcome;
    }
    std::optional<BorrowedDialer> borrowed;
    if (dialer_ != nullptr) {
      borrowed.emplace(dialer_);
    }
    PullOptions options = OptionsFor(decision, starts_over);
    if (!borrowed.has_value()) options.source.name = endpoint->name();
    Puller puller(options,
                  borrowed.has_value() ? &*borrowed : endpoint->dialer(),
                  [&](const TargetInputs& inputs) {
                    return MakeTarget(inputs, decision, links);
                  },
                  plans_);
    puller.ExplainMethod(decision, note);
    puller.SetDrill(drill_);
    const bool starts = slot_.Set(&puller);
    slot_.ApplyMaxRate(max_rate_bytes_per_sec_);
    outcome.status = starts ? puller.Run(summary) : CancelledBeforeStart();
    outcome.place = puller.place();
    if (decision.asks_source && !outcome.status.ok()) {
      outcome.no_clone = puller.facts().no_clone;
    }
    outcome.gives_way = links && puller.gives_way() && !outcome.status.ok();
    slot_.Clear(puller.progress());
    return outcome;
  }

  PullOptions OptionsFor(const MethodDecision& decision,
                         bool starts_over) const {
    PullOptions options = options_;
    options.method = decision.method;
    options.restart = options.restart || starts_over;
    if (options.mode == PullMode::kRefresh) {
      // A refresh needs no hooks, because no process has TARGET_DIR open, and
      // keeps no old database.
      options.before_swap = options.after_swap = nullptr;
      options.keeps_old = options.always_swap = false;
    }
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
                                         const MethodDecision& decision,
                                         bool links) const {
    if (decision.in_place) {
      return MakeRefreshTarget(inputs, replica_);
    }
    if (inputs.options->method == PullMethod::kClone) {
      return std::make_unique<CloneTarget>(
          inputs, drill_ != nullptr ? kDrillMode : kCloneMode);
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
  Clock::time_point started_;  // set by Run()
  std::atomic<uint64_t> max_rate_bytes_per_sec_;
  WorkerSlot<Puller> slot_;
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
  plan.log = nullptr;  // the summary has all findings
  // A plan reports an unreachable source instead of waiting for it.
  plan.timeouts.retry = std::chrono::milliseconds(0);
  plan.timeouts.first_answer = std::chrono::milliseconds(0);
  return std::make_unique<PullOperation>(plan, OpenReplica(), /*plans=*/true);
}

std::unique_ptr<Operation> MakeRefresh(const PullOptions& options,
                                       const OpenReplica& replica) {
  PullOptions refresh = options;
  refresh.mode = PullMode::kRefresh;
  refresh.target_dir = replica.db->GetName();
  refresh.if_absent = false;
  return std::make_unique<PullOperation>(refresh, replica);
}

}  // namespace sstferry
