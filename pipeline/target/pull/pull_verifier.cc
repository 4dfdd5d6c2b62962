#include "pipeline/target/pull/pull_verifier.h"

#include <chrono>

#include "pipeline/target/lane/lane_retry.h"
#include "pipeline/target/pull/pull_reporter.h"
#include "pipeline/target/pull/pull_target.h"
#include "pipeline/target/pull/pull_workspace.h"

namespace sstferry {

using rocksdb::Status;
using std::chrono::steady_clock;

Status PullVerifier::Run() {
  PullReporter* const report = context_->report;
  report->SetPhase("verify");
  const steady_clock::time_point start = steady_clock::now();
  std::atomic<size_t> next{0};
  equal_.assign(context_->plan->ranges.size(), 0);
  const Status status = context_->link->RunLanes(
      [this, &next](uint32_t lane) { RunLane(lane, &next); });
  report->result()->verify_seconds = SecondsSince(start);
  report->result()->verified = status.ok();
  if (differs_) {
    const Status distrusted = Distrust();
    if (!distrusted.ok()) {
      report->Say("what was found different could not be recorded as such: " +
                  MessageOf(distrusted));
    }
  }
  return status;
}

// The next run shall neither believe what was not found equal nor resume as if
// all had come.
Status PullVerifier::Distrust() {
  context_->work->SetResumable(false);
  const Status status =
      context_->target->Distrust({equal_.begin(), equal_.end()});
  return status.ok() ? context_->work->RemoveJournal() : status;
}

// A lost lane is asked again; what this side read of the range, it keeps.
void PullVerifier::RunLane(uint32_t lane, std::atomic<size_t>* next) {
  const std::vector<Range>& ranges = context_->plan->ranges;
  SourceLink* const link = context_->link;
  LaneRetry retry(context_->state, "lane " + std::to_string(lane));
  Channel* channel = link->lane(lane);
  Status status;
  for (size_t at = (*next)++; status.ok() && at < ranges.size();
       at = (*next)++) {
    std::optional<DigestReply> ours;
    do {
      LaneFailure failure = LaneFailure::kFinal;
      status =
          channel != nullptr ? Status::OK() : link->OpenLane(lane, &channel);
      if (status.ok()) {
        retry.Connected();
        status = CompareRange(channel, ranges[at], &ours);
      }
      if (status.ok()) {
        equal_[at] = 1;
        break;
      }
      const bool failed = context_->failure->failed();
      if (!failed && channel == nullptr) {
        failure = FailureToOpen(status);
      } else if (!failed && (EndStateOf(status) == EndState::kDeadPeer ||
                             // closed as one that had been silent
                             EndStateOf(status) == EndState::kCancelled ||
                             !channel->can_receive())) {
        failure = LaneFailure::kLost;
      }
      channel = nullptr;
      status = retry.AwaitTurn(status, failure);
    } while (status.ok());
    context_->report->CountVerified(ranges[at].estimated_bytes);
    context_->state->counters.received_bytes++;  // progress
  }
  link->FailLane(status, "verify");
}

Status PullVerifier::CompareRange(Channel* channel, const Range& range,
                                  std::optional<DigestReply>* ours) {
  DigestRequest request;
  request.family = range.family;
  request.interval = range.interval;
  Status status = channel->SendMessage(FrameType::kDigestRequest, request);
  if (status.ok() && !ours->has_value()) {
    DigestReply read;
    status = context_->target->DigestRange(range, &read);
    if (status.ok()) {
      *ours = read;
    }
  }
  DigestReply theirs;
  if (status.ok()) {
    status = context_->link->guard().ReceiveMessage(
        channel, FrameType::kDigestReply, &theirs);
  }
  if (status.ok() && ((*ours)->entries != theirs.entries ||
                      !((*ours)->content == theirs.content))) {
    differs_ = true;
    const Family& family = context_->plan->families[range.family];
    status = MakeStatus(
        EndState::kCorrupt,
        "verify of range " + std::to_string(range.id) + " of column family '" +
            family.description.name + "': expected " +
            std::to_string(theirs.entries) + " entries with digest " +
            ToHex(theirs.content) + ", found " +
            std::to_string((*ours)->entries) + " with " +
            ToHex((*ours)->content));
  }
  return status;
}

}  // namespace sstferry
