// Random histories of a source, with refreshes of a target that has a past and
// writers of its own.
//
// SSTFERRY_HISTORIES  how many (default 40)
// RC_PARAMS           rapidcheck's own, "seed=..." above all
#include <rapidcheck.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "pipeline/rocksdb_compat.h"
#include "tests/support/catch.h"
#include "tests/support/played_history.h"
#include "tests/support/refreshed.h"

namespace sstferry::test {
namespace {

struct Night {
  std::vector<Step> source;
  std::vector<Step> target;  // nobody's business
  bool by_chunk;
  uint32_t compare;  // of 8: 0 full, 1 digest
  bool compacts;
  uint32_t lanes;
  uint32_t chunk_bytes;
  uint32_t compact_from;  // above 700: the source is not compacted
};

struct World {
  std::vector<uint32_t> kinds;
  std::vector<Step> past;  // of the target; none: the first night seeds it
  std::vector<Night> nights;
};

void showValue(const Night& night, std::ostream& os) {
  os << "\n night by_chunk " << night.by_chunk << " compare " << night.compare
     << " compacts " << night.compacts << " lanes " << night.lanes
     << " chunk_bytes " << night.chunk_bytes << " compact from "
     << night.compact_from << "\n  source";
  for (const Step& step : night.source) {
    os << " ";
    showValue(step, os);
  }
  os << "\n  target";
  for (const Step& step : night.target) {
    os << " ";
    showValue(step, os);
  }
}

void showValue(const World& world, std::ostream& os) {
  os << "kinds";
  for (const uint32_t kind : world.kinds) os << " " << kind;
  os << " past";
  for (const Step& step : world.past) {
    os << " ";
    showValue(step, os);
  }
  for (const Night& night : world.nights) showValue(night, os);
}

// A refresh may replace what a single delete counts on.
rc::Gen<std::vector<Step>> TargetSteps() {
  return rc::gen::map(
      rc::gen::container<std::vector<Step>>(StepGen()),
      [](std::vector<Step> steps) {
        for (Step& step : steps) {
          step.act = step.act == Act::kPutOnce        ? Act::kPut
                     : step.act == Act::kSingleDelete ? Act::kDelete
                                                      : step.act;
        }
        return steps;
      });
}

rc::Gen<World> WorldGen() {
  using rc::gen::inRange;
  const auto night = rc::gen::build<Night>(
      rc::gen::set(&Night::source,
                   rc::gen::oneOf(
                       rc::gen::just(std::vector<Step>()),
                       rc::gen::container<std::vector<Step>>(StepGen()))),
      rc::gen::set(&Night::target, rc::gen::oneOf(
                                       rc::gen::just(std::vector<Step>()),
                                       TargetSteps())),
      rc::gen::set(&Night::by_chunk, rc::gen::arbitrary<bool>()),
      rc::gen::set(&Night::compare, inRange<uint32_t>(0, 8)),
      rc::gen::set(&Night::compacts, rc::gen::arbitrary<bool>()),
      rc::gen::set(&Night::lanes, inRange<uint32_t>(1, 5)),
      rc::gen::set(&Night::chunk_bytes,
                   inRange<uint32_t>(64 << 10, 200 << 10)),
      rc::gen::set(&Night::compact_from, inRange<uint32_t>(0, 1400)));
  const auto kind =
      rc::gen::suchThat(inRange<uint32_t>(0, kKinds), [](uint32_t made) {
        return made != kUniversalKind || kUniversalIngestsOverData;
      });
  return rc::gen::build<World>(
      rc::gen::set(&World::kinds,
                   rc::gen::mapcat(inRange<size_t>(1, 4),
                                   [kind](size_t count) {
                                     return rc::gen::container<
                                         std::vector<uint32_t>>(count, kind);
                                   })),
      rc::gen::set(&World::past,
                   rc::gen::oneOf(rc::gen::just(std::vector<Step>()),
                                  TargetSteps())),
      rc::gen::set(&World::nights,
                   rc::gen::mapcat(inRange<size_t>(1, 4), [night](size_t n) {
                     return rc::gen::container<std::vector<Night>>(n, night);
                   })));
}

PullOptions OptionsOf(const Night& night) {
  PullOptions options;
  options.visibility = night.by_chunk ? Visibility::kChunk : Visibility::kAll;
  options.compare = night.compare == 0   ? CompareMode::kFull
                    : night.compare == 1 ? CompareMode::kDigest
                                         : CompareMode::kFiles;
  options.compact = night.compacts;
  options.lanes = night.lanes;
  options.chunk_bytes = night.chunk_bytes;
  options.registry.comparators = {ByLengthComparator()};
  return options;
}

// The empty key in an order of the application's.
bool IsBeyondRefresh(const Ferried& ended) {
  return ended.state() == EndState::kRefused &&
         ended.message().find("the empty key") != std::string::npos;
}

int Worlds() {
  const char* text = getenv("SSTFERRY_HISTORIES");
  return text == nullptr ? 40 : std::max(1, atoi(text));
}

struct Counts {
  uint64_t refreshes = 0;
  uint64_t sent = 0;
  uint64_t unchanged = 0;
  uint64_t compared = 0;
  uint64_t carried = 0;
  uint64_t beyond = 0;
};

void PlayNight(const TempDir& dir, const Night& night, Player* source,
               Player* target, bool first, bool has_past, Counts* counts) {
  source->Play(night.source);
  if (night.compact_from <= 700) {
    source->CompactPart(night.compact_from);
  }
  const bool seeds = first && !has_past;
  if (!seeds) {
    target->Play(night.target);
  }
  PullOptions options = OptionsOf(night);
  options.adopt = first;
  const Ferried ended = Refresh(dir / "source", dir / "target", options);
  if (!seeds && IsBeyondRefresh(ended)) {
    counts->beyond++;
    RC_DISCARD("the empty key");
  }
  if (!ended.status.ok()) {
    RC_FAIL(ended.message());
  }
  counts->refreshes++;
  counts->sent += ended.summary.ranges_sent;
  counts->unchanged += ended.summary.ranges_unchanged;
  counts->compared += ended.summary.ranges_compared;
  counts->carried += seeds ? 0 : ended.summary.chunks_carried;
  Expectation expected;
  expected.families = source->families();
  ExpectSameEntries(dir / "source", dir / "target", expected);
  RC_ASSERT(!std::filesystem::exists(dir / "target.sstferry"));
}

}  // namespace

TEST_CASE("A target with a past of its own equals the source after a refresh",
          "[transfer][refresh]") {
  const std::string parameters =
      "max_success=" + std::to_string(Worlds()) + " max_size=100 " +
      (getenv("RC_PARAMS") == nullptr ? "" : getenv("RC_PARAMS"));
  REQUIRE(setenv("RC_PARAMS", parameters.c_str(), 1) == 0);
  Counts counts;
  const bool held = rc::check("a refresh leaves the source's entries", [&] {
    const World world = *WorldGen();
    const TempDir dir;
    Player source(dir / "source", world.kinds);
    Player target(dir / "target", world.kinds);
    if (!world.past.empty()) {
      target.Play(world.past);
    }
    for (size_t i = 0; i < world.nights.size(); ++i) {
      PlayNight(dir, world.nights[i], &source, &target, i == 0,
                !world.past.empty(), &counts);
    }
  });
  std::cerr << counts.refreshes << " refreshes: " << counts.sent
            << " ranges sent, " << counts.unchanged << " unchanged, "
            << counts.compared << " compared, " << counts.carried
            << " chunks carried, " << counts.beyond << " given up\n";
  REQUIRE(held);
  REQUIRE(counts.sent > 0);
  REQUIRE(counts.unchanged > 0);
  REQUIRE(counts.compared > 0);
  // Few worlds may have no file that can be carried.
  REQUIRE((Worlds() < 400 || counts.carried > 0));
}

}  // namespace sstferry::test
