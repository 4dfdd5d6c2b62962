// The kinds and the bounds that the target accepts of a part's next chunk.
#include "pipeline/pull/chunk_check.h"
#include "tests/support/catch.h"

namespace sstferry::chunk_bounds_test {
namespace {

struct Case {
  LaneShared state;
  Part part;
  KeyInterval piece;

  explicit Case(const KeyInterval& interval,
                const rocksdb::Comparator* order =
                    rocksdb::BytewiseComparator())
      : piece(interval) {
    state.families.push_back({order, 5});
    part.interval = interval;
  }
  bool Lies(PartKind kind, const std::string& smallest,
            const std::string& largest, uint64_t ordinal = 0,
            const std::string& before = "") {
    JournalChunk record;
    record.kind = kind;
    record.chunk.ordinal = static_cast<uint32_t>(ordinal);
    record.chunk.smallest = smallest;
    record.chunk.largest = largest;
    return CheckChunkBounds(state, part, piece, ordinal, before, record).ok();
  }
  bool May(PartKind kind, bool as_delta, uint64_t ordinal = 0,
           bool whole = false) {
    ChunkBegin begin;
    begin.kind = kind;
    begin.ordinal = static_cast<uint32_t>(ordinal);
    return CheckTurn(state, part, begin, ordinal, as_delta, whole).ok();
  }
};

TEST_CASE("A chunk must be inside its part, after the previous chunk",
          "[target][bounds]") {
  Case at({"b", "y"});
  REQUIRE(at.Lies(PartKind::kRebuilt, "b", "x"));
  REQUIRE_FALSE(at.Lies(PartKind::kRebuilt, "a", "x"));
  REQUIRE_FALSE(at.Lies(PartKind::kRebuilt, "b", "y"));
  REQUIRE_FALSE(at.Lies(PartKind::kRebuilt, "d", "c"));
  REQUIRE(at.Lies(PartKind::kRebuilt, "d", "x", 1, "c"));
  REQUIRE_FALSE(at.Lies(PartKind::kRebuilt, "c", "x", 1, "c"));
  Case reverse({"y", "b"}, rocksdb::ReverseBytewiseComparator());
  REQUIRE(reverse.Lies(PartKind::kRebuilt, "y", "c"));
  REQUIRE_FALSE(reverse.Lies(PartKind::kRebuilt, "y", "b"));
}

TEST_CASE("A delta must be inside the piece for which it was requested",
          "[target][bounds]") {
  Case at({"b", "y"});
  at.piece = {"f", "m"};
  REQUIRE(at.Lies(PartKind::kDelta, "f", "l", 3, "z"));
  REQUIRE_FALSE(at.Lies(PartKind::kDelta, "e", "l"));
  REQUIRE_FALSE(at.Lies(PartKind::kDelta, "f", "m"));
  Case open({std::nullopt, std::nullopt});
  REQUIRE(open.Lies(PartKind::kDelta, "", "zzz"));
}

TEST_CASE(
    "A chunk must have the requested kind, and a delta must be the only one",
    "[target][bounds]") {
  Case at({"b", "y"});
  REQUIRE(at.May(PartKind::kRebuilt, /*as_delta=*/false));
  REQUIRE(at.May(PartKind::kRebuilt, false, 1));
  REQUIRE_FALSE(at.May(PartKind::kRebuilt, /*as_delta=*/true));
  REQUIRE(at.May(PartKind::kDelta, true));
  REQUIRE(at.May(PartKind::kDelta, true, 2));  // for a later piece
  REQUIRE_FALSE(at.May(PartKind::kDelta, true, 1, /*whole=*/true));
  REQUIRE_FALSE(at.May(PartKind::kDelta, /*as_delta=*/false));
  REQUIRE_FALSE(at.May(PartKind::kUnit, true));
}

}  // namespace
}  // namespace sstferry::chunk_bounds_test
