// Decisions of HoldBack about an application whose waits the test invents.
#include "pipeline/serve/hold_back.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <future>

#include "pipeline/base/thread_waits.h"
#include "tests/support/catch.h"

namespace sstferry::hold_back_test {
namespace {

// The time between two looks: ten looks per second.
constexpr uint64_t kLookMicros = 100'000;
constexpr int kLongEnough = 60;

// An application that runs for a tenth of the time, and a HoldBack that
// observes it.
struct Application {
  // How long its threads wait for a CPU, as a share of their running time,
  // without and with the source at work. And how many threads wait for the
  // disk.
  double cpu_alone = 0;
  double cpu_beside_us = 0;
  double in_disk_wait = 0;
  bool open = true;
  bool seen = true;
  ApplicationWaits waits;

  HoldBack hold_back{[this] { return Read(); }};
  int rests = 0;

  std::optional<ApplicationWaits> Read() {
    const uint64_t ran = kLookMicros / 10;
    const double waited = hold_back.share() == 0 ? cpu_alone : cpu_beside_us;
    waits.ran_micros += ran;
    waits.cpu_micros += static_cast<uint64_t>(waited * ran);
    waits.io_micros += static_cast<uint64_t>(
        hold_back.share() == 0 ? 0 : in_disk_wait * kLookMicros);
    waits.is_application = seen;
    return open ? std::optional(waits) : std::nullopt;
  }
  void Look(int times) {
    for (int i = 0; i < times; ++i) {
      hold_back.Look();
      rests += hold_back.share() == 0 ? 1 : 0;
    }
  }
  // Returns the share of time that the source may work, outside of rests.
  double ShareAfter(int looks) {
    Look(looks);
    if (hold_back.share() == 0) {
      Look(1);
    }
    return hold_back.share();
  }
};

TEST_CASE("A source works at full rate if the application hardly waits",
          "[source][hold_back]") {
  Application application;
  application.cpu_alone = 0.05;
  application.cpu_beside_us = 0.08;
  application.Look(kLongEnough);
  REQUIRE(application.hold_back.share() == 1);
  REQUIRE(application.rests == 0);
}

TEST_CASE("A source slows down to its least share while an application waits "
          "for CPUs, and works fully when it no longer waits",
          "[source][hold_back]") {
  Application application;
  application.cpu_alone = 0.05;
  application.cpu_beside_us = 3;
  REQUIRE(application.ShareAfter(kLongEnough) == HoldBack::kLeastShare);
  REQUIRE(application.hold_back.why() == Stage::kHeldCpu);
  application.cpu_beside_us = 0.05;
  REQUIRE(application.ShareAfter(2 * kLongEnough) == 1);
}

TEST_CASE("A source does not slow down for waits that the application has "
          "without it, too",
          "[source][hold_back]") {
  Application application;
  application.cpu_alone = 3;
  application.cpu_beside_us = 4;
  REQUIRE(application.ShareAfter(2 * kLongEnough) == 1);
  REQUIRE(application.rests > 0);
}

TEST_CASE("A source says that an application waits for its disk",
          "[source][hold_back]") {
  Application application;
  application.in_disk_wait = 1;
  REQUIRE(application.ShareAfter(kLongEnough) == HoldBack::kLeastShare);
  REQUIRE(application.hold_back.why() == Stage::kHeldIo);
}

TEST_CASE("A source that cannot see the application says that it measures its "
          "own latency",
          "[source][hold_back]") {
  Application application;
  application.seen = false;
  application.cpu_beside_us = 3;
  REQUIRE(application.ShareAfter(kLongEnough) == HoldBack::kLeastShare);
  REQUIRE(application.hold_back.why() == Stage::kHeldLatency);
}

TEST_CASE("A source works fully once no process has the database open",
          "[source][hold_back]") {
  Application application;
  application.cpu_beside_us = 3;
  REQUIRE(application.ShareAfter(kLongEnough) < 1);
  application.open = false;
  application.Look(1);
  REQUIRE(application.hold_back.share() == 1);
}

TEST_CASE("A source with permission for the full rate does not look",
          "[source][hold_back]") {
  int reads = 0;
  HoldBack hold_back([&reads] {
    ++reads;
    return std::optional<ApplicationWaits>();
  });
  hold_back.Allow(false);
  hold_back.Look();
  REQUIRE(reads == 0);
  REQUIRE_FALSE(hold_back.allowed());
}

TEST_CASE("A rest ends when the observer stops, and with the transfer",
          "[source][hold_back]") {
  Application application;
  application.cpu_beside_us = 3;
  while (application.hold_back.share() != 0) {
    application.Look(1);
  }
  StageTotals stages;
  std::future<void> passed = std::async(std::launch::async, [&] {
    StageClock clock(&stages, Stage::kReadBuild);
    HoldBack::Worker(&application.hold_back, &clock).Pass();
  });
  const bool close = GENERATE(false, true);
  close ? application.hold_back.Close() : application.hold_back.EndRest();
  passed.get();
  if (close) {
    // If Close() did not end the rest, each Pass() would sleep for a second.
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < 60; ++i) {
      HoldBack::Worker(&application.hold_back, nullptr).Pass();
    }
    REQUIRE(std::chrono::steady_clock::now() - begin <
            std::chrono::seconds(50));
  } else {
    REQUIRE(application.hold_back.share() > 0);
  }
}

TEST_CASE("A worker sleeps in proportion to its work, and not to its waits",
          "[source][hold_back]") {
  Application application;
  application.cpu_beside_us = 3;
  REQUIRE(application.ShareAfter(kLongEnough) == HoldBack::kLeastShare);
  StageTotals stages;
  const bool waits = GENERATE(false, true);
  uint64_t since_restart = 0;
  {
    StageClock clock(&stages, Stage::kReadBuild);
    HoldBack::Worker worker(&application.hold_back, &clock);
    const auto until =
        std::chrono::steady_clock::now() + std::chrono::milliseconds(40);
    while (std::chrono::steady_clock::now() < until) {
    }
    const auto restarted = std::chrono::steady_clock::now();
    if (waits) {
      worker.Restart();
    }
    worker.Pass();
    since_restart = static_cast<uint64_t>(
        std::chrono::duration_cast<std::chrono::microseconds>(
            std::chrono::steady_clock::now() - restarted)
            .count());
  }
  const uint64_t held = stages.micros(Stage::kHeldCpu);
  // On a busy machine, the time between Restart() and Pass() may be long.
  const uint64_t work = since_restart - std::min(since_restart, held);
  CAPTURE(held, work);
  if (waits) {
    REQUIRE(held < 300'000 + work * 19);
  } else {
    REQUIRE(held >= 700'000);
  }
}

TEST_CASE("Waits of a thread are parsed, and other texts are refused",
          "[source][hold_back]") {
  ThreadWaits waits;
  REQUIRE(AddSchedstat("2000000 3000000 7\n", &waits));
  REQUIRE(AddSchedstat("1000 1000 1\n", &waits));
  REQUIRE(waits.ran_micros == 2001);
  REQUIRE(waits.cpu_waited_micros == 3001);
  for (const char* const text :
       {"", "\n", "1", "1 ", "1 2", "-1 2 3", "x 1 2", "1  2 3",
        "99999999999999999999 1 1"}) {
    CAPTURE(text);
    REQUIRE_FALSE(AddSchedstat(text, &waits));
  }
  REQUIRE(waits.ran_micros == 2001);
  REQUIRE(IsInDiskWait("12 (rocksdb) D 1 1"));
  REQUIRE(IsInDiskWait("12 (a) R (b) D 1"));
  REQUIRE_FALSE(IsInDiskWait("12 (a) D (b) S 1"));
  REQUIRE_FALSE(IsInDiskWait("12 (a) "));
  REQUIRE_FALSE(IsInDiskWait("D"));
}

TEST_CASE("The threads of this process are found", "[source][hold_back]") {
  ThreadWaits process;
  ThreadWaits thread;
  REQUIRE(ReadOwnWaits(&thread));
  REQUIRE(ReadProcessWaits(getpid(), &process));
  REQUIRE(process.ran_micros >= thread.ran_micros);
  REQUIRE_FALSE(ReadProcessWaits(-1, &process));
}

}  // namespace
}  // namespace sstferry::hold_back_test
