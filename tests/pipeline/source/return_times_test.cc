// When targets that found no place are told to come again.
#include "pipeline/serve/return_times.h"

#include "format/limits.h"
#include "tests/support/catch.h"

namespace sstferry::return_times_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// An eighth is chance.
void RequireAbout(milliseconds told, milliseconds expected) {
  CAPTURE(told.count(), expected.count());
  REQUIRE(told <= expected);
  REQUIRE(told >= expected - expected / 8 - milliseconds(1));
}

TEST_CASE("Each target comes when a place is free that no other comes for",
          "[pipeline][source]") {
  ReturnTimes times;
  const Clock::time_point now = Clock::now();
  // They need 2, 5 and 10 seconds more.
  const std::vector<PlaceUse> uses = {
      {seconds(10), 0.5}, {seconds(20), 0.8}, {seconds(8), 0.8}};
  RequireAbout(times.Next(uses, now), seconds(2));
  RequireAbout(times.Next(uses, now), seconds(5));
  RequireAbout(times.Next(uses, now), seconds(10));
  // One transfer takes 55 / 3 seconds.
  RequireAbout(times.Next(uses, now), milliseconds(18'333));
  RequireAbout(times.Next(uses, now), milliseconds(18'333));
  // Those that were to come by then have come, whatever became of them.
  const std::vector<PlaceUse> later = {
      {seconds(12), 0.8}, {seconds(22), 0.99}, {seconds(10), 0.99}};
  RequireAbout(times.Next(later, now + seconds(2)), milliseconds(625));
}

TEST_CASE("A transfer that has just begun is looked at again soon",
          "[pipeline][source]") {
  ReturnTimes times;
  const Clock::time_point now = Clock::now();
  RequireAbout(times.Next({{milliseconds(3), 0}}, now),
               milliseconds(kMinRetryAfterMillis));
  // At this rate 99 seconds are left, of which one has shown nothing.
  RequireAbout(times.Next({{seconds(1), 0.01}}, now + seconds(1)), seconds(1));
}

TEST_CASE("A transfer that has sent all is not asked for all the time",
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
  REQUIRE(spread);  // not all at once
}

}  // namespace
}  // namespace sstferry::return_times_test
