// Gives a complete new database the name TARGET_DIR. A refresh or a swap
// exchanges the new directory with the old one; a pull renames it. In a swap, a
// hook of the application runs before the exchange, and another one after it.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "format/plan.h"
#include "pipeline/disk/workspace.h"
#include "pipeline/pull/first_failure.h"
#include "pipeline/pull/pull_reporter.h"
#include "rocksdb/status.h"
#include "sstferry/options.h"

namespace sstferry {

class PullWorkspace;

// The last steps of a pull that makes a new directory.
//
// Ownership: borrows its arguments.
// Threads:   the pull's thread.
// Crash:     disk/workspace.h lists the steps at which an earlier run may have
//            crashed.
class Exchange {
 public:
  // `plan` is the source's plan. It may be filled in after this call.
  Exchange(const PullOptions* options, const Plan* plan, FirstFailure* failure,
           PullReporter* report)
      : options_(options), plan_(plan), failure_(failure), report_(report) {}

  // Checks that the pull may replace the contents of TARGET_DIR. Called before
  // the first file is created, and again when the source's plan is known.
  // Stores facts about TARGET_DIR for the summary. Returns OK if this pull
  // replaces nothing.
  //   kRefused  the pull must not replace the contents
  [[nodiscard]] rocksdb::Status CheckTarget();

  // Checks, before data is transferred, that TARGET_DIR can be exchanged at the
  // end. Returns OK if this pull exchanges nothing.
  //   kBusy  a process has TARGET_DIR open, and there is no hook to stop it
  [[nodiscard]] rocksdb::Status CheckAhead(bool is_plan);

  // --- remains of an earlier run ---------------------------------------------
  // Completes the exchange of two directories that an earlier run began. Then
  // deletes the files of the old database that the earlier run left. Called for
  // every kind of target. Keeps a pointer to the open workspace.
  //   kRefused  the earlier run had an after_swap hook, and this run has none
  [[nodiscard]] rocksdb::Status FinishEarlier(Workspace* workspace);
  // Returns true if before_swap ran for an exchange that did not happen. Valid
  // after FinishEarlier().
  bool has_open_hooks() const { return hooks_open_; }
  // Returns true if this run can do, without a source, the exchange for which
  // an earlier run called before_swap. All data must have arrived from the
  // source that the command names. If this pull verifies, the earlier run must
  // have verified the data, too.
  bool CanResume(const PullWorkspace& work);
  [[nodiscard]] rocksdb::Status Resume();
  // Runs after_swap to tell the application that the exchange will not happen.
  // Otherwise the application would wait for it.
  [[nodiscard]] rocksdb::Status CloseHooks();

  // --- when db/ is complete and closed ---------------------------------------
  // Gives db/ the name TARGET_DIR. Calls `last_check` right before that, as
  // Workspace::Swap() does. `summary` returns the current summary of the pull,
  // which is recorded in TARGET_DIR. After an error, PullReporter::published()
  // returns true if TARGET_DIR is the new database.
  [[nodiscard]] rocksdb::Status Publish(
      const std::function<rocksdb::Status()>& last_check,
      const std::function<Summary()>& summary);
  // Returns true if the most recently returned failure came from after_swap.
  bool ended_by_hook() const { return ended_by_hook_; }
  // Returns the final status of a pull whose first failure is `status`, at
  // `place`. If after_swap failed, returns that failure, because the
  // application was not started again.
  rocksdb::Status WorstOf(const rocksdb::Status& status,
                          const FailurePlace& place) const;
  void FillSummary(Summary* summary) const;

 private:
  [[nodiscard]] rocksdb::Status Swap(
      const std::function<rocksdb::Status()>& last_check,
      const std::function<Summary()>& summary);
  [[nodiscard]] rocksdb::Status CallBefore();
  [[nodiscard]] rocksdb::Status CallAfter(const std::string& transfer_id,
                                          bool exchanged);
  [[nodiscard]] rocksdb::Status RunAfter(const std::string& transfer_id,
                                         bool exchanged);
  void Finish(Summary summary);
  [[nodiscard]] rocksdb::Status RetireOld();
  [[nodiscard]] rocksdb::Status DeleteOld();
  void NoteGoneFamilies();
  const PullOptions& options() const { return *options_; }
  Workspace* workspace() const { return workspace_; }

  const PullOptions* const options_;
  const Plan* const plan_;
  FirstFailure* const failure_;
  PullReporter* const report_;
  Workspace* workspace_ = nullptr;
  bool hooks_open_ = false;  // before_swap ran, after_swap did not
  rocksdb::Status after_failed_;
  bool ended_by_hook_ = false;
  bool replaces_ = false;    // TARGET_DIR holds a database
  uint64_t sequence_old_ = 0;
  std::vector<std::string> old_families_;
  std::optional<std::chrono::steady_clock::time_point> outage_since_;
  double outage_seconds_ = 0;
  bool exchanged_ = false;
};

}  // namespace sstferry
