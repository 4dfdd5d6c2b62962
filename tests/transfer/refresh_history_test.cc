// Random histories of a source, with refreshes of a target that has a past and
// writers of its own; some crash on the way, and are run again.
//
// SSTFERRY_HISTORIES  how many (default 40)
// RC_PARAMS           rapidcheck's own, "seed=..." above all
#include <rapidcheck.h>
#include <signal.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>

#include "pipeline/rocksdb_compat.h"
#include "pipeline/target/durable.h"
#include "pipeline/target/pull_identity.h"
#include "tests/support/catch.h"
#include "tests/support/played_history.h"
#include "tests/support/power_loss_file_system.h"
#include "tests/support/process.h"
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
  uint32_t crash_at;      // the fault point that is met so late; 0: none
  bool loses_power;       // else it is killed
  std::vector<Step> meddled;  // at the target, after a crash
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
     << night.compact_from << " crash_at " << night.crash_at
     << " loses_power " << night.loses_power << "\n  source";
  for (const Step& step : night.source) {
    os << " ";
    showValue(step, os);
  }
  os << "\n  target";
  for (const Step& step : night.target) {
    os << " ";
    showValue(step, os);
  }
  os << "\n  meddled";
  for (const Step& step : night.meddled) {
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
      rc::gen::set(&Night::compact_from, inRange<uint32_t>(0, 1400)),
      rc::gen::set(&Night::crash_at,
                   rc::gen::oneOf(rc::gen::just(uint32_t{0}),
                                  inRange<uint32_t>(1, 40))),
      rc::gen::set(&Night::loses_power, rc::gen::arbitrary<bool>()),
      rc::gen::set(&Night::meddled,
                   rc::gen::oneOf(rc::gen::just(std::vector<Step>()),
                                  TargetSteps())));
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

PullOptions OptionsOf(const Night& night, const std::string& dir, bool adopt) {
  PullOptions options;
  options.mode = PullMode::kRefresh;
  options.source.directory = dir + "/source";
  options.target_dir = dir + "/root/target";
  options.adopt = adopt;
  // Of a crashed one the source keeps its snapshot; else leaks must show.
  options.snapshot_ttl = std::chrono::seconds(night.crash_at > 0 ? 3600 : 0);
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
  uint64_t crashes = 0;
  uint64_t resumed = 0;
  uint64_t beyond = 0;
};

using Contents = std::vector<std::map<std::string, std::string>>;

// By family; nothing of a directory that is not there.
Contents ContentsOf(const std::string& path, const Families& families) {
  Contents contents;
  for (const auto& family : families) {
    contents.emplace_back();
    if (!std::filesystem::exists(path)) {
      continue;
    }
    for (auto& [key, value] : EntriesOf(path, families, family.name)) {
      contents.back()[key] = value;
    }
  }
  return contents;
}

std::optional<std::string> ValueOf(
    const std::map<std::string, std::string>& entries,
    const std::string& key) {
  const auto found = entries.find(key);
  return found == entries.end() ? std::nullopt
                                : std::optional(found->second);
}

// Of the keys of `keys`.
bool IsOldOrNew(const std::map<std::string, std::string>& keys,
                const std::map<std::string, std::string>& found,
                const std::map<std::string, std::string>& before,
                const std::map<std::string, std::string>& after) {
  return std::all_of(keys.begin(), keys.end(), [&](const auto& entry) {
    const auto value = ValueOf(found, entry.first);
    return value == ValueOf(before, entry.first) ||
           value == ValueOf(after, entry.first);
  });
}

void RequireOldOrNew(const Night& night, const Contents& found,
                     const Contents& before, const Contents& after) {
  if (!night.by_chunk) {
    RC_ASSERT((found == before || found == after));
    return;
  }
  for (size_t i = 0; i < found.size(); ++i) {
    for (const auto* keys : {&found[i], &before[i], &after[i]}) {
      RC_ASSERT(IsOldOrNew(*keys, found[i], before[i], after[i]));
    }
  }
}

constexpr int kCrashed = 99;

uint64_t Setting(const char* name) {
  const char* const text = getenv(name);
  return text == nullptr ? 0 : strtoull(text, nullptr, 10);
}

