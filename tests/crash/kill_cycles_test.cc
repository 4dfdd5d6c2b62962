// Kills source, relay and target with SIGKILL in random order until every pull
// is complete nevertheless.
//
//   SSTFERRY_CRASH_CYCLES=200 test_crash "Pulls survive*"    the long run
//   SSTFERRY_CRASH_CYCLES=200 test_crash "Three targets*"    the same
//   SSTFERRY_CRASH_SEED=N                                    repeats a run
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <vector>

#include "tests/crash/kill_world.h"
#include "tests/support/catch.h"

namespace sstferry::kill_cycles_test {
namespace {

uint64_t Setting(const char* name, uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : std::stoull(value);
}

// Runs `cycles` rounds of kills and comparisons. Prints how to repeat them.
void RunCycles(uint64_t cycles, const std::vector<KilledTarget>& targets,
               const std::function<void(const KillWorld&)>& check) {
  const uint64_t seed =
      Setting("SSTFERRY_CRASH_SEED", 20261127);
  printf("SSTFERRY_CRASH_SEED=%llu, %llu cycles\n",
         static_cast<unsigned long long>(seed),
         static_cast<unsigned long long>(cycles));
  INFO("SSTFERRY_CRASH_SEED=" << seed);
  std::mt19937_64 random(seed);
  KillWorld world(random(), targets);
  while (world.cycles() < cycles) {
    const uint64_t left = cycles - world.cycles();
    world.Round(static_cast<int>(std::min<uint64_t>(left, 2 + random() % 5)));
  }
  world.Finish();
  world.Report();
  check(world);
}

TEST_CASE("Pulls survive kill -9 of source, relay and target in any order",
          "[crash][kill]") {
  RunCycles(Setting("SSTFERRY_CRASH_CYCLES", 20),
            {{"a", "a", "ingest"}, {"b", "b", "clone"}},
            [](const KillWorld& world) {
              REQUIRE(world.chunks_built() > 0);
              REQUIRE(world.chunks_cloned() > 0);
            });
}

TEST_CASE("Three targets of one snapshot survive kill -9 of source, relay and "
          "targets",
          "[crash][kill][share]") {
  const bool clones = GENERATE(false, true);
  CAPTURE(clones);
  const std::string method = clones ? "clone" : "ingest";
  RunCycles(Setting("SSTFERRY_CRASH_CYCLES", 8) / 2,
            {{"a", "1", method, true},
             {"a", "2", method, true},
             {"a", "3", method, true}},
            [clones](const KillWorld& world) {
              REQUIRE((clones ? world.chunks_cloned()
                              : world.chunks_built()) > 0);
              REQUIRE(world.shared() > 0);
            });
}

}  // namespace
}  // namespace sstferry::kill_cycles_test
