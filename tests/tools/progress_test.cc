#include "tools/sstferry/progress.h"

#include <rapidcheck.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include <nlohmann/json.hpp>

#include "format/quantity.h"
#include "tests/support/catch.h"

namespace sstferry::progress_test {
namespace {

constexpr uint64_t kPlanned = 1'000'000'000;

Progress At(uint64_t done, const std::string& phase = "transfer") {
  Progress progress;
  progress.phase = phase;
  progress.planned_bytes = kPlanned;
  progress.done_bytes = done;
  progress.entries = done / 100;
  progress.lanes = 4;
  return progress;
}

// A temporary file for a Console, and the bytes that were written to it.
class Captured {
 public:
  Captured() : file_(std::tmpfile()) { REQUIRE(file_ != nullptr); }
  ~Captured() { std::fclose(file_); }
  FILE* file() { return file_; }
  std::string text() {
    std::string all;
    std::rewind(file_);
    for (int c = std::fgetc(file_); c != EOF; c = std::fgetc(file_)) {
      all.push_back(static_cast<char>(c));
    }
    return all;
  }

 private:
  FILE* const file_;
};

}  // namespace

TEST_CASE("A progress line names percent, rates, ETA, lanes and phase",
          "[tools]") {
  ProgressFormatter formatter;
  formatter.Observe(At(0), 0);
  formatter.Observe(At(250'000'000), 1);
  const std::string line = formatter.Line();
  INFO(line);
  for (const char* word : {" 25.0 %", "transfer", "250.0 MB/s",
                           "250.0 MB of 1.0 GB", "2,500,000 entries/s",
                           "ETA 0:03", "4 lanes"}) {
    REQUIRE(line.find(word) != std::string::npos);
  }
}

TEST_CASE("A progress line shows the elapsed time while there is no plan",
          "[tools]") {
  ProgressFormatter formatter;
  Progress waiting = At(0, "snapshot");
  waiting.planned_bytes = 0;
  formatter.Observe(waiting, 3);
  REQUIRE(formatter.Line() == "    - % snapshot  0:03");
}

TEST_CASE("Progress never decreases and shows 100 only when finished",
          "[tools]") {
  ProgressFormatter formatter;
  formatter.Observe(At(600'000'000), 1);
  REQUIRE(formatter.percent() == Approx(60));
  formatter.Observe(At(300'000'000, "verify"), 2);
  REQUIRE(formatter.percent() == Approx(60));
  Progress more = At(600'000'000);
  more.planned_bytes = 2 * kPlanned;  // the plan grew
  formatter.Observe(more, 3);
  REQUIRE(formatter.percent() == Approx(60));
  formatter.Observe(At(kPlanned + 300'000'000, "sync"), 4);
  REQUIRE(formatter.percent() == Approx(99.9));
  REQUIRE(formatter.Line().find("100") == std::string::npos);
  // The plan is an estimate: more may be done than it says.
  REQUIRE(formatter.Line().find("1.3 GB of 1.3 GB") != std::string::npos);
  Progress last = At(kPlanned - 200'000'000, "swap");
  last.finished = true;
  last.seconds = 0.08;
  formatter.Observe(last, 5);
  REQUIRE(formatter.percent() == Approx(100));
  REQUIRE(formatter.Line() == "100.0 % done      1.3 GB  took 0.08 s");
}

TEST_CASE("Progress is monotonic for any input", "[tools]") {
  REQUIRE(rc::check([] {
    ProgressFormatter formatter;
    double before = 0;
    double clock = 0;
    bool finished = false;
    const auto looks = *rc::gen::container<std::vector<uint64_t>>(
        rc::gen::inRange<uint64_t>(0, 400));
    for (const uint64_t look : looks) {
      Progress progress = At(look * 5'000'000);
      progress.planned_bytes = (look % 7) * kPlanned / 3;
      progress.finished = look == 399;
      finished = finished || progress.finished;
      clock += static_cast<double>(look % 3);
      formatter.Observe(progress, clock);
      RC_ASSERT(formatter.percent() >= before);
      RC_ASSERT((formatter.percent() >= 100) == finished);
      before = formatter.percent();
      RC_ASSERT(nlohmann::json::parse(formatter.Json(), nullptr, false)
                    .is_object());
    }
  }));
}

TEST_CASE("Progress names the bottleneck of a transfer", "[tools]") {
  const std::vector<std::pair<ProgressStages, std::string>> rows = {
      {{900'000, 100'000, 900'000, 0, 50'000, 50'000}, "source CPU or disk"},
      {{100'000, 900'000, 900'000, 0, 50'000, 50'000}, "network"},
      {{500'000, 0, 100'000, 0, 200'000, 700'000}, "target disk"},
      {{500'000, 0, 100'000, 0, 700'000, 200'000}, "target CPU"},
      {{500'000, 0, 100'000, 800'000, 50'000, 50'000}, "max-rate"},
      {{}, ""},
  };
  for (const auto& [stages, expected] : rows) {
    INFO(expected);
    ProgressFormatter formatter;
    Progress progress = At(100'000'000);
    formatter.Observe(progress, 1);
    progress.stages = stages;
    formatter.Observe(progress, 2);
    const std::string line = formatter.Line();
    INFO(line);
    REQUIRE((line.find("waiting for: ") != std::string::npos) ==
            !expected.empty());
    REQUIRE(line.find(expected) != std::string::npos);
    const auto json = nlohmann::json::parse(formatter.Json());
    REQUIRE((expected.empty() ? json["bottleneck"].is_null()
                              : json["bottleneck"] == expected));
    // Only recent times count, not those from a minute ago.
    progress.stages.target_disk += 60'000'000;
    formatter.Observe(progress, 62);
    REQUIRE(formatter.Line().find("waiting for: target disk") !=
            std::string::npos);
    progress.finished = true;
    formatter.Observe(progress, 63);
    REQUIRE(formatter.Line().find("waiting for") == std::string::npos);
  }
}

TEST_CASE("A narrow line leaves out the last columns, and cuts no word",
          "[tools]") {
  const std::vector<std::string> columns = {"12 of 40", "5 MB/s", "4 lanes"};
  for (const size_t width : {std::string::npos, size_t{25}}) {
    REQUIRE(FitColumns(columns, width) == "12 of 40  5 MB/s  4 lanes");
  }
  REQUIRE(FitColumns(columns, 24) == "12 of 40  5 MB/s");
  REQUIRE(FitColumns(columns, 15) == "12 of 40");
  REQUIRE(FitColumns(columns, 5) == "12 of");  // its only column
  ProgressFormatter formatter;
  Progress lost = At(200'000'000);
  lost.waiting_for = "connection refused";
  formatter.Observe(lost, 2);
  REQUIRE(FitColumns(formatter.Columns(), 70).ends_with(
      "  waiting for the source: connecti"));
}

TEST_CASE("Rates converge to the recent speed", "[tools]") {
  ProgressFormatter formatter;
  uint64_t done = 0;
  int second = 0;
  for (; second < 5; ++second) {
    formatter.Observe(At(done += 100'000'000), second + 1);
  }
  for (; second < 60; ++second) {
    formatter.Observe(At(done += 1'000'000), second + 1);
  }
  const auto json = nlohmann::json::parse(formatter.Json());
  REQUIRE(json["bytes_per_second"].get<double>() < 2'000'000);
  REQUIRE(json["bytes_per_second"].get<double>() > 900'000);
}

TEST_CASE(
    "A progress object has every key and accepts bytes that are not UTF-8",
    "[tools]") {
  ProgressFormatter formatter;
  formatter.Observe(At(1, "\xff"), 0);
  const auto json = nlohmann::json::parse(formatter.Json());
  for (const char* key :
       {"phase", "percent", "planned_bytes", "done_bytes", "entries",
        "bytes_per_second", "entries_per_second", "eta_seconds", "lanes",
        "seconds", "finished"}) {
    INFO(key);
    REQUIRE(json.contains(key));
  }
  REQUIRE(json["eta_seconds"].is_null());
  REQUIRE(formatter.Json().find('\n') == std::string::npos);
}

TEST_CASE("Durations and sizes are formatted for people", "[tools]") {
  REQUIRE(FormatClock(0) == "0:00");
  REQUIRE(FormatClock(59.2) == "1:00");
  REQUIRE(FormatClock(3765) == "1:02:45");
  REQUIRE(FormatClock(1e300).size() < 20);
  REQUIRE(FormatTook(0.08) == "0.08 s");
  REQUIRE(FormatTook(3765) == "1:02:45");
  REQUIRE(FormatBytes(0) == "0 B");
  REQUIRE(FormatBytes(999) == "999 B");
  REQUIRE(FormatBytes(999'999) == "1.0 MB");
  REQUIRE(FormatBytes(64'000'000) == "64.0 MB");
  const auto text = [](int64_t millis) {
    return FormatMillis(millis);
  };
  REQUIRE(text(250) == "250 ms");
  REQUIRE(text(90'000) == "90 s");
  REQUIRE(text(600'000) == "10 min");
  REQUIRE(text(3'600'000) == "1 h");
  REQUIRE(text(5'400'000) == "90 min");
  REQUIRE(text(9'000'000) == "2 h 30 min");
}

TEST_CASE("A log line clears the redrawn progress line and restores it",
          "[tools]") {
  Captured captured;
  {
    Console console(CommonArguments(), captured.file());
    console.RedrawProgress("10 %");
    console.Log(LogLevel::kDebug, "hidden");
    console.Log(LogLevel::kWarning,
                "two\nlines\x1b[2J\xc2\x9b\xe2\x80\xae");
    console.EndProgress();
  }
  const std::string text = captured.text();
  INFO(text);
  REQUIRE(text.find("hidden") == std::string::npos);
  const size_t cleared = text.find("\r\033[K");
  const size_t log = text.find("warning two?lines?[2J?????\n10 %\n");
  REQUIRE(cleared != std::string::npos);
  REQUIRE(log != std::string::npos);
  REQUIRE(cleared < log);
}

TEST_CASE("A redrawn line is cut to the terminal's width", "[tools]") {
  Captured captured;
  {
    Console console(CommonArguments(), captured.file());
    console.RedrawProgress(std::string(500, 'x'));
  }
  REQUIRE(captured.text() == "\r" + std::string(79, 'x') + "\033[K\n");
}

TEST_CASE("A reporter shows the final state once when it stops", "[tools]") {
  Captured captured;
  CommonArguments arguments;
  arguments.progress = ProgressMode::kJson;
  arguments.progress_interval = std::chrono::hours(1);
  {
    Console console(CommonArguments(), captured.file());
    Progress progress = At(kPlanned);
    progress.finished = true;
    ProgressReporter reporter(arguments, &console,
                              [progress] { return progress; });
    reporter.Stop();
    reporter.Stop();  // no effect
  }
  const auto json = nlohmann::json::parse(captured.text());
  REQUIRE(json["finished"] == true);
  REQUIRE(json["percent"] == 100.0);
}

TEST_CASE("Progress in JSON reports the end once", "[tools]") {
  Captured captured;
  CommonArguments arguments;
  arguments.progress = ProgressMode::kJson;
  arguments.progress_interval = std::chrono::milliseconds(1);
  {
    Console console(CommonArguments(), captured.file());
    std::atomic<int> looks{0};
    ProgressReporter reporter(arguments, &console, [&looks] {
      Progress progress = At(kPlanned);
      progress.finished = ++looks > 3;
      return progress;
    });
    while (looks <= 3) {
      std::this_thread::yield();
    }
  }
  const std::string text = captured.text();
  const size_t first = text.find("\"finished\":true");
  INFO(text);
  REQUIRE(first != std::string::npos);
  REQUIRE(text.find("\"finished\":true", first + 1) == std::string::npos);
}

TEST_CASE("A reporter shows nothing for a command that fails at once",
          "[tools]") {
  Captured captured;
  {
    Console console(CommonArguments(), captured.file());
    ProgressReporter reporter(CommonArguments(), &console,
                              [] { return Progress(); });
  }
  REQUIRE(captured.text().empty());
}

TEST_CASE("A reporter clears its line for a command without planned bytes",
          "[tools]") {
  Captured captured;
  CommonArguments arguments;
  arguments.progress = ProgressMode::kAlways;
  {
    Console console(CommonArguments(), captured.file());
    std::atomic<int> looks{0};
    Progress progress = At(0, "plan");
    progress.planned_bytes = 0;
    ProgressReporter reporter(arguments, &console, [&] {
      ++looks;
      return progress;
    });
    while (looks == 0) {
      std::this_thread::yield();
    }
  }
  const std::string text = captured.text();
  INFO(text);
  REQUIRE(text.find("plan") != std::string::npos);
  REQUIRE(text.ends_with("\r\033[K"));
}

TEST_CASE("A progress line shows entries only if they are counted", "[tools]") {
  ProgressFormatter formatter;
  Progress cloned = At(100'000'000);
  cloned.entries = 0;
  formatter.Observe(cloned, 1);
  REQUIRE(formatter.Line().find("entries/s") == std::string::npos);
  REQUIRE(formatter.Line().ends_with("  4 lanes"));
}

TEST_CASE("A progress line for a lost source shows the error and no rate",
          "[tools]") {
  ProgressFormatter formatter;
  formatter.Observe(At(100'000'000), 1);
  Progress lost = At(200'000'000);
  lost.waiting_for = "connect db1:7420: connection refused";
  formatter.Observe(lost, 2);
  REQUIRE(formatter.Line() ==
          " 20.0 % transfer  200.0 MB of 1.0 GB  waiting for the source: "
          "connect db1:7420: connection refused");
}

TEST_CASE("A reporter with --progress never shows nothing", "[tools]") {
  Captured captured;
  CommonArguments arguments;
  arguments.progress = ProgressMode::kNever;
  {
    Console console(CommonArguments(), captured.file());
    ProgressReporter reporter(arguments, &console, [] { return At(1); });
  }
  REQUIRE(captured.text().empty());
}

}  // namespace sstferry::progress_test
