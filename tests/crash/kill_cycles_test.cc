// kill -9 of source, relay and target in random order, until every pull is
// complete all the same.
//
//   SSTFERRY_CRASH_CYCLES=200 test_crash "Pulls survive*"    the long run
//   SSTFERRY_CRASH_SEED=N                                    one again
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "tests/crash/kill_world.h"
#include "tests/support/catch.h"

namespace sstferry {
namespace {

uint64_t Setting(const char* name, uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : std::stoull(value);
}

TEST_CASE("Pulls survive kill -9 of source, relay and target in any order",
          "[crash][kill]") {
  const uint64_t cycles = Setting("SSTFERRY_CRASH_CYCLES", 20);
  const uint64_t seed =
      Setting("SSTFERRY_CRASH_SEED", std::random_device{}());
  printf("SSTFERRY_CRASH_SEED=%llu, %llu cycles\n",
         static_cast<unsigned long long>(seed),
         static_cast<unsigned long long>(cycles));
  INFO("SSTFERRY_CRASH_SEED=" << seed);
  std::mt19937_64 random(seed);
  KillWorld world(random());
  while (world.cycles() < cycles) {
    const uint64_t left = cycles - world.cycles();
    world.Round(static_cast<int>(std::min<uint64_t>(left, 2 + random() % 5)));
  }
  world.Finish();
  world.Report();
}

}  // namespace
}  // namespace sstferry
