#include "pipeline/wire/token_bucket.h"

#include <atomic>
#include <future>
#include <thread>
#include <vector>

#include "format/end_state.h"
#include "tests/support/catch.h"

namespace sstferry::token_bucket_test {
namespace {

using rocksdb::Status;
using std::chrono::microseconds;
using std::chrono::milliseconds;

// A clock that moves only when the test moves it.
class FakeClock {
 public:
  TokenBucket::TimePoint Now() const {
    return TokenBucket::TimePoint(microseconds(micros_.load()));
  }
  std::function<TokenBucket::TimePoint()> Function() {
    return [this] { return Now(); };
  }
  void Advance(microseconds by) { micros_ += by.count(); }
  int64_t micros() const { return micros_; }

 private:
  std::atomic<int64_t> micros_{0};
};

bool IsReady(std::future<Status>& future) {
  return future.wait_for(std::chrono::seconds(0)) ==
         std::future_status::ready;
}

TEST_CASE("TokenBucket without a rate never waits", "[wire]") {
  TokenBucket bucket(0);
  REQUIRE(bucket.DelayFor(1ull << 60).count() == 0);
  REQUIRE_OK(bucket.Take(1ull << 60));
  REQUIRE_OK(bucket.Take(1ull << 60));
}

TEST_CASE("TokenBucket lets its rate pass", "[wire]") {
  const uint64_t request = GENERATE(as<uint64_t>(), 1'000, 65'536, 1'048'576,
                                    10'000'000);
  INFO(request);
  constexpr uint64_t kRate = 20'000'000;
  FakeClock clock;
  TokenBucket bucket(kRate, clock.Function());
  uint64_t taken = 0;
  while (clock.micros() < 10'000'000) {
    const microseconds delay = bucket.DelayFor(request);
    clock.Advance(delay);
    REQUIRE_OK(bucket.Take(request));
    taken += request;
  }
  const double seconds = static_cast<double>(clock.micros()) / 1e6;
  const double rate = static_cast<double>(taken) / seconds;
  // The last request may exceed the rate: later requests would wait for it.
  REQUIRE(rate > 0.95 * kRate);
  REQUIRE(rate < 1.05 * kRate + static_cast<double>(request) / seconds);
}

TEST_CASE("TokenBucket never lets a burst exceed a tenth of a second",
          "[wire]") {
  FakeClock clock;
  TokenBucket bucket(1'000'000, clock.Function());
  clock.Advance(std::chrono::hours(1));
  REQUIRE(bucket.DelayFor(100'000).count() == 0);
  REQUIRE_OK(bucket.Take(100'000));
  REQUIRE(bucket.DelayFor(50'000) == milliseconds(50));
}

TEST_CASE("TokenBucket makes later requests wait for a large one", "[wire]") {
  FakeClock clock;
  TokenBucket bucket(1'000'000, clock.Function());
  clock.Advance(std::chrono::seconds(1));
  REQUIRE_OK(bucket.Take(2'100'000));  // 100'000 available, 2'000'000 borrowed
  REQUIRE(bucket.DelayFor(10'000) == milliseconds(2'010));
  clock.Advance(milliseconds(2'010));
  REQUIRE_OK(bucket.Take(10'000));
}

TEST_CASE("TokenBucket serves in the order of arrival", "[wire]") {
  FakeClock clock;
  TokenBucket bucket(1'000'000, clock.Function());
  std::vector<std::future<Status>> takes;
  std::atomic<int> served{0};
  std::vector<int> order(5, -1);
  int64_t queued = 0;
  for (int i = 0; i < 5; ++i) {
    // Large and small requests: a small one does not overtake.
    const uint64_t bytes = i % 2 == 0 ? 80'000 : 1'000;
    takes.push_back(std::async(std::launch::async, [&, i, bytes] {
      const Status status = bucket.Take(bytes);
      order[static_cast<size_t>(i)] = served++;
      return status;
    }));
    queued += static_cast<int64_t>(bytes);
    // The request is in the queue once the delay includes its bytes.
    while (bucket.DelayFor(0).count() < queued) {
      std::this_thread::yield();
    }
  }
  for (size_t i = 0; i < takes.size(); ++i) {
    const int64_t bytes = i % 2 == 0 ? 80'000 : 1'000;
    for (size_t later = i; later < takes.size(); ++later) {
      REQUIRE_FALSE(IsReady(takes[later]));
    }
    clock.Advance(microseconds(bytes));
    REQUIRE_OK(takes[i].get());
    REQUIRE(order[i] == static_cast<int>(i));
  }
}

TEST_CASE("TokenBucket applies a new rate while a request waits", "[wire]") {
  for (const uint64_t rate : {uint64_t{0}, uint64_t{1} << 50}) {
    TokenBucket bucket(1'000'000);
    REQUIRE_OK(bucket.Take(1ull << 40));  // takes days
    const microseconds debt = bucket.DelayFor(0);
    REQUIRE(debt > std::chrono::hours(24));
    auto take = std::async(std::launch::async,
                           [&] { return bucket.Take(1ull << 38); });
    while (bucket.DelayFor(0) <= debt) {
      std::this_thread::yield();
    }
    bucket.SetRate(rate);
    REQUIRE(bucket.bytes_per_sec() == rate);
    REQUIRE(take.wait_for(std::chrono::seconds(60)) ==
            std::future_status::ready);
    REQUIRE_OK(take.get());
  }
}

TEST_CASE("TokenBucket wakes all waiting requests on Close", "[wire]") {
  TokenBucket bucket(1'000'000);
  REQUIRE_OK(bucket.Take(1ull << 40));
  const microseconds debt = bucket.DelayFor(0);
  std::vector<std::future<Status>> takes;
  for (int i = 0; i < 4; ++i) {
    takes.push_back(std::async(std::launch::async,
                               [&] { return bucket.Take(1ull << 38); }));
  }
  while (bucket.DelayFor(0) < debt + microseconds(3ll << 38)) {
    std::this_thread::yield();
  }
  bucket.Close();
  for (auto& take : takes) {
    const Status status = take.get();
    REQUIRE(status.IsAborted());
    REQUIRE(EndStateOf(status) == EndState::kCancelled);
  }
  REQUIRE(bucket.Take(1).IsAborted());
}

TEST_CASE("TokenBucket keeps its rate in real time", "[wire]") {
  // Only a lower bound of the time is checked: it holds on a busy machine, too.
  TokenBucket bucket(20'000'000);
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 100; ++i) {
    REQUIRE_OK(bucket.Take(120'000));
  }
  const double seconds = std::chrono::duration<double>(
                             std::chrono::steady_clock::now() - start)
                             .count();
  REQUIRE(seconds > 0.6 * 0.95);
}

}  // namespace
}  // namespace sstferry::token_bucket_test
