// Follows a source: requests records, appends them, makes them durable, and
// takes cuts. Has up to four threads:
//
//   main      requests the records after the standby's position and appends
//             them. If the source requires a cut, takes the cut, and requests
//             no records meanwhile. If a scheduled cut is due, starts the
//             cutter, and continues to append records.
//   syncer    every `durable`: syncs, writes a mark
//   cutter    takes a scheduled cut
//   viewer    every `view_every`: makes a view, and removes old views
#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "format/end_state.h"
#include "pipeline/api/endpoint.h"
#include "pipeline/api/log_rounds.h"
#include "pipeline/api/operation_parts.h"
#include "pipeline/api/standby_cut.h"
#include "pipeline/archive/open_store.h"
#include "pipeline/base/database_name.h"
#include "pipeline/base/full_disk.h"
#include "pipeline/base/known_fault.h"
#include "pipeline/base/last_transfer.h"
#include "pipeline/base/other_accounts.h"
#include "pipeline/base/standby_files.h"
#include "pipeline/base/start_thread.h"
#include "pipeline/base/stop_signal.h"
#include "pipeline/base/this_machine.h"
#include "pipeline/disk/database_files.h"
#include "pipeline/disk/target_directories.h"
#include "pipeline/follow/audit.h"
#include "pipeline/follow/round_target.h"
#include "pipeline/follow/source_rounds.h"
#include "pipeline/follow/standby.h"
#include "pipeline/follow/standby_views.h"
#include "pipeline/pull/backoff.h"
#include "pipeline/pull/health.h"
#include "pipeline/pull/source_session.h"
#include "pipeline/snapshot/posix_files.h"
#include "pipeline/wire/token_bucket.h"
#include "sstferry/follow.h"

