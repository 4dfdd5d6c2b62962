#include "pipeline/wire/wait_deadline.h"

#include <atomic>

#include "tests/support/catch.h"

namespace sstferry::wait_deadline_test {
namespace {

// Waits until the current idle limit has passed.
void PassIdle(WaitDeadline* deadline) {
  const Clock::time_point over = deadline->WakeAt();
  while (Clock::now() < over) {
  }
}

TEST_CASE("WaitDeadline restarts once after progress elsewhere", "[wire]") {
  std::atomic<uint64_t> elsewhere{7};
  WaitDeadline deadline(
      {std::chrono::milliseconds(100), Clock::time_point::max(), &elsewhere});
  PassIdle(&deadline);
  elsewhere++;
  REQUIRE_FALSE(deadline.Expired());
  PassIdle(&deadline);
  REQUIRE(deadline.Expired());
}

TEST_CASE("WaitDeadline never lasts longer than its end, despite progress",
          "[wire]") {
  std::atomic<uint64_t> elsewhere{0};
  WaitDeadline deadline(
      {std::chrono::milliseconds(1), Clock::now(), &elsewhere});
  PassIdle(&deadline);
  elsewhere++;
  REQUIRE(deadline.Expired());
}

}  // namespace
}  // namespace sstferry::wait_deadline_test
