#include "pipeline/wire/patience.h"

#include <atomic>

#include "tests/support/catch.h"

namespace sstferry {
namespace {

// Until the idle limit of `patience` is over, as it stands now.
void PassIdle(Patience* patience) {
  const Clock::time_point over = patience->WakeAt();
  while (Clock::now() < over) {
  }
}

TEST_CASE("Patience begins again when something moves elsewhere, once",
          "[wire]") {
  std::atomic<uint64_t> elsewhere{7};
  Patience patience({std::chrono::milliseconds(100), Clock::time_point::max(),
                     &elsewhere});
  PassIdle(&patience);
  elsewhere++;
  REQUIRE_FALSE(patience.Expired());
  PassIdle(&patience);
  REQUIRE(patience.Expired());
}

TEST_CASE("Patience never lasts longer than its end, whatever moves",
          "[wire]") {
  std::atomic<uint64_t> elsewhere{0};
  Patience patience(
      {std::chrono::milliseconds(1), Clock::now(), &elsewhere});
  PassIdle(&patience);
  elsewhere++;
  REQUIRE(patience.Expired());
}

}  // namespace
}  // namespace sstferry
