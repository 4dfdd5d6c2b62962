#include "tests/support/random_histories.h"

#include <algorithm>
#include <cstdlib>

#include "tests/support/catch.h"
#include "tests/support/sanitizer.h"

namespace sstferry::test {

int HistoryCount(int usually) {
  const char* const text = getenv("SSTFERRY_HISTORIES");
  // Sanitizers make each take five times as long.
  const int these = kSanitized ? std::max(1, usually / 4) : usually;
  return text == nullptr ? these : std::max(1, atoi(text));
}

bool CheckHistories(const std::string& claim, int count, int max_size,
                    const std::function<void()>& play) {
  const char* const asked = getenv("RC_PARAMS");
  const std::string given = asked == nullptr ? "" : asked;
  const std::string parameters = "max_success=" + std::to_string(count) +
                                 " max_size=" + std::to_string(max_size) + " " +
                                 given;
  REQUIRE(setenv("RC_PARAMS", parameters.c_str(), 1) == 0);
  const bool received = rc::check(claim, play);
  // Other cases of this process start children, which count for themselves.
  REQUIRE(setenv("RC_PARAMS", given.c_str(), 1) == 0);
  return received;
}

rc::Gen<uint32_t> Below(uint32_t limit) {
  return rc::gen::resize(100, rc::gen::inRange<uint32_t>(0, limit));
}

}  // namespace sstferry::test
