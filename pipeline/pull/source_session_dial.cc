// Connects the control connection of a SourceSession, and replaces it after a
// loss.
#include <algorithm>
#include <utility>

#include "pipeline/base/duration.h"
#include "pipeline/pull/source_session.h"

namespace sstferry {
namespace {

using rocksdb::Status;

// Number of handshakes with an unreadable answer after which the failure is
// final.
constexpr int kTriesToShake = 3;

constexpr std::chrono::milliseconds kLastTry{500};

// Changes the request to resume a transfer of the source, which already knows
// the replica's families.
void ResumeInstead(const TransferId& transfer, OpenRequest* request) {
  request->snapshot_use = SnapshotUse::kResume;
  request->named_transfer = transfer;
  request->replica_families.clear();
}

}  // namespace

// Connects for the first time. An answer is final: only silence is retried and,
// a few times, an answer that may have been damaged on the way.
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
    // The last try starts when the time has passed, and may take kLastTry.
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
      ack_ = ack;  // not changed from here on
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
    // Poll `stop`: before the session exists, nothing else can cancel the wait.
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
    backoff_ = Backoff(options_.retry);  // the source answered
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
    // The source accepted this side before, so a single refusal may be damage.
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

// Asks for the transfer again. The reader receives the source's answer like any
// other plan.
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
