// Slows down the threads of a transfer while the application that has the
// database open waits for CPUs or for its disk.
//
//   ten times a second, a thread of the transfer calls Look():
//     how long did the application's threads wait for CPUs, per second that
//     they ran? How long did they wait for the disk, per second?
//     more than 0.1 s, and twice as long as without sstferry:  work less
//     otherwise:                                               work more again
//   each thread that reads or builds calls Worker::Pass():
//     sleeps so long that the thread works only for its share of the time
//
// The kernel measures the waits of the application's threads. The pressure of
// the whole machine (/proc/pressure) would be wrong, because it contains the
// waits of sstferry's threads for each other. To learn how long the application
// waits without sstferry, all threads of the transfer sometimes rest for a
// short time. They rest only while the transfer is slowed down or the
// application waits long.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "pipeline/base/stage_clock.h"

namespace sstferry {

// How long the application's threads have run, and waited, since they started.
// If the application cannot be observed, these are the times of the calling
// thread.
struct ApplicationWaits {
  uint64_t ran_micros = 0;
  uint64_t cpu_micros = 0;
  uint64_t io_micros = 0;
  bool is_application = true;
};

// Returns the waits until now, or nullopt if no process has the database open.
// Each Look() calls it once. Only one thread at a time calls it.
using WatchApplication = std::function<std::optional<ApplicationWaits>()>;

// Returns a function that observes the process that holds RocksDB's lock of the
// database. If `database_dir` is empty, the function observes its calling
// thread.
WatchApplication WatchUserOf(const std::string& database_dir);

// Decides for how much of the time the threads of one transfer may work.
//
// Ownership: must outlive its workers. Threads: any.
class HoldBack {
 public:
  static constexpr std::chrono::milliseconds kLookInterval{100};
  static constexpr double kLeastShare = 0.05;

  explicit HoldBack(WatchApplication watch);

  // Allows or forbids that the transfer is slowed down.
  void Allow(bool allowed);
  bool allowed() const { return allowed_; }
  // Measures the application's waits since the last Look(). Decides for how
  // much of the time the threads may work until the next Look().
  void Look();
  // Lets the threads work again if they rest. Called when Look() will not be
  // called for a while.
  void EndRest();
  // Wakes all sleeping threads. Later calls of Pass() do not sleep.
  void Close();
  // Returns the share of the time for which the threads may work. 1 means that
  // they are not slowed down, 0 means that they rest.
  double share() const { return share_; }
  // Returns which resource the application waits for: one of the values
  // kHeld... of Stage.
  Stage why() const { return why_; }

  // Slows down one thread. Only this thread uses the object.
  class Worker {
   public:
    // Borrows `owner` and `clock`. `clock` measures the sleeps; it may be null.
    Worker(HoldBack* owner, StageClock* clock);
    // The thread calls this often while it works. Sleeps if the thread has
    // worked for more than its share of the time.
    void Pass();
    // The thread calls this after a wait that is no work, for example for the
    // network. The wait then does not count as work.
    void Restart();

   private:
    HoldBack* const owner_;
    StageClock* const clock_;
    std::chrono::steady_clock::time_point since_;
    std::chrono::duration<double> owed_{0};
  };

 private:
  // How long the application has recently waited for one resource, and how long
  // it waits for this resource while the transfer rests.
  struct Gauge {
    // Adds a measurement: the application waited for `waited` seconds of `time`
    // seconds. Returns the ratio of recent waits to allowed waits; above 1, the
    // transfer must slow down. If the application waits for more than kMayWait
    // of the time, sets *is_long. During a rest, only updates at_rest and
    // returns 0.
    double Excess(double waited, double time, bool rested, bool* is_long);

    double waited_lately = 0;  // a sum in which old waits fade
    double time_lately = 0;
    std::optional<double> at_rest;  // during rests: waits / time
  };
  void Sleep(std::chrono::duration<double> time);
  void SetShare(double share);

  const WatchApplication watch_;
  std::atomic<bool> allowed_{true};
  std::atomic<double> share_{1};
  std::atomic<Stage> why_{Stage::kHeldCpu};

  // Only Look() uses these members, under look_mu_.
  std::mutex look_mu_;
  std::optional<ApplicationWaits> last_;
  Gauge cpu_;
  Gauge io_;
  double goal_ = 1;     // share() except during rests
  int until_rest_ = 0;  // calls of Look() until the next rest

  std::mutex mu_;
  std::condition_variable changed_;
  bool closed_ = false;  // under mu_
};

}  // namespace sstferry
