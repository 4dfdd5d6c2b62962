#include "pipeline/serve/control_session.h"

#include <algorithm>

#include "format/for_each_batch.h"
#include "format/limits.h"
#include "pipeline/base/descriptor_shortage.h"
#include "pipeline/base/duration.h"
#include "pipeline/base/start_thread.h"
#include "pipeline/base/thread_priority.h"
#include "pipeline/serve/questions.h"
#include "pipeline/snapshot/retained_snapshots.h"

namespace sstferry {
namespace {

using rocksdb::Status;
using std::chrono::milliseconds;

constexpr char kWhere[] = "source control";
constexpr milliseconds kTickInterval{1000};
// Maximum number of threads that RocksDB may start while it opens a snapshot,
// in addition to the threads of its pools.
constexpr int kThreadsToOpen = 4;
// Time that a session with a failed transfer waits for the target to close, so
// that the target reads the End frame first.
constexpr milliseconds kDrainLimit{2000};
// Limits of the frames that one target may send: far more than its pings and
// answers.
constexpr uint64_t kFramesAtOnce = 1000;
constexpr uint64_t kFramesPerSecond = 100;
// An answer to a follower that takes at least this long does not count towards
// the limit of frames.
constexpr milliseconds kFollowPace{3};

Status Unexpected(FrameType type) {
  return MakeStatus(EndState::kCorrupt,
                    std::string("control: unexpected frame ") +
                        FrameTypeName(type));
}

// Returns for example "192.0.2.7:52114 (CN=replica-2)".
std::string PeerText(const Channel& channel) {
  const PeerIdentity* const identity = channel.identity();
  return identity == nullptr ? channel.peer()
                             : channel.peer() + " (" + identity->subject + ")";
}

}  // namespace

ControlSession::ControlSession(const SessionHost& host, const Hello& hello,
                               Channel* channel,
                               std::function<bool()> establish)
    : host_(host),
      hello_(hello),
      channel_(channel),
      establish_(std::move(establish)) {}

ControlSession::~ControlSession() {
  if (follows_) host_.follow->Leave(this);
}

void ControlSession::Run() {
  Status status = Serve();
  if (transfer_ != nullptr) {
    status = EndTransfer(status);
  } else if (!status.ok()) {
    SendEnd(channel_, status, kWhere);
  }
  LogFailure(status);
  {
    std::lock_guard<std::mutex> lock(mu_);
    stopping_ = true;
  }
  changed_.notify_all();
  const bool detached = transfer_ != nullptr && !transfer_->detached().ok();
  if (!status.ok() && !status.IsAborted() && !replaced_ &&
      (!kept_ || detached)) {
    DrainUntilClosed();
  }
  channel_->Close();  // wakes threads that are still sending
  for (std::thread* thread : {&worker_, &ticker_}) {
    if (thread->joinable()) {
      thread->join();
    }
  }
  if (transfer_ != nullptr && kept_) {
    replaced_ = !host_.store->StartLease(transfer_, channel_);
  } else if (transfer_ != nullptr && !replaced_) {
    if (registered_) {
      host_.store->Remove(transfer_);
    }
    replaced_ = !transfer_->Leave(channel_);
  }
  Report(status);
}

Status ControlSession::EndTransfer(const Status& status) {
  replaced_ = registered_ && !transfer_->IsControl(channel_);
  if (replaced_) {
    return status;
  }
  if (status.ok() && finished_) {
    transfer_->End();
    return transfer_->status();
  }
  const Status why =
      status.ok() ? MakeStatus(EndState::kCancelled,
                               "the target ended the transfer")
                  : status;
  kept_ = MayKeep(why);
  if (!kept_) {
    // Fail() sends the reason to the target, unless a lane has already sent it.
    // This is needed even if the totals agreed: the target may fail after that.
    transfer_->Fail(why, kWhere);
    return transfer_->status();
  } else if (told_) {
    transfer_->CloseLanes();
  }
  return why;
}

// Returns true if the target was lost or stopped for a temporary reason, so
// that it may resume. Returns false if there is nothing to resume: the target
// does not have the plan, or it stopped on its own and no data was sent.
bool ControlSession::MayKeep(const Status& status) {
  const bool known = transfer_->planned() || resumed_;
  if (!registered_ || !transfer_->may_keep() || !known ||
      transfer_->ended()) {
    return false;
  }
  const bool has_data = resumed_ || transfer_->counters()->sst_bytes > 0;
  return told_ ? has_data && MayGoOnAfter(EndStateOf(status)) : lost_;
}

void ControlSession::Report(const Status& status) {
  if (transfer_ == nullptr || replaced_ ||
      transfer_->request().purpose != Purpose::kPull ||
      !host_.options->on_transfer_end) {
    return;
  }
  TransferReport report = transfer_->Report();
  if (transfer_->parked()) {
    report.kept_for = host_.options->snapshot_ttl;
  }
  transfer_.reset();  // the callee may check that the snapshot is gone
  if (kept_) {
    report.status = status;
    report.error_where = kWhere;
    report.kept_for = host_.options->snapshot_ttl;
    report.lost = !told_;
  }
  host_.options->on_transfer_end(report);
}

Status ControlSession::Serve() {
  WaitLimit limit;
  limit.idle = host_.options->timeouts.peer;
  bool done = false;
  while (!done) {
    limit.until = transfer_ == nullptr && !follows_
                      ? started_ + host_.options->request_timeout
                      : Clock::time_point::max();
    Frame frame;
    Status status = channel_->Receive(limit, &frame);
    lost_ = !status.ok();
    if (transfer_ != nullptr && !transfer_->detached().ok()) {
      lost_ = true;  // makes the store keep the transfer: the target may resume
      return transfer_->detached();
    }
    if (status.ok()) {
      status = CountFrame();
    }
    if (status.ok()) {
      const uint64_t shortages = DescriptorShortages();
      status = RetriedAfterShortage(Handle(frame, &done), shortages);
      // An answer that could not be sent means a lost connection, too.
      lost_ = EndStateOf(status) == EndState::kDeadPeer;
    }
    if (!status.ok()) {
      return status;
    }
    if (!done && transfer_ != nullptr && transfer_->ended()) {
      // The target knows the reason. Without this return, its pings would
      // retain the snapshot.
      return transfer_->status();
    }
  }
  return Status::OK();
}

Status ControlSession::FindDatabase(const std::string& name,
                                    ServedDatabase* database) {
  RETURN_IF_ERROR(
      host_.find_database(name, channel_->identity(), database));
  return establish_() ? Status::OK()
                      : MakeStatus(EndState::kDeadPeer,
                                   "control: the source dropped the connection "
                                   "before its first request: too many newer "
                                   "connections");
}

Status ControlSession::CountFrame() {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(
      Clock::now() - started_);
  const uint64_t allowed =
      kFramesAtOnce +
      kFramesPerSecond * static_cast<uint64_t>(seconds.count());
  return ++frames_ <= allowed
             ? Status::OK()
             : MakeStatus(EndState::kDenied,
                          "control: expected at most " +
                              std::to_string(allowed) +
                              " frames in the first " +
                              FormatDuration(seconds) + ", found more");
}

Status ControlSession::Handle(const Frame& frame, bool* done) {
  switch (frame.type) {
    case FrameType::kListRequest:
    case FrameType::kStatusRequest:
    case FrameType::kFactsRequest:
      return AnswerQuestion(host_, frame, channel_);
    case FrameType::kPinRequest:
      return PinAll(frame);
    case FrameType::kFollowRequest:
      return AnswerFollower(frame);
    case FrameType::kPinEnd: {
      PinEnd end;
      const Status status = Decode(frame.payload, &end);
      if (status.ok()) {
        host_.store->pins()->End(end, channel_->identity());
      }
      return status;
    }
    case FrameType::kOpenRequest: {
      OpenRequest request;
      const Status status = Decode(frame.payload, &request);
      return !status.ok()            ? status
             : transfer_ != nullptr ? Unexpected(frame.type)
                                    : StartOpen(request);
    }
    case FrameType::kPing: {
      Ping ping;
      const Status status = Decode(frame.payload, &ping);
      return status.ok() ? channel_->SendMessage(FrameType::kPong, ping)
                         : status;
    }
    case FrameType::kPong:
      return Status::OK();
    case FrameType::kCompress: {
      Compress compress;
      const Status status = Decode(frame.payload, &compress);
      return status.ok() ? SetCompression(compress) : status;
    }
    case FrameType::kReceived:
      return RecordReceived(frame);
    case FrameType::kOtherFileRequest:
      return SendOtherFile(frame);
    case FrameType::kFinish: {
      Finish theirs;
      const Status status = Decode(frame.payload, &theirs);
      return status.ok() ? AgreeOnTotals(theirs) : status;
    }
    case FrameType::kEnd: {
      *done = true;
      End end;
      Status status = Decode(frame.payload, &end);
      told_ = status.ok();
      if (status.ok() && end.state != EndState::kOk) {
        // The message may name a command to run next, which is for the target's
        // machine. Here it is only a part of the sentence.
        std::string next;
        const std::string sentence = SplitNext(end.message, &next);
        status = MakeStatus(end.state,
                            "target: " + sentence +
                                (next.empty() ? "" : "; next: " + next));
      }
      if (status.ok() && transfer_ != nullptr &&
          transfer_->request().purpose != Purpose::kPull) {
        finished_ = true;  // a plan or a verify has no totals to compare
      }
      return status;
    }
    default:
      return Unexpected(frame.type);
  }
}

// Sends the bytes after the follower's position. A follower that receives
// nothing blocks only this thread.
Status ControlSession::AnswerFollower(const Frame& frame) {
  if (transfer_ != nullptr || host_.follow == nullptr) {
    return Unexpected(frame.type);
  }
  FollowRequest request;
  ServedDatabase database;
  RETURN_IF_ERROR(Decode(frame.payload, &request));
  RETURN_IF_ERROR(FindDatabase(request.database, &database));
  follows_ = true;
  const PeerIdentity* const identity = channel_->identity();
  request.database = database.name;
  request.target = ShownTarget(request.target,
                               identity == nullptr ? "" : identity->subject);
  if (request.target.empty()) request.target = channel_->peer();
  WaitLimit limit;
  limit.idle = host_.options->timeouts.stall;
  const Clock::time_point begun = Clock::now();
  bool has_bytes = false;
  FollowEnd end;
  RETURN_IF_ERROR(host_.follow->Answer(
      this, database, request,
      [&](const WalBytes& bytes) {
        has_bytes = true;
        const Status taken =
            host_.shares->wire_bucket()->Take(bytes.bytes.size());
        return taken.ok() ? channel_->SendMessage(FrameType::kWalBytes,
                                                  bytes, limit)
                          : taken;
      },
      &end));
  // Does not count a request that was answered with bytes, or that waited for
  // the source to write: it is not part of a flood.
  if (has_bytes || Clock::now() - begun >= kFollowPace) --frames_;
  return channel_->SendMessage(FrameType::kFollowEnd, end, limit);
}

// Pins the named databases. Meanwhile, Stats frames show the target that the
// source is alive.
Status ControlSession::PinAll(const Frame& frame) {
  if (transfer_ != nullptr) {
    return Unexpected(frame.type);
  }
  PinRequest request;
  RETURN_IF_ERROR(Decode(frame.payload, &request));
  std::vector<PinWish> wishes(request.names.size());
  for (size_t i = 0; i < wishes.size(); ++i) {
    const Status found =
        FindDatabase(request.names[i], &wishes[i].database);
    const bool is_twice =
        std::find(request.names.begin(), request.names.begin() + i,
                  request.names[i]) != request.names.begin() + i;
    wishes[i].problem = !found.ok() ? MessageOf(found)
                        : is_twice  ? "the request names it twice"
                                    : "";
  }
  PinReply reply;
  Status sent;
  host_.store->pins()->Pin(
      wishes, channel_->identity(),
      [&](uint64_t done) {
        Stats stats;
        stats.read_bytes = done;
        sent = channel_->SendMessage(FrameType::kStats, stats);
        return sent.ok();
      },
      &reply);
  for (PinnedDatabase& one : reply.databases) {
    if (one.problem.size() > kMaxPinProblemBytes) {
      one.problem.resize(kMaxPinProblemBytes - 3);
      one.problem += "...";
    }
  }
  return sent.ok() ? channel_->SendMessage(FrameType::kPinReply, reply) : sent;
}

// Finds the snapshot of another transfer of the same database and column
// families, or a set of pinned files.
Status ControlSession::FindShared(
    const ServedDatabase& database, const OpenRequest& request,
    std::shared_ptr<SharedSnapshot>* shared) const {
  std::shared_ptr<const PinnedFiles> pinned = host_.store->pins()->Find(
      request.named_transfer, request.database, channel_->identity());
  if (pinned != nullptr) {
    *shared =
        std::make_shared<SharedSnapshot>(database, *host_.options, request);
    (*shared)->TakeOf(std::move(pinned));
    return Status::OK();
  }
  const std::shared_ptr<Transfer> found =
      host_.store->Find(request.named_transfer);
  if (found == nullptr || !found->planned() || found->ended() ||
      found->name() != request.database) {
    return MakeStatus(EndState::kSnapshotGone,
                      "no snapshot of transfer " +
                          ToHex(request.named_transfer) + " is retained here");
  }
  if (!found->shared()->Serves(request.database, request)) {
    return MakeStatus(EndState::kRefused,
                      "snapshot of transfer " + ToHex(request.named_transfer) +
                          ": expected a request for the same column families "
                          "and with the same method as that pull, found other "
                          "families or another method");
  }
  *shared = found->shared();
  return Status::OK();
}

// If the request replaces a retained transfer, drops that transfer, and turns
// the request into one for a new transfer.
Status ControlSession::DropOld(const ServedDatabase& database,
                               OpenRequest* request, std::string* note) {
  if (request->purpose != Purpose::kPull) {
    return MakeStatus(EndState::kRefused,
                      "only a pull can start over in place of another pull");
  }
  *note = host_.store->Drop(database, request->named_transfer,
                            channel_->identity());
  if (request->snapshot_use == SnapshotUse::kInstead) {
    request->snapshot_use = SnapshotUse::kNew;
  }
  request->named_transfer = TransferId{};
  return Status::OK();
}

Status ControlSession::StartOpen(const OpenRequest& request) {
  ServedDatabase database;
  RETURN_IF_ERROR(FindDatabase(request.database, &database));
  if (request.snapshot_use == SnapshotUse::kResume) {
    return Resume(database, request);
  }
  OpenRequest planned = request;
  std::string note;
  if (request.snapshot_use == SnapshotUse::kInstead ||
      (request.snapshot_use == SnapshotUse::kLatest &&
       request.named_transfer != TransferId{})) {
    RETURN_IF_ERROR(DropOld(database, &planned, &note));
  }
  std::shared_ptr<SharedSnapshot> shared;
  if (request.snapshot_use == SnapshotUse::kShare) {
    RETURN_IF_ERROR(FindShared(database, request, &shared));
  } else if (request.snapshot_use == SnapshotUse::kLatest) {
    shared = host_.store->Latest(database, planned);
    planned.waited_seconds = 0;  // only Latest() uses it
  }
  transfer_ = std::make_shared<Transfer>(database, *host_.options, planned,
                                         hello_, PeerText(*channel_),
                                         host_.shares, std::move(shared));
  if (!note.empty()) {
    transfer_->AddNote(note);
  }
  transfer_->set_owner(channel_->identity());
  transfer_->set_control(channel_);
  if (host_.on_transfer) {
    host_.on_transfer(transfer_.get());
  }
  // Add the transfer before the snapshot is taken, because the limit of
  // transfers limits the cost of snapshots. Lanes cannot connect yet: they do
  // not know the id.
  milliseconds retry_after{0};
  const Status status = host_.store->Add(transfer_, &retry_after);
  if (retry_after.count() > 0) {
    transfer_.reset();  // no transfer has started
    return TellBusy(status, retry_after);
  }
  RETURN_IF_ERROR(status);
  registered_ = true;
  return StartOpening();
}

Status ControlSession::TellBusy(const Status& busy, milliseconds retry_after) {
  // If this message is lost, the End frame after it is lost, too.
  channel_->SendMessage(
      FrameType::kBusy, Busy{static_cast<uint32_t>(retry_after.count())})
      .PermitUncheckedError();
  return busy;
}

Status ControlSession::Resume(const ServedDatabase& database,
                              const OpenRequest& request) {
  milliseconds retry_after{0};
  const Status status =
      host_.store->Resume(database, request, hello_, PeerText(*channel_),
                          channel_, &transfer_, &retry_after);
  if (!status.ok()) {
    return retry_after.count() > 0 ? TellBusy(status, retry_after) : status;
  }
  registered_ = true;
  resumed_ = true;
  return StartOpening();
}

Status ControlSession::StartOpening() {
  const Status status = StartThread([this] { Tick(); }, &ticker_);
  return status.ok() ? StartThread([this] { Open(); }, &worker_) : status;
}

// Pins the snapshot. RocksDB throws if it cannot start a thread.
Status ControlSession::Pin() {
  RETURN_IF_ERROR(CheckThreads(kThreadsToOpen));
  try {
    return transfer_->Pin();
  } catch (const std::system_error& error) {
    return MakeStatus(EndState::kInternal,
                      std::string("cannot start a thread: ") + error.what());
  }
}

void ControlSession::Open() {
  // Taking a snapshot of an application's own database flushes it, so this
  // thread must keep its priority then.
  if (transfer_->pace()->hold_back()->allowed() &&
      transfer_->has_directory()) {
    StepBack();
  }
  const uint64_t shortages = DescriptorShortages();
  Status status = RetriedAfterShortage(Pin(), shortages);
  if (!status.ok()) {
    transfer_->Fail(transfer_->InDatabaseNames(status), "source");
    return;
  }
  host_.store->Took(*transfer_);
  host_.store->WriteLease(transfer_);
  if (!transfer_->ended()) {
    status = transfer_->Announce(channel_, resumed_);
  }
  if (!status.ok()) {
    // The connection failed, not the transfer: wake the reader.
    channel_->Close();
  }
}

// Records parts that the target already has. Refuses them before the plan is
// made: a target without the plan cannot know which parts it has.
Status ControlSession::RecordReceived(const Frame& frame) {
  if (transfer_ == nullptr ||
      (!resumed_ && !transfer_->is_refresh() && !transfer_->is_clone()) ||
      finished_ || !transfer_->planned()) {
    return Unexpected(frame.type);
  }
  Received retained;
  const Status status = Decode(frame.payload, &retained);
  return status.ok() ? transfer_->ledger()->RecordReceived(retained) : status;
}

Status ControlSession::SendOtherFile(const Frame& frame) {
  if (transfer_ == nullptr || !transfer_->planned() ||
      !transfer_->has_other_files()) {
    return Unexpected(frame.type);
  }
  OtherFileRequest request;
  const Status status = Decode(frame.payload, &request);
  return status.ok() ? other_files_.Answer(request, transfer_.get(), channel_)
                     : status;
}

void ControlSession::Tick() {
  uint64_t looks = 0;
  uint64_t ticks = 0;
  constexpr uint64_t kLooksPerTick = kTickInterval / HoldBack::kLookInterval;
  HoldBack* const hold_back = transfer_->pace()->hold_back().get();
  // Time at which the target was told that the transfer ended.
  std::optional<Clock::time_point> told;
  const uint64_t ping_every = std::max<uint64_t>(
      1, host_.options->timeouts.ping_interval() / kTickInterval);
  std::unique_lock<std::mutex> lock(mu_);
  while (
      !changed_.wait_for(lock, HoldBack::kLookInterval,
                         [this] { return stopping_; })) {
    lock.unlock();
    hold_back->Look();
    if (++looks % kLooksPerTick != 0) {
      lock.lock();
      continue;
    }
    if (!told.has_value() &&
        (transfer_->ended() || !transfer_->detached().ok())) {
      told = Clock::now();
    } else if (told.has_value() && Clock::now() - *told >= kDrainLimit) {
      channel_->Close();  // else the transfer would keep its slot
      return;
    }
    Status status;
    if (++ticks % ping_every == 0) {
      Ping ping;
      ping.token = ticks;
      status = channel_->SendMessage(FrameType::kPing, ping);
    }
    if (status.ok()) {
      status = channel_->SendMessage(FrameType::kStats,
                                     transfer_->CurrentStats());
    }
    // The reader notices the failure and ends the session.
    status.PermitUncheckedError();
    lock.lock();
  }
  hold_back->EndRest();
}

Status ControlSession::SetCompression(const Compress& compress) {
  if (transfer_ == nullptr ||
      transfer_->pace()->compression() != WireCompression::kAuto) {
    return Unexpected(FrameType::kCompress);
  }
  transfer_->pace()->set_compressing(compress.on);
  return Status::OK();
}

Status ControlSession::AgreeOnTotals(const Finish& theirs) {
  // Until the plan is made, the worker writes the data from which the totals
  // are computed.
  if (transfer_ == nullptr || !transfer_->planned() || finished_) {
    return Unexpected(FrameType::kFinish);
  }
  // Without this check, a transfer without some parts would look complete.
  const size_t unsent = transfer_->request().purpose == Purpose::kPull
                            ? transfer_->ledger()->UnsentParts()
                            : 0;
  if (unsent > 0) {
    return MakeStatus(EndState::kCorrupt,
                      "totals arrived too early: " + std::to_string(unsent) +
                          " of " + std::to_string(transfer_->parts().size()) +
                          " parts are not sent yet");
  }
  RETURN_IF_ERROR(transfer_->CheckSnapshotFiles());
  const Finish ours = transfer_->FinalTotals();
  if (theirs.families.size() != ours.families.size()) {
    return MakeStatus(EndState::kCorrupt,
                      "totals: expected " +
                          std::to_string(ours.families.size()) +
                          " column families, found " +
                          std::to_string(theirs.families.size()));
  }
  for (size_t i = 0; i < ours.families.size(); ++i) {
    const Totals& sent = ours.families[i];
    const Totals& got = theirs.families[i];
    if (!(sent == got)) {
      return MakeStatus(
          EndState::kCorrupt,
          "totals of column family '" +
              transfer_->plan().families[i].description.name +
              "': sent " + std::to_string(sent.entries) + " entries in " +
              std::to_string(sent.chunks) + " chunks, the target has " +
              std::to_string(got.entries) + " in " +
              std::to_string(got.chunks));
    }
  }
  finished_ = true;
  return channel_->SendMessage(FrameType::kFinished, ours);
}

// Logs failures that are not in a TransferReport. A client in this process
// reports them itself.
void ControlSession::LogFailure(const Status& status) const {
  const bool reported = channel_->is_in_process() ||
                        (transfer_ != nullptr &&
                         transfer_->request().purpose == Purpose::kPull);
  // A cancelled request is no failure: an in-process server often stops before
  // it has read that its only client is done. A target that found no free
  // transfer slot will ask again.
  if (!status.ok() && !status.IsAborted() && !status.IsBusy() && !reported &&
      host_.log_peer) {
    host_.log_peer("request from " + PeerText(*channel_) + ": " +
                   EndStateName(EndStateOf(status)) + ": " +
                   MessageOf(status));
  }
}

void ControlSession::DrainUntilClosed() {
  const WaitLimit limit = WaitLimit::Within(kDrainLimit);
  Frame frame;
  // Check the time, too: the limit of Receive() applies only while nothing
  // arrives.
  while (Clock::now() < limit.until && channel_->Receive(limit, &frame).ok()) {
  }
}

}  // namespace sstferry
