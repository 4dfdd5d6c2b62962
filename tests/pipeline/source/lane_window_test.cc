#include "pipeline/source/lane_window.h"

#include <rapidcheck.h>

#include "pipeline/source/frame_list.h"
#include "tests/support/catch.h"

namespace sstferry {
namespace {

TEST_CASE("LaneWindow gives back every byte that was not acknowledged",
          "[source][lane]") {
  REQUIRE(rc::check([] {
    LaneWindow window;
    std::string all;
    std::vector<uint64_t> begins;
    for (int chunk = 0; chunk < 2; ++chunk) {
      window.Clear();
      all.clear();
      begins.clear();
      const auto sizes = *rc::gen::container<std::vector<uint16_t>>(
          rc::gen::inRange<uint16_t>(1, 2000));
      for (const uint16_t size : sizes) {
        const std::string piece(size, static_cast<char>(size));
        begins.push_back(all.size());
        all += piece;
        window.Add(piece);
        if (size % 3 == 0) {
          window.Acknowledge(*rc::gen::inRange<uint64_t>(0, all.size() + 1));
        }
      }
      RC_ASSERT(window.end() == all.size());
      for (const uint64_t begin : begins) {
        if (begin >= window.begin()) {
          const rocksdb::Slice piece = window.At(begin);
          RC_ASSERT(all.compare(begin, piece.size(), piece.ToString()) == 0);
        }
      }
    }
  }));
}

TEST_CASE("LaneWindow keeps a piece of which a part was acknowledged",
          "[source][lane]") {
  LaneWindow window;
  window.Add("abc");
  window.Add("defg");
  window.Acknowledge(6);
  REQUIRE(window.begin() == 3);
  REQUIRE(window.At(3).ToString() == "defg");
  window.Acknowledge(7);
  REQUIRE(window.begin() == 7);
}

TEST_CASE("LaneWindow has room for 8 MiB and no more", "[source][lane]") {
  LaneWindow window;
  const std::string piece(1u << 20, 'x');
  for (int i = 0; i < 8; ++i) {
    REQUIRE(window.HasRoom(piece.size()));
    window.Add(piece);
  }
  REQUIRE_FALSE(window.HasRoom(1));
  window.Acknowledge(1u << 20);
  REQUIRE(window.HasRoom(piece.size()));
}

TEST_CASE("FrameList goes on from any frame and from nowhere else",
          "[source][lane]") {
  FrameList frames;
  for (uint64_t i = 1; i <= 4; ++i) {
    frames.Add(100 + i, 10 * i);
  }
  REQUIRE(frames.bytes() == 100);
  REQUIRE(frames.EndsAt(0, 0));
  REQUIRE(frames.EndsAt(2, 30));
  REQUIRE_FALSE(frames.EndsAt(2, 29));
  REQUIRE_FALSE(frames.EndsAt(5, 100));
  frames.Truncate(2);
  frames.Add(7, 1);
  ChunkDigest expected;
  for (const uint64_t digest : {101, 102, 7}) {
    expected.AddFrame(digest);
  }
  REQUIRE(frames.Digest() == expected.Finish());
}

}  // namespace
}  // namespace sstferry
