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
  found_.resize(context_->plan->ranges.size());
  todo_.clear();
  for (const Range& range : context_->plan->ranges) {
    if (found_[range.id] != Found::kEqual) {
      todo_.push_back(range.id);
    }
  }
  collects_ = false;
  Status status = RunLanes();
  if (status.ok() && first_) {
    context_->failure->Set(first_difference_, "verify");
    status = first_difference_;
  }
  report->result()->verified = status.ok();
  if (first_) {
    ListDifferent();
    const Status distrusted = Distrust();
    if (!distrusted.ok()) {
      report->Say("what was found different could not be recorded as such: " +
                  MessageOf(distrusted));
    }
  }
  return status;
}

Status PullVerifier::Compare(const std::vector<uint32_t>& ranges,
                             std::vector<uint32_t>* different) {
  found_.assign(context_->plan->ranges.size(), Found::kNothing);
  todo_ = ranges;
  collects_ = true;
  const Status status = RunLanes();
  for (const uint32_t id : ranges) {
    if (found_[id] != Found::kEqual) {
      different->push_back(id);
    }
  }
  return status;
}

// The files of a clone are not repaired by their keys.
void PullVerifier::ListDifferent() {
  for (const Range& range : context_->plan->ranges) {
    if (context_->state->clone == nullptr &&
        found_[range.id] == Found::kDifferent) {
      context_->report->result()->different.Add(
          context_->plan->families[range.family].description.name,
          context_->state->families[range.family].comparator, range.interval);
    }
  }
}

Status PullVerifier::RunLanes() {
  context_->report->SetPhase("verify");
  const steady_clock::time_point start = steady_clock::now();
  std::atomic<size_t> next{0};
  const Status status = context_->link->RunLanes(
      [this, &next](uint32_t lane) { RunLane(lane, &next); });
  context_->report->result()->verify_seconds += SecondsSince(start);
  return status;
}

// The next run shall neither believe what was not found equal nor resume as if
// all had come.
Status PullVerifier::Distrust() {
  context_->work->SetResumable(false);
  std::vector<bool> equal;
  for (const Found found : found_) {
    equal.push_back(found == Found::kEqual);
  }
  const Status status = context_->target->Distrust(equal);
  return status.ok() ? context_->work->RemoveJournal() : status;
}

// A lost lane is asked again; what this side read of the range, it keeps.
void PullVerifier::RunLane(uint32_t lane, std::atomic<size_t>* next) {
  SourceLink* const link = context_->link;
  LaneRetry retry(context_->state, "lane " + std::to_string(lane),
                  context_->options->retry_for);
  Channel* channel = link->lane(lane);
  Status status;
  for (size_t at = (*next)++; status.ok() && at < todo_.size();
       at = (*next)++) {
    const Range& range = context_->plan->ranges[todo_[at]];
    std::optional<DigestReply> ours;
    Status difference;
    do {
      status =
          channel != nullptr ? Status::OK() : link->OpenLane(lane, &channel);
      if (status.ok()) {
        retry.Connected();
        status = CompareRange(channel, range, &ours, &difference);
      }
      if (status.ok()) {
        found_[range.id] =
            difference.ok() ? Found::kEqual : Found::kDifferent;
        break;
      }
      const LaneFailure failure =
          FailureToAsk(status, channel, context_->failure->failed());
      channel = nullptr;
      status = retry.AwaitTurn(status, failure);
    } while (status.ok());
    if (status.ok() && !difference.ok() && !collects_) {
      status = TakeDifference(range, difference);
    }
    context_->report->CountVerified(range.estimated_bytes);
    context_->state->counters.received_bytes++;  // progress
  }
  link->FailLane(status, "verify");
}

Status PullVerifier::TakeDifference(const Range& range,
                                    const Status& difference) {
  std::lock_guard<std::mutex> lock(mu_);
  if (!first_ || range.id < *first_) {
    first_ = range.id;
    first_difference_ = difference;
  }
  return context_->state->clone != nullptr ? difference : Status::OK();
}

Status PullVerifier::AskFor(Channel* channel, const Range& range) {
  if (context_->state->clone != nullptr) {
    UnitDigestRequest request;
    request.range_id = range.id;
    return channel->SendMessage(FrameType::kUnitDigestRequest, request);
  }
  DigestRequest request;
  request.family = range.family;
  request.interval = range.interval;
  return channel->SendMessage(FrameType::kDigestRequest, request);
}

Status PullVerifier::CompareRange(Channel* channel, const Range& range,
                                  std::optional<DigestReply>* ours,
                                  Status* difference) {
  Status status = AskFor(channel, range);
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
    *difference = Different(range, **ours, theirs);
  }
  return status;
}

Status PullVerifier::Different(const Range& range, const DigestReply& ours,
                               const DigestReply& theirs) const {
  const CloneLayout* const clone = context_->state->clone;
  if (clone != nullptr) {
    const CloneUnit& unit = clone->unit(range.id);
    return MakeStatus(
        EndState::kCorrupt,
        "verify of " + CloneFileName(clone->file_of(range.id)) + ": expected " +
            std::to_string(unit.bytes) + " bytes at " +
            std::to_string(unit.offset) + " with digest " +
            ToHex(theirs.content) + ", found " + ToHex(ours.content));
  }
  const Family& family = context_->plan->families[range.family];
  return MakeStatus(
      EndState::kCorrupt,
      "verify of range " + std::to_string(range.id) + " of column family '" +
          family.description.name + "': expected " +
          std::to_string(theirs.entries) + " entries with digest " +
          ToHex(theirs.content) + ", found " + std::to_string(ours.entries) +
          " with " + ToHex(ours.content));
}

}  // namespace sstferry
