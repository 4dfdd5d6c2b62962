// Runs a pull. Chooses the method, opens the source, and runs a Puller. A plan
// does the same, but stops before the Puller creates a file.
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

// How a swap builds its new directory, if it does not clone. It either links
// the files of the old database and receives only the changes, or receives
// everything.
struct SwapWay {
  bool links = false;
  // The reason, for the operator, why the swap does not link files. Empty if it
  // links files or was not expected to.
  std::string why_not;
};

// Chooses how an attempt by `method` builds the new directory. If the workspace
// has an unfinished pull, returns the way of that pull. If the way is to link,
// the old database or the source may later turn out to be unsuitable. The swap
// then gives up linking (LinkedTarget::gives_way()).
SwapWay ChooseSwapWay(const PullOptions& options, PullMethod method) {
  if (options.mode != PullMode::kSwap || method == PullMethod::kClone) {
    return {};
  }
  // Continues an unfinished swap in the way in which it began. TARGET_DIR may
  // have been replaced since then. If so, the swap links the files of the new
  // TARGET_DIR, or gives up linking later.
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

// Result of one attempt to pull.
struct Outcome {
  Status status;
  FailurePlace place;
  std::string no_clone{};  // why the source refuses a clone; else empty
  bool gives_way = false;  // true: an attempt without links may succeed
};

class PullOperation : public Operation {
 public:
  // `options` contain the database's name. `dialer` reaches the source; if it
  // is null, the pull opens an endpoint itself.
  PullOperation(const PullOptions& options, const OpenReplica& replica,
                bool plans = false, Dialer* dialer = nullptr)
      : options_(options),
        plans_(plans),
        dialer_(dialer),
        replica_(replica),
        max_rate_bytes_per_sec_(options.max_rate_bytes_per_sec) {}

  // Makes this pull a drill. The caller must call this before Run().
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
  // Warns if the source's new sequence number is lower than the replica's old
  // one. In this case, the source has lost its latest writes, and the pull has
  // removed them from the replica, too.
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

  // Adds a note that target_dir contains a database, and ends the pull. The
  // database is complete, because a pull renames its directory only when it is
  // complete.
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

  // Attempts the pull. If the files of the old database cannot be linked,
  // attempts it a second time without links.
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

  // Attempts the pull once. `note` is a text for the operator; it may be empty.
  // `starts_over` discards the files of an earlier attempt.
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
      // A refresh has no hooks and keeps no old database, because no process
      // may have TARGET_DIR open.
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
  MethodInput known_;  // facts for the choice of the method
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
  // If the source cannot be reached, a plan reports this instead of waiting.
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
