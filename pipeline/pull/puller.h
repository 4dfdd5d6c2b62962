// One pull from its first check to its end: the steps, and the lanes that run
// in the middle of them. What becomes of the chunks is a PullTarget's.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/pull/exchange.h"
#include "pipeline/pull/first_failure.h"
#include "pipeline/pull/pull_compression.h"
#include "pipeline/pull/pull_context.h"
#include "pipeline/pull/pull_opener.h"
#include "pipeline/pull/pull_reporter.h"
#include "pipeline/pull/pull_state.h"
#include "pipeline/pull/pull_target.h"
#include "pipeline/pull/pull_verifier.h"
#include "pipeline/pull/pull_workspace.h"
#include "pipeline/pull/part_scheduler.h"
#include "pipeline/pull/source_link.h"
#include "sstferry/options.h"
#include "sstferry/transport.h"

namespace sstferry {

// Threads: Run() from one thread, once; Cancel() and progress() from any.
// Crash:   see "crash table" in pipeline/README.md.
class Puller {
 public:
  // Borrows the dialer, which must outlive it. `plans`: Run() stops before it
  // makes its first name (PullContext::plans).
  Puller(const PullOptions& options, Dialer* dialer,
         const PullTargetFactory& make_target, bool plans = false);
  ~Puller();

  // Before Run(): why options.method was chosen, and a note about it, which may
  // be empty.
  void ExplainMethod(const std::string& reason, const std::string& note) {
    report_.ExplainMethod(reason, note);
  }
  // After a refusal that is marked as one of chunks: true if they could hold
  // the database but for what they would leave out.
  bool left_out() const { return report_.result().left_out; }
  bool is_compacted() const { return report_.result().is_compacted; }

  // After Run() of a pull that was only planned: the source's plan, as far as
  // it came, and the estimated bytes of it that would have to come.
  const Plan& plan() const { return plan_; }
  uint64_t BytesToCome() const;

  // Fills every member of *summary but those the caller knows (the
  // operation's own times and status).
  [[nodiscard]] rocksdb::Status Run(Summary* summary);
  void Cancel();
  // Any thread: instead of options.max_rate_bytes_per_sec, from now on.
  void SetMaxRate(uint64_t bytes_per_sec) {
    state_.pace.SetRate(bytes_per_sec);
  }
  Progress progress() const { return report_.progress(); }
  // Returns where the first failure was seen; kNone after success.
  FailurePlace place() const { return failure_.place(); }

 private:
  void FillContext(const PullTargetFactory& make_target, bool plans);
  void FillState();
  SourceLinkOptions LinkOptions();
  // Ends what other threads wait for.
  void CloseAll();
  using Step = std::function<rocksdb::Status()>;
  [[nodiscard]] rocksdb::Status RunSteps();
  [[nodiscard]] rocksdb::Status RunPlan();
  rocksdb::Status TellsSource(const rocksdb::Status& status) const;
  [[nodiscard]] rocksdb::Status RunEach(const std::vector<Step>& steps);
  // Reads what is reused before it is believed; with verify.
  [[nodiscard]] rocksdb::Status CompareReused();
  [[nodiscard]] rocksdb::Status SetLanes();
  [[nodiscard]] rocksdb::Status Transfer();
  void RunLane(uint32_t lane);
  void PlanOthers();
  [[nodiscard]] rocksdb::Status FetchOthers();
  [[nodiscard]] rocksdb::Status Reconcile();
  [[nodiscard]] rocksdb::Status FinishTarget();
  [[nodiscard]] rocksdb::Status Publish();
  // Instead of all that follows CompareReused().
  [[nodiscard]] rocksdb::Status EndUnchanged();
  [[nodiscard]] rocksdb::Status Settle();

  const PullOptions options_;
  FirstFailure failure_;
  PullState state_;
  Plan plan_;
  PullContext context_;
  PullReporter report_;
  PullCompression compression_;
  Exchange exchange_;
  std::unique_ptr<PullTarget> target_;
  std::unique_ptr<PullWorkspace> work_;
  SourceLink link_;  // its threads end before what they use
  PullOpener opener_;
  PullVerifier verifier_;
  std::unique_ptr<PartScheduler> scheduler_;
};

}  // namespace sstferry
