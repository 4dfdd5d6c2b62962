// Random histories over families of many kinds, transferred in random ways and
// compared entry by entry. (tests/support/random_histories.h explains the
// environment variables.)
#include <rapidcheck.h>

#include <iostream>

#include "tests/support/catch.h"
#include "tests/support/played_history.h"
#include "tests/support/random_histories.h"
#include "tests/support/test_db.h"

namespace sstferry::test::random_history_test {
namespace {

struct History {
  std::vector<uint32_t> kinds;  // the families' kinds, default first
  std::vector<Step> steps;
  uint32_t lanes;
  uint32_t chunk_bytes;
  bool tcp;
  bool verify;
  bool no_durability;
  uint32_t compact_from;  // a random part is compacted for the second pull
};

void showValue(const History& history, std::ostream& os) {
  os << "kinds";
  for (const uint32_t kind : history.kinds) os << " " << kind;
  os << " lanes " << history.lanes << " chunk_bytes " << history.chunk_bytes
     << " tcp " << history.tcp << " verify " << history.verify
     << " no durability " << history.no_durability << " compact from "
     << history.compact_from << " steps";
  for (const Step& step : history.steps) {
    os << " ";
    showValue(step, os);
  }
}

rc::Gen<History> HistoryGen() {
  using rc::gen::inRange;
  const auto kinds = rc::gen::mapcat(
      inRange<size_t>(1, 5), [](size_t count) {
        return rc::gen::container<std::vector<uint32_t>>(
            count, inRange<uint32_t>(0, kKinds));
      });
  return rc::gen::build<History>(
      rc::gen::set(&History::kinds, kinds),
      rc::gen::set(&History::steps,
                   rc::gen::container<std::vector<Step>>(StepGen())),
      rc::gen::set(&History::lanes, inRange<uint32_t>(1, 9)),
      rc::gen::set(&History::chunk_bytes,
                   inRange<uint32_t>(64 << 10, 200 << 10)),
      rc::gen::set(&History::tcp, rc::gen::arbitrary<bool>()),
      rc::gen::set(&History::verify, rc::gen::arbitrary<bool>()),
      rc::gen::set(&History::no_durability, rc::gen::arbitrary<bool>()),
      rc::gen::set(&History::compact_from, inRange<uint32_t>(0, 700)));
}

}  // namespace

TEST_CASE("Random histories arrive entry by entry", "[transfer][exact]") {
  uint64_t entries = 0;
  uint64_t chunks = 0;
  uint64_t most_chunks = 0;
  const auto play = [&] {
    const History history = *HistoryGen();
    const ScratchDir dir;
    Player played(dir / "source", history.kinds);
    played.Play(history.steps);
    PullOptions options;
    options.lanes = history.lanes;
    options.chunk_bytes = history.chunk_bytes;
    options.verify = history.verify;
    options.durability =
        history.no_durability ? Durability::kNone : Durability::kChunk;
    options.registry.comparators = {ByLengthComparator()};
    options.method = PullMethod::kIngest;
    // Pulls the source, then pulls it again after a part was compacted, then
    // pulls that replica.
    for (const char* const names : {"source target", "source second",
                                    "second third"}) {
      const std::string text = names;
      const std::string from = dir / text.substr(0, text.find(' '));
      const std::string to = dir / text.substr(text.find(' ') + 1);
      if (text == "source second") {
        played.CompactPart(history.compact_from);
      }
      const Ferried moved = Ferry(
          from, to, options, history.tcp ? Via::kTcp : Via::kDirectory);
      if (!moved.status.ok()) {
        RC_FAIL(moved.message());
      }
      Expectation expected;
      expected.families = played.families();
      ExpectEqual(from, to, expected);
      entries += moved.summary.entries;
      chunks += moved.summary.chunks;
      most_chunks = std::max(most_chunks, moved.summary.chunks);
    }
  };
  const bool received = CheckHistories("a history arrives entry by entry",
                                   HistoryCount(40), 120, play);
  std::cerr << "moved " << entries << " entries in " << chunks
            << " chunks, at most " << most_chunks << " at once\n";
  REQUIRE(received);
  REQUIRE(most_chunks > 4);
}

}  // namespace sstferry::test::random_history_test
