// Tells how a pull gets on, and how it ended: log, progress, summary.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "format/plan.h"
#include "pipeline/pull/lane_shared.h"
#include "pipeline/pull/method_rule.h"
#include "pipeline/pull/source_link.h"
#include "sstferry/options.h"

namespace sstferry {

// Names the steps behind the lanes whose seconds a summary tells.
enum class TimedStep : uint8_t {
  kSync,
  kVerify,
  kSwap,  // without kDelete
  kDelete,
};
inline constexpr size_t kTimedSteps = 4;

double SecondsSince(std::chrono::steady_clock::time_point start);

// Ownership: borrows all it gets.
// Threads:   Log(), progress(), CountVerified() and published() from any; all
//   else from the pull's own.
class PullReporter {
 public:
  // `plans`: the pull is only planned.
  PullReporter(const PullOptions* options, bool plans, const Plan* plan,
               const LaneShared* lanes, const SourceLink* link);

  void Log(LogLevel level, const std::string& text) const;
  // Logs a sentence and keeps it for the summary. Note() as information, for an
  // operator who can act on it; NoteDetail() for who looks for it; Say() as a
  // warning.
  void Note(const std::string& note);
  void NoteDetail(const std::string& note);
  void Say(const std::string& note);

  void SetPhase(const char* phase);
  // Tells that TARGET_DIR is the new database.
  void SetPublished();
  bool published() const;
  void SetPlannedBytes(uint64_t bytes) { planned_bytes_ = bytes; }
  // Tells that a verify reads all of it once more.
  void ExpectVerify() { expects_verify_ = true; }
  void CountVerified(uint64_t bytes) { verified_bytes_ += bytes; }
  // Says why this method was taken, and what is known of both, for the summary.
  void ExplainMethod(const std::string& reason, const MethodInput& known);

  // --- facts for the summary -------------------------------------------------
  void AddSeconds(TimedStep step, double seconds) {
    seconds_[static_cast<size_t>(step)] += seconds;
  }
  double seconds(TimedStep step) const {
    return seconds_[static_cast<size_t>(step)];
  }
  // Takes the totals of what was here before this run began.
  void SetReceived(const Totals& received) { received_ = received; }
  // Takes the last counts of the source.
  void SetSourceStats(const Stats& stats) { source_stats_ = stats; }
  void SetVerified(bool verified) { verified_ = verified; }
  // Takes the bytes that a plan needs, without a reserve, and those that are
  // free there.
  void SetSpace(uint64_t needed_bytes, uint64_t free_bytes);
  // Takes how many of the application's files came in this run, or would come.
  void SetOtherFiles(uint64_t files, uint64_t bytes);

  Progress progress() const;
  // Fills in all but what only the store, the target and the exchange know.
  void FillSummary(Summary* summary) const;

 private:
  ProgressStages Stages() const;
  void FillSource(Summary* summary) const;
  void FillCounters(Summary* summary) const;
  void FillParts(Summary* summary) const;
  void FillStages(Summary* summary) const;
  // Returns how many bytes the source read from its files for this transfer.
  uint64_t source_read_bytes() const;

  const PullOptions* const options_;
  const bool plans_;
  const Plan* const plan_;
  const LaneShared* const lanes_;
  const SourceLink* const link_;
  const std::chrono::steady_clock::time_point started_;
  const std::string started_at_;
  std::vector<std::string> notes_;
  std::string method_reason_;
  std::optional<MethodSizes> method_sizes_;
  std::optional<SwapSizes> swap_sizes_;
  Totals received_;
  Stats source_stats_;
  bool verified_ = false;
  uint64_t needed_bytes_ = 0;
  uint64_t free_bytes_ = 0;
  uint64_t other_files_ = 0;
  uint64_t other_files_bytes_ = 0;
  std::array<double, kTimedSteps> seconds_{};
  std::atomic<bool> expects_verify_{false};
  std::atomic<uint64_t> planned_bytes_{0};
  std::atomic<uint64_t> verified_bytes_{0};

  mutable std::mutex mu_;
  const char* phase_ = "connect";  // under mu_
  bool published_ = false;         // under mu_
};

}  // namespace sstferry
