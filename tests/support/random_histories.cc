#include "tests/support/random_histories.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>

#include "tests/support/catch.h"
#include "tests/support/sanitizer.h"

namespace sstferry::test {
namespace {

using std::chrono::steady_clock;

// Limits how long rapidcheck shortens a failing history. Without a limit that
// takes hours if each history takes a second.
constexpr std::chrono::minutes kShrinkingLimit{1};

// Plays histories. After the limit since the first failure, reports success
// without playing, which ends the shortening.
class BoundedPlay {
 public:
  explicit BoundedPlay(const std::function<void()>& play) : play_(play) {}

  void operator()() {
    if (failed_ && steady_clock::now() - *failed_ > kShrinkingLimit) {
      return;
    }
    try {
      play_();
    } catch (const rc::detail::CaseResult& result) {
      NoteFailure(result.description);
      throw;
    } catch (...) {
      NoteFailure("an assertion, which is printed above or below");
      throw;
    }
  }

  // Returns why the last history failed. rapidcheck would play it again to
  // report that, but after the limit nothing is played.
  const std::string& failure() const { return failure_; }

 private:
  void NoteFailure(const std::string& text) {
    failed_ = failed_.value_or(steady_clock::now());
    failure_ = text;
  }

  const std::function<void()>& play_;
  std::optional<steady_clock::time_point> failed_;
  std::string failure_;
};

}  // namespace

int HistoryCount(int usually) {
  const char* const text = getenv("SSTFERRY_HISTORIES");
  // With sanitizers, each history takes five times as long.
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
  BoundedPlay bounded(play);
  const bool received = rc::check(claim, [&bounded] { bounded(); });
  if (!received) {
    std::cerr << "the last history that failed: " << bounded.failure() << "\n";
  }
  // Restores the variable: children of later tests inherit it, and choose their
  // own count.
  REQUIRE(setenv("RC_PARAMS", given.c_str(), 1) == 0);
  return received;
}

rc::Gen<uint32_t> Below(uint32_t limit) {
  return rc::gen::resize(100, rc::gen::inRange<uint32_t>(0, limit));
}

}  // namespace sstferry::test
