// One pull from its first check to the end: what all targets share. What
// becomes of the chunks is a PullTarget's.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "pipeline/target/database/ingestor.h"
#include "pipeline/target/disk/workspace.h"
#include "pipeline/target/journal/journal_file.h"
#include "pipeline/target/journal/journal_state.h"
#include "pipeline/target/lane/held_chunks.h"
#include "pipeline/target/lane/pull_state.h"
#include "pipeline/target/pull/pull_target.h"
#include "pipeline/target/pull/timeline.h"
#include "pipeline/target/session/compression_control.h"
#include "pipeline/target/session/first_failure.h"
#include "pipeline/target/session/source_link.h"
#include "sstferry/options.h"
#include "sstferry/transport.h"

namespace sstferry {

// Threads: Run() from one thread, once; Cancel() and progress() from any.
// Crash:   see "crash table" in pipeline/README.md.
class Puller {
 public:
  // Borrows the dialer, which must outlive it. Without a factory it fills a
  // new database.
  Puller(const PullOptions& options, Dialer* dialer,
         const PullTargetFactory& make_target = nullptr);
  ~Puller();

  // Fills every member of *summary but those the caller knows (the
  // operation's own times and status).
  [[nodiscard]] rocksdb::Status Run(Summary* summary);
  void Cancel();
  // Any thread: instead of options.max_rate_bytes_per_sec, from now on.
  void SetMaxRate(uint64_t bytes_per_sec) {
    state_.pace.SetRate(bytes_per_sec);
  }
  Progress progress() const;
  // Where the first failure was seen; empty after success.
  std::string error_where() const { return failure_.where(); }

 private:
  [[nodiscard]] rocksdb::Status OpenWorkspace();
  [[nodiscard]] rocksdb::Status ReadUnfinished();
  void ChooseDurability();
  // Drops what an unfinished pull left.
  [[nodiscard]] rocksdb::Status StartAnew(const std::string& why);
  [[nodiscard]] rocksdb::Status Connect();
  [[nodiscard]] rocksdb::Status OpenSession(SnapshotUse use);
  // What to ask of the source: the option, where the source can do it.
  WireCompression ChooseCompression();
  // On a thread of the session: what to tell the source about compression.
  std::optional<Compress> OnStats(const Stats& theirs);
  [[nodiscard]] rocksdb::Status PrepareTarget();
  [[nodiscard]] rocksdb::Status CheckPlan();
  [[nodiscard]] rocksdb::Status AdoptUnfinished();
  void CountHeld(const HeldChunks& held);
  // Ranges of which the target has what the source has.
  void CountUnchanged();
  [[nodiscard]] rocksdb::Status CheckSpace();
  void KeepFree(uint64_t reserve_bytes);
  void MakeIngestor();
  [[nodiscard]] rocksdb::Status WriteJournalHead();
  [[nodiscard]] rocksdb::Status Transfer();
  void RunLane(uint32_t lane);
  [[nodiscard]] rocksdb::Status Reconcile();
  [[nodiscard]] rocksdb::Status FinishDatabase();
  [[nodiscard]] rocksdb::Status VerifyAgainstSource();
  [[nodiscard]] rocksdb::Status Distrust();
  [[nodiscard]] rocksdb::Status StartOver(const rocksdb::Status& damage);
  void VerifyLane(uint32_t lane, std::atomic<size_t>* next);
  [[nodiscard]] rocksdb::Status VerifyRange(Channel* channel,
                                            const Range& range,
                                            std::optional<DigestReply>* ours);
  void Log(LogLevel level, const std::string& text) const;
  [[nodiscard]] rocksdb::Status Publish();
  [[nodiscard]] rocksdb::Status Settle();
  // Of a refresh by exchange, in puller_swap.cc.
  bool is_swap() const { return IsSwap(options_); }
  [[nodiscard]] rocksdb::Status CheckSource();
  [[nodiscard]] rocksdb::Status CheckTargetReplica();
  [[nodiscard]] rocksdb::Status FinishEarlierSwap();
  bool CanGoOnWithSwap();
  [[nodiscard]] rocksdb::Status GoOnWithSwap();
  [[nodiscard]] rocksdb::Status CallBeforeSwap();
  [[nodiscard]] rocksdb::Status CallAfterSwap(const std::string& transfer_id,
                                              bool exchanged);
  [[nodiscard]] rocksdb::Status RunAfterSwap(const std::string& transfer_id,
                                             bool exchanged);
  [[nodiscard]] rocksdb::Status DeleteOld();
  rocksdb::Status WorstOf(const rocksdb::Status& status) const;
  [[nodiscard]] rocksdb::Status PublishBySwap();
  void FinishSwap();
  void NoteGoneFamilies();
  [[nodiscard]] rocksdb::Status RunSteps();
  // To the log and into the summary.
  void Say(const std::string& note);
  void SayHowToGoOn(const rocksdb::Status& status);

