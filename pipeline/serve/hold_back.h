// Slows down the threads of a transfer while the application that has the
// database open waits for CPUs or for its disk.
//
//   ten times a second, the transfer's ticker:  Look()
//     how long did the application's threads wait for CPUs, per second that
//     they ran, and how long for their disk?
//     more than 0.1 s, and twice as long as without sstferry:  work less
//     otherwise:                                               work more again
//   each thread that reads or builds:           HoldBack::Worker::Pass()
//     sleeps so long that it works only for its share of the time
//
// The kernel counts the application's own waits. The pressure of the whole
// machine (/proc/pressure) would also count the waits of sstferry's threads,
// which wait for each other. To measure how long the application waits without
// sstferry, all threads of the transfer rest for a short time now and then, but
// only while the transfer is throttled or the application's waits are long.
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

// Times for which the application's threads have run and waited since they
// began. If the application cannot be observed, the times are those of the
// observing thread.
struct ApplicationWaits {
  uint64_t ran_micros = 0;
  uint64_t cpu_micros = 0;
  uint64_t io_micros = 0;
  bool is_application = true;
};

// Returns the waits until now; nullopt if no process has the database open.
// Called once by each Look(), by one thread at a time.
using WatchApplication = std::function<std::optional<ApplicationWaits>()>;

// Observes the process that has RocksDB's lock on the directory. For an empty
// name it observes the calling thread.
WatchApplication WatchUserOf(const std::string& database_dir);

// Decides how much of the time the threads of one transfer may work.
//
// Ownership: must outlive its workers. Threads: any.
class HoldBack {
 public:
  static constexpr std::chrono::milliseconds kLookInterval{100};
  static constexpr double kLeastShare = 0.05;

  explicit HoldBack(WatchApplication watch);

  // Switches throttling on or off.
  void Allow(bool allowed);
  bool allowed() const { return allowed_; }
  // Decides how much of the time the workers work until the next Look().
  void Look();
  // Ends a rest. Called when Look() will not be called for a while.
  void EndRest();
  // Ends all sleeps and prevents later ones.
  void Close();
  // Share of the time for which workers work; 0: they rest; 1: they are not
  // throttled.
  double share() const { return share_; }
  // Returns the resource for which the application waits, as one of
  // Stage::kHeld...
  Stage why() const { return why_; }

  // One thread's work. Used by that thread only.
  class Worker {
   public:
    // Borrows `owner` and `clock`. Null `clock`: sleeps are not counted.
    Worker(HoldBack* owner, StageClock* clock);
    // Called often while the thread works. Sleeps if the thread has worked more
    // than its share.
    void Pass();
    // Restarts the measurement of work. Called after a wait that is no work,
    // such as a wait for the network.
    void Restart();

   private:
    HoldBack* const owner_;
    StageClock* const clock_;
    std::chrono::steady_clock::time_point since_;
    std::chrono::duration<double> owed_{0};
  };

 private:
  // Recent waits for one resource, and waits for it during rests.
  struct Gauge {
    // Adds one measurement: in `time`, the application waited for `waited`.
    // Returns the ratio of recent waits to allowed waits; above 1, they are too
    // long. Sets *is_long if the waits exceed kMayWait, however long the
    // application waits during rests.
    double Excess(double waited, double time, bool rested, bool* is_long);

    double waited_lately = 0;  // sum; newer measurements have more weight
    double time_lately = 0;
    std::optional<double> at_rest;  // share of the time waited during rests
  };
  void Sleep(std::chrono::duration<double> time);
  void SetShare(double share);

  const WatchApplication watch_;
  std::atomic<bool> allowed_{true};
  std::atomic<double> share_{1};
  std::atomic<Stage> why_{Stage::kHeldCpu};

  // Used only by Look(), under look_mu_:
  std::mutex look_mu_;
  std::optional<ApplicationWaits> last_;
  Gauge cpu_;
  Gauge io_;
  double goal_ = 1;     // value of share() between rests
  int until_rest_ = 0;  // calls of Look() until the next rest

  std::mutex mu_;
  std::condition_variable changed_;
  bool closed_ = false;  // under mu_
};

}  // namespace sstferry
