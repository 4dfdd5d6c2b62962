#include "pipeline/pull/backoff.h"

#include "tests/support/catch.h"

namespace sstferry::backoff_test {
namespace {

using std::chrono::milliseconds;

// A clock and a random number that the test sets.
struct World {
  Clock::time_point now{};
  uint64_t progress = 0;
  double chance = 0;

  BackoffOptions Options(milliseconds give_up_after) {
    BackoffOptions options;
    options.give_up_after = give_up_after;
    options.progress = [this] { return progress; };
    options.now = [this] { return now; };
    options.chance = [this] { return chance; };
    return options;
  }
};

TEST_CASE(
    "Backoff doubles its waits up to five seconds, half of each is random",
    "[target][backoff]") {
  World world;
  Backoff backoff(world.Options(milliseconds(600'000)));
  for (const int expected : {50, 100, 200, 400, 800, 1600, 2500, 2500}) {
    milliseconds wait{0};
    REQUIRE(backoff.Next(&wait));
    REQUIRE(wait.count() == expected);
  }
  world.chance = 0.999;
  milliseconds wait{0};
  REQUIRE(backoff.Next(&wait));
  REQUIRE(wait.count() > 4900);
  REQUIRE(wait.count() <= 5000);
  backoff.Succeeded();
  REQUIRE(backoff.Next(&wait));
  REQUIRE(wait.count() <= 100);
}

TEST_CASE("Backoff gives up after the given time without progress, not before",
          "[target][backoff]") {
  World world;
  Backoff backoff(world.Options(milliseconds(10'000)));
  milliseconds wait{0};
  REQUIRE(backoff.Next(&wait));
  world.now += milliseconds(9'900);
  REQUIRE(backoff.Next(&wait));
  REQUIRE(wait.count() <= 100);  // the last try is made when the time is up
  world.progress++;              // another lane received something
  world.now += milliseconds(9'900);
  REQUIRE(backoff.Next(&wait));
  world.now += milliseconds(9'900);
  REQUIRE(backoff.Next(&wait));
  world.now += milliseconds(100);
  REQUIRE_FALSE(backoff.Next(&wait));
}

TEST_CASE("Backoff does not retry if the given time is 0",
          "[target][backoff]") {
  World world;
  Backoff backoff(world.Options(milliseconds(0)));
  milliseconds wait{0};
  REQUIRE_FALSE(backoff.Next(&wait));
}

}  // namespace
}  // namespace sstferry::backoff_test
