// Reports the progress and the result of a pull: log, progress, summary.
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
#include "pipeline/pull/source_link.h"
#include "sstferry/options.h"

namespace sstferry {

// Steps after the transfer whose seconds are in the summary.
enum class TimedStep : uint8_t {
  kSync,
  kVerify,
  kSwap,  // without the time of kDelete
  kDelete,
};
inline constexpr size_t kTimedSteps = 4;

double SecondsSince(std::chrono::steady_clock::time_point start);

// The log, progress and summary of one pull.
//
// Ownership: borrows its arguments.
// Threads:   Log(), progress(), CountVerified() and published() from any
//            thread; the other functions from the pull's.
class PullReporter {
 public:
  // If `plans` is true, the pull is only planned.
  PullReporter(const PullOptions* options, bool plans, const Plan* plan,
               const LaneShared* lanes, const SourceLink* link);

  void Log(LogLevel level, const std::string& text) const;
  // Log a sentence and keep it for the summary. Note() is for information on
  // which an operator can act, NoteDetail() for details, and Say() for
  // warnings.
  void Note(const std::string& note);
  void NoteDetail(const std::string& note);
  void Say(const std::string& note);

  void SetPhase(const char* phase);
  // Records that TARGET_DIR is the new database.
  void SetPublished();
  bool published() const;
  void SetPlannedBytes(uint64_t bytes) { planned_bytes_ = bytes; }
  // Announces that a verification will read all data once more.
  void ExpectVerify() { expects_verify_ = true; }
  void CountVerified(uint64_t bytes) { verified_bytes_ += bytes; }
  // Records why this method was chosen, for the summary.
  void SetMethodReason(const std::string& reason) { method_reason_ = reason; }

  // --- facts for the summary -------------------------------------------------
  void AddSeconds(TimedStep step, double seconds) {
    seconds_[static_cast<size_t>(step)] += seconds;
  }
  double seconds(TimedStep step) const {
    return seconds_[static_cast<size_t>(step)];
  }
  // Sets the totals of the chunks that earlier runs received.
  void SetReceived(const Totals& received) { received_ = received; }
  // Sets the latest counts that the source sent.
  void SetSourceStats(const Stats& stats) { source_stats_ = stats; }
  void SetVerified(bool verified) { verified_ = verified; }
  // Sets the bytes that the planned pull needs on the disk, without a reserve,
  // and the free bytes of the disk.
  void SetSpace(uint64_t needed_bytes, uint64_t free_bytes);
  // Sets the number and bytes of the application's files that were (or would
  // be) transferred in this run.
  void SetOtherFiles(uint64_t files, uint64_t bytes);

  Progress progress() const;
  // Sets all members of *summary except those that only the store, the target
  // and the exchange know.
  void FillSummary(Summary* summary) const;

 private:
  ProgressStages Stages() const;
  void FillSource(Summary* summary) const;
  void FillCounters(Summary* summary) const;
  void FillParts(Summary* summary) const;
  void FillStages(Summary* summary) const;
  // Returns the number of bytes that the source read from its files for this
  // transfer.
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