namespace sstferry {
namespace {

using rocksdb::Status;

constexpr uint32_t kAskMillis = 1000;
constexpr std::chrono::milliseconds kTellEvery{1000};
constexpr std::chrono::milliseconds kLongestPause{10'000};
constexpr std::chrono::hours kForever{24 * 36'500};

// Returns true if a retry may succeed after this failure. Some failures are
// final only until the follower has received something from its source. For
// example, the directory is no database, the certificate is wrong, or the disk
// is too small. At that time, they mean that the arguments may be wrong.
bool MayPass(const Status& status, bool has_begun = true) {
  switch (EndStateOf(status)) {
    case EndState::kRefused:
    case EndState::kIncompatible:
    case EndState::kCorrupt:
    case EndState::kCancelled:
      return false;
    case EndState::kSourceError:
    case EndState::kDenied:
    case EndState::kNoSpace:
      return has_begun;
    default:
      return true;
  }
}

// Appends the rounds to a standby.
class StandbyRounds : public RoundTarget {
 public:
  // The options and the endpoint must outlive this object.
  StandbyRounds(const FollowOptions& options,
                const std::unique_ptr<Endpoint>* endpoint)
      : options_(options), pull_(options.pull), endpoint_(endpoint) {
    AuditOptions audit;
    audit.dir = pull_.target_dir;
    audit.file_system = pull_.file_system;
    audit.max_bytes = options.max_audit_bytes;
    audit.registry = pull_.registry;
    audit.log = pull_.log;
    audit.on_fault = [this](const HealthFile& fault) { TakeFault(fault); };
    audit_ = std::make_unique<StandbyAudit>(std::move(audit));
  }
  // Opens the standby. If `adopts` is true, the directory may contain another
  // database, which then becomes a standby; and if it contains a standby, the
  // source may be another database at the first cut.
  [[nodiscard]] Status Open(bool adopts) {
    const std::string& dir = pull_.target_dir;
    takes_any_ = adopts;
    // Before any owner is changed.
    RETURN_IF_ERROR(CheckOnlyRoot(dir, /*in_place=*/false));
    FileId standby_record;
    RETURN_IF_ERROR(FileIdOfName(dir + "/" + kFollowFileName, &standby_record));
    const bool is_database = !standby_record.exists() && HoldsDatabase(dir);
    if (is_database && !adopts) {
      return NeedsAdopt();
    }
    if (is_database) {
      // Before the source is contacted.
      RETURN_IF_ERROR(CheckExchangeable(dir));
      RETURN_IF_ERROR(Standby::Adopt(dir, pull_.file_system, &standby_));
      return OpenViews();
    }
    RETURN_IF_ERROR(Standby::Open(dir, pull_.file_system, &standby_));
    RETURN_IF_ERROR(OpenViews());
    RETURN_IF_ERROR(KeepAdopted(dir, pull_.file_system, pull_.log));
    if (adopts && !standby_->exists() && pull_.log) {
      pull_.log(LogLevel::kInfo, dir + " holds nothing that could be adopted; "
                                       "all files are sent by the source");
    }
    if (!standby_->exists()) {
      return Status::OK();
    }
    RemoveLeftAudits(dir, pull_.log);
    return FindFault();
  }

  bool exists() const override { return standby_->exists(); }
  FollowPosition position() const override { return standby_->position(); }
  bool exact_filters() const override {
    return standby_->record().exact_filters;
  }
  Gap gap() const override {
    {
      std::lock_guard<std::mutex> lock(mu_);
      if (damage_.reason != CutReason::kNone) return damage_;
    }
    return standby_->gap();
  }
  void Ask() override { standby_->Ask(); }
  void HearBytes(bool is_over) override { standby_->HearBytes(is_over); }
  void Hear(const Round& round) override {
    standby_->Hear(round);
    if (round.end.cut != CutReason::kNone) ConfirmViews(false);
  }
  Status Append(const FollowPosition& asked, const Round& round) override {
    RETURN_IF_ERROR(standby_->Append(asked, round));
    const bool continues = standby_->gap().reason == CutReason::kNone;
    if (!continues || round.is_decided()) ConfirmViews(continues);
    return Status::OK();
  }
  Status Sync() override {
    HearCut();
    return standby_->Sync();
  }
  Status MarkHeard() override {
    HearCut();
    return standby_->MarkHeard();
  }
  Status ForgetClosed() override { return standby_->ForgetClosed(); }
  Status Cut(const CutRequest& request) override {
    Summary summary;
    // The cut below repairs a fault that the audit may have found.
    audit_->End();
    const TransferId known = damage_id();
    CutRequest cut = request;
    cut.compares = gap().reason == CutReason::kDamage;
    PullOptions pull = pull_;
    pull.adopt = pull.adopt || takes_any_;
    const Status status = MakeStandbyCut(
        pull, cut, (*endpoint_)->name(), (*endpoint_)->dialer(),
        standby_.get(), &slot_, &summary, audit_.get());
    const bool may_be_damaged =
        standby_->gap().reason == CutReason::kDamage ||
        EndStateOf(status) == EndState::kCorrupt;
    if (!status.ok() && may_be_damaged && standby_->exists()) {
      RETURN_IF_ERROR(FindFault());
      if (damage_id() != known) {
        return MakeStatus(EndState::kSourceError, MessageOf(status));
      }
    }
    RETURN_IF_ERROR(status);
    takes_any_ = false;
    TakeFault(HealthFile());  // the cut has compared all files that it kept
    ConfirmViews(true);  // the cut consists of the source's own files
    audit_->Begin();
    return Status::OK();
  }
  void DropCut() override {
    slot_.Cancel();
    if (pull_.log) {
      pull_.log(LogLevel::kInfo,
                "the follower abandons the cut in progress, because it needs "
                "another cut now");
    }
  }
  void Renew() override { slot_.Renew(); }
  void Cancel() override {
    slot_.Cancel();
    audit_->Cancel();
    if (views_ != nullptr) views_->Cancel();
  }
  uint64_t cut_micros() const override {
    return standby_->record().cut_micros;
  }
  uint64_t replay_bytes() const override { return standby_->replay_bytes(); }
  StandbyState state() const override {
    StandbyState state;
    bool found = false;
    ReadStandbyState(standby_->dir(), &found, &state).PermitUncheckedError();
    const StandbyPosition received = standby_->received();
    state.sequence = received.last_sequence;
    state.durable_sequence = standby_->durable().last_sequence;
    state.moment_micros = received.read_micros;
    if (views_ != nullptr) views_->AddTo(&state);
    return state;
  }

 private:
  Status OpenViews() {
    if (options_.view_every.count() == 0) {
      return Status::OK();
    }
    RETURN_IF_ERROR(StandbyViews::Open(
        {pull_.target_dir, options_.view_every, options_.keep_views,
         pull_.file_system, pull_.log},
        standby_.get(), &views_));
    return views_->Begin();
  }

  // The follower requests no records during a cut. But it receives the bytes of
  // the cut, which show that the source can be reached.
  void HearCut() {
    const uint64_t bytes = slot_.progress().done_bytes;
    if (cut_bytes_.exchange(bytes) < bytes) standby_->HearOn();
  }

  void ConfirmViews(bool is_confirmed) {
    if (views_ != nullptr) views_->SetConfirmed(is_confirmed);
  }

  // Returns the refusal of a database in DIR. If it was promoted, does not
  // suggest the command that would make it a standby: it may be the primary.
  Status NeedsAdopt() const {
    const std::string& dir = pull_.target_dir;
    bool found = false;
    LastTransfer last;
    RETURN_IF_ERROR(FindLastTransfer(dir, &found, &last));
    if (!last.promoted_at.empty()) {
      return MakeStatus(
          EndState::kRefused,
          dir + ": expected a standby or an empty directory, found a database "
                "that was promoted at " +
              last.promoted_at +
              " and may be the primary; nothing was changed");
    }
    return MakeStatus(
        EndState::kRefused,
        dir + ": expected a standby or an empty directory, found a database; "
              "--adopt makes a standby that reuses its files, and keeps it "
              "as " +
            dir + kAdoptedInfix + "DATE",
        MendStandbyCommand(pull_.source.ToString(), dir) +
            AccessWords(pull_, pull_.source) + " --adopt");
  }

  // If the standby is damaged or differs from its source, makes the follower
  // begin with a cut. While the fault is recorded, each cut compares the files
  // that it keeps.
  Status FindFault() {
    const std::string& dir = standby_->dir();
    HealthFile fault;
    RETURN_IF_ERROR(FindStandbyFault(pull_.file_system.get(), dir, &fault));
    const Gap gap = standby_->gap();
    if (fault.fault == ReplicaFault::kNone &&
        gap.reason == CutReason::kDamage) {
      fault = MakeFault(ReplicaFault::kDamaged, gap.note, Selection());
      RETURN_IF_ERROR(RecordFault(pull_.file_system.get(), dir, &fault));
    }
    if (fault.fault == ReplicaFault::kNone) {
      return Status::OK();
    }
    if (fault.id == TransferId()) {
      RETURN_IF_ERROR(RecordFault(pull_.file_system.get(), dir, &fault));
    }
    TakeFault(fault);
    return Status::OK();
  }

  void TakeFault(const HealthFile& fault) {
    std::lock_guard<std::mutex> lock(mu_);
    damage_id_ = fault.id;
    damage_ = fault.fault == ReplicaFault::kNone
                  ? Gap()
                  : Gap{CutReason::kDamage,
                        pull_.target_dir + ": " + FaultSentence(fault)};
  }

  TransferId damage_id() const {
    std::lock_guard<std::mutex> lock(mu_);
    return damage_id_;
  }

  const FollowOptions& options_;
  const PullOptions& pull_;
  mutable std::mutex mu_;
  Gap damage_;  // guarded by mu_
  TransferId damage_id_{};  // id of the same fault; guarded by mu_
  bool takes_any_ = false;  // used by Open(), then only by the present cut
  // Progress of a cut at the last HearCut().
  std::atomic<uint64_t> cut_bytes_{0};
  // Opened before the first cut.
  const std::unique_ptr<Endpoint>* const endpoint_;
  std::unique_ptr<Standby> standby_;
  WorkerSlot<Puller> slot_;
  // Must be destroyed before the members above.
  std::unique_ptr<StandbyAudit> audit_;
  std::unique_ptr<StandbyViews> views_;  // must be destroyed first
};

class Follow : public StandbyJob {
 public:
  explicit Follow(const FollowOptions& options)
      : options_(options), cut_pauses_(CutPauses()) {}

  Status Run(StandbyState* state) override {
    Status status = Begin();
    std::thread syncer;
    if (status.ok()) {
      status = StartThread([this] { SyncAgainAndAgain(); }, &syncer);
    }
    if (status.ok()) {
      Fail(Main());
      stop_.Stop();
      syncer.join();
      JoinCutter();
      status = failed();
      // After Cancel(), it is no error that nothing more was received. But it
      // is an error if received data cannot be stored.
      if (target_->exists()) {
        const Status synced = target_->Sync();
        status = status.ok() ? synced : status;
      }
    }
    *state = target_ != nullptr ? StateNow() : StandbyState();
    return status;
  }

  void Cancel() override {
    cancelled_ = true;
    End();
  }

 private:
  // Ends all threads. Cancels a cut that one of them takes.
  void End() {
    stop_.Stop();
    pace_.Close();
    std::lock_guard<std::mutex> lock(mu_);
    if (target_ != nullptr) target_->Cancel();
    if (rounds_ != nullptr) rounds_->Close();
  }

  Status Begin() {
    PullOptions& pull = options_.pull;
    if (pull.file_system == nullptr) {
      pull.file_system =
          MakeFullDiskFileSystem(rocksdb::FileSystem::Default());
    }
    RETURN_IF_ERROR(OpenTarget());
    EndpointOptions source = EndpointFor(pull);
    source.max_held_bytes = options_.max_held_bytes;
    RETURN_IF_ERROR(Endpoint::Open(source, &endpoint_));
    std::lock_guard<std::mutex> lock(mu_);
    rounds_ =
        std::make_unique<SourceRounds>(endpoint_->dialer(), pull.timeouts);
    asks_.database = endpoint_->name();
    asks_.target = options_.into_archive
                       ? TargetText("") + ": archive " +
                             options_.store.where.ToString()
                       : TargetText(pull.target_dir);
    asks_.wait_millis = kAskMillis;
    return Status::OK();
  }

  Status OpenTarget() {
    std::unique_ptr<RoundTarget> target;
    if (options_.into_archive) {
      const StoreOpener open = [this](Clock::time_point until,
                                      std::unique_ptr<ObjectStore>* store) {
        StoreOptions where = options_.store;
        where.until = until;
        return OpenStore(where, store);
      };
      RETURN_IF_ERROR(
          OpenLogRounds(options_, &endpoint_, open, MicrosNow, &target));
    } else {
      std::vector<std::string> dirs;
      RETURN_IF_ERROR(TargetDirectories(options_.pull, nullptr, &dirs));
      RETURN_IF_ERROR(CheckApartFromSource(options_.pull, dirs));
      RETURN_IF_ERROR(CheckOutsideOfDatabases(options_.pull.target_dir));
      auto standby =
          std::make_unique<StandbyRounds>(options_, &endpoint_);
      RETURN_IF_ERROR(standby->Open(options_.adopt));
      target = std::move(standby);
    }
    std::lock_guard<std::mutex> lock(mu_);
    target_ = std::move(target);
    return Status::OK();
  }

  Status Main() {
    BackoffOptions pauses;
    pauses.longest = kLongestPause;
    pauses.give_up_after = kForever;
    Backoff backoff(pauses);
    Clock::time_point told{};
    // Stays true even when target_->exists() becomes false again. This happens
    // when a log has ended and the next log has no set yet.
    bool has_begun = false;
    while (!stop_.stopped()) {
      Status status = FollowOnce();
      has_begun = has_begun || target_->exists();
      // After a failure, another process may have opened the source without the
      // follower noticing. But a cancellation is no failure of the source.
      if (!status.ok() && !cancelled_) status = ForgetClosed(status);
      std::chrono::milliseconds pause{0};
      if (status.ok()) {
        backoff.Succeeded();
      } else if (!MayPass(status, has_begun) || cancelled_ ||
                 !backoff.Next(&pause)) {
        return status;
      } else {
        Log(LogLevel::kWarning,
            MessageOf(status) + "; tries again in " +
                std::to_string(pause.count()) + " ms");
        stop_.WaitFor(pause);
      }
      if (tells_now_.exchange(false) || Clock::now() - told >= kTellEvery) {
        told = Clock::now();
        Tell();
      }
    }
    return failed();
  }

  Status FollowOnce() {
    FollowRequest request = asks_;
    request.position = target_->position();
    request.exact_filters = options_.exact_filters || target_->exact_filters();
    Round round;
    target_->Ask();
    const Status asked = rounds_->Ask(request, &round);
    // kDeadPeer means that the source did not answer. Any other error came from
    // the source, or has nothing to do with it; so the follower no longer
    // waits.
    if (!asked.ok() && EndStateOf(asked) != EndState::kDeadPeer) {
      target_->HearBytes(/*is_over=*/true);
    }
    RETURN_IF_ERROR(asked);
    target_->Hear(round);
    Gap gap{round.end.cut, round.end.note};
    const Gap here = target_->gap();
    if (gap.reason != CutReason::kNone && here.reason == CutReason::kDamage) {
      gap.note += (gap.note.empty() ? "" : "; ") + here.note;
    }
    if (gap.reason == CutReason::kNone) {
      RETURN_IF_ERROR(target_->Append(request.position, round));
      gap = target_->gap();
      if (gap.reason != CutReason::kNone &&
          gap.reason != CutReason::kDamage) {
        Log(LogLevel::kWarning, "the received records do not continue those of "
                                "the target: " +
                                    gap.note);
      }
      if (gap.reason != CutReason::kNone) {
        request.position = target_->position();
      }
    }
    if (gap.reason != CutReason::kNone) {
      RETURN_IF_ERROR(ForgetClosed(Status::OK()));
      // A scheduled cut may be running. Waits for it, because it may be the cut
      // that is required. But a cut that yields to other work would delay all
      // records, so drops it.
      JoinCutter(/*drops_gentle=*/true);
      if (target_->position() != request.position) {
        return Status::OK();
      }
      Log(LogLevel::kInfo,
          std::string("the follower needs a cut of the source (") +
              CutReasonName(gap.reason) +
              (gap.note.empty() ? "" : ": ") + gap.note + ")");
      // round.end.judged describes the target's own records only if the source
      // has begun a new life. For any other cut, it includes records that the
      // target has not appended.
      const bool is_new_life = round.end.cut == CutReason::kNewLife;
      return Cut(gap.reason, gap.note,
                 is_new_life ? round.end.judged : FollowJudged());
    }
    uint64_t bytes = 0;
    for (const WalBytes& log : round.logs) {
      bytes += log.bytes.size();
    }
    received_bytes_ += bytes;
    // While a cut runs, records use half of the rate. The cut uses the other
    // half (SetCutOptions).
    const uint64_t rate = options_.pull.max_rate_bytes_per_sec;
    pace_.SetRate(cutting_ ? (rate + 1) / 2 : rate);
    RETURN_IF_ERROR(pace_.Take(bytes));
    behind_bytes_ = round.end.more_bytes;
    return CutIfDue();
  }

  // Forgets that the source was closed. Returns the error of ForgetClosed(), or
  // else `status`.
  Status ForgetClosed(const Status& status) {
    const Status forgot =
        target_->exists() ? target_->ForgetClosed() : Status::OK();
    return forgot.ok() ? status : forgot;
  }

  Status CutIfDue() {
    const uint64_t cut_micros = target_->cut_micros();
    const uint64_t now = MicrosNow();
    const auto every = std::chrono::microseconds(options_.cut_every).count();
    // If the clock was ahead when the last cut was taken, the age of this cut
    // is unknown.
    const bool was_ahead = now + kMostClockBackMicros < cut_micros;
    const bool is_old =
        every > 0 &&
        (was_ahead || (now > cut_micros &&
                       now - cut_micros >= static_cast<uint64_t>(every)));
    const bool is_large =
        options_.max_replay_bytes > 0 &&
        target_->replay_bytes() > options_.max_replay_bytes;
    if ((cutting_ && !(is_gentle_ && is_large)) || !(is_old || is_large) ||
        Clock::now() < next_cut_.load()) {
      return Status::OK();
    }
    JoinCutter(/*drops_gentle=*/true);
    cutting_ = true;
    const CutReason reason =
        is_large ? CutReason::kMaxReplay : CutReason::kCutEvery;
    is_gentle_ = !is_large && !options_.pull.full_rate;
    const Status started = StartThread(
        [this, reason] {
          const Status status = Cut(reason);
          if (is_dropped_) {
            // A required cut replaces this cut, so this is no failure.
          } else if (!status.ok() && MayPass(status)) {
            Log(LogLevel::kWarning,
                "a cut that was due could not be taken: " + MessageOf(status));
          } else if (!cancelled_) {
            Fail(status);
          }
          cutting_ = false;
        },
        &cutter_);
    if (!started.ok()) {
      cutting_ = false;
    }
    return started;
  }

  // Returns the pauses between failed cuts. They are long, because each try
  // makes the source pin a snapshot.
  static BackoffOptions CutPauses() {
    BackoffOptions pauses;
    pauses.first = std::chrono::seconds(5);
    pauses.longest = std::chrono::minutes(10);
    pauses.give_up_after = kForever;
    return pauses;
  }

  // Takes a cut. If the source has not flushed since the last cut, its WALs are
  // still as large, and the next cut would be due at once. So delays the next
  // scheduled cut.
  Status Cut(CutReason reason, const std::string& note = "",
             const FollowJudged& continued = {}) {
    const Status status =
        target_->Cut({reason, note, options_.exact_filters, continued});
    std::chrono::milliseconds pause = kLeastBetweenCuts;
    if (status.ok()) {
      cut_pauses_.Succeeded();
    } else if (!is_dropped_) {
      cut_pauses_.Next(&pause);
    }
    next_cut_ = Clock::now() + pause;
    tells_now_ = tells_now_ || status.ok();
    return status;
  }

  void JoinCutter(bool drops_gentle = false) {
    if (!cutter_.joinable()) {
      return;
    }
    is_dropped_ = drops_gentle && is_gentle_ && cutting_;
    if (is_dropped_) target_->DropCut();
    cutter_.join();
    if (is_dropped_.exchange(false)) target_->Renew();
    if (stop_.stopped()) target_->Cancel();
  }

  void SyncAgainAndAgain() {
    uint64_t heard_bytes = 0;
    const std::chrono::milliseconds every =
        options_.into_archive ? options_.segment : options_.durable;
    Clock::time_point synced = Clock::now();
    // A promotion reads from the mark when the source last answered. So writes
    // a mark at least every kTellEvery.
    while (!stop_.WaitFor(std::min(every, kTellEvery))) {
      const uint64_t bytes = rounds_->received_bytes();
      if (std::exchange(heard_bytes, bytes) != bytes) {
        target_->HearBytes(/*is_over=*/false);
      }
      const bool is_due =
          every <= kTellEvery || Clock::now() - synced >= every;
      if (is_due) synced = Clock::now();
      const Status status = !target_->exists() ? Status::OK()
                            : is_due           ? target_->Sync()
                                               : target_->MarkHeard();
      if (!status.ok()) {
        Fail(status);
        return;
      }
    }
  }

  StandbyState StateNow() const {
    StandbyState state = target_->state();
    state.is_followed = true;
    state.behind_bytes = behind_bytes_;
    state.replay_bytes = target_->replay_bytes();
    state.received_bytes = received_bytes_;
    return state;
  }

  void Tell() {
    if (options_.on_state && target_->exists()) options_.on_state(StateNow());
  }

  void Log(LogLevel level, const std::string& text) const {
    if (options_.pull.log) options_.pull.log(level, text);
  }

  // Stores the first failure and ends all threads.
  void Fail(const Status& status) {
    if (status.ok()) {
      return;
    }
    {
      std::lock_guard<std::mutex> lock(mu_);
      if (failed_.ok() && !cancelled_) failed_ = status;
    }
    End();
  }
  Status failed() const {
    std::lock_guard<std::mutex> lock(mu_);
    return failed_;
  }

  static constexpr std::chrono::milliseconds kLeastBetweenCuts{1000};

  FollowOptions options_;
  std::unique_ptr<Endpoint> endpoint_;
  std::unique_ptr<RoundTarget> target_;  // set once, under mu_
  FollowRequest asks_;  // values that all requests have in common
  StopSignal stop_;
  TokenBucket pace_{0};  // limits the rate of received records
  std::atomic<bool> cancelled_{false};
  std::atomic<bool> cutting_{false};
  bool is_gentle_ = false;  // true: the running cut yields to other work
  std::atomic<bool> is_dropped_{false};
  std::atomic<Clock::time_point> next_cut_{Clock::time_point{}};
  Backoff cut_pauses_;  // used only by the thread that takes a cut
  std::atomic<bool> tells_now_{false};
  std::atomic<uint64_t> received_bytes_{0};
  std::atomic<uint64_t> behind_bytes_{0};
  std::thread cutter_;
  mutable std::mutex mu_;
  Status failed_;                         // guarded by mu_
  std::unique_ptr<SourceRounds> rounds_;  // set once, under mu_
};

}  // namespace

std::unique_ptr<StandbyJob> MakeFollow(const FollowOptions& options) {
  return std::make_unique<Follow>(options);
}

}  // namespace sstferry
