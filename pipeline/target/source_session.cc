#include "pipeline/target/source_session.h"

#include <algorithm>

#include "format/limits.h"
#include "pipeline/rocksdb_compat.h"
#include "rocksdb/convenience.h"

namespace sstferry {
namespace {

using rocksdb::Status;

// Keys, names and reasons of a whole plan, as held in memory.
constexpr uint64_t kMaxPlanBytes = 64u << 20;

// What an option or a range takes in memory beyond its bytes on the wire.
constexpr uint64_t kItemBytes = 128;
constexpr uint64_t kMaxRangeBytes = 1ull << 44;

// Sends on the control connection are small; a request to stop must not wait
// for one longer than this.
constexpr std::chrono::milliseconds kSendLimit{4'000};
// Answers that cost the source nothing.
constexpr std::chrono::milliseconds kAnswerLimit{60'000};
constexpr std::chrono::hours kPinLimit{24};

Status Malformed(const std::string& what) {
  return MakeStatus(EndState::kCorrupt, "plan: " + what);
}

}  // namespace

Hello MakeHello() {
  Hello hello;
  hello.software = SoftwareVersion();
  if (!kIngestsEntities) {
    hello.features &= ~kFeatureEntities;
  }
  hello.rocksdb_version = RocksDbVersion();
  hello.max_format_version = MaxReadableFormatVersion();
  for (rocksdb::CompressionType type : rocksdb::GetSupportedCompressions()) {
    hello.compressions.push_back(static_cast<uint8_t>(type));
  }
  return hello;
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
  request.format_version = options.format_version;
  request.carry = options.carry;
  request.max_rate_bytes_per_sec = options.max_rate_bytes_per_sec;
  return request;
}

SourceSession::SourceSession(Dialer* dialer,
                             const SourceSessionOptions& options,
                             std::unique_ptr<Channel> channel)
    : dialer_(dialer), options_(options), channel_(std::move(channel)) {}

Status SourceSession::Connect(Dialer* dialer,
                              const SourceSessionOptions& options,
                              std::unique_ptr<SourceSession>* session) {
  const WaitLimit limit = WaitLimit::Within(options.connect_timeout);
  std::unique_ptr<Connection> connection;
  Status status = dialer->Dial(limit, &connection);
  if (!status.ok()) {
    return status;
  }
  std::unique_ptr<SourceSession> opened(
      new SourceSession(dialer, options,
                        std::make_unique<Channel>(std::move(connection))));
  status = Shake(options, opened->channel_.get(), MakeHello(), limit,
                 &opened->ack_);
  if (!status.ok()) {
    return status;
  }
  SourceSession* raw = opened.get();
  raw->reader_ = std::thread([raw] { raw->ReadLoop(); });
  raw->pinger_ = std::thread([raw] { raw->PingLoop(); });
  *session = std::move(opened);
  return Status::OK();
}

Status SourceSession::Shake(const SourceSessionOptions& options,
                            Channel* channel, const Hello& hello,
                            const WaitLimit& limit, HelloAck* ack) {
  if (options.handshakes == nullptr) {
    return ClientHandshake(channel, hello, limit, ack);
  }
  options.handshakes->Add(channel);
  const Status status = ClientHandshake(channel, hello, limit, ack);
  options.handshakes->Remove(channel);
  return status;
}

SourceSession::~SourceSession() { StopThreads(); }

void SourceSession::StopThreads() {
  {
    std::lock_guard<std::mutex> lock(mu_);
    stopping_ = true;
  }
  changed_.notify_all();
  channel_->Close();
  for (std::thread* thread : {&reader_, &pinger_}) {
    if (thread->joinable()) {
      thread->join();
    }
  }
}

void SourceSession::ReadLoop() {
  WaitLimit limit;
  limit.idle = options_.peer_timeout;
  Status status;
  while (status.ok()) {
    Frame frame;
    status = channel_->Receive(limit, &frame);
    if (status.ok()) {
      status = Handle(frame);
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
    options_.on_fail(status, "source " + dialer_->address());
  }
}

void SourceSession::PingLoop() {
  uint64_t token = 0;
  std::unique_lock<std::mutex> lock(mu_);
  while (!changed_.wait_for(lock, options_.ping_interval, [this] {
    return stopping_ || !status_.ok();
  })) {
    lock.unlock();
    Ping ping;
    ping.token = ++token;
    // A send that fails is found by the reader, which ends the session.
    channel_->SendMessage(FrameType::kPing, ping).PermitUncheckedError();
    lock.lock();
  }
}

Status SourceSession::Handle(const Frame& frame) {
  switch (frame.type) {
    case FrameType::kPing: {
      Ping ping;
      const Status status = ping.DecodeFrom(frame.payload);
      return status.ok() ? channel_->SendMessage(FrameType::kPong, ping)
                         : status;
    }
    case FrameType::kPong:
      return Status::OK();
    case FrameType::kStats: {
      Stats stats;
      const Status status = stats.DecodeFrom(frame.payload);
      if (!status.ok()) {
        return status;
      }
      {
        std::lock_guard<std::mutex> lock(mu_);
        stats_ = stats;
      }
      const std::optional<Compress> compress =
          options_.on_stats ? options_.on_stats(stats) : std::nullopt;
      return compress ? channel_->SendMessage(FrameType::kCompress, *compress)
                      : status;
    }
    case FrameType::kListReply: {
      std::lock_guard<std::mutex> lock(mu_);
      const Status status = list_.DecodeFrom(frame.payload);
      listed_ = status.ok();
      changed_.notify_all();
      return status;
    }
    case FrameType::kFinished: {
      std::lock_guard<std::mutex> lock(mu_);
      const Status status = finish_.DecodeFrom(frame.payload);
      finished_ = status.ok();
      changed_.notify_all();
      return status;
    }
    default: {
      std::lock_guard<std::mutex> lock(mu_);
      return HandlePlanFrame(frame);
    }
  }
}

Status SourceSession::HandlePlanFrame(const Frame& frame) {
  const bool in_plan = opening_ && !planned_;
  if (!in_plan ||
      (frame.type == FrameType::kOpened) == opened_) {
    // An End frame says why; anything else is out of turn.
    return channel_->ExpectType(
        frame, opening_ && !opened_ ? FrameType::kOpened : FrameType::kPing);
  }
  plan_bytes_ += frame.payload.size();
  if (plan_bytes_ > kMaxPlanBytes) {
    return Malformed("expected at most " + std::to_string(kMaxPlanBytes) +
                     " bytes");
  }
  switch (frame.type) {
    case FrameType::kOpened:
      opened_ = true;
      return plan_.opened.DecodeFrom(frame.payload);
    case FrameType::kFamily: {
      Family family;
      const Status status = family.DecodeFrom(frame.payload);
      if (status.ok() && (family.index != plan_.families.size() ||
                          family.index >= plan_.opened.family_count)) {
        return Malformed("column family " + std::to_string(family.index) +
                         " is out of turn");
      }
      plan_bytes_ += kItemBytes * (family.description.options.size() +
                                   family.description.table_options.size());
      plan_.families.push_back(std::move(family));
      return status;
    }
    case FrameType::kRanges: {
      Ranges batch;
      const Status status = batch.DecodeFrom(frame.payload);
      return status.ok() ? AddRanges(std::move(batch)) : status;
    }
    case FrameType::kPlanItems: {
      PlanItems batch;
      const Status status = batch.DecodeFrom(frame.payload);
      for (PlanItem& item : batch.items) {
        if (item.family >= plan_.families.size()) {
          return Malformed("an item names an unknown column family");
        }
        if (plan_.items.size() >= kMaxRanges) {
          return Malformed("expected at most " + std::to_string(kMaxRanges) +
                           " items");
        }
        plan_.items.push_back(std::move(item));
      }
      return status;
    }
    case FrameType::kPlanEnd: {
      PlanEnd end;
      const Status status = end.DecodeFrom(frame.payload);
      if (status.ok() &&
          (end.range_count != plan_.ranges.size() ||
           plan_.families.size() != plan_.opened.family_count)) {
        return Malformed("expected " + std::to_string(end.range_count) +
                         " ranges, found " +
                         std::to_string(plan_.ranges.size()));
      }
      planned_ = true;
      changed_.notify_all();
      return status;
    }
    default:
      return channel_->ExpectType(frame, FrameType::kPlanEnd);
  }
}

Status SourceSession::AddRanges(Ranges batch) {
  for (Range& range : batch.ranges) {
    if (range.id != plan_.ranges.size() || range.id >= kMaxRanges ||
        range.family >= plan_.families.size()) {
      return Malformed("range " + std::to_string(range.id) +
                       " is out of turn");
    }
    plan_bytes_ += kItemBytes;
    // Sums of these must not overflow.
    range.estimated_bytes = std::min(range.estimated_bytes, kMaxRangeBytes);
    plan_.estimated_bytes += range.estimated_bytes;
    plan_.ranges.push_back(std::move(range));
  }
  return Status::OK();
}

Status SourceSession::WaitFor(const bool& flag,
                              std::chrono::milliseconds limit) {
  std::unique_lock<std::mutex> lock(mu_);
  changed_.wait_for(lock, limit, [this, &flag] {
    return flag || !status_.ok() || stopping_;
  });
  if (!flag && status_.ok()) {
    return stopping_ ? MakeStatus(EndState::kCancelled, "stopped on request")
                     : MakeStatus(EndState::kDeadPeer,
                                  "source " + dialer_->address() +
                                      ": no answer for " +
                                      std::to_string(limit.count()) + " ms");
  }
  return flag ? Status::OK() : status_;
}

Status SourceSession::List(std::vector<std::string>* names) {
  Status status = channel_->Send(FrameType::kListRequest, "",
                                 WaitLimit::Within(kSendLimit));
  if (status.ok()) {
    status = WaitFor(listed_, kAnswerLimit);
  }
  std::lock_guard<std::mutex> lock(mu_);
  *names = list_.names;
  return status;
}

Status SourceSession::Open(const OpenRequest& request, SourcePlan* plan) {
  {
    std::lock_guard<std::mutex> lock(mu_);
    opening_ = true;
  }
  Status status = channel_->SendMessage(FrameType::kOpenRequest, request,
                                        WaitLimit::Within(kSendLimit));
  if (status.ok()) {
    // A big WAL takes as long as it takes; pings tell whether anyone is there.
    status = WaitFor(planned_, kPinLimit);
  }
  if (status.ok()) {
    std::lock_guard<std::mutex> lock(mu_);
    transfer_id_ = plan_.opened.transfer_id;
    *plan = std::move(plan_);
  }
  return status;
}

Status SourceSession::ConnectLane(uint32_t lane,
                                  std::unique_ptr<Channel>* channel) {
  const WaitLimit limit = WaitLimit::Within(options_.connect_timeout);
  std::unique_ptr<Connection> connection;
  Status status = dialer_->Dial(limit, &connection);
  if (!status.ok()) {
    return status;
  }
  auto opened = std::make_unique<Channel>(std::move(connection));
  Hello hello = MakeHello();
  hello.kind = ConnectionKind::kLane;
  hello.lane = lane;
  {
    std::lock_guard<std::mutex> lock(mu_);
    hello.transfer_id = transfer_id_;
  }
  HelloAck ack;
  status = Shake(options_, opened.get(), hello, limit, &ack);
  if (status.ok()) {
    *channel = std::move(opened);
  }
  return status;
}

Status SourceSession::Finish(const struct Finish& ours,
                             struct Finish* theirs) {
  Status status = channel_->SendMessage(FrameType::kFinish, ours,
                                        WaitLimit::Within(kSendLimit));
  if (status.ok()) {
    status = WaitFor(finished_, kAnswerLimit);
  }
  if (!status.ok()) {
    return status;
  }
  std::lock_guard<std::mutex> lock(mu_);
  *theirs = finish_;
  if (theirs->families.size() != ours.families.size()) {
    return MakeStatus(EndState::kCorrupt,
                      "totals: the source counts another number of column "
                      "families");
  }
  for (size_t i = 0; i < ours.families.size(); ++i) {
    if (!(ours.families[i] == theirs->families[i])) {
      return MakeStatus(EndState::kCorrupt,
                        "totals of column family " + std::to_string(i) +
                            ": expected " +
                            std::to_string(theirs->families[i].entries) +
                            " entries, found " +
                            std::to_string(ours.families[i].entries));
    }
  }
  return Status::OK();
}

void SourceSession::End(const Status& status, const std::string& where) {
  {
    std::lock_guard<std::mutex> lock(mu_);
    stopping_ = true;
  }
  if (status.ok()) {
    struct End end;
    channel_->SendMessage(FrameType::kEnd, end, WaitLimit::Within(
        std::chrono::milliseconds(1000))).PermitUncheckedError();
  } else {
    SendEnd(channel_.get(), status, where);
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
  return stats_;
}

uint64_t SourceSession::progress() const {
  const Stats newest = stats();
  return newest.entries + newest.sst_bytes + newest.read_bytes;
}

}  // namespace sstferry
