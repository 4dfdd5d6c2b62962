// Crashes a pull between any two durable steps, by a kill and by a power cut.
// The next pull must end with a complete target and leave nothing else.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <mutex>

#include "pipeline/disk/durable.h"
#include "tests/crash/crash_points.h"
#include "tests/crash/crash_world.h"
#include "tests/support/catch.h"
#include "tests/support/power_loss_file_system.h"
#include "tests/support/sample_database.h"

namespace sstferry::fault_points_test {
namespace {

TEST_CASE("Every fault point is in the crash table and is tested", "[crash]") {
  std::set<std::string> walked;
  for (const CrashPoint& point : CrashPoints()) {
    REQUIRE(walked.insert(point.name).second);
    REQUIRE_FALSE(point.scenarios.empty());
  }
  for (const char* const point : LostCrashPoints()) {
    REQUIRE(walked.insert(point).second);
  }
  for (const char* const point : StandbyCrashPoints()) {
    REQUIRE(walked.insert(point).second);
  }
  const std::set<std::string> in_code = FaultPointsInCode();
  REQUIRE(in_code.size() > 20);
  REQUIRE(in_code == walked);
  REQUIRE(in_code == FaultPointsInTable());
}

// Returns the number of random power cuts at each point: 1 by default.
uint64_t SeedsPerPoint() {
  const char* value = std::getenv("SSTFERRY_CRASH_SEEDS");
  return value == nullptr ? 1 : std::stoull(value);
}

// Returns true if this scenario is tested: by default all are, otherwise the
// one in SSTFERRY_CRASH_SCENARIO.
bool IsAsked(Scenario scenario) {
  const char* value = std::getenv("SSTFERRY_CRASH_SCENARIO");
  return value == nullptr || std::string(value) == NameOf(scenario);
}

// Returns all hits if there are few, otherwise the first, a middle and the last
// one.
std::set<uint64_t> HitsToCrashAt(uint64_t hits) {
  std::set<uint64_t> chosen{1, (hits + 1) / 2, hits};
  for (uint64_t nth = 1; hits <= 4 && nth <= hits; ++nth) {
    chosen.insert(nth);
  }
  return chosen;
}

// The kinds of crashes: a kill; a power cut that loses everything unsynced; a
// power cut that loses a random part of it.
constexpr const char* kHows[] = {"kill", "nothing", "random"};

// Returns true if each walk crashes at all hits (SSTFERRY_CRASH_SEED is set).
// By default, the three walks share the hits of points with three or more.
bool CrashesAll() { return std::getenv("SSTFERRY_CRASH_SEED") != nullptr; }

class CrashWalk {
 public:
  // `kind`: an index into kHows.
  explicit CrashWalk(size_t kind) : kind_(kind) {}

  void Run() {
    std::map<Scenario, std::map<std::string, uint64_t>> hits;
    for (const CrashPoint& point : CrashPoints()) {
      if (Passes(point)) {
        continue;
      }
      for (const Scenario scenario : point.scenarios) {
        if (!IsAsked(scenario)) {
          continue;
        }
        if (hits[scenario].empty()) {
          hits[scenario] = world_.CountHits(scenario);
        }
        const std::set<uint64_t> chosen =
            HitsToCrashAt(hits[scenario][point.name]);
        size_t turn = static_cast<size_t>(scenario);
        for (const uint64_t nth : chosen) {
          // Each kind takes another third, so that together they crash at every
          // hit.
          if (CrashesAll() || chosen.size() < std::size(kHows) ||
              turn++ % std::size(kHows) == kind_) {
            CrashAt(scenario, point.name, nth);
          }
        }
      }
    }
  }

  // Prints the number of crashes per point. Requires that each point was hit.
  void Report() {
    std::string missed;
    for (const CrashPoint& point : CrashPoints()) {
      printf("%-30s %3llu crashes\n", point.name,
             static_cast<unsigned long long>(crashes_[point.name]));
      const bool asked =
          std::any_of(point.scenarios.begin(), point.scenarios.end(), IsAsked);
      if (crashes_[point.name] == 0 && asked && !Passes(point)) {
        missed += std::string(" ") + point.name;
      }
    }
    INFO("never hit:" << missed);
    REQUIRE(missed.empty());
  }

 private:
  bool Passes(const CrashPoint& point) const {
    return point.only_killed && kind_ != 0;
  }
  void CrashAt(Scenario scenario, const std::string& point, uint64_t nth) {
    const std::string how = kHows[kind_];
    const uint64_t seeds = how == "random" ? SeedsPerPoint() : 1;
    for (uint64_t i = 0; i < seeds; ++i) {
      const Crash crash{point, nth, how, ++seed_};
      INFO(NameOf(scenario) << ": " << ToString(crash));
      if (!world_.PullAndCrash(scenario, crash)) {
        REQUIRE(nth > 1);  // this pull had fewer hits
        CrashAt(scenario, point, 1);
        continue;
      }
      crashes_[point]++;
      world_.RequireTargetWhole(scenario, crash);
      world_.RequireNextPullCompletes(scenario, crash);
    }
  }

  const size_t kind_;
  CrashWorld world_;
  std::map<std::string, uint64_t> crashes_;
  uint64_t seed_ = 0;
};

TEST_CASE("After a kill at any fault point, the next pull completes the target",
          "[crash]") {
  CrashWalk walk(0);
  walk.Run();
  walk.Report();
}

TEST_CASE("After a power cut that loses everything unsynced, the next pull "
          "completes the target",
          "[crash]") {
  CrashWalk walk(1);
  walk.Run();
  walk.Report();
}

TEST_CASE("After a power cut that loses some unsynced data, the next pull "
          "completes the target",
          "[crash]") {
  CrashWalk walk(2);
  walk.Run();
  walk.Report();
}

TEST_CASE("A pull writes, renames and removes only through its file system",
          "[crash]") {
  CrashWorld world;
  for (const Scenario scenario :
       {Scenario::kFresh, Scenario::kAgain, Scenario::kRestart,
        Scenario::kUnsynced, Scenario::kInPlace, Scenario::kSwap,
        Scenario::kSwapFirst, Scenario::kSwapOwed, Scenario::kClone}) {
    INFO(NameOf(scenario));
    world.Prepare(scenario);
    const auto disk = std::make_shared<PowerLossFileSystem>(world.root());
    std::mutex mu;
    std::string found;
    TEST_SetFaultHook([&](const std::string& name) {
      std::lock_guard<std::mutex> lock(mu);
      for (const std::string& stranger : disk->Strangers()) {
        found += name + ": " + stranger + "\n";
      }
    });
    PullOptions options = world.Options(scenario);
    options.file_system = disk;
    const Summary summary = RunPull(options);
    TEST_SetFaultHook(nullptr);
    REQUIRE_OK(summary.status);
    for (const std::string& stranger : disk->Strangers()) {
      found += "end: " + stranger + "\n";
    }
    INFO(found);
    REQUIRE(found.empty());
    // Even a power cut that loses everything unsynced now leaves a complete
    // target.
    disk->LosePower(Survival::kNothing, 1);
    REQUIRE(EntriesOf(world.target()) == EntriesOf(world.source()));
  }
}

}  // namespace
}  // namespace sstferry::fault_points_test
