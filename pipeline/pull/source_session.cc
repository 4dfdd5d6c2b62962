#include "pipeline/pull/source_session.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>
#include <utility>

#include "format/for_each_batch.h"
#include "format/limits.h"
#include "pipeline/base/duration.h"
#include "pipeline/base/rocksdb_compat.h"
#include "pipeline/base/start_thread.h"

namespace sstferry {
namespace {

using rocksdb::Status;

// Maximum wait for an answer while the source reports progress all the time.
constexpr std::chrono::hours kPinLimit{24};
// Maximum wait for a connection on which to send the final OK.
constexpr std::chrono::milliseconds kLastWordsLimit{3'000};
// Time limit of sends on the control connection. A request to stop waits at
// most this long for a send. The messages are small, so the limit is
// sufficient.
constexpr std::chrono::milliseconds kSendLimit{4'000};

// Sends the list of the parts that are complete at the target. After a
// reconnect, the source may be another process, which does not know them.
void SendReceived(Channel* channel, const std::vector<ReceivedPart>& parts) {
  const Status status =
      ForEachBatch(parts, [channel](std::vector<ReceivedPart> batch) {
        return channel->SendMessage(FrameType::kReceived,
                                    Received{std::move(batch)},
                                    WaitLimit::Within(kSendLimit));
      });
  // The reader of the connection also notices a failed send.
  status.PermitUncheckedError();
}

Status Stalled(const std::string& address, std::chrono::milliseconds limit) {
  return MakeStatus(EndState::kTooSlow,
                    "source " + address +
                        ": is connected, but neither answered nor read "
                        "anything for " + FormatDuration(limit));
}

Status CheckTotals(const Finish& ours, const Finish& theirs) {
  if (theirs.families.size() != ours.families.size()) {
    return MakeStatus(EndState::kCorrupt,
                      "totals: the source reports another number of column "
                      "families");
  }
  for (size_t i = 0; i < ours.families.size(); ++i) {
    if (!(ours.families[i] == theirs.families[i])) {
      return MakeStatus(EndState::kCorrupt,
                        "totals of column family " + std::to_string(i) +
                            " differ from the source's: expected " +
                            std::to_string(theirs.families[i].entries) +
                            " entries, found " +
                            std::to_string(ours.families[i].entries));
    }
  }
  return Status::OK();
}

Status AnswerPing(const Frame& frame, Channel* channel) {
  Ping ping;
  RETURN_IF_ERROR(Decode(frame.payload, &ping));
  return channel->SendMessage(FrameType::kPong, ping);
}

Status DecodeAnswer(const Frame& frame, SourceAnswers* answers) {
  switch (frame.type) {
    case FrameType::kListReply:
      return Decode(frame.payload, &answers->list);
    case FrameType::kStatusReply:
      return Decode(frame.payload, &answers->received);
    case FrameType::kPinReply:
      return Decode(frame.payload, &answers->pins);
    case FrameType::kFollowEnd:
      return Decode(frame.payload, &answers->follow_end);
    case FrameType::kOtherFilePart:
      return Decode(frame.payload, &answers->other_file);
    default:
      return Decode(frame.payload, &answers->facts);
  }
}

}  // namespace

Hello MakeHello() {
  Hello hello;
  hello.software = SoftwareVersion();
  if (!kIngestsEntities) {
    hello.features &= ~kFeatureEntities;
  }
  if (!kLinkedReadsMarkedBlocks) {
    hello.features &= ~kFeatureMarkedBlocks;
  }
  hello.rocksdb_version = RocksDbVersion();
  hello.max_format_version = MaxReadableFormatVersion();
  return hello;
}

std::string TargetText(const std::string& target_dir) {
  std::array<char, 256> host{};
  std::string text =
      gethostname(host.data(), host.size() - 1) == 0 ? host.data() : "";
  if (!target_dir.empty()) {
    std::error_code error;
    text += ":" + std::filesystem::absolute(target_dir, error)
                      .lexically_normal()
                      .string();
  }
  return text.substr(0, kMaxTargetTextBytes);
}

OpenRequest MakeOpenRequest(const PullOptions& options,
                            const std::string& name, Purpose purpose) {
  OpenRequest request;
  request.database = name;
  request.purpose = purpose;
  request.families = options.selection.families;
  request.interval = options.selection.interval;
  request.lanes = options.lanes;
  request.chunk_bytes = options.chunk_bytes;
  request.application = options.for_rocksdb;
  request.full_rate = options.full_rate;
  request.target = TargetText(options.target_dir);
  if (options.method == PullMethod::kClone) {
    request.mode = TransferMode::kClone;
  }
  return request;
}

SourceSession::SourceSession(Dialer* dialer,
                             const SourceSessionOptions& options)
    : dialer_(dialer), options_(options), backoff_(options.retry) {}

Status SourceSession::Connect(Dialer* dialer,
                              const SourceSessionOptions& options,
                              std::unique_ptr<SourceSession>* session) {
  std::unique_ptr<SourceSession> opened(new SourceSession(dialer, options));
  std::shared_ptr<Channel> channel;
  RETURN_IF_ERROR(opened->FirstContact(&channel));
  opened->channel_ = std::move(channel);
  opened->connected_ = true;
  SourceSession* raw = opened.get();
  RETURN_IF_ERROR(StartThread([raw] { raw->ReadLoop(); }, &raw->reader_));
  RETURN_IF_ERROR(StartThread([raw] { raw->PingLoop(); }, &raw->pinger_));
  *session = std::move(opened);
  return Status::OK();
}

SourceSession::~SourceSession() { StopThreads(); }

std::shared_ptr<Channel> SourceSession::channel() const {
  std::lock_guard<std::mutex> lock(mu_);
  return channel_;
}

uint64_t SourceSession::wire_bytes() const {
  std::lock_guard<std::mutex> lock(mu_);
  return past_wire_bytes_ + channel_->bytes_received() +
         channel_->bytes_sent();
}

void SourceSession::StopThreads() {
  bool dialing = false;
  {
    std::lock_guard<std::mutex> lock(mu_);
    stopping_ = true;
    // Close the dialer only if it is dialing for this session. If the session
    // has failed, it no longer dials, and its dialer may already serve the next
    // session.
    dialing = dialing_ && status_.ok();
    for (const std::shared_ptr<Channel>& open : {channel_, dialed_}) {
      if (open != nullptr) {
        open->Close();
      }
    }
  }
  if (dialing) {
    dialer_->Close();
  }
  changed_.notify_all();
  for (std::thread* thread : {&reader_, &pinger_}) {
    if (thread->joinable()) {
      thread->join();
    }
  }
}

Status SourceSession::ReadUntilFailure(Channel* channel) {
  WaitLimit limit;
  limit.idle = options_.timeouts.peer;
  while (true) {
    Frame frame;
    Status status = channel->Receive(limit, &frame);
    if (!status.ok()) {
      std::lock_guard<std::mutex> lock(mu_);
      may_retry_ = true;  // silence, a closed connection, damaged bytes
      return status;
    }
    status = Handle(frame);
    if (!status.ok()) {
      std::lock_guard<std::mutex> lock(mu_);
      // Retry if the source shuts down, because it may start again. Retry after
      // a failed send, even if ConnectLane() has closed the connection.
      const EndState state = EndStateOf(status);
      may_retry_ = state == EndState::kDeadPeer ||
                   state == EndState::kCancelled ||
                   (state == EndState::kBusy && frame.type == FrameType::kBusy);
      if (state == EndState::kSnapshotGone && !plan_.gave_plan() &&
          plan_.transfer_id().has_value() &&
          request_.snapshot_use != SnapshotUse::kResume) {
        plan_.ForgetTransfer();
        may_retry_ = true;
      }
      return status;
    }
  }
}

void SourceSession::ReadLoop() {
  Status status;
  while (status.ok()) {
    status = ReadUntilFailure(channel().get());
    bool retry = false;
    {
      std::lock_guard<std::mutex> lock(mu_);
      connected_ = false;
      // A busy answer is no loss of the connection, so connect again even
      // without retries.
      retry = may_retry_ && !stopping_ &&
              (options_.retry.give_up_after.count() > 0 || status.IsBusy());
      dialing_ = retry;
    }
    if (retry) {
      status = Reconnect(status);
    }
  }
  bool report = false;
  {
    std::lock_guard<std::mutex> lock(mu_);
    report = !stopping_ && status_.ok();
    if (status_.ok()) {
      status_ = status;
    }
  }
  changed_.notify_all();
  if (report && options_.on_fail) {
    options_.on_fail(status);
  }
}

Status SourceSession::Ask(Channel* channel, const OpenRequest& request) {
  return channel->SendMessage(FrameType::kOpenRequest, request,
                              WaitLimit::Within(kSendLimit));
}

void SourceSession::PingLoop() {
  uint64_t token = 0;
  std::unique_lock<std::mutex> lock(mu_);
  while (!changed_.wait_for(lock, options_.timeouts.ping_interval(),
                            [this] { return stopping_ || !status_.ok(); })) {
    const std::shared_ptr<Channel> channel = channel_;
    lock.unlock();
    Ping ping;
    ping.token = ++token;
    // The reader also notices a failed send.
    channel->SendMessage(FrameType::kPing, ping).PermitUncheckedError();
    lock.lock();
  }
}

Status SourceSession::Handle(const Frame& frame) {
  switch (frame.type) {
    case FrameType::kPing:
      return AnswerPing(frame, channel_.get());
    case FrameType::kPong:
      return Status::OK();
    case FrameType::kStats: {
      Stats stats;
      RETURN_IF_ERROR(Decode(frame.payload, &stats));
      {
        std::lock_guard<std::mutex> lock(mu_);
        answers_.stats = stats;
      }
      const std::optional<Compress> compress =
          options_.on_stats ? options_.on_stats(stats) : std::nullopt;
      return compress ? channel_->SendMessage(FrameType::kCompress, *compress)
                      : Status::OK();
    }
    case FrameType::kListReply:
    case FrameType::kStatusReply:
    case FrameType::kFactsReply:
    case FrameType::kPinReply:
    case FrameType::kFollowEnd:
    case FrameType::kOtherFilePart:
      return HandleAnswer(frame);
    case FrameType::kWalBytes:
      return HandleWalBytes(frame);
    case FrameType::kFinished: {
      std::lock_guard<std::mutex> lock(mu_);
      const Status status = Decode(frame.payload, &answers_.finish);
      answers_.finished = status.ok();
      changed_.notify_all();
      return status;
    }
    default: {
      Status status;
      bool resumed = false;
      {
        std::lock_guard<std::mutex> lock(mu_);
        status = HandlePlanFrame(frame);
        resumed = std::exchange(resumed_, false);
      }
      if (resumed && options_.on_retry) {
        options_.on_retry(status);
      }
      return status;
    }
  }
}

Status SourceSession::HandlePlanFrame(const Frame& frame) {
  if (!plan_.Expects(frame.type)) {
    // An End frame contains the reason for a failure. Any other frame is out of
    // order.
    return channel_->ExpectType(frame,
                                plan_.has_begun() && !plan_.is_opened()
                                    ? FrameType::kOpened
                                    : FrameType::kPing);
  }
  const Status status = plan_.Take(frame);
  if (status.IsNotFound()) {
    return channel_->ExpectType(frame, FrameType::kPlanEnd);
  }
  if (status.ok() && plan_.is_complete()) {
    connected_ = true;
    backoff_.Succeeded();
    resumed_ = std::exchange(lost_, false);
    changed_.notify_all();
  }
  return status;
}

Status SourceSession::HandleAnswer(const Frame& frame) {
  std::lock_guard<std::mutex> lock(mu_);
  answers_.answer_bytes += frame.payload.size();
  const Status status = DecodeAnswer(frame, &answers_);
  answers_.answered = status.ok();
  changed_.notify_all();
  return status;
}

// Joins the messages for each WAL. Then the memory for an answer does not
// depend on the size of the messages into which the source divides it.
Status SourceSession::HandleWalBytes(const Frame& frame) {
  std::lock_guard<std::mutex> lock(mu_);
  if (!answers_.follows || answers_.answered) {
    return channel_->ExpectType(frame, FrameType::kPing);  // out of order
  }
  WalBytes bytes;
  RETURN_IF_ERROR(Decode(frame.payload, &bytes));
  answers_.answer_bytes += frame.payload.size();
  std::vector<WalBytes>& all = answers_.follow_bytes;
  const uint64_t number = all.empty() ? 0 : all.back().wal_number;
  const uint64_t end =
      all.empty() ? 0 : all.back().offset_bytes + all.back().bytes.size();
  const bool continues =
      bytes.wal_number == number && bytes.offset_bytes == end;
  const bool begins =
      all.empty() || (bytes.wal_number > number && bytes.offset_bytes == 0);
  if (bytes.bytes.empty() || !(continues || begins)) {
    return MakeStatus(
        EndState::kCorrupt,
        "WalBytes: expected bytes from offset " + std::to_string(end) +
            " of WAL " + std::to_string(number) +
            " on, or from the beginning of a later WAL on, found " +
            std::to_string(bytes.bytes.size()) + " bytes from offset " +
            std::to_string(bytes.offset_bytes) + " of WAL " +
            std::to_string(bytes.wal_number) + " on");
  }
  answers_.follow_total +=
      bytes.bytes.size() + (continues ? 0 : sizeof(WalBytes));
  if (answers_.follow_total > kMaxFollowAnswerBytes) {
    return MakeStatus(EndState::kCorrupt,
                      "WalBytes: expected at most " +
                          std::to_string(kMaxFollowAnswerBytes) +
                          " bytes in an answer, found more");
  }
  if (continues) {
    all.back().bytes += bytes.bytes;
  } else {
    all.push_back(std::move(bytes));
  }
  return Status::OK();
}

template <typename Message, typename Reply>
Status SourceSession::Question(FrameType type, const Message& message,
                               const Reply& answer, Reply* reply) {
  Status status;
  bool answered = false;
  while (status.ok() && !answered) {
    std::shared_ptr<Channel> channel;
    uint64_t connection = 0;
    RETURN_IF_ERROR(AwaitChannel(&channel, &connection));
    const Status sent = channel->SendMessage(type, message,
                                             WaitLimit::Within(kSendLimit));
    if (!sent.ok() && options_.retry.give_up_after.count() == 0) {
      return sent;
    }  // else: the reader also notices it, and reconnects
    status = WaitFor([this, connection] {
      return answers_.answered || connections_ != connection;
    });
    std::lock_guard<std::mutex> lock(mu_);
    answered = std::exchange(answers_.answered, false);
    *reply = answer;
  }
  return status;
}

Status SourceSession::List(const ListRequest& ask, ListReply* reply) {
  return Question(FrameType::kListRequest, ask, answers_.list, reply);
}

Status SourceSession::AskRetained(const StatusRequest& ask,
                                  StatusReply* reply) {
  return Question(FrameType::kStatusRequest, ask, answers_.received, reply);
}

Status SourceSession::AskFacts(const FactsRequest& ask, FactsReply* reply) {
  return Question(FrameType::kFactsRequest, ask, answers_.facts, reply);
}

Status SourceSession::Pin(const PinRequest& ask, PinReply* reply) {
  const Status status =
      Question(FrameType::kPinRequest, ask, answers_.pins, reply);
  return !status.ok() || reply->databases.size() == ask.names.size()
             ? status
             : MakeStatus(EndState::kCorrupt,
                          "pins: expected " + std::to_string(ask.names.size()) +
                              " databases, found " +
                              std::to_string(reply->databases.size()));
}

Status SourceSession::AskWalBytes(const FollowRequest& ask,
                                  std::vector<WalBytes>* bytes,
                                  FollowEnd* end) {
  {
    std::lock_guard<std::mutex> lock(mu_);
    answers_.follows = true;
  }
  const Status status = Question(FrameType::kFollowRequest, ask,
                                 answers_.follow_end, end);
  std::lock_guard<std::mutex> lock(mu_);
  answers_.follows = false;
  *bytes = std::exchange(answers_.follow_bytes, {});
  answers_.follow_total = 0;
  return status;
}

Status SourceSession::EndPin(const PinEnd& end) {
  return channel()->SendMessage(FrameType::kPinEnd, end,
                                WaitLimit::Within(kSendLimit));
}

Status SourceSession::AskOtherFile(const OtherFileRequest& ask,
                                   OtherFilePart* part) {
  return Question(FrameType::kOtherFileRequest, ask, answers_.other_file,
                  part);
}

uint64_t SourceSession::activity() const {
  const Stats& stats = answers_.stats;
  return stats.entries + stats.sst_bytes + stats.read_bytes + plan_.bytes() +
         connections_ + answers_.answer_bytes;
}

Status SourceSession::WaitFor(const std::function<bool()>& has_come) {
  const Clock::time_point begun = Clock::now();
  std::unique_lock<std::mutex> lock(mu_);
  const auto ended = [this, &has_come] {
    return has_come() || !status_.ok() || stopping_;
  };
  uint64_t seen = activity();
  while (!changed_.wait_until(
      lock, std::min(options_.until, Clock::now() + options_.timeouts.stall),
      ended)) {
    if (Clock::now() >= options_.until) {
      return MakeStatus(EndState::kDeadline,
                        "source " + dialer_->address() +
                            ": no answer by the deadline");
    }
    const uint64_t now = activity();
    // Continue to wait while the source reports progress, for example while it
    // replays a large WAL, and while parts of its answer arrive. Also continue
    // while the source has no free transfer slot; only the deadline ends this
    // wait.
    if (!dialing_ &&
        (now == seen ||
         Clock::now() >= std::max(begun, plan_.asked_at()) + kPinLimit)) {
      return Stalled(dialer_->address(), options_.timeouts.stall);
    }
    seen = now;
  }
  if (has_come()) {
    return Status::OK();
  }
  return !status_.ok() ? status_
                       : MakeStatus(EndState::kCancelled,
                                    "stopped on request");
}

Status SourceSession::Open(const OpenRequest& request, Plan* plan) {
  std::shared_ptr<Channel> channel;
  uint64_t connection = 0;
  RETURN_IF_ERROR(AwaitChannel(&channel, &connection));
  {
    std::lock_guard<std::mutex> lock(mu_);
    plan_.Begin();
    connected_ = false;
    request_ = request;
    if (connections_ != connection) {
      channel = channel_;
    }
  }
  Status status = Ask(channel.get(), request_);
  if (!status.ok() && options_.retry.give_up_after.count() > 0) {
    status = Status::OK();  // the reader also notices it, and asks again
  }
  while (status.ok()) {
    status = WaitFor([this] { return plan_.is_complete(); });
    std::lock_guard<std::mutex> lock(mu_);
    if (status.ok() && plan_.is_complete()) {
      *plan = plan_.TakePlan();
      break;
    }  // else: the plan was lost and is requested again
  }
  return status;
}

Status SourceSession::ConnectLane(uint32_t lane,
                                  std::unique_ptr<Channel>* channel) {
  const WaitLimit limit = WaitLimit::Within(options_.timeouts.connect);
  std::unique_ptr<Connection> connection;
  RETURN_IF_ERROR(dialer_->Dial(limit, &connection));
  auto opened = std::make_unique<Channel>(std::move(connection));
  uint64_t control = 0;
  Hello hello = MakeHello();
  hello.kind = ConnectionKind::kLane;
  hello.lane = lane;
  {
    std::lock_guard<std::mutex> lock(mu_);
    hello.transfer_id = plan_.transfer_id().value_or(TransferId{});
    control = connections_;
  }
  HelloAck ack;
  const Status status =
      ShakeHands(options_.handshakes, opened.get(), hello, limit, &ack);
  if (status.ok()) {
    *channel = std::move(opened);
  } else if (EndStateOf(status) == EndState::kSnapshotGone) {
    // Only an answer on the control connection is final. Close that connection,
    // so that the source answers on a new one. If it was already replaced, do
    // not close the new one.
    std::lock_guard<std::mutex> lock(mu_);
    if (connections_ == control && connected_ &&
        options_.retry.give_up_after.count() > 0) {
      channel_->Close();
    }
  }
  return status;
}

Status SourceSession::AwaitChannel(std::shared_ptr<Channel>* channel,
                                   uint64_t* connection) {
  std::unique_lock<std::mutex> lock(mu_);
  // Wait without a limit, because the reader connects again or gives up.
  changed_.wait(lock,
                [this] { return connected_ || stopping_ || !status_.ok(); });
  *channel = channel_;
  *connection = connections_;
  return !status_.ok() ? status_
         : stopping_   ? MakeStatus(EndState::kCancelled, "stopped on request")
                       : Status::OK();
}

Status SourceSession::AskForTotals(const struct Finish& ours,
                                   const std::vector<ReceivedPart>& received) {
  Status status;
  while (status.ok()) {
    std::shared_ptr<Channel> channel;
    uint64_t connection = 0;
    status = AwaitChannel(&channel, &connection);
    if (!status.ok()) {
      break;
    }
    if (wants_received()) {
      SendReceived(channel.get(), received);
    }
    channel->SendMessage(FrameType::kFinish, ours,
                         WaitLimit::Within(kSendLimit))
        .PermitUncheckedError();
    std::unique_lock<std::mutex> lock(mu_);
    changed_.wait_for(lock, options_.timeouts.stall, [this, connection] {
      return answers_.finished || !status_.ok() || stopping_ || !connected_ ||
             connections_ != connection;
    });
    if (answers_.finished) {
      return Status::OK();
    }
    if (connected_ && connections_ == connection && !stopping_ &&
        status_.ok()) {
      status = Stalled(dialer_->address(), options_.timeouts.stall);
    }
  }
  return status;
}

Status SourceSession::Finish(const struct Finish& ours,
                             const std::vector<ReceivedPart>& received,
                             struct Finish* theirs) {
  RETURN_IF_ERROR(AskForTotals(ours, received));
  std::lock_guard<std::mutex> lock(mu_);
  *theirs = answers_.finish;
  return CheckTotals(ours, *theirs);
}

void SourceSession::End(const Status& status, const std::string& where) {
  std::shared_ptr<Channel> channel;
  {
    std::unique_lock<std::mutex> lock(mu_);
    if (status.ok()) {
      // Wait for a connection. If the source does not get the message, it keeps
      // its snapshot for some time.
      changed_.wait_for(lock, kLastWordsLimit, [this] {
        return connected_ || stopping_ || !status_.ok();
      });
    }
    stopping_ = true;
    channel = channel_;
  }
  if (status.ok()) {
    struct End end;
    channel->SendMessage(FrameType::kEnd, end, WaitLimit::Within(
        std::chrono::milliseconds(1000))).PermitUncheckedError();
  } else {
    SendEnd(channel.get(), status, where);
  }
  StopThreads();
}

void SourceSession::Cancel() {
  {
    std::lock_guard<std::mutex> lock(mu_);
    stopping_ = true;
  }
  changed_.notify_all();
}

Status SourceSession::AwaitFailure(std::chrono::milliseconds limit) {
  std::unique_lock<std::mutex> lock(mu_);
  changed_.wait_for(lock, limit,
                    [this] { return stopping_ || !status_.ok(); });
  return status_;
}

Stats SourceSession::stats() const {
  std::lock_guard<std::mutex> lock(mu_);
  return answers_.stats;
}

uint64_t SourceSession::progress() const {
  const Stats newest = stats();
  return newest.entries + newest.sst_bytes + newest.read_bytes;
}

}  // namespace sstferry
