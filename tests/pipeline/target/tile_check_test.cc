// Where chunks of a refresh must lie, so that nothing old stays between them.
#include "pipeline/target/lane/tile_check.h"

#include "tests/support/catch.h"
#include "tests/support/named_comparator.h"

namespace sstferry {
namespace {

const std::string kNul(1, '\0');

struct Case {
  PullState state;
  Range range;

  explicit Case(const KeyInterval& interval,
                const rocksdb::Comparator* order =
                    rocksdb::BytewiseComparator()) {
    state.replaces = true;
    state.families.push_back({order, 5, "f", "t"});
    range.interval = interval;
  }
  bool Takes(const std::string& smallest, const std::string& largest,
             uint64_t ordinal = 0, const TileEnd& before = {}) {
    ChunkEnd chunk;
    chunk.ordinal = static_cast<uint32_t>(ordinal);
    chunk.smallest = smallest;
    chunk.largest = largest;
    chunk.clears = clears;
    chunk.deletes_last = deletes_last;
    chunk.entries = entries;
    JournalChunk record;
    record.chunk = chunk;
    return CheckChunkBounds(state, range, ordinal, before, record).ok();
  }
  bool Ends(uint64_t chunks, const TileEnd& last) {
    return CheckCleared(state, range, chunks, last).ok();
  }
  bool clears = true;
  bool deletes_last = false;
  uint64_t entries = 0;
};

TileEnd Behind(const std::string& key) { return {key, false}; }
TileEnd RightBefore(const std::string& key) { return {key, true}; }

TEST_CASE("The first chunk of a refresh begins where its range does",
          "[target][tile]") {
  Case bounded({"b", "y" + kNul});
  REQUIRE(bounded.Takes("b", "k"));
  REQUIRE_FALSE(bounded.Takes("c", "k"));
  REQUIRE_FALSE(bounded.Takes("a", "k"));
  Case open({std::nullopt, std::nullopt});
  REQUIRE(open.Takes("f", "k"));
  REQUIRE(open.Takes("a", "k"));
  REQUIRE_FALSE(open.Takes("g", "k"));  // the target holds "f"
  open.state.families[0].first.reset();
  REQUIRE(open.Takes("g", "k"));
}

TEST_CASE("A chunk of a refresh begins right behind the one before",
          "[target][tile]") {
  Case bytewise({std::nullopt, std::nullopt});
  REQUIRE(bytewise.Takes("k" + kNul, "m", 1, Behind("k")));
  REQUIRE_FALSE(bytewise.Takes("k", "m", 1, Behind("k")));
  REQUIRE_FALSE(bytewise.Takes("l", "m", 1, Behind("k")));
  REQUIRE(bytewise.Takes("k", "m", 1, RightBefore("k")));
  REQUIRE_FALSE(bytewise.Takes("k" + kNul, "m", 1, RightBefore("k")));
  Case reverse({std::nullopt, std::nullopt},
               rocksdb::ReverseBytewiseComparator());
  REQUIRE(reverse.Takes("k", "b", 1, Behind("k" + kNul)));
  REQUIRE_FALSE(reverse.Takes("j", "b", 1, Behind("k" + kNul)));
  REQUIRE(reverse.Takes("j", "b", 1, RightBefore("j")));
}

TEST_CASE("A chunk of a refresh ends inside its range and clears it",
          "[target][tile]") {
  Case at({"b", "y"});
  REQUIRE(at.Takes("b", "y"));  // before "y"
  REQUIRE_FALSE(at.Takes("b", "b"));
  at.deletes_last = true;
  REQUIRE_FALSE(at.Takes("b", "y"));
  REQUIRE(at.Takes("b", "x"));
  REQUIRE_FALSE(at.Takes("b", "z"));
  at.clears = false;
  REQUIRE_FALSE(at.Takes("b", "x"));
  REQUIRE(at.Takes("b", "b"));
  at.entries = 1;
  REQUIRE_FALSE(at.Takes("b", "b"));
  at.entries = 0;
  at.state.replaces = false;  // a seed deletes nothing
  REQUIRE_FALSE(at.Takes("b", "b"));
  at.deletes_last = false;
  REQUIRE(at.Takes("b", "x"));
  at.clears = true;
  REQUIRE_FALSE(at.Takes("b", "x"));
}

TEST_CASE("A value outside of a range deletion is taken only where none could "
          "reach behind it",
          "[target][tile]") {
  const sstferry::test::NamedComparator own("test.own");
  const KeyInterval open;
  const auto takes = [](const rocksdb::Comparator* order,
                        const KeyInterval& interval, const std::string& key,
                        uint64_t entries) {
    Case lone(interval, order);
    lone.state.families[0].first.reset();
    lone.clears = false;
    lone.entries = entries;
    return lone.Takes(key, key);
  };
  REQUIRE_FALSE(takes(rocksdb::BytewiseComparator(), open, "k", 1));
  REQUIRE_FALSE(takes(rocksdb::BytewiseComparator(), open, "", 1));
  REQUIRE_FALSE(takes(rocksdb::ReverseBytewiseComparator(), open, "k", 1));
  REQUIRE(takes(rocksdb::ReverseBytewiseComparator(), open, "", 1));
  REQUIRE(takes(&own, open, "k", 1));
  REQUIRE_FALSE(takes(&own, open, "k", 0));
  REQUIRE_FALSE(takes(&own, open, "k", 2));
  REQUIRE_FALSE(takes(&own, {"k", "m"}, "k", 1));
  Case closed(open, &own);
  closed.deletes_last = true;
  REQUIRE_FALSE(closed.Takes("b", "k"));  // nothing is known to come behind
}

TEST_CASE("A range of a refresh ends only when all of it was replaced",
          "[target][tile]") {
  Case closed({"b", "y" + kNul});
  REQUIRE(closed.Ends(2, Behind("y")));
  REQUIRE(closed.Ends(2, RightBefore("y" + kNul)));
  REQUIRE_FALSE(closed.Ends(2, RightBefore("y")));
  REQUIRE_FALSE(closed.Ends(2, Behind("x")));
  REQUIRE_FALSE(closed.Ends(0, {}));
  Case half_open({"b", "y"});
  REQUIRE(half_open.Ends(1, RightBefore("y")));
  REQUIRE_FALSE(half_open.Ends(1, Behind("y")));
  REQUIRE_FALSE(half_open.Ends(1, Behind("x")));
  Case open({"b", std::nullopt});
  REQUIRE(open.Ends(1, Behind("t")));
  REQUIRE_FALSE(open.Ends(1, RightBefore("t")));
  REQUIRE(open.Ends(1, RightBefore("z")));
  REQUIRE_FALSE(open.Ends(1, Behind("s")));  // the target's "t" would live on
  REQUIRE_FALSE(open.Ends(0, {}));
  Case behind({"u", std::nullopt});
  REQUIRE(behind.Ends(0, {}));  // the target has nothing there
}

}  // namespace
}  // namespace sstferry
