#include "pipeline/target/pull/puller.h"

#include "format/limits.h"
#include "pipeline/base/interval_reader.h"
#include "pipeline/base/thread_priority.h"
#include "pipeline/target/disk/access.h"
#include "pipeline/target/disk/durable.h"
#include "pipeline/target/lane/lane_client.h"
#include "pipeline/target/pull/seed_target.h"
#include "pipeline/target/session/deadline_watch.h"

namespace sstferry {
namespace {

using rocksdb::Status;
using std::chrono::steady_clock;

// For the first answer of a source, where nobody says how long.
constexpr std::chrono::milliseconds kFirstAnswer{10'000};
// Of each lane, over what the target holds.
constexpr uint64_t kCompareReadaheadBytes = 1u << 20;

}  // namespace

Puller::Puller(const PullOptions& options, Dialer* dialer,
               const PullTargetFactory& make_target)
    : options_(options),
      started_(steady_clock::now()),
      failure_([this] { CloseAll(); }),
      link_(dialer, LinkOptions(), &failure_),
      started_at_(NowRfc3339()) {
  SetMaxRate(options.max_rate_bytes_per_sec);
  state_.guard = &link_.guard();
  state_.open_lane = [this](uint32_t lane, Channel** channel) {
    return link_.OpenLane(lane, channel);
  };
  state_.retry_for = options.retry_for;
  state_.chunk_time = options.stall_timeout;
  state_.stop = failure_.stop();
  state_.log = options.log;
  state_.digest = [this](const Range& range, DigestReply* reply) {
    return DigestInterval(target_->db(), target_->handle(range.family),
                          range.interval, kCompareReadaheadBytes,
                          [this] { return failure_.failed(); }, reply);
  };
  context_.options = &options_;
  context_.state = &state_;
  context_.plan = &plan_;
  context_.stop = failure_.stop();
  context_.say = [this](const std::string& note) { Say(note); };
  context_.note = [this](const std::string& note) { notes_.push_back(note); };
  context_.fail = [this](const Status& error, const std::string& where) {
    failure_.Set(error, where);
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

SourceLinkOptions Puller::LinkOptions() {
  SourceLinkOptions link;
  link.connect_timeout = options_.connect_timeout;
  link.peer_timeout = options_.peer_timeout;
  link.stall_timeout = options_.stall_timeout;
  link.retry_for = options_.retry_for;
  link.first_answer_within = options_.wait_for_source.value_or(
      std::min(kFirstAnswer, options_.retry_for));
  link.log = options_.log;
  link.received = [this] { return state_.counters.received_bytes.load(); };
  link.on_loss = [this] { state_.retries++; };
  link.on_stats = [this](const Stats& stats) { return OnStats(stats); };
  link.on_lane_thread = [this] {
    if (options_.low_priority && state_.replaces) {
      LowerThreadPriority();
    }
  };
  return link;
}

Status Puller::Run(Summary* summary) {
  std::optional<DeadlineWatch> watch;
  watch.emplace(options_.deadline, &failure_);
  Status status = RunSteps();
  if (!status.ok() && hooks_open_) {
    CallAfterSwap(workspace_->swap_transfer(), /*exchanged=*/false)
        .PermitUncheckedError();  // WorstOf() says it
  }
  watch.reset();
  if (!status.ok()) {
    failure_.Set(status, "target");
    status = WorstOf(failure_.status());
  }
  if (timeline_ != nullptr) {
    const Status stopped = timeline_->Stop();
    if (status.ok() && !stopped.ok()) {
      notes_.push_back(MessageOf(stopped));
    }
  }
  link_.End(status, error_where());
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
    Status status = failure_.failed() ? failure_.status() : (this->*step)();
    if (!status.ok()) {
      return status;
    }
  }
  // A cancellation that came after the rename came too late.
  return Settle();
}

Status Puller::Transfer() {
  if (link_.session() == nullptr) {
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
  link_.SetLanes(lanes, compression_ != WireCompression::kNone
                            ? kFrameFlagZstd
                            : 0);
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
  return link_.RunLanes([this](uint32_t lane) { RunLane(lane); });
}

void Puller::RunLane(uint32_t lane) {
  link_.FailLane(LaneClient(&state_, lane).Run(),
                 "target lane " + std::to_string(lane));
}

Status Puller::Reconcile() {
  if (link_.session() == nullptr) {
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
  Status status = link_.session()->Finish(ours, state_.ended, &finish_theirs_);
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
  if (status.ok() && failure_.failed()) {
    status = failure_.status();
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
  link_.End(Status::OK(), "");
  if (options_.mode == PullMode::kRefresh && !is_swap() && options_.compact) {
    SetPhase("compact");
  }
  return target_->Settle();
}

void Puller::Log(LogLevel level, const std::string& text) const {
  if (options_.log) {
    options_.log(level, text);
  }
}

void Puller::Cancel() {
  failure_.Set(MakeStatus(EndState::kCancelled, "stopped on request"),
               "target");
}

void Puller::CloseAll() {
  state_.pace.Close();
  link_.Close();
  std::lock_guard<std::mutex> lock(mu_);
  if (ingestor_ != nullptr) {
    ingestor_->Stop();
  }
}

}  // namespace sstferry
