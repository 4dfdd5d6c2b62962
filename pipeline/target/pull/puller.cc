#include "pipeline/target/pull/puller.h"

#include "format/limits.h"
#include "pipeline/base/interval_reader.h"
#include "pipeline/base/thread_priority.h"
#include "pipeline/target/disk/access.h"
#include "pipeline/target/disk/durable.h"
#include "pipeline/target/lane/lane_client.h"
#include "pipeline/target/pull/seed_target.h"

namespace sstferry {
namespace {

using rocksdb::Status;
using std::chrono::steady_clock;

// How long a closed lane waits for the control connection to say why.
constexpr std::chrono::milliseconds kLastWordsLimit{2000};
// Of each lane, over what the target holds.
constexpr uint64_t kCompareReadaheadBytes = 1u << 20;

}  // namespace

Puller::Puller(const PullOptions& options, Dialer* dialer,
               const PullTargetFactory& make_target)
    : options_(options),
      dialer_(dialer),
      started_(steady_clock::now()),
      guard_(
          options.stall_timeout, [this] { return session_->progress(); },
          options.retry_for.count() > 0 && options.peer_timeout.count() > 0
              ? options.peer_timeout
              : options.stall_timeout),
      started_at_(NowRfc3339()) {
  SetMaxRate(options.max_rate_bytes_per_sec);
  state_.guard = &guard_;
  state_.open_lane = [this](uint32_t lane, Channel** channel) {
    return OpenLane(lane, channel);
  };
  state_.retry_for = options.retry_for;
  state_.chunk_time = options.stall_timeout;
  state_.stop = &stop_;
  state_.log = options.log;
  state_.digest = [this](const Range& range, DigestReply* reply) {
    return DigestInterval(target_->db(), target_->handle(range.family),
                          range.interval, kCompareReadaheadBytes,
                          [this] { return failed_.load(); }, reply);
  };
  context_.options = &options_;
  context_.state = &state_;
  context_.plan = &plan_;
  context_.stop = &stop_;
  context_.say = [this](const std::string& note) { Say(note); };
  context_.note = [this](const std::string& note) { notes_.push_back(note); };
  context_.fail = [this](const Status& error, const std::string& where) {
    Fail(error, where);
  };
  context_.summary = [this] {
    Summary summary;
    FillSummary(&summary);
    return summary;
  };
  target_ = make_target ? make_target(&context_)
                        : std::make_unique<SeedTarget>(&context_);
  disk_ = MakeAccessFileSystem(options.file_system != nullptr
                                   ? options.file_system
                                   : rocksdb::FileSystem::Default(),
                               Workspace::DirOf(target_->dir()));
  context_.disk = disk_;
}

Puller::~Puller() = default;

Status Puller::Run(Summary* summary) {
  std::thread watchdog;
  if (options_.deadline.count() > 0) {
    watchdog = std::thread([this] { WatchDeadline(); });
  }
  Status status = RunSteps();
  if (!status.ok() && hooks_open_) {
    CallAfterSwap(workspace_->swap_transfer(), /*exchanged=*/false)
        .PermitUncheckedError();  // WorstOf() says it
  }
  if (watchdog.joinable()) {
    done_.Stop();
    watchdog.join();
  }
  if (!status.ok()) {
    Fail(status, "target");
    status = WorstOf(failure());
  }
  if (timeline_ != nullptr) {
    const Status stopped = timeline_->Stop();
    if (status.ok() && !stopped.ok()) {
      notes_.push_back(MessageOf(stopped));
    }
  }
  if (session_ != nullptr && !session_ended_) {
    session_->End(status, error_where());
  }
  if (!status.ok()) {
    SayHowToGoOn(status);
  }
  FillSummary(summary);
  if (!status.ok()) {
    target_->Leave(*summary);
  }
  {
    std::lock_guard<std::mutex> lock(mu_);
    ingestor_.reset();
  }
  target_->Drop();
  return status;
}

Status Puller::RunSteps() {
  using Step = Status (Puller::*)();
  for (const Step step :
       {&Puller::OpenWorkspace, &Puller::Connect, &Puller::PrepareTarget,
        &Puller::WriteJournalHead, &Puller::Transfer, &Puller::Reconcile,
        &Puller::FinishDatabase, &Puller::Publish}) {
    Status status = failed_ ? failure() : (this->*step)();
    if (!status.ok()) {
      return status;
    }
  }
  // A cancellation that came after the rename came too late.
  return Settle();
}

Status Puller::OpenLane(uint32_t lane, Channel** channel) {
  std::unique_ptr<Channel> opened;
  const Status status = session_->ConnectLane(lane, &opened);
  if (!status.ok()) {
    return status;
  }
  std::lock_guard<std::mutex> lock(mu_);
  *channel = opened.get();
  if (compression_ != WireCompression::kNone) {
    opened->AllowFlags(kFrameFlagZstd);
  }
  if (failed_) {
    opened->Close();
  }
  if (lanes_[lane] != nullptr) {
    past_wire_bytes_ +=
        lanes_[lane]->bytes_received() + lanes_[lane]->bytes_sent();
  }
  lanes_[lane] = std::move(opened);
  return Status::OK();
}

Status Puller::ForEachLane(const std::function<void(uint32_t)>& work) {
  std::vector<std::thread> threads;
  for (uint32_t lane = 0; lane < plan_.opened.lanes; ++lane) {
    threads.emplace_back([this, &work, lane] {
      if (options_.low_priority && state_.replaces) {
        LowerThreadPriority();
      }
      work(lane);
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  return failed_ ? failure() : Status::OK();
}

Status Puller::Transfer() {
  if (session_ == nullptr) {
    return Status::OK();  // all is here
  }
  if (plan_.opened.lanes == 0 || plan_.opened.lanes > options_.lanes) {
    return MakeStatus(EndState::kCorrupt,
                      "plan: expected 1 to " +
                          std::to_string(options_.lanes) + " lanes, found " +
                          std::to_string(plan_.opened.lanes));
  }
  SetPhase("transfer");
  const uint32_t lanes = plan_.opened.lanes;
  lanes_started_ = steady_clock::now();
  controls_compression_ = compression_ == WireCompression::kAuto;
  {
    std::lock_guard<std::mutex> lock(mu_);
    lanes_.resize(lanes);
  }
  scheduler_ =
      std::make_unique<RangeScheduler>(plan_.ranges, state_.starts, lanes);
  state_.scheduler = scheduler_.get();
  if (!options_.timeline_file.empty()) {
    timeline_ = std::make_unique<Timeline>(
        options_.timeline_file,
        std::vector<std::string>{
            "entries", "key_value_bytes", "sst_bytes", "receive_micros",
            "stage_write_micros", "check_micros", "ingest_micros",
            "sync_micros", "source_entries", "source_key_value_bytes",
            "source_sst_bytes", "source_read_build_micros",
            "source_send_wait_micros", "source_idle_micros",
            "source_queued_bytes"},
        [this] { return TimelineSample(); });
    const Status status = timeline_->Start();
    if (!status.ok()) {
      return status;
    }
  }
  return ForEachLane([this](uint32_t lane) { RunLane(lane); });
}

void Puller::RunLane(uint32_t lane) {
  FailLane(LaneClient(&state_, lane).Run(),
           "target lane " + std::to_string(lane));
}

void Puller::FailLane(const Status& status, const std::string& where) {
  if (EndStateOf(status) == EndState::kDeadPeer) {
    // A source that fails closes all lanes: wait for its words.
    const Status told = session_->AwaitFailure(kLastWordsLimit);
    if (!told.ok()) {
      Fail(told, "source " + dialer_->address());
    }
  }
  if (!status.ok()) {
    Fail(status, where);
  }
}

Status Puller::Reconcile() {
  if (session_ == nullptr) {
    return Status::OK();  // both sides agreed before
  }
  JournalComplete complete;
  struct Finish ours;
  {
    std::lock_guard<std::mutex> lock(state_.mu);
    ours.families = state_.family_totals;
  }
  for (const Totals& totals : ours.families) {
    complete.totals += totals;
  }
  // With those that came in this run: the source may have been restarted.
  Status status = session_->Finish(ours, state_.ended, &finish_theirs_);
  if (status.ok() && !unfinished_.complete) {
    status = journal_->Append(JournalRecordType::kComplete, complete);
    status = status.ok() ? journal_->Sync() : status;
  }
  if (status.ok()) {
    FaultPoint("Puller:TotalsAgreed");
  }
  return status;
}

Status Puller::FinishDatabase() {
  SetPhase("sync");
  const steady_clock::time_point start = steady_clock::now();
  Status status = target_->Finish(ingestor_.get());
  sync_seconds_ += SecondsSince(start);
  if (status.ok() && options_.verify && !goes_on_with_swap_) {
    status = VerifyAgainstSource();
  }
  const steady_clock::time_point closing = steady_clock::now();
  if (status.ok()) {
    status = target_->Close(journal_.get());
  }
  sync_seconds_ += SecondsSince(closing);
  return status;
}

Status Puller::Publish() {
  SetPhase("swap");
  const steady_clock::time_point start = steady_clock::now();
  Summary summary;
  FillSummary(&summary);
  summary.state = "complete";
  Status status = target_->Record(summary);
  if (status.ok() && failed_) {
    status = failure();
  }
  if (status.ok() && is_swap()) {
    const double deleted = delete_seconds_;
    status = PublishBySwap();
    swap_seconds_ = SecondsSince(start) - (delete_seconds_ - deleted);
    return status;
  }
  if (status.ok()) {
    status = target_->Publish();
  }
  swap_seconds_ = SecondsSince(start);
  if (status.ok()) {
    std::lock_guard<std::mutex> lock(mu_);
    published_ = true;
  }
  return status;
}

// The target is complete: the source need not wait for the rest.
Status Puller::Settle() {
  LetSourceGo();
  if (options_.mode == PullMode::kRefresh && !is_swap() && options_.compact) {
    SetPhase("compact");
  }
  return target_->Settle();
}

void Puller::WatchDeadline() {
  if (!done_.WaitFor(options_.deadline)) {
    Fail(MakeStatus(EndState::kDeadline,
                    "not done within " +
                        std::to_string(options_.deadline.count()) + " ms"),
         "target");
  }
}

// A control connection lost, or there again (OK).
void Puller::OnRetry(const Status& lost) {
  if (lost.ok()) {
    Log(LogLevel::kInfo, "control connection: connected again");
    SetWaitingFor("");
    CloseSilentLanes();
    return;
  }
  state_.retries++;
  Log(LogLevel::kWarning, std::string("control connection: lost, is tried "
                                      "again: ") +
                              EndStateName(EndStateOf(lost)) + ": " +
                              MessageOf(lost));
  SetWaitingFor(MessageOf(lost));
}

void Puller::SetWaitingFor(const std::string& why) {
  std::lock_guard<std::mutex> lock(mu_);
  waiting_for_ = why;
}

// What cost the control connection may have cost lanes, too, without a word.
void Puller::CloseSilentLanes() {
  const int64_t since =
      std::chrono::duration_cast<std::chrono::microseconds>(
          (Clock::now() - options_.peer_timeout).time_since_epoch())
          .count();
  std::lock_guard<std::mutex> lock(mu_);
  for (const std::unique_ptr<Channel>& lane : lanes_) {
    if (lane != nullptr && lane->last_received_micros() < since) {
      lane->Close();
    }
  }
}

void Puller::Log(LogLevel level, const std::string& text) const {
  if (options_.log) {
    options_.log(level, text);
  }
}

void Puller::Cancel() {
  Fail(MakeStatus(EndState::kCancelled, "stopped on request"), "target");
}

void Puller::Fail(const Status& status, const std::string& where) {
  std::lock_guard<std::mutex> lock(mu_);
  if (failed_.exchange(true)) {
    return;
  }
  failure_ = status;
  failure_where_ = where;
  stop_.Stop();
  state_.pace.Close();
  dialer_->Close();
  handshakes_.CloseAll();
  if (session_ != nullptr) {
    session_->Cancel();
  }
  if (ingestor_ != nullptr) {
    ingestor_->Stop();
  }
  for (const std::unique_ptr<Channel>& lane : lanes_) {
    if (lane != nullptr) {
      lane->Close();
    }
  }
}

Status Puller::failure() const {
  std::lock_guard<std::mutex> lock(mu_);
  return failure_;
}

std::string Puller::error_where() const {
  std::lock_guard<std::mutex> lock(mu_);
  return failure_where_;
}

}  // namespace sstferry