// Returns whether it crashed; what it came to else, the next run finds out.
bool Crash(const Night& night, const std::string& dir, bool adopt) {
  const auto number = [](uint64_t value) { return std::to_string(value); };
  Process child(CaseOfThisProgram("child: a refresh that crashes"),
                {{"SSTFERRY_TEST_DIR", dir},
                 {"SSTFERRY_TEST_CRASH_AT", number(night.crash_at)},
                 {"SSTFERRY_TEST_LOSES_POWER", number(night.loses_power)},
                 {"SSTFERRY_TEST_BY_CHUNK", number(night.by_chunk)},
                 {"SSTFERRY_TEST_COMPARE", number(night.compare)},
                 {"SSTFERRY_TEST_COMPACTS", number(night.compacts)},
                 {"SSTFERRY_TEST_LANES", number(night.lanes)},
                 {"SSTFERRY_TEST_CHUNK_BYTES", number(night.chunk_bytes)},
                 {"SSTFERRY_TEST_ADOPT", number(adopt)}});
  const int code = child.Wait();
  const bool crashed = code == kCrashed || code == 128 + SIGKILL;
  if (!crashed && code != 0) {
    RC_FAIL(child.out() + child.err());
  }
  return crashed;
}

void CrashFirst(const TempDir& dir, const Night& night,
                const Families& families, bool adopt, Counts* counts) {
  const std::string target = dir / "root/target";
  const Contents before = ContentsOf(target, families);
  if (!Crash(night, dir.path(), adopt)) {
    return;
  }
  counts->crashes++;
  RequireOldOrNew(night, ContentsOf(target, families), before,
                  ContentsOf(dir / "source", families));
}

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
  const PullOptions options = OptionsOf(night, dir.path(), first);
  if (night.crash_at > 0) {
    CrashFirst(dir, night, source->families(), first, counts);
    if (!seeds) {
      target->Play(night.meddled);
    }
    TEST_SetBootId(night.loses_power ? "the next one" : "");
  }
  Ferried ended;
  ended.status = MakePull(options)->Run(&ended.summary);
  TEST_SetBootId("");
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
  counts->resumed += ended.summary.chunks_resumed;
  Expectation expected;
  expected.families = source->families();
  ExpectSameEntries(dir / "source", dir / "root/target", expected);
  RC_ASSERT(!std::filesystem::exists(dir / "root/target.sstferry"));
}

}  // namespace

// Run in a process of its own.
TEST_CASE("child: a refresh that crashes", "[.child]") {
  const char* const dir = getenv("SSTFERRY_TEST_DIR");
  if (dir == nullptr) {
    return;
  }
  Night night;
  night.crash_at = Setting("SSTFERRY_TEST_CRASH_AT");
  night.loses_power = Setting("SSTFERRY_TEST_LOSES_POWER") != 0;
  night.by_chunk = Setting("SSTFERRY_TEST_BY_CHUNK") != 0;
  night.compare = Setting("SSTFERRY_TEST_COMPARE");
  night.compacts = Setting("SSTFERRY_TEST_COMPACTS") != 0;
  night.lanes = Setting("SSTFERRY_TEST_LANES");
  night.chunk_bytes = Setting("SSTFERRY_TEST_CHUNK_BYTES");
  PullOptions options =
      OptionsOf(night, dir, Setting("SSTFERRY_TEST_ADOPT") != 0);
  std::shared_ptr<PowerLossFileSystem> power;
  if (night.loses_power) {
    power = std::make_shared<PowerLossFileSystem>(std::string(dir) + "/root");
    options.file_system = power;
  }
  std::atomic<uint32_t> left{night.crash_at};
  TEST_SetFaultHook([&](const std::string&) {
    if (--left != 0) {
      return;
    }
    if (power == nullptr) {
      raise(SIGKILL);
    }
    power->LosePowerAndExit(Survival::kRandom, night.crash_at, kCrashed);
  });
  Summary summary;
  MakePull(options)->Run(&summary).PermitUncheckedError();
  TEST_SetFaultHook(nullptr);
}

TEST_CASE("A target with a past of its own equals the source after a refresh, "
          "also one that crashed before",
          "[transfer][refresh]") {
  const std::string parameters =
      "max_success=" + std::to_string(Worlds()) + " max_size=100 " +
      (getenv("RC_PARAMS") == nullptr ? "" : getenv("RC_PARAMS"));
  REQUIRE(setenv("RC_PARAMS", parameters.c_str(), 1) == 0);
  Counts counts;
  const bool held = rc::check("a refresh leaves the source's entries", [&] {
    const World world = *WorldGen();
    const TempDir dir;
    std::filesystem::create_directory(dir / "root");
    Player source(dir / "source", world.kinds);
    Player target(dir / "root/target", world.kinds);
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
            << " chunks carried, " << counts.crashes << " crashes, "
            << counts.resumed << " chunks resumed, " << counts.beyond
            << " given up\n";
  REQUIRE(held);
  REQUIRE(counts.sent > 0);
  REQUIRE(counts.unchanged > 0);
  REQUIRE(counts.compared > 0);
  REQUIRE(counts.crashes > 0);
  // Few worlds may have no file that can be carried.
  REQUIRE((Worlds() < 400 || (counts.carried > 0 && counts.resumed > 0)));
}

}  // namespace sstferry::test
