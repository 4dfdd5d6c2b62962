#include "pipeline/pull/exchange.h"

#include <algorithm>

#include "pipeline/base/database_open.h"
#include "pipeline/base/last_transfer.h"
#include "pipeline/base/standby_record.h"
#include "pipeline/base/thread_priority.h"
#include "pipeline/disk/database_files.h"
#include "pipeline/disk/durable.h"
#include "pipeline/pull/pull_workspace.h"
#include "pipeline/pull/replica.h"

namespace sstferry {

using rocksdb::Status;
using std::chrono::steady_clock;

Status Exchange::CheckTarget() {
  if (!MayExchange(options())) {
    return Status::OK();
  }
  bool found = false;
  Replica replica;
  const Status status = CheckReplica(
      options(), plan_->opened.source_database_id, &found, &replica);
  if (status.ok() && !report_->published()) {
    replaces_ = found;
    sequence_old_ = replica.sequence;
    old_families_ = replica.families;
  }
  return status;
}

Status Exchange::CheckAhead(bool is_plan) {
  const std::string user =
      MayExchange(options()) ? DatabaseUser(options().target_dir) : "";
  if (user.empty()) {
    return Status::OK();
  }
  if (options().before_swap) {
    if (is_plan) {
      report_->Note(user +
                    " has TARGET_DIR open; --before-swap must stop it");
    }
    return Status::OK();
  }
  return MakeStatus(EndState::kBusy,
                    "target " + options().target_dir + ": " + user +
                        " holds its LOCK; stop it first, or let "
                        "--before-swap do so");
}

// Continues at the step at which the earlier run stopped, according to the
// workspace. In state kBegun, nothing was exchanged; CanResume() decides
// whether the exchange may still happen. The workspace also records what to do
// with an old database that was adopted.
Status Exchange::FinishEarlier(Workspace* workspace_of_pull) {
  workspace_ = workspace_of_pull;
  RETURN_IF_ERROR(
      workspace()->CheckMayComplete(options().after_swap != nullptr));
  Status status;
  const std::string id = workspace()->swap_transfer();
  if (workspace()->swap_state() == SwapState::kExchanged) {
    report_->Say("completing the interrupted exchange of transfer " + id);
    status = CallAfter(id, /*exchanged=*/true);
    if (status.ok()) {
      status = RetireOld();
    }
  }
  if (status.ok() && workspace()->swap_state() == SwapState::kRetired) {
    status = DeleteOld();
  }
  hooks_open_ =
      status.ok() && workspace()->swap_state() == SwapState::kBegun;
  return status;
}

Status Exchange::RetireOld() {
  std::string path;
  const Status status = workspace()->RetireOld(options().keeps_old, &path);
  if (!path.empty()) {
    report_->Log(LogLevel::kInfo, "the replaced database is kept in " + path);
  }
  return status;
}

Status Exchange::DeleteOld() {
  report_->SetPhase("delete");
  const LowIoScope low(!options().full_rate);
  const steady_clock::time_point start = steady_clock::now();
  const Status status = workspace()->RemoveOld(
      options().delete_rate_bytes_per_sec, failure_->stop());
  report_->AddSeconds(TimedStep::kDelete, SecondsSince(start));
  return status;
}

bool Exchange::CanResume(const PullWorkspace& work) {
  if (workspace()->swap_state() != SwapState::kBegun ||
      !work.may_end_alone()) {
    return false;
  }
  LastTransfer last;
  const bool verified =
      ReadLastTransfer(workspace()->db_dir(), &last) &&
      last.transfer_id == ToHex(work.unfinished().head.transfer_id) &&
      last.verified;
  report_->SetVerified(verified);
  return verified || !work.verifies();
}

Status Exchange::Resume() {
  report_->Say(
      "all data had already arrived; resuming the exchange of transfer " +
      ToHex(plan_->opened.transfer_id));
  return CheckTarget();
}

Status Exchange::CallBefore() {
  hooks_open_ = true;
  outage_since_ = steady_clock::now();
  if (!options().before_swap) {
    return Status::OK();
  }
  SwapEvent event;
  event.target_dir = options().target_dir;
  event.transfer_id = workspace()->swap_transfer();
  event.stopped = [this] { return failure_->failed(); };
  const Status status = options().before_swap(event);
  return WithContext(status, EndState::kRefused,
                     "nothing was exchanged, because the before-swap hook "
                     "failed");
}

Status Exchange::CloseHooks() {
  return CallAfter(workspace()->swap_transfer(), /*exchanged=*/false);
}

// Calls after_swap once for each call of before_swap, regardless of what
// happened in between. An application that was stopped must be started again.
Status Exchange::CallAfter(const std::string& transfer_id, bool exchanged) {
  hooks_open_ = false;
  const Status status = options().after_swap
                            ? RunAfter(transfer_id, exchanged)
                            : Status::OK();
  if (outage_since_) {
    outage_seconds_ = SecondsSince(*outage_since_);
  }
  return status;
}

Status Exchange::RunAfter(const std::string& transfer_id, bool exchanged) {
  SwapEvent event;
  event.target_dir = options().target_dir;
  event.transfer_id = transfer_id;
  event.exchanged = exchanged;
  event.stopped = [] { return false; };
  const Status status = options().after_swap(event);
  if (status.ok()) {
    return status;
  }
  ended_by_hook_ = true;
  after_failed_ = MakeStatus(
      EndState::kInternal,
      std::string(exchanged ? "the exchange is complete, but"
                            : "the exchange did not happen, and") +
          " the after-swap hook failed: " + MessageOf(status));
  return after_failed_;
}

Status Exchange::WorstOf(const Status& status,
                         const FailurePlace& place) const {
  if (after_failed_.ok() || status.ok() ||
      place.part == FailedPart::kAfterSwap) {
    return after_failed_.ok() ? status : after_failed_;
  }
  return MakeStatus(EndState::kInternal,
                    MessageOf(after_failed_) + "; before that: " +
                        EndStateName(EndStateOf(status)) + ": " +
                        MessageOf(status));
}

Status Exchange::Publish(const std::function<Status()>& last_check,
                         const std::function<Summary()>& summary) {
  if (MayExchange(options())) {
    return Swap(last_check, summary);
  }
  RETURN_IF_ERROR(last_check());
  std::string note;
  const Status status = workspace()->Publish(&note);
  if (!note.empty()) {
    report_->Say(note);
  }
  return status;
}

Status Exchange::Swap(const std::function<Status()>& last_check,
                      const std::function<Summary()>& summary) {
  // A follower makes a standby by its first cut (exchange). That cut may have
  // ended just before this pull locked the workspace.
  const bool is_cut = IsStandby(workspace()->db_dir());
  if (!is_cut) {
    RETURN_IF_ERROR(CheckNoStandby(options()));
  }
  RETURN_IF_ERROR(workspace()->BeginSwap(
      ToHex(plan_->opened.transfer_id), options().adopts_old,
      /*has_after_swap=*/!is_cut && options().after_swap != nullptr));
  Status status = CallBefore();
  FaultPoint("Puller:BeforeSwapDone");
  if (status.ok()) {
    status = failure_->failed() ? failure_->status() : CheckTarget();
  }
  if (status.ok()) {
    // The application that uses TARGET_DIR may have written to it during the
    // transfer.
    status = CheckSourceNotOlder(rocksdb::FileSystem::Default().get(),
                                 options(), plan_->opened.snapshot_sequence);
  }
  std::vector<std::string> kept;
  if (status.ok()) {
    status = workspace()->Swap(last_check, &kept);
  }
  if (workspace()->swap_state() != SwapState::kExchanged) {
    return status;  // the Puller calls CloseHooks()
  }
  exchanged_ = true;
  report_->SetPublished();
  for (const std::string& name : kept) {
    report_->Say(name + ", which is not part of the database, differs from "
                        "the source's and was also changed here: TARGET_DIR "
                        "keeps its own version");
  }
  const Status called =
      CallAfter(workspace()->swap_transfer(), /*exchanged=*/true);
  FaultPoint("Puller:AfterSwapDone");
  ended_by_hook_ = status.ok() && !called.ok();
  if (status.ok()) {
    status = called;
  }
  if (status.ok()) {
    NoteGoneFamilies();
    Finish(summary());
  }
  return status;
}

// Removes the remains of the exchange. A failure here is only noted, because
// the target is current and in use.
void Exchange::Finish(Summary summary) {
  summary.state = "complete";
  Status status = workspace()->PutIntoTarget(
      kLastTransferName, SummaryToJson(summary, summary.mode) + "\n");
  if (!status.ok()) {
    report_->Say(
        "could not record how long the application was stopped "
        "(outage_seconds): " +
        MessageOf(status));
  }
  status = RetireOld();
  if (status.ok() && workspace()->swap_state() == SwapState::kRetired) {
    status = DeleteOld();
  }
  if (status.ok()) {
    status = workspace()->RemoveWorkspace();
  }
  if (!status.ok()) {
    report_->Say(
        "the target is complete, but " + workspace()->dir() +
        " could not be cleared (" + MessageOf(status) + "); the next " +
        (options().adopts_old
             ? "follow moves the old database out of it, next to the target"
             : std::string(PullModeName(options().mode)) + " removes it"));
  }
}

void Exchange::NoteGoneFamilies() {
  const std::vector<Family>& families = plan_->families;
  for (const std::string& name : old_families_) {
    const bool still_there =
        std::any_of(families.begin(), families.end(),
                    [&name](const Family& family) {
                      return family.description.name == name;
                    });
    if (!still_there) {
      report_->Say("column family '" + name +
                            "' no longer exists at the source, and is removed "
                            "here as well");
    }
  }
}

void Exchange::FillSummary(Summary* summary) const {
  // A refresh whose TARGET_DIR is missing fills it, as a pull does.
  const bool fills =
      options().mode == PullMode::kRefresh && !replaces_;
  summary->mode = PullModeName(fills ? PullMode::kPull : options().mode);
  if (!MayExchange(options()) || fills) {
    return;
  }
  summary->sequence_old = sequence_old_;
  summary->sequence_new = plan_->opened.snapshot_sequence;
  summary->outage_seconds = outage_seconds_;
  summary->exchanged = exchanged_;
}

}  // namespace sstferry
