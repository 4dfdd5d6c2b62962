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
// Maximum number of threads that RocksDB starts while it opens a snapshot. The
// threads of its pools do not count.
constexpr int kThreadsToOpen = 4;
// After a failed transfer, the session waits this time for the target to close
// the connection. The target can then read the End frame.
constexpr milliseconds kDrainLimit{2000};
// Limits of the frames that one target may send. They are far above the number
// of its pings and answers.
constexpr uint64_t kFramesAtOnce = 1000;
constexpr uint64_t kFramesPerSecond = 100;
// If the answer to a follower takes at least this time, the request does not
// count towards the limit of frames.
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
    // Fail() tells the target the reason, unless a lane has already told it.
    // Fail the transfer even if both sides have agreed on the totals: the
    // target may have failed after that.
    transfer_->Fail(why, kWhere);
    return transfer_->status();
  } else if (told_) {
    transfer_->CloseLanes();
  }
  return why;
}

// Returns true if the source should keep the transfer, because the target may
// resume it: the target was lost, or stopped for a temporary reason. Returns
// false if nothing can be resumed: the target does not have the plan, or it
// stopped before any data was sent.
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
      lost_ = true;  // keeps the transfer, so that the target may resume
      return transfer_->detached();
    }
    if (status.ok()) {
      status = CountFrame();
    }
    if (status.ok()) {
      const uint64_t shortages = DescriptorShortages();
      status = RetriedAfterShortage(Handle(frame, &done), shortages);
      // If an answer could not be sent, the connection is lost, too.
      lost_ = EndStateOf(status) == EndState::kDeadPeer;
    }
    if (!status.ok()) {
      return status;
    }
    if (!done && transfer_ != nullptr && transfer_->ended()) {
      // The target has been told that the transfer ended. If this loop went on,
      // the target's pings would retain the snapshot.
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
        // The message may name a command to run next on the target's machine.
        // Make the command a part of the text, so that it is not offered on
        // this machine.
        std::string next;
        const std::string sentence = SplitNext(end.message, &next);
        status = MakeStatus(end.state,
                            "target: " + sentence +
                                (next.empty() ? "" : "; next: " + next));
      }
      if (status.ok() && transfer_ != nullptr &&
          transfer_->request().purpose != Purpose::kPull) {
        finished_ = true;  // plans and verifies have no totals
      }
      return status;
    }
    default:
      return Unexpected(frame.type);
  }
}

// Answers the request of a follower with the WAL bytes after its position. A
// follower that does not read blocks only this thread.
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
  // Only requests that get an empty answer at once count towards the limit. A
  // request that got bytes, or that waited for the database to be written,
  // belongs to no flood.
  if (has_bytes || Clock::now() - begun >= kFollowPace) --frames_;
  return channel_->SendMessage(FrameType::kFollowEnd, end, limit);
}

// Pins the databases that the request names. Sends Stats meanwhile, so that the
// target knows that the source is alive.
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

// Finds the snapshot that the request wants to share. This is the snapshot of
// another transfer with the same column families, or a set of pinned files.
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

// Called if a pull starts over instead of resuming an earlier transfer.
// Releases the snapshot of the earlier transfer, and changes *request into the
// request for a new transfer. Sets *note to a sentence about the released
// snapshot.
Status ControlSession::DropOld(const ServedDatabase& database,
                               OpenRequest* request, std::string* note) {
  if (request->purpose != Purpose::kPull) {
    return MakeStatus(EndState::kRefused,
                      "expected a pull in a request that releases the snapshot "
                      "of an earlier transfer, found a plan or a verify");
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
    planned.waited_seconds = 0;  // only Latest() needs it
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
  // Adds the transfer before its snapshot is taken, because the limit of
  // transfers also limits the cost of snapshots. Lanes cannot connect yet,
  // because the target does not know the transfer's id.
  milliseconds retry_after{0};
  const Status status = host_.store->Add(transfer_, &retry_after);
  if (retry_after.count() > 0) {
    transfer_.reset();  // no transfer was started
    return TellBusy(status, retry_after);
  }
  RETURN_IF_ERROR(status);
  registered_ = true;
  return StartOpening();
}

Status ControlSession::TellBusy(const Status& busy, milliseconds retry_after) {
  // Ignores errors: if this message is lost, so is the End frame that follows.
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

// Pins the snapshot. RocksDB throws if it cannot start a thread; then returns
// kInternal.
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
  // Lowers the priority of this thread. Does not do so for a database that is
  // open in this process, because this thread then flushes the application's
  // data.
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
    // The connection failed, but the transfer did not. Close() wakes the thread
    // that receives.
    channel_->Close();
  }
}

// Records parts that the target already has. Refuses the frame before the plan
// is made, because the target cannot know its parts without the plan.
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
  // Time since which the target can know that the transfer has ended.
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
      channel_->Close();  // otherwise the transfer would keep its slot
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
    // Ignores the failure: the thread that receives detects it and ends the
    // session.
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
  // The totals are computed from the plan, which the worker writes until
  // planned() is true.
  if (transfer_ == nullptr || !transfer_->planned() || finished_) {
    return Unexpected(FrameType::kFinish);
  }
  // Without this check, a transfer would look complete although parts are
  // missing.
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

// Logs a failure that no TransferReport contains. Does not log the failures of
// a client in this process, because the client reports them.
void ControlSession::LogFailure(const Status& status) const {
  const bool reported = channel_->is_in_process() ||
                        (transfer_ != nullptr &&
                         transfer_->request().purpose == Purpose::kPull);
  // Does not log a cancelled request: the server of a single client often stops
  // before it has read that the client is done. Does not log that no slot was
  // free: the target asks again.
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
  // The limit of Receive() only applies while nothing arrives. A target that
  // keeps sending is stopped by the first condition.
  while (Clock::now() < limit.until && channel_->Receive(limit, &frame).ok()) {
  }
}

}  // namespace sstferry
