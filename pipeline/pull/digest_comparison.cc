#include "pipeline/pull/digest_comparison.h"

#include <atomic>
#include <utility>

namespace sstferry {

using rocksdb::Status;

SourceDigests::SourceDigests(SourceLink* link, const FirstFailure* failure,
                             std::function<DigestPart(uint32_t)> part_of,
                             std::string label, LaneShared* state)
    : link_(link),
      failure_(failure),
      part_of_(std::move(part_of)),
      label_(std::move(label)),
      state_(state),
      lanes_(link->lanes()) {
  for (uint32_t lane = 0; lane < lanes_.size(); ++lane) {
    lanes_[lane].channel = link->lane(lane);
    if (state != nullptr) {
      lanes_[lane].retry = std::make_unique<LaneRetry>(
          state, "lane " + std::to_string(lane));
    }
  }
}

Status SourceDigests::Send(uint32_t lane, uint32_t part) {
  Lane& at = lanes_[lane];
  RETURN_IF_ERROR(at.channel == nullptr ? link_->OpenLane(lane, &at.channel)
                                        : Status::OK());
  if (at.retry != nullptr) {
    at.retry->Connected();
  }
  const DigestPart asked = part_of_(part);
  if (asked.unit.has_value()) {
    UnitDigestRequest request;
    request.part_id = *asked.unit;
    return at.channel->SendMessage(FrameType::kUnitDigestRequest, request);
  }
  DigestRequest request;
  request.family = asked.family;
  request.interval = asked.interval;
  return at.channel->SendMessage(FrameType::kDigestRequest, request);
}

void SourceDigests::Ask(uint32_t lane, uint32_t part) {
  lanes_[lane].asked = Send(lane, part);
}

Status SourceDigests::Receive(uint32_t lane, uint32_t part,
                              DigestReply* reply) {
  Lane& at = lanes_[lane];
  Status status = std::move(at.asked);
  while (true) {
    if (status.ok()) {
      status = link_->guard().ReceiveMessage(at.channel,
                                             FrameType::kDigestReply, reply);
    }
    if (status.ok()) {
      if (state_ != nullptr) {
        state_->counters.progress++;
      }
      return status;
    }
    const LaneFailure failure =
        FailureToAsk(status, at.channel, failure_->failed());
    at.channel = nullptr;
    const Status retried =
        at.retry != nullptr ? at.retry->AwaitTurn(status, failure) : status;
    if (!retried.ok()) {
      link_->AwaitLastWords(retried);
      is_corrupt_ = is_corrupt_ || EndStateOf(retried) == EndState::kCorrupt;
      return label_.empty()
                 ? retried
                 : WithContext(retried, EndStateOf(retried), label_);
    }
    status = Send(lane, part);
  }
}

Status CompareDigests(SourceLink* lanes, FirstFailure* failure,
                      DigestSide* left, DigestSide* right,
                      const std::vector<uint32_t>& parts,
                      const std::function<Status(const ComparedPart&)>& take) {
  std::atomic<size_t> next{0};
  return lanes->RunLanes([&](uint32_t lane) {
    Status status;
    for (size_t at = next++;
         status.ok() && at < parts.size() && !failure->failed(); at = next++) {
      ComparedPart compared;
      compared.lane = lane;
      compared.part = parts[at];
      left->Ask(lane, compared.part);
      right->Ask(lane, compared.part);
      status = left->Receive(lane, compared.part, &compared.left);
      if (status.ok()) {
        status = right->Receive(lane, compared.part, &compared.right);
      }
      if (status.ok()) {
        status = take(compared);
      }
    }
    if (!status.ok()) {
      failure->Set(status,
                   FailurePlace::Lane(FailedPart::kVerifyLane, lane));
    }
  });
}

}  // namespace sstferry
