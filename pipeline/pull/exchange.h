// Gives a new database the name TARGET_DIR: by a rename, or, for a swap, by an
// exchange of directories between two hooks of the application.
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

// Ownership: borrows all it gets.
// Threads:   the pull's own.
// Crash:     disk/workspace.h says at which step an earlier run died.
class Exchange {
 public:
  // `plan` is the source's, as far as it is known.
  Exchange(const PullOptions* options, const Plan* plan, FirstFailure* failure,
           PullReporter* report)
      : options_(options), plan_(plan), failure_(failure), report_(report) {}

  // Checks that a swap may take away what lies in TARGET_DIR, before the first
  // name is made and whenever more is known of the source, and keeps what the
  // summary tells of it. OK if this pull takes nothing away.
  //   kRefused  it must not be taken away
  [[nodiscard]] rocksdb::Status CheckTarget();

  // Checks that TARGET_DIR can be exchanged when the data is here, before any is
  // moved. OK if this pull exchanges nothing.
  //   kBusy  a process has TARGET_DIR open, and no command is there to stop it
  [[nodiscard]] rocksdb::Status CheckAhead(bool is_plan);

  // --- what an earlier run left ----------------------------------------------
  // Completes an exchange that was cut short, and deletes what is left of the
  // old database. For every kind of target. Borrows the open workspace from
  // here on.
  [[nodiscard]] rocksdb::Status FinishEarlier(Workspace* workspace);
  // Returns true if before_swap ran for an exchange that did not happen. After
  // FinishEarlier().
  bool has_open_hooks() const { return hooks_open_; }
  // Returns true if all has come for that exchange, and was verified if that is
  // asked for. Then the pull needs no source.
  bool CanResume(const PullWorkspace& work);
  [[nodiscard]] rocksdb::Status Resume();
  // Tells the application that there will be no such exchange: it must not wait
  // for it.
  [[nodiscard]] rocksdb::Status CloseHooks();

  // --- when db/ is complete and closed ---------------------------------------
  // Gives db/ the name TARGET_DIR. `summary` returns the pull's as it is then,
  // for the record in TARGET_DIR. After an error, TARGET_DIR is the new
  // database if the reporter says so.
  [[nodiscard]] rocksdb::Status Publish(
      const std::function<Summary()>& summary);
  // Returns true if the call that failed last returned the failure of
  // after_swap.
  bool ended_by_hook() const { return ended_by_hook_; }
  // Returns how a pull ends whose first failure is `status`, seen at `place`:
  // an application that was not started again is worse than what came before.
  rocksdb::Status WorstOf(const rocksdb::Status& status,
                          const FailurePlace& place) const;
  void FillSummary(Summary* summary) const;

 private:
  [[nodiscard]] rocksdb::Status Swap(const std::function<Summary()>& summary);
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
  bool hooks_open_ = false;  // before_swap was begun, after_swap not
  rocksdb::Status after_failed_;
  bool ended_by_hook_ = false;
  uint64_t sequence_old_ = 0;
  std::vector<std::string> old_families_;
  std::optional<std::chrono::steady_clock::time_point> outage_since_;
  double outage_seconds_ = 0;
  bool exchanged_ = false;
};

}  // namespace sstferry
