// Formats progress as text, and shows it from a thread.
#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "sstferry/options.h"
#include "tools/sstferry/command_arguments.h"
#include "tools/sstferry/console.h"

namespace sstferry {

// Turns observations of an operation into lines. Percent, bytes and entries
// never decrease. 100 percent only when finished.
//
// Threads: one.
class ProgressFormatter {
 public:
  // `now_seconds`: any monotonic clock; rates are averages over about its last
  // ten seconds.
  void Observe(const Progress& progress, double now_seconds);

  // Returns " 42.3 % transfer  12.3 GB of 40.1 GB  512.4 MB/s  ETA 0:54
  // waiting for: network  4 lanes  1883000 entries/s", or "    - % snapshot
  // 0:03" while nothing is planned. If the source cannot be reached, the reason
  // replaces the rates. "100.0 % done      40.1 GB  took 0:54" at the end.
  std::string Line() const;
  // Returns the columns of Line(), the most important ones first.
  std::vector<std::string> Columns() const;
  // Returns {"phase":..., "percent":..., ...} without a newline.
  std::string Json() const;

  double percent() const { return percent_; }
  bool finished() const { return last_.finished; }

 private:
  bool is_planned() const { return last_.planned_bytes > 0 || percent_ > 0; }
  std::string Where() const;  // " 42.3 % transfer  12.3 GB of 40.1 GB"
  double EtaSeconds() const;  // negative: unknown
  // Averages what the lanes spent their time on since the last observation.
  void ObserveStages(const ProgressStages& now, double elapsed,
                     double now_seconds);
  // Returns what the lanes recently spent most of their time on: "source CPU or
  // disk", "network", "target CPU", "target disk" or "max-rate"; empty:
  // unknown.
  std::string Bottleneck() const;

  Progress last_;
  double percent_ = 0;
  double bytes_per_second_ = 0;
  double entries_per_second_ = 0;
  // Microseconds per second spent in each stage, in the order of
  // ProgressStages.
  std::array<double, 6> stages_{};
  double last_seconds_ = 0;
  bool observed_ = false;
};

// Returns "3:07" or "1:02:45".
std::string FormatClock(double seconds);
// Returns "0.08 s", or from a minute on like FormatClock().
std::string FormatTook(double seconds);
// Joins the first columns to a line of at most `width` characters. Leaves out
// columns that do not fit, except the first one, which it truncates.
std::string FitColumns(const std::vector<std::string>& columns, size_t width);
// Returns true if progress is one line that is redrawn on this console.
bool ShowsInPlace(ProgressMode mode, const Console& console);
// Shows the progress of one operation on standard error until destroyed.
//
// Ownership: borrows the console and what `look` refers to.
// Threads:   `look` is called from a thread of its own.
class ProgressReporter {
 public:
  ProgressReporter(const CommonArguments& arguments, Console* console,
                   std::function<Progress()> look);
  ~ProgressReporter();  // calls Stop()

  // Joins the thread and shows the final progress. If nothing was planned,
  // removes the redrawn line instead.
  void Stop();

 private:
  void Loop();
  void Show();

  const bool in_place_;
  const bool json_;
  const std::chrono::milliseconds interval_;
  Console* const console_;
  const std::function<Progress()> look_;
  const std::chrono::steady_clock::time_point started_;
  ProgressFormatter formatter_;  // used by the thread; after the join by Stop()

  std::mutex mu_;
  std::condition_variable changed_;
  bool stopping_ = false;  // guarded by mu_
  std::thread thread_;
};

}  // namespace sstferry
