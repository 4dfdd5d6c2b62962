// Measures how a lane spends its time. Every microsecond between Start() and
// Stop(), including waits, belongs to exactly one stage.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>

namespace sstferry {

enum class Stage : uint8_t {
  kIdle = 0,  // no work available
  // source
  kReadBuild,
  kSendWait,
  // throttled, because the application waits for:
  kHeldCpu,
  kHeldIo,
  kHeldLatency,  // CPUs, as this process's own waits suggest
  // target
  kReceive,
  kStageWrite,
  kCheck,
  kIngest,
  kSync,
};
inline constexpr size_t kStages = 11;

// Adds up the times of many lanes. Threads: any.
class StageTotals {
 public:
  void Add(Stage stage, uint64_t micros) {
    micros_[static_cast<size_t>(stage)].fetch_add(micros,
                                                  std::memory_order_relaxed);
  }
  uint64_t micros(Stage stage) const {
    return micros_[static_cast<size_t>(stage)].load(std::memory_order_relaxed);
  }

 private:
  std::array<std::atomic<uint64_t>, kStages> micros_{};
};

// Measures the stages of one thread. The first stage is `first`. The destructor
// ends the last stage.
class StageClock {
 public:
  StageClock(StageTotals* totals, Stage first)
      : totals_(totals), stage_(first), since_(Now()) {}
  ~StageClock() { Enter(stage_); }
  StageClock(const StageClock&) = delete;
  StageClock& operator=(const StageClock&) = delete;

  // Adds the time since the last call to the current stage, then enters `next`.
  // Returns the previous stage.
  Stage Enter(Stage next) {
    const Stage old = stage_;
    const int64_t now = Now();
    totals_->Add(old, static_cast<uint64_t>(now - since_));
    since_ = now;
    stage_ = next;
    return old;
  }

 private:
  static int64_t Now() {
    return std::chrono::duration_cast<std::chrono::microseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
  StageTotals* const totals_;
  Stage stage_;
  int64_t since_;
};

// Enters a stage for a scope, then returns to the previous stage.
class StageScope {
 public:
  StageScope(StageClock* clock, Stage stage)
      : clock_(clock), before_(clock->Enter(stage)) {}
  ~StageScope() { clock_->Enter(before_); }
  StageScope(const StageScope&) = delete;
  StageScope& operator=(const StageScope&) = delete;

 private:
  StageClock* const clock_;
  const Stage before_;
};

}  // namespace sstferry
