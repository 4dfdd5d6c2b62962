#include "pipeline/serve/hold_back.h"

#include <unistd.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "pipeline/base/database_open.h"
#include "pipeline/base/thread_waits.h"

namespace sstferry {
namespace {

using std::chrono::duration;
using std::chrono::steady_clock;

// Allowed waits for CPUs, in seconds per second that the application runs. Also
// the allowed waits for the disk, in seconds per second. Shorter waits occur
// even on a machine with idle CPUs and an idle disk.
constexpr double kMayWait = 0.1;
// The application may wait this many times as long as during rests.
constexpr double kTimesAtRest = 2;
// An application that hardly runs counts as running for this share of the time.
// Otherwise one late wake-up per second would look like a long wait.
constexpr double kLeastRun = 0.02;
// At each Look(), the sums of earlier measurements are multiplied by this
// factor.
constexpr double kKept = 0.8;
constexpr double kLess = 0.7;
constexpr double kMore = 0.05;
constexpr int kLooksBetweenRests = 20;
// Shorter sleeps are not worth the time that a wake-up costs.
constexpr duration<double> kLeastSleep{0.001};
constexpr duration<double> kLongestSleep{1};
// Number of observations between two searches for the process that has the
// database open.
constexpr int kLooksBetweenLocks = 20;

double Grown(uint64_t now, uint64_t before) {
  return now > before ? static_cast<double>(now - before) / 1e6 : 0;
}

// Observes the threads of the process that has the database open. If a thread
// waits for its disk at the time of an observation, it counts as having waited
// since the previous one.
class UserWatch {
 public:
  explicit UserWatch(std::string directory)
      : directory_(std::move(directory)), looked_(steady_clock::now()) {}

  std::optional<ApplicationWaits> Look() {
    if (looks_++ % kLooksBetweenLocks == 0) {
      user_ = directory_.empty() ? 0 : DatabaseProcess(directory_);
    }
    const steady_clock::time_point now = steady_clock::now();
    const auto passed =
        std::chrono::duration_cast<std::chrono::microseconds>(now - looked_);
    looked_ = now;
    if (!user_.has_value()) {
      return std::nullopt;
    }
    ApplicationWaits seen;
    ThreadWaits threads;
    seen.is_application = *user_ > 0 && *user_ != getpid() &&
                          ReadProcessWaits(*user_, &threads);
    if (!seen.is_application && !ReadOwnWaits(&threads)) {
      return std::nullopt;
    }
    io_micros_ += threads.in_disk_wait * static_cast<uint64_t>(passed.count());
    seen.ran_micros = threads.ran_micros;
    seen.cpu_micros = threads.cpu_waited_micros;
    seen.io_micros = io_micros_;
    return seen;
  }

 private:
  const std::string directory_;
  steady_clock::time_point looked_;
  std::optional<pid_t> user_;
  uint64_t looks_ = 0;
  uint64_t io_micros_ = 0;
};

}  // namespace

WatchApplication WatchUserOf(const std::string& database_dir) {
  return [watch = std::make_shared<UserWatch>(database_dir)] {
    return watch->Look();
  };
}

HoldBack::HoldBack(WatchApplication watch) : watch_(std::move(watch)) {}

void HoldBack::Allow(bool allowed) {
  allowed_ = allowed;
  if (!allowed) {
    SetShare(1);
  }
}

double HoldBack::Gauge::Excess(double waited, double time, bool rested,
                               bool* is_long) {
  if (rested) {
    const double alone = waited / time;
    // Reads that began before the rest may still delay the application. The
    // smallest value of the last rests is therefore the best estimate.
    const double known = at_rest.value_or(alone);
    at_rest = alone < known ? alone : known + (alone - known) / 4;
    return 0;
  }
  waited_lately = waited_lately * kKept + waited;
  time_lately = time_lately * kKept + time;
  const double share = waited_lately / time_lately;
  *is_long = *is_long || share > kMayWait;
  return share / std::max(kMayWait, kTimesAtRest * at_rest.value_or(0));
}

void HoldBack::Look() {
  std::lock_guard<std::mutex> lock(look_mu_);
  const std::optional<ApplicationWaits> now = allowed_ ? watch_() : std::nullopt;
  const std::optional<ApplicationWaits> before = std::exchange(last_, now);
  if (!now.has_value() || !before.has_value() ||
      now->is_application != before->is_application) {
    cpu_ = io_ = Gauge();
    goal_ = now.has_value() ? goal_ : 1;
    SetShare(goal_);
    return;
  }
  const bool rested = share_ == 0;
  bool is_long = false;
  constexpr double kPassed = duration<double>(kLookInterval).count();
  const double cpu = cpu_.Excess(
      Grown(now->cpu_micros, before->cpu_micros),
      std::max(Grown(now->ran_micros, before->ran_micros),
               kLeastRun * kPassed),
      rested, &is_long);
  const double io = io_.Excess(Grown(now->io_micros, before->io_micros),
                               kPassed, rested, &is_long);
  if (!rested && std::max(cpu, io) > 1) {
    why_ = !now->is_application ? Stage::kHeldLatency
           : io > cpu           ? Stage::kHeldIo
                                : Stage::kHeldCpu;
    goal_ = std::max(kLeastShare, goal_ * kLess);
  } else if (!rested) {
    goal_ = std::min(1.0, goal_ + kMore);
  }
  const bool rest = (goal_ < 1 || is_long) && --until_rest_ < 0;
  if (rest) {
    until_rest_ = kLooksBetweenRests;
  }
  SetShare(rest ? 0 : goal_);
}

void HoldBack::SetShare(double share) {
  {
    std::lock_guard<std::mutex> lock(mu_);
    share_ = share;
  }
  changed_.notify_all();
}

void HoldBack::EndRest() {
  std::lock_guard<std::mutex> lock(look_mu_);
  SetShare(goal_);
}

void HoldBack::Close() {
  {
    std::lock_guard<std::mutex> lock(mu_);
    closed_ = true;
  }
  changed_.notify_all();
}

void HoldBack::Sleep(duration<double> time) {
  const auto until =
      steady_clock::now() +
      std::chrono::duration_cast<steady_clock::duration>(time);
  const auto longest = steady_clock::now() + std::chrono::seconds(1);
  std::unique_lock<std::mutex> lock(mu_);
  changed_.wait_until(lock, until, [this] {
    return closed_ || share_ == 1;
  });
  // During a rest, the thread sleeps until a Look() ends the rest.
  changed_.wait_until(lock, longest, [this] { return closed_ || share_ > 0; });
}

HoldBack::Worker::Worker(HoldBack* owner, StageClock* clock)
    : owner_(owner), clock_(clock), since_(steady_clock::now()) {}

void HoldBack::Worker::Pass() {
  const double share = owner_->share();
  const steady_clock::time_point now = steady_clock::now();
  const duration<double> worked = now - since_;
  since_ = now;
  if (share == 1) {
    owed_ = {};
    return;
  }
  owed_ += worked * (1 / std::max(share, kLeastShare) - 1);
  if (owed_ < kLeastSleep && share > 0) {
    return;
  }
  std::optional<StageScope> scope;
  if (clock_ != nullptr) {
    scope.emplace(clock_, owner_->why());
  }
  owner_->Sleep(std::min(share > 0 ? owed_ : duration<double>(0),
                         kLongestSleep));
  owed_ = {};
  since_ = steady_clock::now();
}

void HoldBack::Worker::Restart() { since_ = steady_clock::now(); }

}  // namespace sstferry
