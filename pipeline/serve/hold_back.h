// Lets the threads of a transfer hold back while the application that has the
// database open waits for CPUs or for its disk.
//
//   ten times a second, the transfer's ticker:  Look()
//     how long did the application's threads wait for CPUs, for each second that
//     they ran, and for their disk?
//     more than 0.1 s, and twice as long as without us:  work less
//     else:                                              work more again
//   each thread that reads or builds:         HoldBack::Worker::Pass()
//     sleeps, so that it works for the share of the time that is left to it
//
// The kernel counts the application's own waits. Pressure of the whole machine
// (/proc/pressure) counts those of our threads too, which wait for each other.
// How long the application waits without us is seen in short rests, which are
// taken only while it waits for long.
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

// How long the application's threads ran and waited since they began. Where
// they cannot be seen, the watching thread itself is seen instead.
struct ApplicationWaits {
  uint64_t ran_micros = 0;
  uint64_t cpu_micros = 0;
  uint64_t io_micros = 0;
  bool is_application = true;
};

// Returns the waits until now. Nothing: nobody has the database open. Called
// once a look, from one thread at a time.
using WatchApplication = std::function<std::optional<ApplicationWaits>()>;

// Watches the process that holds RocksDB's lock on the directory; none for an
// empty name, which makes the watching thread be seen.
WatchApplication WatchUserOf(const std::string& database_dir);

// Ownership: outlives its workers. Threads: any.
class HoldBack {
 public:
  static constexpr std::chrono::milliseconds kLookInterval{100};
  static constexpr double kLeastShare = 0.05;

  explicit HoldBack(WatchApplication watch);

  // Switches holding back on or off.
  void Allow(bool allowed);
  bool allowed() const { return allowed_; }
  // Decides how much of the time the workers work until the next look.
  void Look();
  // Ends a rest: nobody looks for now.
  void EndRest();
  // Ends all sleeps, and lets no later one begin.
  void Close();
  // The share of the time in which workers work; 0: they rest. With 1 nothing
  // is held back.
  double share() const { return share_; }
  // Returns what the application waits for: one of Stage::kHeld...
  Stage why() const { return why_; }

  // One thread's work. Threads: its own.
  class Worker {
   public:
    // Borrows both; `clock` null: the thread's time is not counted.
    Worker(HoldBack* owner, StageClock* clock);
    // Called often while the thread works: sleeps if it is time.
    void Pass();
    // Begins to count work anew, behind what was none, such as a wait for the
    // network.
    void Restart();

   private:
    HoldBack* const owner_;
    StageClock* const clock_;
    std::chrono::steady_clock::time_point since_;
    std::chrono::duration<double> owed_{0};
  };

 private:
  // Keeps what is known of one resource.
  struct Gauge {
    // Adds a look. Returns how the waits of the last looks are to what they may
    // be: above 1, they are too long. `time`: what they are a share of.
    // *is_long: set if only the application's own waits excuse them.
    double Excess(double waited, double time, bool rested, bool* is_long);

    double waited_lately = 0;  // the newest look counts most
    double time_lately = 0;
    std::optional<double> at_rest;  // the share of it without us
  };
  void Sleep(std::chrono::duration<double> time);
  void SetShare(double share);

  const WatchApplication watch_;
  std::atomic<bool> allowed_{true};
  std::atomic<double> share_{1};
  std::atomic<Stage> why_{Stage::kHeldCpu};

  // The looking thread uses these:
  std::mutex look_mu_;
  std::optional<ApplicationWaits> last_;
  Gauge cpu_;
  Gauge io_;
  double goal_ = 1;     // share outside of rests
  int until_rest_ = 0;  // looks

  std::mutex mu_;
  std::condition_variable changed_;
  bool closed_ = false;  // under mu_
};

}  // namespace sstferry
