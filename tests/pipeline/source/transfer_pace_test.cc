#include "pipeline/serve/transfer_pace.h"

#include <atomic>
#include <thread>
#include <vector>

#include "tests/support/catch.h"

namespace sstferry::transfer_pace_test {
namespace {

TEST_CASE("Transfers share a rate by bytes, however many lanes they have",
          "[source][share]") {
  constexpr uint64_t kBytes = 4'000'000;
  ServerShares shares(4'000'000);
  TransferPace few(&shares, "");
  TransferPace many(&shares, "");
  std::atomic<uint64_t> sent_few{0};
  std::atomic<uint64_t> sent_many{0};
  std::vector<std::thread> lanes;
  const auto start = [&](TransferPace* pace, std::atomic<uint64_t>* sent,
                         uint64_t frame_bytes) {
    lanes.emplace_back([&, pace, sent, frame_bytes] {
      while (sent_few + sent_many < kBytes &&
             pace->TakeFromAll(frame_bytes).ok()) {
        *sent += frame_bytes;
      }
    });
  };
  start(&few, &sent_few, 64u << 10);
  for (int i = 0; i < 8; ++i) {
    start(&many, &sent_many, 256u << 10);
  }
  for (std::thread& lane : lanes) {
    lane.join();
  }
  // The limit is below one half, because each lane may send one more frame at
  // the end. If lanes had equal shares, `few` would get a ninth.
  REQUIRE(sent_few > kBytes / 4);
  REQUIRE(sent_many > kBytes / 4);
}

}  // namespace
}  // namespace sstferry::transfer_pace_test
