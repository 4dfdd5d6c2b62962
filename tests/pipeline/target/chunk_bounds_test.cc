// Which chunks of a range may come, and where they may lie.
#include "pipeline/pull/chunk_check.h"
#include "tests/support/catch.h"

namespace sstferry {
namespace {

struct Case {
  PullState state;
  Range range;
  KeyInterval part;

  explicit Case(const KeyInterval& interval,
                const rocksdb::Comparator* order =
                    rocksdb::BytewiseComparator())
      : part(interval) {
    state.refreshes = true;
    state.families.push_back({order, 5});
    range.interval = interval;
  }
  bool Lies(ChunkKind kind, const std::string& smallest,
            const std::string& largest, uint64_t ordinal = 0,
            const std::string& before = "") {
    JournalChunk record;
    record.kind = kind;
    record.chunk.ordinal = static_cast<uint32_t>(ordinal);
    record.chunk.smallest = smallest;
    record.chunk.largest = largest;
    return CheckChunkBounds(state, range, part, ordinal, before, record).ok();
  }
  bool May(ChunkKind kind, bool as_delta, uint64_t ordinal = 0,
           bool whole = false) {
    ChunkBegin begin;
    begin.kind = kind;
    begin.ordinal = static_cast<uint32_t>(ordinal);
    return CheckTurn(state, range, begin, ordinal, as_delta, whole).ok();
  }
};

TEST_CASE("A chunk lies inside of its range, behind the one before",
          "[target][bounds]") {
  Case at({"b", "y"});
  REQUIRE(at.Lies(ChunkKind::kRebuilt, "b", "x"));
  REQUIRE_FALSE(at.Lies(ChunkKind::kRebuilt, "a", "x"));
  REQUIRE_FALSE(at.Lies(ChunkKind::kRebuilt, "b", "y"));
  REQUIRE_FALSE(at.Lies(ChunkKind::kRebuilt, "d", "c"));
  REQUIRE(at.Lies(ChunkKind::kRebuilt, "d", "x", 1, "c"));
  REQUIRE_FALSE(at.Lies(ChunkKind::kRebuilt, "c", "x", 1, "c"));
  Case reverse({"y", "b"}, rocksdb::ReverseBytewiseComparator());
  REQUIRE(reverse.Lies(ChunkKind::kRebuilt, "y", "c"));
  REQUIRE_FALSE(reverse.Lies(ChunkKind::kRebuilt, "y", "b"));
}

TEST_CASE("A delta lies inside of the part that it was asked for",
          "[target][bounds]") {
  Case at({"b", "y"});
  at.part = {"f", "m"};
  REQUIRE(at.Lies(ChunkKind::kDelta, "f", "l", 3, "z"));
  REQUIRE_FALSE(at.Lies(ChunkKind::kDelta, "e", "l"));
  REQUIRE_FALSE(at.Lies(ChunkKind::kDelta, "f", "m"));
  Case open({std::nullopt, std::nullopt});
  REQUIRE(open.Lies(ChunkKind::kDelta, "", "zzz"));
}

TEST_CASE("A chunk is of the kind that was asked for, and a delta the only one",
          "[target][bounds]") {
  Case at({"b", "y"});
  REQUIRE(at.May(ChunkKind::kRebuilt, /*as_delta=*/false));
  REQUIRE(at.May(ChunkKind::kRebuilt, false, 1));
  REQUIRE_FALSE(at.May(ChunkKind::kRebuilt, /*as_delta=*/true));
  REQUIRE(at.May(ChunkKind::kDelta, true));
  REQUIRE(at.May(ChunkKind::kDelta, true, 2));  // of a later part
  REQUIRE_FALSE(at.May(ChunkKind::kDelta, true, 1, /*whole=*/true));
  REQUIRE_FALSE(at.May(ChunkKind::kDelta, /*as_delta=*/false));
  REQUIRE_FALSE(at.May(ChunkKind::kCloned, true));
}

}  // namespace
}  // namespace sstferry
