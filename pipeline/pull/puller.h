// One pull from its first check to its end: the steps, and the lanes that run
// in the middle of them. What becomes of the chunks is a PullTarget's.
//
//   opener.OpenWorkspace()    lock; complete an exchange that was cut short;
//                             is there an unfinished pull to resume?       [1]
//   opener.Connect()          the source's plan, or the journal's          [2]
//   opener.PrepareTarget()    find what has come, or make the target anew;
//                             check the free space                         [3]
//   CompareReused()           read what is reused before it is believed
//   if TARGET_DIR is current: tell the source, record it, end              [4]
//   opener.WriteJournalHead()
//   Transfer()                each lane, on a thread of its own: while the
//                             scheduler has a part, receive it             [5]
//   FetchOthers()             the application's own files
//   Reconcile()               both sides agree on the totals               [6]
//   FinishTarget()            all is readable; compare it, with --verify;
//                             all is durable
//   Publish()                 record what came from where; give it its name,
//                             or, in a drill, show it to who asked for that
//   Settle()                  let the source go; compact                   [7]
//
// [1] A pull that is only planned takes no lock, and changes nothing from here
//     to [3], where it ends.
// [2] Without a source where all has come and nothing is to be compared.
// [3] Damage of what an unfinished pull left makes it start over, once.
// [4] Only a swap of a clone that would change nothing but names.
// [5] The first failure of any thread stops all (first_failure.h).
// [6] From here on a run that dies is finished without the source.
// [7] Whatever happens now, the target is complete.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/pull/exchange.h"
#include "pipeline/pull/first_failure.h"
#include "pipeline/pull/part_scheduler.h"
#include "pipeline/pull/pull_compression.h"
#include "pipeline/pull/pull_opener.h"
#include "pipeline/pull/pull_reporter.h"
#include "pipeline/pull/lane_shared.h"
#include "pipeline/pull/pull_target.h"
#include "pipeline/pull/pull_verifier.h"
#include "pipeline/pull/pull_workspace.h"
#include "pipeline/pull/source_link.h"
#include "sstferry/options.h"
#include "sstferry/transport.h"

namespace sstferry {

// Threads: Run() from one thread, once; Cancel() and progress() from any.
// Crash:   see "crash table" in pipeline/README.md.
class Puller {
 public:
  // Borrows the dialer, which must outlive it. `plans`: Run() stops before it
  // makes its first name, and changes nothing.
  Puller(const PullOptions& options, Dialer* dialer,
         const PullTargetFactory& make_target, bool plans = false);
  ~Puller();

  // Says what options.method was chosen by, and why; `note` for the operator
  // may be empty. Before Run().
  void ExplainMethod(const MethodInput& input, const std::string& reason,
                     const std::string& note) {
    opener_.SetMethodInput(input);
    report_.ExplainMethod(reason, input);
    if (!note.empty()) report_.Say(note);
  }
  // Returns that, with what the source said.
  const MethodInput& method_input() const { return opener_.method_input(); }
  // Returns why the pull refused its method, after such a refusal.
  OtherMethod other_method() const { return opener_.other_method(); }
  // Returns true after a failure that is none of a pull which builds its new
  // database without that in TARGET_DIR.
  bool gives_way() const { return target_->gives_way(); }

  // Makes it a drill, before Run(): `drill` is called with the directory of the
  // new database, complete and durable, instead of giving it its name. Then all
  // that the pull made is removed, also after a failure.
  void SetDrill(std::function<rocksdb::Status(const std::string&)> drill) {
    drill_ = std::move(drill);
  }

  // --- after Run() of a pull that was only planned ---------------------------
  // Returns the source's plan, as far as it came.
  const Plan& plan() const { return plan_; }
  // Returns the estimated bytes of the plan that would have to come.
  uint64_t BytesToCome() const;

  // Fills every member of *summary but those the caller knows (the
  // operation's own times and status).
  [[nodiscard]] rocksdb::Status Run(Summary* summary);
  void Cancel();
  // Sets, from any thread, what counts from now on instead of
  // options.max_rate_bytes_per_sec.
  void SetMaxRate(uint64_t bytes_per_sec) {
    state_.pace.SetRate(bytes_per_sec);
  }
  Progress progress() const { return report_.progress(); }
  // Returns where the first failure was seen; kNone after success.
  FailurePlace place() const { return failure_.place(); }

 private:
  void FillState();
  SourceLinkOptions LinkOptions();
  // Ends what other threads wait for.
  void CloseAll();
  using Step = std::function<rocksdb::Status()>;
  [[nodiscard]] rocksdb::Status RunSteps();
  [[nodiscard]] rocksdb::Status RunPlan();
  rocksdb::Status TellsSource(const rocksdb::Status& status) const;
  [[nodiscard]] rocksdb::Status RunEach(const std::vector<Step>& steps);
  [[nodiscard]] rocksdb::Status CompareReused();
  [[nodiscard]] rocksdb::Status SetLanes();
  [[nodiscard]] rocksdb::Status Transfer();
  void RunLane(uint32_t lane);
  void PlanOthers();
  [[nodiscard]] rocksdb::Status FetchOthers();
  [[nodiscard]] rocksdb::Status Reconcile();
  [[nodiscard]] rocksdb::Status FinishTarget();
  [[nodiscard]] rocksdb::Status Verify();
  [[nodiscard]] rocksdb::Status Publish();
  // Ends the pull instead of all steps that follow CompareReused().
  [[nodiscard]] rocksdb::Status EndUnchanged();
  [[nodiscard]] rocksdb::Status LeaveTarget();
  void FindUnchanged();
  [[nodiscard]] rocksdb::Status Settle();
  [[nodiscard]] rocksdb::Status RemoveDrill();
  void FillSummary(Summary* summary) const;
  // Returns the summary of a pull that ends with OK.
  Summary CompleteSummary() const;

  const PullOptions options_;
  const bool plans_;
  std::function<rocksdb::Status(const std::string&)> drill_;  // null: none
  bool has_workspace_ = false;  // a drill has
  bool is_unchanged_ = false;   // a swap has nothing to exchange
  FirstFailure failure_;
  LaneShared state_;
  Plan plan_;
  PullReporter report_;
  PullCompression compression_;
  Exchange exchange_;
  std::unique_ptr<PullTarget> target_;
  std::unique_ptr<PullWorkspace> work_;
  PullOpener opener_;
  SourceLink link_;  // its threads end before what they use
  PullVerifier verifier_;
  std::unique_ptr<PartScheduler> scheduler_;
};

}  // namespace sstferry
