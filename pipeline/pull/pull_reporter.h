// Tells how a pull gets on, and how it ended: log, progress, summary.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "pipeline/pull/pull_context.h"
#include "sstferry/options.h"

namespace sstferry {

// Holds what the steps of a pull found out.
struct PullResult {
  Totals received;         // of what was here before this run began
  Stats source_stats;  // the source's last
  bool verified = false;
  bool left_out = false;  // not begun for what chunks would leave out
  uint64_t needed_bytes = 0;  // of a plan, without a reserve
  uint64_t free_bytes = 0;    // there
  uint64_t other_files = 0;  // of the application, that came in this run
  uint64_t other_files_bytes = 0;
  bool is_compacted = false;  // not begun: a clone is as compacted, and cheaper
  double sync_seconds = 0;
  double verify_seconds = 0;
  double swap_seconds = 0;  // less those of a deletion
  double delete_seconds = 0;
};

double SecondsSince(std::chrono::steady_clock::time_point start);

// Ownership: borrows the context.
// Threads:   Log(), progress(), CountVerified() and published() from any; all
//   else from the pull's own.
class PullReporter {
 public:
  explicit PullReporter(const PullContext* context);

  void Log(LogLevel level, const std::string& text) const;
  // Logs a sentence and keeps it for the summary. Note() as information, for an
  // operator who can act on it; NoteDetail() for who looks for it; Say() as a
  // warning.
  void Note(const std::string& note);
  void NoteDetail(const std::string& note);
  void Say(const std::string& note);

  void SetPhase(const char* phase);
  // TARGET_DIR is the new database.
  void SetPublished();
  bool published() const;
  void SetPlannedBytes(uint64_t bytes) { planned_bytes_ = bytes; }
  void CountVerified(uint64_t bytes) { verified_bytes_ += bytes; }
  PullResult* result() { return &result_; }
  const PullResult& result() const { return result_; }
  // Why this method, for the summary, and a note; empty: none.
  void ExplainMethod(const std::string& reason, const std::string& note);

  // Returns how many bytes the source read from its files for this transfer.
  uint64_t source_read_bytes() const;
  Progress progress() const;
  void FillSummary(Summary* summary) const;
  Summary summary() const;

 private:
  ProgressStages Stages() const;
  void FillSource(Summary* summary) const;
  void FillCounters(Summary* summary) const;
  void FillParts(Summary* summary) const;
  void FillStages(Summary* summary) const;

  const PullContext* const context_;
  const std::chrono::steady_clock::time_point started_;
  const std::string started_at_;
  std::vector<std::string> notes_;
  std::string method_reason_;
  PullResult result_;
  std::atomic<uint64_t> planned_bytes_{0};
  std::atomic<uint64_t> verified_bytes_{0};

  mutable std::mutex mu_;
  const char* phase_ = "connect";  // under mu_
  bool published_ = false;         // under mu_
};

}  // namespace sstferry
