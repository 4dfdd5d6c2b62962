// Makes a new database take the place of the one in TARGET_DIR by an exchange
// of directories, between two hooks of the application.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/pull/pull_context.h"
#include "rocksdb/status.h"
#include "sstferry/options.h"

namespace sstferry {

// Ownership: borrows the context.
// Threads:   the pull's own.
// Crash:     disk/workspace.h says at which step an earlier run died.
class Exchange {
 public:
  explicit Exchange(const PullContext* context) : context_(context) {}

  // Before the first name is made and whenever more is known of the source.
  // kRefused: what lies in TARGET_DIR must not be taken away.
  [[nodiscard]] rocksdb::Status CheckTarget();

  // Stands in for Run() in a pull that is only planned: kBusy if a process has
  // TARGET_DIR open and no command is there to stop it.
  [[nodiscard]] rocksdb::Status CheckAhead();

  // --- what an earlier run left ----------------------------------------------
  // Completes an exchange that was cut short, and deletes what is left of the
  // old database. For every kind of target; the workspace is open.
  [[nodiscard]] rocksdb::Status FinishEarlier();
  // After it: whether before_swap ran for an exchange that did not happen.
  bool has_open_hooks() const { return hooks_open_; }
  // Returns true if all has come for that exchange, and was verified if that is
  // asked for. Then the pull needs no source.
  bool CanResume();
  [[nodiscard]] rocksdb::Status Resume();
  // There will be no such exchange: the application must not wait for it.
  [[nodiscard]] rocksdb::Status CloseHooks();

  // --- when db/ is complete and closed ---------------------------------------
  // After an error, TARGET_DIR is the new database if the reporter says so.
  [[nodiscard]] rocksdb::Status Run();
  // Returns true if the call that failed last returned the failure of
  // after_swap.
  bool ended_by_hook() const { return ended_by_hook_; }
  // Returns how a pull ends whose first failure is `status`, seen at `place`:
  // an application that was not started again is worse than what came before.
  rocksdb::Status WorstOf(const rocksdb::Status& status,
                          const FailurePlace& place) const;
  void FillSummary(Summary* summary) const;

 private:
  [[nodiscard]] rocksdb::Status CallBefore();
  [[nodiscard]] rocksdb::Status CallAfter(const std::string& transfer_id,
                                          bool exchanged);
  [[nodiscard]] rocksdb::Status RunAfter(const std::string& transfer_id,
                                         bool exchanged);
  void Finish();
  [[nodiscard]] rocksdb::Status DeleteOld();
  void NoteGoneFamilies();
  const PullOptions& options() const { return *context_->options; }
  Workspace* workspace() const { return context_->workspace; }

  const PullContext* const context_;
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