  SourceLinkOptions LinkOptions();
  // Ends what other threads wait for.
  void CloseAll();
  void SetPhase(const char* phase);
  void FillSummary(Summary* summary) const;
  void FillStages(Summary* summary) const;
  void FillRanges(Summary* summary) const;
  void FillRefresh(Summary* summary) const;
  std::vector<uint64_t> TimelineSample() const;
  double SecondsSince(std::chrono::steady_clock::time_point start) const;

  const PullOptions options_;
  const std::chrono::steady_clock::time_point started_;
  FirstFailure failure_;
  std::shared_ptr<rocksdb::FileSystem> disk_;  // the caller's; see access.h
  std::shared_ptr<rocksdb::FileSystem> file_system_;  // what durability asks

  std::unique_ptr<Workspace> workspace_;
  SourcePlan plan_;
  OpenRequest asked_;        // what plan_ answers
  JournalState unfinished_;  // what an earlier pull left, while resuming_
  bool resuming_ = false;
  std::optional<TransferId> dropped_;  // whose snapshot nobody needs any more
  bool can_go_on_ = false;   // from what is on disk now
  Totals held_;              // of what was here before this pull began
  PullContext context_;
  std::unique_ptr<PullTarget> target_;
  std::unique_ptr<JournalFile> journal_;
  std::unique_ptr<RangeScheduler> scheduler_;
  std::unique_ptr<SpaceGate> space_;
  std::unique_ptr<Ingestor> ingestor_;  // changes under mu_
  PullState state_;
  SourceLink link_;
  std::unique_ptr<Timeline> timeline_;
  WireCompression compression_ = WireCompression::kNone;  // as agreed on
  CompressionControl compression_control_;  // the session's reader's
  std::chrono::steady_clock::time_point lanes_started_;
  std::atomic<bool> controls_compression_{false};  // lanes_started_ is set
  struct Finish finish_theirs_;
  std::vector<std::string> notes_;
  std::string started_at_;
  bool verified_ = false;
  std::vector<char> equal_;            // by range id, while it is verified
  std::atomic<bool> differs_{false};  // a range was found to be another
  bool goes_on_with_swap_ = false;  // of an earlier run
  bool hooks_open_ = false;         // before_swap was begun, after_swap not
  rocksdb::Status after_swap_failed_;
  uint64_t sequence_old_ = 0;
  std::vector<std::string> old_families_;
  std::optional<std::chrono::steady_clock::time_point> outage_since_;
  double outage_seconds_ = 0;
  double sync_seconds_ = 0;
  double verify_seconds_ = 0;
  double swap_seconds_ = 0;
  double delete_seconds_ = 0;

  mutable std::mutex mu_;
  const char* phase_ = "connect";                  // under mu_
  bool published_ = false;                         // under mu_
  std::atomic<uint64_t> verified_bytes_{0};
  std::atomic<uint64_t> planned_bytes_{0};
};

}  // namespace sstferry
