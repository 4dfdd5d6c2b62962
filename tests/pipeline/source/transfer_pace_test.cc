#include "pipeline/source/transfer/transfer_pace.h"

#include <atomic>
#include <thread>
#include <vector>

#include "tests/support/catch.h"

namespace sstferry {
namespace {

TEST_CASE("Transfers share a rate by bytes, however many lanes they have",
          "[source][share]") {
  ServerShares shares(20'000'000, 1u << 20);
  TransferPace few(&shares);
  TransferPace many(&shares);
  std::atomic<uint64_t> sent_few{0};
  std::atomic<uint64_t> sent_many{0};
  std::vector<std::thread> lanes;
  const auto start = [&](TransferPace* pace, std::atomic<uint64_t>* sent,
                         uint64_t frame_bytes) {
    lanes.emplace_back([pace, sent, frame_bytes] {
      while (pace->TakeFromAll(frame_bytes).ok()) {
        *sent += frame_bytes;
      }
    });
  };
  start(&few, &sent_few, 256u << 10);
  for (int i = 0; i < 8; ++i) {
    start(&many, &sent_many, 1u << 20);
  }
  while (sent_few + sent_many < 16'000'000) {
    std::this_thread::yield();
  }
  shares.wire_bucket()->Close();
  for (std::thread& lane : lanes) {
    lane.join();
  }
  // Frames of 1 MiB that are under way are not counted yet.
  REQUIRE(sent_few > 6'000'000);
  REQUIRE(sent_many > 6'000'000);
}

}  // namespace
}  // namespace sstferry
