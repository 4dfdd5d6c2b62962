// The times at which targets that got no slot are told to ask again.
#include "pipeline/serve/return_times.h"

#include "format/limits.h"
#include "tests/support/catch.h"

namespace sstferry::return_times_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Requires a time of at most `expected`. Up to an eighth of it is random.
void RequireAbout(milliseconds told, milliseconds expected) {
  CAPTURE(told.count(), expected.count());
  REQUIRE(told <= expected);
  REQUIRE(told >= expected - expected / 8 - milliseconds(1));
}

TEST_CASE("Each target gets the time of a slot that no other target got",
          "[pipeline][source]") {
  ReturnTimes times;
  const Clock::time_point now = Clock::now();
  // The three transfers need 10, 5 and 2 seconds more.
  const std::vector<PlaceUse> uses = {
      {seconds(10), 0.5}, {seconds(20), 0.8}, {seconds(8), 0.8}};
  RequireAbout(times.Next(uses, now), seconds(2));
  RequireAbout(times.Next(uses, now), seconds(5));
  RequireAbout(times.Next(uses, now), seconds(10));
  // A transfer takes 55 / 3 seconds on average.
  RequireAbout(times.Next(uses, now), milliseconds(18'333));
  RequireAbout(times.Next(uses, now), milliseconds(18'333));
  // Targets whose time has passed are forgotten, whether they came or not.
  const std::vector<PlaceUse> later = {
      {seconds(12), 0.8}, {seconds(22), 0.99}, {seconds(10), 0.99}};
  RequireAbout(times.Next(later, now + seconds(2)), milliseconds(625));
}

TEST_CASE("A target is told to ask again soon if a transfer has just begun",
          "[pipeline][source]") {
  ReturnTimes times;
  const Clock::time_point now = Clock::now();
  RequireAbout(times.Next({{milliseconds(3), 0}}, now),
               milliseconds(kMinRetryAfterMillis));
  // At this rate, 99 seconds are left, but one second is too short to know.
  RequireAbout(times.Next({{seconds(1), 0.01}}, now + seconds(1)), seconds(1));
}

TEST_CASE("Targets do not ask constantly for the slot of a finished transfer",
          "[pipeline][source]") {
  ReturnTimes times;
  const PlaceUse ends = {seconds(160), GENERATE(1.0, 3.0)};
  RequireAbout(times.Next({ends}, Clock::now()), seconds(10));
}

TEST_CASE("No target is told to come later than in a minute",
          "[pipeline][source]") {
  ReturnTimes times;
  const Clock::time_point now = Clock::now();
  bool spread = false;
  const milliseconds first =
      times.Next({{std::chrono::hours(9), 0.1}}, now);
  for (int i = 0; i < 100; ++i) {
    const milliseconds told =
        times.Next({{std::chrono::hours(9), 0.1}}, now);
    RequireAbout(told, milliseconds(kMaxRetryAfterMillis));
    spread = spread || told != first;
  }
  REQUIRE(spread);  // targets do not come all at once
}

}  // namespace
}  // namespace sstferry::return_times_test
