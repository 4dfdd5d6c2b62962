// Formats the progress of an operation, and shows it while the operation runs.
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

// Formats progress as a line of text or a JSON object. Percent, bytes and
// entries never decrease. Shows 100 percent only for a finished operation.
//
// Threads: not thread-safe.
class ProgressFormatter {
 public:
  // Stores the progress at the time `now_seconds` of a monotonic clock.
  // Computes the rates as averages over about the last ten seconds.
  void Observe(const Progress& progress, double now_seconds);

  // Returns the progress line, for example " 42.3 % transfer  12.3 GB of 40.1
  // GB  512.4 MB/s  ETA 0:54  waiting for: network  4 lanes". Before the amount
  // of data is known, the line is "    - % snapshot  0:03". While the source
  // cannot be reached, the line has the reason instead of the rates. When the
  // operation has finished, it is "100.0 % done  40.1 GB  took 0:54".
  std::string Line() const;
  // Returns the columns of Line(), the most important ones first.
  std::vector<std::string> Columns() const;
  // Returns the progress as a line of JSON, {"phase":..., "percent":..., ...},
  // without a newline.
  std::string Json() const;

  double percent() const { return percent_; }
  bool finished() const { return last_.finished; }

 private:
  bool is_planned() const { return last_.planned_bytes > 0 || percent_ > 0; }
  std::string Where() const;  // " 42.3 % transfer  12.3 GB of 40.1 GB"
  double EtaSeconds() const;  // negative if unknown
  // Updates stages_ with the time that the lanes spent in each stage since the
  // last call.
  void ObserveStages(const ProgressStages& now, double elapsed,
                     double now_seconds);
  // Returns the part of the transfer for which the lanes have recently waited
  // most: "source CPU or disk", "network", "target CPU", "target disk" or
  // "max-rate". Returns "" if it is unknown.
  std::string Bottleneck() const;

  Progress last_;
  double percent_ = 0;
  double bytes_per_second_ = 0;
  double entries_per_second_ = 0;
  // The time that the lanes spend in each stage, in microseconds per second.
  std::array<double, 6> stages_{};
  double last_seconds_ = 0;
  bool observed_ = false;
};

// Formats a duration as minutes and seconds, "3:07", or with hours, "1:02:45".
std::string FormatClock(double seconds);
// Returns "0.08 s". For a minute or more, returns the same as FormatClock().
std::string FormatTook(double seconds);
// Joins as many columns as fit into a line of `width` characters, beginning
// with the first one. If the first column is too long, truncates it.
std::string FitColumns(const std::vector<std::string>& columns, size_t width);
// Returns true if the console redraws one line of progress in place. Otherwise
// it prints a new line each time.
bool ShowsInPlace(ProgressMode mode, const Console& console);
// Shows the progress of one operation on standard error until destroyed. Calls
// `look` to get the progress.
//
// Ownership: the console and the objects that `look` uses must outlive it.
// Threads:   also calls `look` from a thread of its own.
class ProgressReporter {
 public:
  ProgressReporter(const CommonArguments& arguments, Console* console,
                   std::function<Progress()> look);
  ~ProgressReporter();  // calls Stop()

  // Ends the thread and shows the final progress. If the amount of data never
  // became known, removes the progress line instead; with JSON, still writes
  // the final object.
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
  ProgressFormatter formatter_;  // used by thread_, and by Stop() after its end

  std::mutex mu_;
  std::condition_variable changed_;
  bool stopping_ = false;  // guarded by mu_
  std::thread thread_;
};

}  // namespace sstferry
