#include "pipeline/pull/source_link.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "format/end_state.h"
#include "pipeline/base/start_thread.h"
#include "pipeline/pull/lane_shared.h"

namespace sstferry {

using rocksdb::Status;

namespace {

constexpr std::chrono::milliseconds kFirstAnswer{10'000};

}  // namespace

SourceLink::SourceLink(Dialer* dialer, SourceLinkOptions options,
                       FirstFailure* failure)
    : dialer_(dialer),
      options_(std::move(options)),
      failure_(failure),
      guard_(
          options_.timeouts.stall, [this] { return session_->progress(); },
          options_.timeouts.retry.count() > 0 &&
                  options_.timeouts.peer.count() > 0
              ? options_.timeouts.peer
              : options_.timeouts.stall),
      lost_source_(options_.log) {}

SourceLink::~SourceLink() {
  session_.reset();  // its threads use the other members
}

SourceSessionOptions SourceLink::SessionOptions() {
  SourceSessionOptions options;
  options.timeouts = options_.timeouts;
  options.until = options_.until;
  options.handshakes = &handshakes_;
  options.retry.progress = options_.progress;
  if (tolerated_ != Tolerated::kAny) {
    options.retry.give_up_after = options_.timeouts.retry;
    options.first_answer_within =
        answered_ ? options_.timeouts.retry
                  : options_.timeouts.first_answer.value_or(
                        std::min(kFirstAnswer, options_.timeouts.retry));
  }
  options.stop = failure_->stop();
  options.on_retry = [this](const Status& lost) { OnRetry(lost); };
  options.on_busy = [this] { OnBusy(); };
  options.on_failed_try = [this](const Status& failed) {
    // Log at a lower level after a loss, because the loss was logged already
    // and the progress shows the reason.
    Log(is_lost_ ? LogLevel::kDebug : LogLevel::kWarning,
        std::string("cannot reach the source, trying again: ") +
            EndStateName(EndStateOf(failed)) + ": " + MessageOf(failed));
    SetWaitingFor(MessageOf(failed));
  };
  options.on_fail = [this](const Status& failed) {
    if (!Tolerates(failed)) {
      failure_->Set(failed, FailurePlace::Source(options_.side,
                                                 dialer_->address()));
    }
  };
  options.on_stats = options_.on_stats;
  return options;
}

Status SourceLink::Connect() {
  std::unique_ptr<SourceSession> session;
  Status status =
      SourceSession::Connect(dialer_, SessionOptions(), &session);
  {
    std::lock_guard<std::mutex> lock(mu_);
    session_ = std::move(session);
    waiting_for_.clear();
  }
  if (status.ok() && failure_->failed()) {
    // The operation failed before the session existed. So Close() could not
    // cancel the session.
    status = failure_->status();
  }
  answered_ = answered_ || status.ok();
  return status;
}

// Returns true if the failure ends only the session. For example, a source
// returns kSnapshotGone if it no longer has the transfer.
bool SourceLink::Tolerates(const Status& status) const {
  const Tolerated tolerated = tolerated_;
  return tolerated == Tolerated::kAny ||
         (tolerated == Tolerated::kSnapshotGone &&
          EndStateOf(status) == EndState::kSnapshotGone);
}

void SourceLink::Drop(const Status& status) {
  std::unique_ptr<SourceSession> session;
  {
    std::lock_guard<std::mutex> lock(mu_);
    session = std::move(session_);
  }
  if (session != nullptr) {
    session->End(status, FailurePlace{FailedPart::kTarget}.ToString());
  }
}

void SourceLink::End(const Status& status, const FailurePlace& place) {
  if (session_ != nullptr && !ended_) {
    ended_ = true;
    session_->End(status, place.ToString());
  }
}

void SourceLink::SetLanes(uint32_t lanes, uint16_t allowed_flags) {
  allowed_flags_ = allowed_flags;
  std::lock_guard<std::mutex> lock(mu_);
  lanes_.resize(lanes);
}

void SourceLink::ShareWith(LaneShared* lanes) {
  lanes->guard = &guard_;
  lanes->open_lane = [this](uint32_t lane, Channel** channel) {
    return OpenLane(lane, channel);
  };
  lanes->retry_for = options_.timeouts.retry;
  lanes->chunk_time = options_.timeouts.stall;
  lanes->stop = failure_->stop();
  lanes->log = options_.log;
  lanes->lost_source = &lost_source_;
}

Status SourceLink::OpenLane(uint32_t lane, Channel** channel) {
  std::unique_ptr<Channel> opened;
  RETURN_IF_ERROR(session_->ConnectLane(lane, &opened));
  std::lock_guard<std::mutex> lock(mu_);
  *channel = opened.get();
  if (allowed_flags_ != 0) {
    opened->AllowFlags(allowed_flags_);
  }
  if (failure_->failed()) {
    opened->Close();
  }
  if (lanes_[lane] != nullptr) {
    past_wire_bytes_ +=
        lanes_[lane]->bytes_received() + lanes_[lane]->bytes_sent();
  }
  lanes_[lane] = std::move(opened);
  return Status::OK();
}

Status SourceLink::RunLanes(const std::function<void(uint32_t)>& work) {
  std::vector<std::thread> threads(lanes());
  for (size_t lane = 0; lane < threads.size() && !failure_->failed(); ++lane) {
    const Status started = StartThread(
        [this, &work, lane] {
          if (options_.on_lane_thread) {
            options_.on_lane_thread();
          }
          work(static_cast<uint32_t>(lane));
        },
        &threads[lane]);
    if (!started.ok()) {
      failure_->Set(started, {FailedPart::kTarget});
    }
  }
  for (std::thread& thread : threads) {
    if (thread.joinable()) {
      thread.join();
    }
  }
  return failure_->status();
}

void SourceLink::FailLane(const Status& status, const FailurePlace& place) {
  AwaitLastWords(status);
  if (!status.ok()) {
    failure_->Set(status, place);
  }
}

// Waits for the reason on the control connection. A source that fails closes
// all its lanes without a reason. A lane that is opened afterwards gets the
// answer that the transfer has ended, without the reason.
void SourceLink::AwaitLastWords(const Status& lane) {
  const EndState state = EndStateOf(lane);
  if (state != EndState::kDeadPeer &&
      (state != EndState::kCancelled || failure_->failed())) {
    return;
  }
  const Status told = session_->AwaitFailure(options_.last_words);
  if (!told.ok()) {
    failure_->Set(told, FailurePlace::Source(options_.side,
                                             dialer_->address()));
  }
}

// Logs that the control connection was lost. If `lost` is OK, logs that it is
// back.
void SourceLink::OnRetry(const Status& lost) {
  if (lost.ok()) {
    if (is_lost_) {
      lost_source_.Back("control connection");
    }
    is_lost_ = false;
    since_ = LostSource::Clock::now();
    SetWaitingFor("");
    CloseSilentLanes();
    return;
  }
  if (options_.on_loss) {
    options_.on_loss();
  }
  if (!is_lost_) {
    lost_source_.Lost("control connection", since_, MessageOf(lost));
  }
  is_lost_ = true;
  SetWaitingFor(MessageOf(lost));
}

void SourceLink::OnBusy() {
  Log(LogLevel::kInfo, "source: " + waiting_for());
  if (options_.on_busy) {
    options_.on_busy();
  }
}

// Closes lanes that have received nothing since before the control connection
// was lost. The same failure may have broken these lanes without an error.
void SourceLink::CloseSilentLanes() {
  const int64_t since =
      std::chrono::duration_cast<std::chrono::microseconds>(
          (Clock::now() - options_.timeouts.peer).time_since_epoch())
          .count();
  std::lock_guard<std::mutex> lock(mu_);
  for (const std::unique_ptr<Channel>& lane : lanes_) {
    if (lane != nullptr && lane->last_received_micros() < since) {
      lane->Close();
    }
  }
}

void SourceLink::Close() {
  std::lock_guard<std::mutex> lock(mu_);
  dialer_->Close();
  handshakes_.CloseAll();
  if (session_ != nullptr) {
    session_->Cancel();
  }
  for (const std::unique_ptr<Channel>& lane : lanes_) {
    if (lane != nullptr) {
      lane->Close();
    }
  }
}

void SourceLink::SetWaitingFor(const std::string& why) {
  std::lock_guard<std::mutex> lock(mu_);
  waiting_for_ = why;
}

std::string SourceLink::waiting_for() const {
  std::lock_guard<std::mutex> lock(mu_);
  const std::optional<Clock::time_point> turn =
      session_ != nullptr ? session_->asks_again_at() : std::nullopt;
  const Clock::time_point now = Clock::now();
  if (!turn.has_value() || (*turn < now && !waiting_for_.empty())) {
    return waiting_for_;  // the source cannot be asked
  }
  const auto left = std::chrono::ceil<std::chrono::seconds>(
      std::max(*turn - now, Clock::duration::zero()));
  return "all transfer slots of the source are in use, or it does not know "
         "yet that this target's old connection ended; asking again in " +
         std::to_string(left.count()) + " s";
}

uint32_t SourceLink::lanes() const {
  std::lock_guard<std::mutex> lock(mu_);
  return static_cast<uint32_t>(lanes_.size());
}

Stats SourceLink::stats() const {
  std::lock_guard<std::mutex> lock(mu_);
  return session_ != nullptr ? session_->stats() : Stats();
}

uint64_t SourceLink::wire_bytes() const {
  std::lock_guard<std::mutex> lock(mu_);
  uint64_t bytes = past_wire_bytes_;
  if (session_ != nullptr) {
    bytes += session_->wire_bytes();
  }
  for (const std::unique_ptr<Channel>& lane : lanes_) {
    if (lane != nullptr) {
      bytes += lane->bytes_received() + lane->bytes_sent();
    }
  }
  return bytes;
}

void SourceLink::Log(LogLevel level, const std::string& text) const {
  if (options_.log) {
    options_.log(level, text);
  }
}

}  // namespace sstferry
