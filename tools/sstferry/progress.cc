#include "tools/sstferry/progress.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include <nlohmann/json.hpp>

#include "format/printable.h"
#include "format/quantity.h"

namespace sstferry {
namespace {

constexpr double kRateWindowSeconds = 10;
constexpr std::chrono::milliseconds kRedrawInterval{200};
// The maximum before the operation has finished. Only a finished operation
// shows 100 percent.
constexpr double kMaxUnfinishedPercent = 99.9;

double MovingRate(double rate, double amount, double elapsed,
                  double total_elapsed) {
  // In the first ten seconds, computes the average since the start. Later,
  // computes an exponentially weighted moving average.
  const double window = std::min(total_elapsed, kRateWindowSeconds);
  const double weight = window > 0 ? std::min(1.0, elapsed / window) : 1.0;
  return rate + weight * (amount / elapsed - rate);
}

std::array<uint64_t, 6> InOrder(const ProgressStages& stages) {
  return {stages.source_work,  stages.source_blocked, stages.target_blocked,
          stages.target_paced, stages.target_cpu,     stages.target_disk};
}

}  // namespace

void ProgressFormatter::ObserveStages(const ProgressStages& now,
                                      double elapsed, double now_seconds) {
  const std::array<uint64_t, 6> seen = InOrder(now);
  const std::array<uint64_t, 6> before = InOrder(last_.stages);
  for (size_t i = 0; i < seen.size(); ++i) {
    // After a lost connection the source's times begin at 0 again.
    const uint64_t grown = seen[i] - std::min(seen[i], before[i]);
    stages_[i] = MovingRate(stages_[i], static_cast<double>(grown), elapsed,
                            now_seconds);
  }
}

std::string ProgressFormatter::Bottleneck() const {
  const auto [source_work, source_blocked, waits, paced, cpu, disk] = stages_;
  const double target = waits + paced + cpu + disk;
  if (last_.finished || last_.phase != "transfer" || target < 1) {
    return "";
  }
  if (paced > target / 2) {
    return "max-rate";
  }
  if (waits < target / 2) {
    return disk > cpu ? "target disk" : "target CPU";
  }
  return source_work + source_blocked < 1 ? ""
         : source_blocked > source_work   ? "network"
                                          : "source CPU or disk";
}

void ProgressFormatter::Observe(const Progress& progress, double now_seconds) {
  const double elapsed = now_seconds - last_seconds_;
  const uint64_t done = std::max(progress.done_bytes, last_.done_bytes);
  const uint64_t entries = std::max(progress.entries, last_.entries);
  if (elapsed > 0) {
    bytes_per_second_ =
        MovingRate(bytes_per_second_,
                   static_cast<double>(done - last_.done_bytes), elapsed,
                   now_seconds);
    entries_per_second_ =
        MovingRate(entries_per_second_,
                   static_cast<double>(entries - last_.entries), elapsed,
                   now_seconds);
    ObserveStages(progress.stages, elapsed, now_seconds);
    last_seconds_ = now_seconds;
  }
  const bool finished = progress.finished || (observed_ && last_.finished);
  last_ = progress;
  last_.done_bytes = done;
  last_.entries = entries;
  last_.finished = finished;
  observed_ = true;

  double percent = 0;
  if (finished) {
    percent = 100;
  } else if (progress.planned_bytes > 0) {
    percent = 100.0 * static_cast<double>(done) /
              static_cast<double>(progress.planned_bytes);
    percent = std::min(kMaxUnfinishedPercent, std::floor(percent * 10) / 10);
  }
  percent_ = std::max(percent_, percent);
}

double ProgressFormatter::EtaSeconds() const {
  if (last_.finished) {
    return 0;
  }
  if (last_.planned_bytes <= last_.done_bytes || bytes_per_second_ < 1) {
    return -1;
  }
  return static_cast<double>(last_.planned_bytes - last_.done_bytes) /
         bytes_per_second_;
}

std::string ProgressFormatter::Line() const {
  return FitColumns(Columns(), std::string::npos);
}

std::string ProgressFormatter::Where() const {
  std::array<char, 256> text{};
  if (!is_planned()) {
    // The amount of data is not known yet, so there is no percentage.
    std::snprintf(text.data(), text.size(), "    - %% %-9.32s %s",
                  last_.phase.c_str(), FormatClock(last_seconds_).c_str());
    return text.data();
  }
  // At the end, leaves out the planned bytes. They were an estimate and differ
  // from the bytes that were sent.
  const std::string of =
      last_.finished
          ? ""
          : " of " + FormatBytes(
                         std::max(last_.planned_bytes, last_.done_bytes));
  std::snprintf(text.data(), text.size(), "%5.1f %% %-9.32s %s%s", percent_,
                last_.finished ? "done" : last_.phase.c_str(),
                FormatBytes(last_.done_bytes).c_str(), of.c_str());
  return text.data();
}

std::vector<std::string> ProgressFormatter::Columns() const {
  if (last_.finished) {
    // Shows no rate: done_bytes include bytes that were not sent, so the rate
    // would be wrong.
    return {Where(), "took " + FormatTook(last_.seconds)};
  }
  // While the source cannot be reached, shows the reason instead of old rates.
  // The reason is in the first column, which FitColumns() never leaves out.
  if (!last_.waiting_for.empty()) {
    return {Where() + "  waiting for the source: " +
            Printable(last_.waiting_for)};
  }
  if (!is_planned()) {
    return {Where()};
  }
  const double eta = EtaSeconds();
  std::array<char, 64> rate{};
  std::snprintf(rate.data(), rate.size(), "%.1f MB/s", bytes_per_second_ / 1e6);
  std::vector<std::string> columns = {
      Where(), rate.data(), "ETA " + (eta < 0 ? "-:--" : FormatClock(eta))};
  const std::string bottleneck = Bottleneck();
  if (!bottleneck.empty()) {
    columns.push_back("waiting for: " + bottleneck);
  }
  columns.push_back(FormatCount(last_.lanes, "lane"));
  // Leaves out a rate of 0. When files are sent unchanged, their entries are
  // counted only at the end of a file.
  if (entries_per_second_ >= 1) {
    columns.push_back(
        FormatNumber(static_cast<uint64_t>(entries_per_second_)) +
        " entries/s");
  }
  return columns;
}

std::string ProgressFormatter::Json() const {
  const double eta = EtaSeconds();
  nlohmann::ordered_json json;
  json["phase"] = last_.phase;
  json["percent"] = percent_;
  json["planned_bytes"] = nullptr;
  if (last_.planned_bytes != 0 || last_.finished) {
    json["planned_bytes"] = last_.planned_bytes;
  }
  json["done_bytes"] = last_.done_bytes;
  json["entries"] = last_.entries;
  json["bytes_per_second"] = bytes_per_second_;
  json["entries_per_second"] = entries_per_second_;
  json["eta_seconds"] = nullptr;
  if (eta >= 0) {
    json["eta_seconds"] = eta;
  }
  json["lanes"] = last_.lanes;
  json["seconds"] = last_.seconds;
  json["finished"] = last_.finished;
  json["waiting_for"] = nullptr;
  if (!last_.waiting_for.empty()) {
    json["waiting_for"] = last_.waiting_for;
  }
  json["bottleneck"] = nullptr;
  if (const std::string bottleneck = Bottleneck(); !bottleneck.empty()) {
    json["bottleneck"] = bottleneck;
  }
  return json.dump(-1, ' ', false,
                   nlohmann::ordered_json::error_handler_t::replace);
}

std::string FormatClock(double seconds) {
  const double bounded = std::clamp(seconds, 0.0, 3.6e8);
  const auto whole = static_cast<long long>(std::ceil(bounded));
  std::array<char, 32> text{};
  if (whole >= 3600) {
    std::snprintf(text.data(), text.size(), "%lld:%02lld:%02lld",
                  whole / 3600, whole / 60 % 60, whole % 60);
  } else {
    std::snprintf(text.data(), text.size(), "%lld:%02lld", whole / 60,
                  whole % 60);
  }
  return text.data();
}

std::string FormatTook(double seconds) {
  constexpr double kMinute = 60;
  if (seconds >= kMinute) {
    return FormatClock(seconds);
  }
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2f s", std::max(seconds, 0.0));
  return text.data();
}

std::string FitColumns(const std::vector<std::string>& columns, size_t width) {
  std::string line = columns.front().substr(0, width);
  for (size_t i = 1; i < columns.size(); ++i) {
    const std::string next = line + "  " + columns[i];
    if (next.size() > width) {
      break;
    }
    line = next;
  }
  return line;
}

bool ShowsInPlace(ProgressMode mode, const Console& console) {
  return mode == ProgressMode::kAlways ||
         (mode == ProgressMode::kAuto && console.is_terminal());
}

ProgressReporter::ProgressReporter(const CommonArguments& arguments,
                                   Console* console,
                                   std::function<Progress()> look)
    : in_place_(ShowsInPlace(arguments.progress, *console)),
      // If log lines are JSON, the progress lines between them must be JSON.
      json_(arguments.progress == ProgressMode::kJson ||
            (!in_place_ && console->logs_json())),
      interval_(in_place_ ? kRedrawInterval : arguments.progress_interval),
      console_(console),
      look_(std::move(look)),
      started_(std::chrono::steady_clock::now()) {
  if (arguments.progress != ProgressMode::kNever) {
    thread_ = std::thread([this] { Loop(); });
  }
}

ProgressReporter::~ProgressReporter() { Stop(); }

void ProgressReporter::Stop() {
  {
    const std::lock_guard<std::mutex> lock(mu_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) {
    thread_.join();
    // If the command has ended before the amount of data was known, its result
    // says enough, and the progress line is removed.
    if (json_ || look_().planned_bytes > 0) {
      Show();
      console_->EndProgress();
    } else {
      console_->DropProgress();
    }
  }
}

void ProgressReporter::Loop() {
  std::unique_lock<std::mutex> lock(mu_);
  while (!changed_.wait_for(lock, interval_, [this] { return stopping_; })) {
    lock.unlock();
    Show();
    lock.lock();
  }
}

void ProgressReporter::Show() {
  if (!in_place_ && formatter_.finished()) {
    return;  // has already written the line of the finished operation
  }
  const std::chrono::duration<double> now =
      std::chrono::steady_clock::now() - started_;
  formatter_.Observe(look_(), now.count());
  if (in_place_) {
    console_->RedrawProgress(
        FitColumns(formatter_.Columns(), console_->columns() - 1));
  } else {
    console_->WriteProgress(json_ ? formatter_.Json() : formatter_.Line());
  }
}

}  // namespace sstferry
