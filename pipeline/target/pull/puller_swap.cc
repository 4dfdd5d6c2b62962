// How a Puller makes a replica current by an exchange of directories, between
// two hooks of the application's.
#include <algorithm>

#include "pipeline/base/last_transfer.h"
#include "pipeline/base/thread_priority.h"
#include "pipeline/target/disk/durable.h"
#include "pipeline/target/journal/pull_identity.h"
#include "pipeline/target/memory/replica.h"
#include "pipeline/target/pull/puller.h"

namespace sstferry {

using rocksdb::Status;
using std::chrono::steady_clock;

Status Puller::CheckSource() {
  Status status =
      ChooseSourceId(options_, &plan_.opened.source_database_id);
  return status.ok() && is_swap() ? CheckTargetReplica() : status;
}

Status Puller::CheckTargetReplica() {
  bool found = false;
  Replica replica;
  const Status status = CheckReplica(
      options_, plan_.opened.source_database_id, &found, &replica);
  if (status.ok() && !published_) {
    sequence_old_ = replica.sequence;
    old_families_ = replica.families;
  }
  return status;
}

// Makes good what a refresh that died in its exchange left to do. One that
// died before the exchange is gone on with if all is there, else its hooks are
// closed first: the application must not wait for what comes now.
Status Puller::FinishEarlierSwap() {
  Status status;
  const std::string id = workspace_->swap_transfer();
  if (workspace_->swap_state() == SwapState::kExchanged) {
    Say("completes the exchange of transfer " + id + " that was cut short");
    status = CallAfterSwap(id, /*exchanged=*/true);
    if (status.ok()) {
      status = workspace_->RetireOld();
    }
  }
  if (status.ok() && workspace_->swap_state() == SwapState::kRetired) {
    status = DeleteOld();
  }
  return status;
}

Status Puller::DeleteOld() {
  SetPhase("delete");
  const LowIoScope low(options_.low_priority);
  const steady_clock::time_point start = steady_clock::now();
  const Status status =
      workspace_->RemoveOld(options_.delete_rate_bytes_per_sec,
                            failure_.stop());
  delete_seconds_ += SecondsSince(start);
  return status;
}

// Of a swap that was begun: everything has come, and was verified if that is
// asked for.
bool Puller::CanGoOnWithSwap() {
  if (workspace_->swap_state() != SwapState::kBegun || !resuming_ ||
      !unfinished_.complete) {
    return false;
  }
  LastTransfer last;
  verified_ = ReadLastTransfer(workspace_->db_dir(), &last) &&
              last.transfer_id == ToHex(unfinished_.head.transfer_id) &&
              last.verified;
  return verified_ || !options_.verify;
}

Status Puller::GoOnWithSwap() {
  plan_ = PlanOf(unfinished_);
  planned_bytes_ = plan_.estimated_bytes;
  Say("everything had come: goes on with the exchange of transfer " +
      ToHex(plan_.opened.transfer_id) + " that was cut short");
  return CheckTargetReplica();
}

Status Puller::CallBeforeSwap() {
  hooks_open_ = true;
  outage_since_ = steady_clock::now();
  if (!options_.before_swap) {
    return Status::OK();
  }
  SwapEvent event;
  event.target_dir = options_.target_dir;
  event.transfer_id = workspace_->swap_transfer();
  event.stopped = [this] { return failure_.failed(); };
  Log(LogLevel::kInfo, "before the exchange: calls the hook");
  const Status status = options_.before_swap(event);
  return WithContext(status, EndState::kRefused,
                     "before the exchange: nothing was exchanged");
}

// Once for each time that the other hook was begun, whatever happened since.
Status Puller::CallAfterSwap(const std::string& transfer_id, bool exchanged) {
  hooks_open_ = false;
  const Status status = options_.after_swap
                            ? RunAfterSwap(transfer_id, exchanged)
                            : Status::OK();
  if (outage_since_) {
    outage_seconds_ = SecondsSince(*outage_since_);
  }
  return status;
}

Status Puller::RunAfterSwap(const std::string& transfer_id, bool exchanged) {
  SwapEvent event;
  event.target_dir = options_.target_dir;
  event.transfer_id = transfer_id;
  event.exchanged = exchanged;
  event.stopped = [] { return false; };
  Log(LogLevel::kInfo, "after the exchange: calls the hook");
  const Status status = options_.after_swap(event);
  if (status.ok()) {
    return status;
  }
  after_swap_failed_ = MakeStatus(
      EndState::kInternal, std::string("after the exchange, which ") +
                               (exchanged ? "stands" : "did not happen") +
                               ": " + MessageOf(status));
  return after_swap_failed_;
}

// An application that was not started again is worse than what came before.
Status Puller::WorstOf(const Status& status) const {
  if (after_swap_failed_.ok() || status.ok() ||
      MessageOf(status) == MessageOf(after_swap_failed_)) {
    return after_swap_failed_.ok() ? status : after_swap_failed_;
  }
  return MakeStatus(EndState::kInternal,
                    MessageOf(after_swap_failed_) + "; before that: " +
                        EndStateName(EndStateOf(status)) + ": " +
                        MessageOf(status));
}

Status Puller::PublishBySwap() {
  // Nothing is asked of the source any more, and nothing it does may end what
  // an application waits for.
  link_.End(Status::OK(), "");
  Status status =
      workspace_->BeginSwap(ToHex(plan_.opened.transfer_id));
  if (!status.ok()) {
    return status;
  }
  status = CallBeforeSwap();
  FaultPoint("Puller:BeforeSwapDone");
  if (status.ok()) {
    status = failure_.failed() ? failure_.status() : CheckTargetReplica();
  }
  if (status.ok()) {
    status = workspace_->Swap();
  }
  if (workspace_->swap_state() != SwapState::kExchanged) {
    return status;  // Run() calls the other hook
  }
  {
    std::lock_guard<std::mutex> lock(mu_);
    published_ = true;
  }
  const Status called =
      CallAfterSwap(workspace_->swap_transfer(), /*exchanged=*/true);
  FaultPoint("Puller:AfterSwapDone");
  if (status.ok()) {
    status = called;
  }
  if (status.ok()) {
    NoteGoneFamilies();
    FinishSwap();
  }
  return status;
}

// The target is current and served: what fails from here on is a note.
void Puller::FinishSwap() {
  Summary summary;
  FillSummary(&summary);
  summary.state = "complete";
  Status status = WriteDurably(
      disk_.get(), options_.target_dir + "/" + kLastTransferName,
      SummaryToJson(summary, "pull") + "\n");
  if (!status.ok()) {
    Say("outage_seconds could not be recorded: " + MessageOf(status));
  }
  status = workspace_->RetireOld();
  if (status.ok()) {
    status = DeleteOld();
  }
  if (status.ok()) {
    status = workspace_->RemoveWorkspace();
  }
  if (!status.ok()) {
    Say("the target is complete, but what is left in " + workspace_->dir() +
        " is for the next refresh to remove: " + MessageOf(status));
  }
}

void Puller::NoteGoneFamilies() {
  for (const std::string& name : old_families_) {
    const bool still_there =
        std::any_of(plan_.families.begin(), plan_.families.end(),
                    [&name](const Family& family) {
                      return family.description.name == name;
                    });
    if (!still_there) {
      Say("column family '" + name +
          "' is gone at the source, and so it is here");
    }
  }
}

}  // namespace sstferry
