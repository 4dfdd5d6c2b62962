// Connects the control connection of a SourceSession, and replaces it after a
// loss.
#include <algorithm>
#include <utility>

#include "pipeline/base/duration.h"
#include "pipeline/pull/source_session.h"

namespace sstferry {
namespace {

using rocksdb::Status;

// Number of handshakes after which the failure is final if none of their
// answers could be read.
constexpr int kTriesToShake = 3;

constexpr std::chrono::milliseconds kLastTry{500};

// Changes the request, so that it resumes a transfer. The source already knows
// the replica's families.
void ResumeInstead(const TransferId& transfer, OpenRequest* request) {
  request->snapshot_use = SnapshotUse::kResume;
  request->named_transfer = transfer;
  request->replica_families.clear();
}

}  // namespace

// Connects for the first time. If no answer arrives, tries again. If an answer
// arrives damaged, tries again a few times. Any other answer is final.
Status SourceSession::FirstContact(std::shared_ptr<Channel>* channel) {
  BackoffOptions tries = options_.retry;
  tries.give_up_after = options_.first_answer_within;
  Backoff backoff(tries);
  const Clock::time_point until =
      tries.give_up_after.count() <= 0
          ? options_.until
          : std::min(options_.until, Clock::now() + tries.give_up_after);
  int damaged = 0;
  while (true) {
    // Start the last try when the time has passed, and let it take kLastTry.
    const Clock::time_point moment = Clock::now() + kLastTry;
    const Status status = DialControl(
        std::min(options_.until, std::max(until, moment)), channel);
    const bool strange = EndStateOf(status) == EndState::kCorrupt;
    const bool tried_enough = strange && ++damaged == kTriesToShake;
    if (tried_enough ||
        (!strange && EndStateOf(status) != EndState::kDeadPeer)) {
      return status;
    }
    RETURN_IF_ERROR(AwaitTurn(&backoff, options_.until, status));
  }
}

Status SourceSession::DialControl(Clock::time_point until,
                                  std::shared_ptr<Channel>* channel) {
  WaitLimit limit = WaitLimit::Within(options_.timeouts.connect);
  limit.until = std::min(limit.until, until);
  std::unique_ptr<Connection> connection;
  RETURN_IF_ERROR(dialer_->Dial(limit, &connection));
  auto dialed = std::make_shared<Channel>(std::move(connection));
  {
    std::lock_guard<std::mutex> lock(mu_);
    dialed_ = dialed;
    if (stopping_) {
      dialed->Close();
    }
  }
  HelloAck ack;
  const Status status =
      ShakeHands(options_.handshakes, dialed.get(), MakeHello(), limit, &ack);
  std::lock_guard<std::mutex> lock(mu_);
  dialed_.reset();
  if (status.ok()) {
    if (connections_++ == 0) {
      ack_ = ack;  // does not change after this
    }
    *channel = std::move(dialed);
  }
  return status;
}

Status SourceSession::AwaitTurn(Backoff* backoff, Clock::time_point until,
                                const Status& status) {
  std::chrono::milliseconds wait{0};
  const bool again = backoff->Next(&wait);
  if (!again || Clock::now() + wait >= until) {
    const auto limit = backoff == &backoff_ ? options_.retry.give_up_after
                                            : options_.first_answer_within;
    return limit.count() == 0
               ? status
               : MakeStatus(EndState::kDeadPeer,
                            MessageOf(status) + "; tried for " +
                                FormatDuration(limit));
  }
  if (options_.on_failed_try && MessageOf(status) != last_failure_) {
    options_.on_failed_try(status);
  }
  last_failure_ = MessageOf(status);
  return AwaitTime(Clock::now() + wait);
}

Status SourceSession::AwaitTime(Clock::time_point turn) {
  while (Clock::now() < turn) {
    // Poll `stop`, because nothing else can cancel the wait before the session
    // exists.
    if (options_.stop != nullptr && options_.stop->stopped()) {
      return MakeStatus(EndState::kCancelled, "stopped on request");
    }
    std::unique_lock<std::mutex> lock(mu_);
    const auto step = std::min<Clock::duration>(
        turn - Clock::now(), std::chrono::milliseconds(200));
    if (changed_.wait_for(lock, step, [this] { return stopping_; })) {
      return MakeStatus(EndState::kCancelled, "stopped on request");
    }
  }
  return Status::OK();
}

Status SourceSession::Reconnect(Status status) {
  Status waited;
  channel()->Close();
  if (status.IsBusy()) {
    if (options_.on_busy) {
      options_.on_busy();
    }
    backoff_ = Backoff(options_.retry);  // the source has answered
    waited = AwaitTime(*asks_again_at());
  } else {
    lost_ = true;
    if (options_.on_retry) {
      options_.on_retry(status);
    }
    last_failure_ = MessageOf(status);
    waited = AwaitTurn(&backoff_, Clock::time_point::max(), status);
  }
  int strange = 0;
  while (waited.ok()) {
    std::shared_ptr<Channel> next;
    status = DialControl(options_.until, &next);
    if (status.ok()) {
      status = Reopen(std::move(next));
    }
    const EndState state = EndStateOf(status);
    // The source has accepted this side before, so a single refusal may be a
    // damaged answer.
    const bool is_strange =
        state == EndState::kIncompatible || state == EndState::kDenied;
    if (status.ok() || state == EndState::kRefused ||
        (is_strange && ++strange >= kTriesToShake)) {
      return status;
    }
    lost_ = true;
    waited = AwaitTurn(&backoff_, Clock::time_point::max(), status);
  }
  return waited;
}

// Requests the transfer again on `channel`. The reader receives the answer like
// any other plan.
Status SourceSession::Reopen(std::shared_ptr<Channel> channel) {
  OpenRequest request;
  {
    std::lock_guard<std::mutex> lock(mu_);
    past_wire_bytes_ += channel_->bytes_received() + channel_->bytes_sent();
    channel_ = channel;
    dialing_ = false;
    if (stopping_) {
      channel->Close();
    }
    connected_ = !plan_.has_begun();
    if (!plan_.has_begun()) {
      changed_.notify_all();
      return Status::OK();
    }
    request = request_;
    if (plan_.transfer_id().has_value()) {
      ResumeInstead(*plan_.transfer_id(), &request);
    } else if (request.snapshot_use == SnapshotUse::kLatest) {
      request.waited_seconds = plan_.SecondsSinceFirstAsked();
    }
    plan_.Begin();
  }
  return Ask(channel.get(), request);
}

}  // namespace sstferry
