// Runs the steps of one pull, from its first check to its end, and runs the
// lanes during the transfer. The PullTarget decides what is made of the
// received chunks.
//
//   opener.OpenWorkspace()    lock; complete an interrupted exchange; is there
//                             an unfinished pull to resume?                [1]
//   opener.Connect()          the source's plan, or the journal's          [2]
//   opener.PrepareTarget()    find what was received, or make a new target;
//                             check the free space                         [3]
//   CompareReused()           compare reused files with the source's
//   if TARGET_DIR is current: tell the source, record it, end              [4]
//   opener.WriteJournalHead()
//   Transfer()                each lane, on its own thread: while the
//                             scheduler has a part, receive it             [5]
//   FetchOthers()             the application's own files
//   Reconcile()               both sides agree on the totals               [6]
//   FinishTarget()            make the data readable; compare it, with
//                             --verify; make it durable
//   Publish()                 record the origin of the data; give the database
//                             its name or, in a drill, show it to the caller
//   Settle()                  release the source; compact                  [7]
//
// [1] A pull that is only planned takes no lock and changes nothing. It ends
//     after [3].
// [2] No source is needed if everything was received and nothing is compared.
// [3] If the remains of an unfinished pull are damaged, it starts over, once.
// [4] Only for a clone, if an exchange would change only names.
// [5] The first failure of any thread stops all (first_failure.h).
// [6] If the process crashes after this step, the next run needs no source.
// [7] The target is complete, even if this step fails.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/pull/exchange.h"
#include "pipeline/pull/first_failure.h"
#include "pipeline/pull/method_rule.h"
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

// Runs one pull.
//
// Threads:  Run() from one thread, once; Cancel() and progress() from any.
// Crash:    see "crash table" in pipeline/README.md.
class Puller {
 public:
  // Borrows `dialer`, which must outlive this object. If `plans` is true, Run()
  // ends before it creates any file, and changes nothing.
  Puller(const PullOptions& options, Dialer* dialer,
         const PullTargetFactory& make_target, bool plans = false);
  ~Puller();

  // Sets the reason why options.method was chosen. `note` is a warning for the
  // operator; it may be empty. Called before Run().
  void ExplainMethod(const MethodDecision& decision, const std::string& note) {
    if (decision.asks_source) opener_.AskWhetherClonable();
    report_.SetMethodReason(decision.reason);
    if (!note.empty()) report_.Say(note);
  }
  // Returns the facts that the source reported before the transfer. All members
  // are zero if the facts were not requested. If the facts contain a reason
  // against a clone, Run() has refused the clone for that reason.
  const FactsReply& facts() const { return opener_.facts(); }
  // Returns true if another pull would avoid the failure of this pull by
  // building a new database without the files of TARGET_DIR.
  bool gives_way() const { return target_->gives_way(); }

  // Makes the pull a drill. Called before Run(). The pull does not give the new
  // database its name, but calls `drill` with the directory of the complete and
  // durable database. Then it removes everything that it made, even after a
  // failure.
  void SetDrill(std::function<rocksdb::Status(const std::string&)> drill) {
    drill_ = std::move(drill);
  }

  // Runs the pull. Sets all members of *summary except those that the caller
  // knows (the operation's times and status).
  [[nodiscard]] rocksdb::Status Run(Summary* summary);
  void Cancel();
  // Sets the rate limit that applies from now on. It replaces
  // options.max_rate_bytes_per_sec. Any thread.
  void SetMaxRate(uint64_t bytes_per_sec) {
    state_.pace.SetRate(bytes_per_sec);
  }
  Progress progress() const { return report_.progress(); }
  // Returns the place of the first failure; kNone after success.
  FailurePlace place() const { return failure_.place(); }

 private:
  void FillState();
  SourceLinkOptions LinkOptions();
  // Wakes all threads that wait.
  void CloseAll();
  using Step = std::function<rocksdb::Status()>;
  [[nodiscard]] rocksdb::Status RunSteps();
  [[nodiscard]] rocksdb::Status RunPlan();
  // Checks, before data is sent, that TARGET_DIR can be exchanged at the end.
  [[nodiscard]] rocksdb::Status CheckExchange();
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
  [[nodiscard]] rocksdb::Status CheckNoNewFault();
  // Ends a pull whose TARGET_DIR is already equal to the source. Called instead
  // of all steps after CompareReused().
  [[nodiscard]] rocksdb::Status EndUnchanged();
  [[nodiscard]] rocksdb::Status LeaveTarget();
  void FindUnchanged();
  [[nodiscard]] rocksdb::Status Settle();
  [[nodiscard]] rocksdb::Status RemoveDrill();
  void FillSummary(Summary* summary) const;
  // Sets the members of *summary that only a plan reports: its items, and the
  // bytes that each method would send.
  void FillPlan(Summary* summary) const;
  // Returns the bytes of the plan that would be sent.
  uint64_t BytesToCome() const;
  // Returns the summary of a pull that ends with OK.
  Summary CompleteSummary() const;

  const PullOptions options_;
  const bool plans_;
  std::function<rocksdb::Status(const std::string&)> drill_;  // null: no drill
  bool has_workspace_ = false;  // a drill has opened its workspace
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
  SourceLink link_;  // its threads end before the objects that they use
  PullVerifier verifier_;
  std::unique_ptr<PartScheduler> scheduler_;
};

}  // namespace sstferry
