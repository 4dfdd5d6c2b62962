// How a Puller compares what it has with the source before the rename.
#include <optional>

#include "pipeline/base/interval_reader.h"
#include "pipeline/target/disk/durable.h"
#include "pipeline/target/lane/lane_retry.h"
#include "pipeline/target/pull/puller.h"

namespace sstferry {
namespace {

using rocksdb::Status;
using std::chrono::steady_clock;

// Readahead of a verify, per lane, over freshly ingested files.
constexpr uint64_t kVerifyReadaheadBytes = 1u << 20;
std::string FamilyName(const Family& family) {
  return "column family '" + family.description.name + "'";
}

}  // namespace

Status Puller::VerifyAgainstSource() {
  SetPhase("verify");
  const steady_clock::time_point start = steady_clock::now();
  std::atomic<size_t> next{0};
  equal_.assign(plan_.ranges.size(), 0);
  Status status = link_.RunLanes(
      [this, &next](uint32_t lane) { VerifyLane(lane, &next); });
  verify_seconds_ = SecondsSince(start);
  verified_ = status.ok();
  if (differs_) {
    const Status distrusted = Distrust();
    if (!distrusted.ok()) {
      Say("what was found different could not be recorded as such: " +
          MessageOf(distrusted));
    }
  }
  return status;
}

// The next run shall neither believe what was not found equal nor go on as if
// all had come.
Status Puller::Distrust() {
  can_go_on_ = false;
  const Status status =
      target_->Distrust({equal_.begin(), equal_.end()});
  if (!status.ok()) {
    return status;
  }
  const rocksdb::IOStatus deleted = disk_->DeleteFile(
      workspace_->journal_path(), rocksdb::IOOptions(), nullptr);
  return deleted.ok() ? SyncDirectory(disk_.get(), workspace_->dir())
                      : Status(deleted);
}

// A lost lane is asked again; what this side read of the range, it keeps.
void Puller::VerifyLane(uint32_t lane, std::atomic<size_t>* next) {
  LaneRetry retry(&state_, "lane " + std::to_string(lane));
  Channel* channel = link_.lane(lane);
  Status status;
  for (size_t at = (*next)++; status.ok() && at < plan_.ranges.size();
       at = (*next)++) {
    std::optional<DigestReply> ours;
    do {
      LaneFailure failure = LaneFailure::kFinal;
      status =
          channel != nullptr ? Status::OK() : link_.OpenLane(lane, &channel);
      if (status.ok()) {
        retry.Connected();
        status = VerifyRange(channel, plan_.ranges[at], &ours);
      }
      if (status.ok()) {
        equal_[at] = 1;
        break;
      }
      if (!failure_.failed() && channel == nullptr) {
        failure = FailureToOpen(status);
      } else if (!failure_.failed() &&
                 (EndStateOf(status) == EndState::kDeadPeer ||
                              // closed as one that had been silent
                              EndStateOf(status) == EndState::kCancelled ||
                              !channel->can_receive())) {
        failure = LaneFailure::kLost;
      }
      channel = nullptr;
      status = retry.AwaitTurn(status, failure);
    } while (status.ok());
    verified_bytes_ += plan_.ranges[at].estimated_bytes;
    state_.counters.received_bytes++;  // progress
  }
  link_.FailLane(status, "verify");
}

Status Puller::VerifyRange(Channel* channel, const Range& range,
                           std::optional<DigestReply>* ours) {
  DigestRequest request;
  request.family = range.family;
  request.interval = range.interval;
  Status status = channel->SendMessage(FrameType::kDigestRequest, request);
  if (status.ok() && !ours->has_value()) {
    DigestReply read;
    status = DigestInterval(target_->db(), target_->handle(range.family),
                            range.interval, kVerifyReadaheadBytes,
                            [this] { return failure_.failed(); }, &read);
    if (status.ok()) {
      *ours = read;
    }
  }
  DigestReply theirs;
  if (status.ok()) {
    status =
        link_.guard().ReceiveMessage(channel, FrameType::kDigestReply, &theirs);
  }
  if (status.ok() && ((*ours)->entries != theirs.entries ||
                      !((*ours)->content == theirs.content))) {
    differs_ = true;
    status = MakeStatus(
        EndState::kCorrupt,
        "verify of range " + std::to_string(range.id) + " of " +
            FamilyName(plan_.families[range.family]) + ": expected " +
            std::to_string(theirs.entries) + " entries with digest " +
            ToHex(theirs.content) + ", found " +
            std::to_string((*ours)->entries) + " with " +
            ToHex((*ours)->content));
  }
  return status;
}

}  // namespace sstferry
