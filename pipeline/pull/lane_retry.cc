#include "pipeline/pull/lane_retry.h"

#include "pipeline/base/duration.h"

namespace sstferry {
namespace {

using rocksdb::Status;

BackoffOptions OptionsOf(const LaneShared& state) {
  BackoffOptions options;
  options.give_up_after = state.retry_for;
  options.progress = [&state] { return state.counters.progress.load(); };
  return options;
}

}  // namespace

LaneFailure FailureToOpen(const Status& status) {
  switch (EndStateOf(status)) {
    // Damage of one byte may look like a wrong version or a failed TLS
    // handshake. So retry; an error that repeats is real.
    case EndState::kIncompatible:
    case EndState::kDenied:
      return LaneFailure::kDamaged;
    case EndState::kDeadPeer:
    case EndState::kCorrupt:
    // After a restart, the source does not know the transfer until the control
    // connection has resumed it.
    case EndState::kSnapshotGone:
      return LaneFailure::kLost;
    default:
      return LaneFailure::kFinal;
  }
}

LaneFailure FailureToAsk(const Status& status, const Channel* channel,
                         bool ends) {
  if (ends) {
    return LaneFailure::kFinal;
  }
  if (channel == nullptr) {
    return FailureToOpen(status);
  }
  const EndState state = EndStateOf(status);
  const bool lost = state == EndState::kDeadPeer ||
                    // CloseSilentLanes() has closed the channel.
                    state == EndState::kCancelled || !channel->can_receive();
  return lost ? LaneFailure::kLost : LaneFailure::kFinal;
}

LaneRetry::LaneRetry(LaneShared* state, std::string what)
    : state_(state), what_(std::move(what)), backoff_(OptionsOf(*state)) {}

void LaneRetry::Log(LogLevel level, const std::string& text) const {
  if (state_->log) {
    state_->log(level, what_ + ": " + text);
  }
}

Status LaneRetry::AwaitTurn(const Status& status, LaneFailure failure) {
  if (failure == LaneFailure::kFinal ||
      state_->retry_for <= std::chrono::milliseconds::zero()) {
    return status;
  }
  if (failure == LaneFailure::kDamaged) {
    tries_ = good_bytes_ >= kBytesBetweenDamage ? 1 : tries_ + 1;
    good_bytes_ = 0;
    if (tries_ >= kMaxTries) {
      return WithContext(status, EndState::kCorrupt,
                         what_ + ": each of " + std::to_string(tries_) +
                             " tries failed");
    }
  }
  if (losses_ >= kMaxLosses) {
    return MakeStatus(EndState::kDeadPeer,
                      what_ + ": lost the same chunk " +
                          std::to_string(losses_) +
                          " times; last error: " + MessageOf(status));
  }
  std::chrono::milliseconds wait{0};
  if (!backoff_.Next(&wait)) {
    return MakeStatus(EndState::kDeadPeer,
                      what_ + ": no progress for " +
                          FormatDuration(state_->retry_for) +
                          "; last error: " + MessageOf(status));
  }
  CountFailure(status, failure);
  if (state_->stop != nullptr && state_->stop->WaitFor(wait)) {
    return MakeStatus(EndState::kCancelled, "stopped on request");
  }
  return Status::OK();
}

// Counts and logs a failure at its first try only.
void LaneRetry::CountFailure(const Status& status, LaneFailure failure) {
  state_->retries += counted_ ? 0 : 1;
  if (failure == LaneFailure::kDamaged && !counted_) {
    Log(LogLevel::kWarning, std::string("bytes arrived damaged, asking for "
                                        "them again: ") +
                                EndStateName(EndStateOf(status)) + ": " +
                                MessageOf(status));
  }
  if (failure == LaneFailure::kTold && !counted_) {
    // The source reports, for example, that it has read wrong bytes from an
    // archive.
    Log(LogLevel::kWarning, "asking the source again: " + MessageOf(status));
  }
  if (failure == LaneFailure::kLost && !lost_ &&
      state_->lost_source != nullptr) {
    state_->lost_source->Lost(what_, since_, MessageOf(status));
    lost_ = true;
  }
  counted_ = true;
}

void LaneRetry::Connected() {
  if (lost_) {
    state_->lost_source->Back(what_);
  }
  if (counted_ || since_ == LostSource::Clock::time_point()) {
    since_ = LostSource::Clock::now();
  }
  counted_ = lost_ = false;
}

void LaneRetry::CountGood(uint64_t bytes) {
  backoff_.Succeeded();
  if (!chunk_bad_) {
    good_bytes_ += bytes;
  }
}

void LaneRetry::ChunkDone() {
  chunk_bad_ = false;
  tries_ = 0;
  losses_ = 0;
}

}  // namespace sstferry
