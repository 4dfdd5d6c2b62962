// Gives a new database the name TARGET_DIR: by a rename or, in a refresh or a
// swap, by exchanging two directories. A swap runs one hook of the application
// before the exchange and one after it.
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
  // `plan`: the source's plan; may still be incomplete.
  Exchange(const PullOptions* options, const Plan* plan, FirstFailure* failure,
           PullReporter* report)
      : options_(options), plan_(plan), failure_(failure), report_(report) {}

  // Checks that the pull may replace the contents of TARGET_DIR. Called before
  // the first file is created, and again when more is known about the source.
  // Stores facts for the summary. Returns OK if this pull replaces nothing.
  //   kRefused  the pull must not replace the contents
  [[nodiscard]] rocksdb::Status CheckTarget();

  // Checks, before data is transferred, that TARGET_DIR can be exchanged later.
  // Returns OK if this pull exchanges nothing.
  //   kBusy  a process has TARGET_DIR open, and there is no hook to stop it
  [[nodiscard]] rocksdb::Status CheckAhead(bool is_plan);

  // --- remains of an earlier run ---------------------------------------------
  // Completes an interrupted exchange, and deletes what is left of the old
  // database. Called for every kind of target. Borrows the open workspace from
  // here on.
  //   kRefused  the earlier run had after_swap, and this one has none
  [[nodiscard]] rocksdb::Status FinishEarlier(Workspace* workspace);
  // Returns true if before_swap ran for an exchange that did not happen. Valid
  // after FinishEarlier().
  bool has_open_hooks() const { return hooks_open_; }
  // Returns true if all data for the exchange that did not happen has arrived
  // from the source that the command names, and was verified if the pull
  // verifies. The pull then needs no source.
  bool CanResume(const PullWorkspace& work);
  [[nodiscard]] rocksdb::Status Resume();
  // Runs after_swap to report that this exchange will not happen, so that the
  // application does not wait for it.
  [[nodiscard]] rocksdb::Status CloseHooks();

  // --- when db/ is complete and closed ---------------------------------------
  // Gives db/ the name TARGET_DIR. `last_check` is called right before that, as
  // in Workspace::Swap(). `summary` returns the pull's summary at the time of
  // the call, for the record in TARGET_DIR. After an error,
  // PullReporter::published() is true if TARGET_DIR is the new database.
  [[nodiscard]] rocksdb::Status Publish(
      const std::function<rocksdb::Status()>& last_check,
      const std::function<Summary()>& summary);
  // Returns true if the last failure that was returned is that of after_swap.
  bool ended_by_hook() const { return ended_by_hook_; }
  // Returns the final status of a pull whose first failure is `status`, seen at
  // `place`. A failure of after_swap takes precedence, because then the
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
