// Random histories of a source, with refreshes of a target that has a history
// and writers of its own. Some refreshes crash and are run again.
// (tests/support/random_histories.h explains the environment variables.)
#include <rapidcheck.h>
#include <signal.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>

#include "pipeline/base/rocksdb_compat.h"
#include "pipeline/disk/durable.h"
#include "pipeline/pull/pull_identity.h"
#include "tests/support/catch.h"
#include "tests/support/played_history.h"
#include "tests/support/power_loss_file_system.h"
#include "tests/support/process.h"
#include "tests/support/random_histories.h"
#include "tests/support/refreshed.h"
#include "tests/support/sample_database.h"

namespace sstferry::test::refresh_history_test {
namespace {

namespace fs = std::filesystem;

struct Crash {
  // The number of the fault point at which the run crashes. Counts from the
  // start of the run or, with is_late, from the point at which it has received
  // everything.
  uint32_t at;
  bool is_late;
};

struct Night {
  std::vector<Step> source;
  std::vector<Step> target;  // writes that sstferry does not know about
  PullMode mode;
  uint32_t most_point_deletions;  // index into kMost: few to many
  bool compacts;      // has no effect on a swap
  bool is_unsynced;   // has an effect only on a swap
  bool verifies_first;  // --verify in the runs that crash
  bool verifies;
  uint32_t lanes;
  uint32_t chunk_bytes;
  uint32_t compact_from;  // above 700: the source is not compacted
  std::vector<Crash> crashes;
  bool loses_power;       // otherwise the process is killed
  std::vector<Step> meddled;  // steps at the target after each crash
};

struct World {
  bool single_deletes;  // the source's application uses SingleDelete
  std::vector<uint32_t> kinds;
  std::vector<Step> past;  // the target's history; none: a seed
  std::vector<Night> nights;
};

uint32_t MostPointDeletions(const Night& night) {
  constexpr uint32_t kMost[] = {1, 3, 20, 10'000};
  return kMost[night.most_point_deletions];
}

void showValue(const Night& night, std::ostream& os) {
  os << "\n night mode " << PullModeName(night.mode)
     << " most_point_deletions " << MostPointDeletions(night)
     << " compacts " << night.compacts << " is_unsynced " << night.is_unsynced
     << " verifies " << night.verifies_first << night.verifies << " lanes "
     << night.lanes << " chunk_bytes " << night.chunk_bytes << " compact from "
     << night.compact_from << " loses_power " << night.loses_power
     << " crashes";
  for (const Crash& crash : night.crashes) {
    os << " " << crash.at << (crash.is_late ? " late" : "");
  }
  os << "\n  source";
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
  os << "single_deletes " << world.single_deletes << " kinds";
  for (const uint32_t kind : world.kinds) os << " " << kind;
  os << " past";
  for (const Step& step : world.past) {
    os << " ";
    showValue(step, os);
  }
  for (const Night& night : world.nights) showValue(night, os);
}

void LeaveOutSingleDeletes(std::vector<Step>* steps) {
  for (Step& step : *steps) {
    step.act = step.act == Act::kPutOnce        ? Act::kPut
               : step.act == Act::kSingleDelete ? Act::kDelete
                                                : step.act;
  }
}

rc::Gen<std::vector<Step>> TargetSteps() {
  return rc::gen::map(rc::gen::container<std::vector<Step>>(StepGen()),
                      [](std::vector<Step> steps) {
                        LeaveOutSingleDeletes(&steps);
                        return steps;
                      });
}

rc::Gen<std::vector<Crash>> CrashesGen() {
  const auto crash = rc::gen::build<Crash>(
      rc::gen::set(&Crash::at,  // all numbers, in small worlds, too
                   rc::gen::resize(100, rc::gen::inRange<uint32_t>(1, 45))),
      rc::gen::set(&Crash::is_late, rc::gen::arbitrary<bool>()));
  const auto some = [crash](size_t count) {
    return rc::gen::container<std::vector<Crash>>(count, crash);
  };
  return rc::gen::oneOf(some(0), some(1), some(2));
}

rc::Gen<Night> NightGen() {
  using rc::gen::inRange;
  return rc::gen::build<Night>(
      rc::gen::set(
          &Night::source,
          rc::gen::oneOf(rc::gen::just(std::vector<Step>()),
                         rc::gen::container<std::vector<Step>>(StepGen()))),
      rc::gen::set(
          &Night::target,
          rc::gen::oneOf(rc::gen::just(std::vector<Step>()), TargetSteps())),
      rc::gen::set(&Night::mode,
                   rc::gen::weightedElement<PullMode>(
                       {{2, PullMode::kRefresh}, {1, PullMode::kSwap}})),
      rc::gen::set(&Night::most_point_deletions, inRange<uint32_t>(0, 4)),
      rc::gen::set(&Night::compacts, rc::gen::arbitrary<bool>()),
      rc::gen::set(&Night::is_unsynced, rc::gen::arbitrary<bool>()),
      rc::gen::set(&Night::verifies_first, rc::gen::arbitrary<bool>()),
      rc::gen::set(&Night::verifies, rc::gen::arbitrary<bool>()),
      rc::gen::set(&Night::lanes, inRange<uint32_t>(1, 5)),
      rc::gen::set(&Night::chunk_bytes, inRange<uint32_t>(64 << 10, 200 << 10)),
      rc::gen::set(&Night::compact_from, inRange<uint32_t>(0, 1400)),
      rc::gen::set(&Night::crashes, CrashesGen()),
      rc::gen::set(&Night::loses_power, rc::gen::arbitrary<bool>()),
      rc::gen::set(
          &Night::meddled,
          rc::gen::oneOf(rc::gen::just(std::vector<Step>()), TargetSteps())));
}

// Changes refreshes in place to swaps where only a swap can succeed.
World Possible(World world) {
  const bool swaps_only =
      world.single_deletes ||
      (!kUniversalIngestsOverData &&
       std::count(world.kinds.begin(), world.kinds.end(), kUniversalKind) > 0);
  for (Night& night : world.nights) {
    night.mode = swaps_only ? PullMode::kSwap : night.mode;
    if (!world.single_deletes) {
      LeaveOutSingleDeletes(&night.source);
    }
  }
  return world;
}

rc::Gen<World> WorldGen() {
  using rc::gen::inRange;
  const auto kind = inRange<uint32_t>(0, kKinds);
  const auto night = NightGen();
  const auto world = rc::gen::build<World>(
      rc::gen::set(&World::single_deletes,
                   rc::gen::weightedElement<bool>({{1, true}, {7, false}})),
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
  return rc::gen::map(world, Possible);
}

bool IsSwap(const Night& night) { return night.mode == PullMode::kSwap; }

// The file that lists the hook calls, in order.
std::string CallsPath(const std::string& dir) { return dir + "/calls"; }

void NoteCalls(const std::string& dir, PullOptions* options) {
  const auto note = [path = CallsPath(dir)](const char* call) {
    std::ofstream(path, std::ios::app) << call;
    return rocksdb::Status::OK();
  };
  options->before_swap = [note](const SwapEvent&) { return note("stop "); };
  options->after_swap = [note](const SwapEvent&) { return note("start "); };
}

PullOptions OptionsOf(const Night& night, const std::string& dir, bool adopt) {
  PullOptions options;
  options.method = PullMethod::kIngest;
  options.mode = PullMode::kRefresh;
  options.source.directory = dir + "/source";
  options.target_dir = dir + "/root/target";
  options.adopt = adopt;
  // After a crash, the source keeps the snapshot. Otherwise any snapshot is a
  // leak.
  options.snapshot_ttl = std::chrono::seconds(night.crashes.empty() ? 0 : 3600);
  options.mode = night.mode;
  options.verify = night.verifies;
  options.most_point_deletions = MostPointDeletions(night);
  options.compact = night.compacts;
  options.lanes = night.lanes;
  options.chunk_bytes = night.chunk_bytes;
  options.registry.comparators = {ByLengthComparator()};
  if (IsSwap(night)) {
    options.durability =
        night.is_unsynced ? Durability::kNone : Durability::kChunk;
    options.delete_rate_bytes_per_sec = 6'553'600;  // in pieces of 128 KiB
    NoteCalls(dir, &options);
  }
  return options;
}

struct Counts {
  uint64_t refreshes = 0;
  uint64_t sent = 0;
  uint64_t unchanged = 0;
  uint64_t compared = 0;
  uint64_t crashes = 0;
  uint64_t resumed = 0;
  uint64_t range_deletions = 0;
  uint64_t swaps = 0;  // not counted above
  uint64_t swaps_crashed = 0;
  uint64_t swaps_met = 0;  // crashed while the application was stopped
  uint64_t swaps_resumed = 0;
};

using Contents = std::vector<std::map<std::string, std::string>>;

// Returns the contents by family, or nullopt if the directory does not exist.
std::optional<Contents> ContentsOf(const std::string& path,
                                   const Families& families) {
  if (!fs::exists(path)) {
    return std::nullopt;
  }
  Contents contents;
  for (const auto& family : families) {
    contents.emplace_back();
    for (auto& [key, value] : EntriesOf(path, families, family.name)) {
      contents.back()[key] = value;
    }
  }
  return contents;
}

// Requires that nothing was exchanged before the application was stopped, and
// that the application is started only on the new database after that. The
// first call may belong to the run before.
void RequireAsServed(std::string calls, const std::optional<Contents>& found,
                     const std::optional<Contents>& before,
                     const Contents& after) {
  if (calls.starts_with("start ")) {
    calls.erase(0, strlen("start "));
  }
  RC_ASSERT((calls.empty() || calls == "stop " || calls == "stop start "));
  RC_ASSERT((!calls.empty() || found == before));
  RC_ASSERT((calls != "stop start " || found == after));
}

constexpr int kCrashed = 99;

void BootFor(const Night& night, size_t run) {
  TEST_SetBootId(night.loses_power ? "boot " + std::to_string(run) : "");
}

uint64_t Setting(const char* name) {
  const char* const text = getenv(name);
  return text == nullptr ? 0 : strtoull(text, nullptr, 10);
}

// Returns true if the run crashed. The next run detects any other end.
bool Crashes(const Night& night, size_t run, const std::string& dir,
             bool adopt) {
  const Crash& crash = night.crashes[run];
  const auto number = [](uint64_t value) { return std::to_string(value); };
  Process child(
      CaseOfThisProgram("child: a refresh that crashes"),
      {{"SSTFERRY_TEST_DIR", dir},
       {"SSTFERRY_TEST_RUN", number(run)},
       {"SSTFERRY_TEST_CRASH_AT", number(crash.at)},
       {"SSTFERRY_TEST_IS_LATE", number(crash.is_late)},
       {"SSTFERRY_TEST_LOSES_POWER", number(night.loses_power)},
       {"SSTFERRY_TEST_MODE", number(static_cast<uint64_t>(night.mode))},
       {"SSTFERRY_TEST_MOST_POINT_DELETIONS",
        number(night.most_point_deletions)},
       {"SSTFERRY_TEST_COMPACTS", number(night.compacts)},
       {"SSTFERRY_TEST_IS_UNSYNCED", number(night.is_unsynced)},
       {"SSTFERRY_TEST_VERIFIES", number(night.verifies_first)},
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

// Returns and removes the list of hook calls. If an earlier run exchanged the
// directories but did not start the application, the first call must start it.
std::string TakeCalls(const ScratchDir& dir, bool owes_start) {
  const std::string calls = BytesOf(CallsPath(dir.path()));
  fs::remove(CallsPath(dir.path()));
  RC_ASSERT((!owes_start || calls.empty() || calls.starts_with("start ")));
  return calls;
}

void RunAndCrash(const ScratchDir& dir, const Night& night, size_t run,
                 const Families& families, bool adopt, bool* owes_start,
                 Counts* counts) {
  const std::string target = dir / "root/target";
  const std::optional<Contents> before = ContentsOf(target, families);
  if (!Crashes(night, run, dir.path(), adopt)) {
    TakeCalls(dir, *owes_start);
    *owes_start = false;
    return;
  }
  const std::optional<Contents> found = ContentsOf(target, families);
  const Contents after = *ContentsOf(dir / "source", families);
  // TARGET_DIR exists at every moment, as either the old or the new database.
  RC_ASSERT((found == before || found == after));
  if (!IsSwap(night)) {
    counts->crashes++;
    return;
  }
  const std::string calls = TakeCalls(dir, *owes_start);
  RequireAsServed(calls, found, before, after);
  if (!calls.empty()) {
    *owes_start = calls.ends_with("stop ") && found != before;
  }
  counts->swaps_crashed++;
  counts->swaps_met += calls.find("stop ") != std::string::npos;
}

void Count(const Night& night, const Summary& summary, Counts* counts) {
  if (IsSwap(night)) {
    counts->swaps++;
    counts->swaps_resumed += summary.chunks_resumed;
    return;
  }
  counts->refreshes++;
  counts->sent += summary.parts_sent;
  counts->unchanged += summary.parts_unchanged;
  counts->compared += summary.parts_compared;
  counts->resumed += summary.chunks_resumed;
}

// Requires that the target is complete and that nothing is left, not even the
// replaced database. `first`: the target was built without a database there; a
// later one begins with links to it.
void RequireDone(const ScratchDir& dir, const Night& night,
                 const Families& families, bool first, bool owes_start,
                 bool held_the_same) {
  Expectation expected;
  expected.families = families;
  expected.is_refreshed = !first;
  if (IsSwap(night)) {
    ExpectEqual(dir / "source", dir / "root/target", expected);
    // If nothing changed, the application need not be stopped.
    const std::string calls = TakeCalls(dir, owes_start);
    RC_ASSERT((calls.ends_with("stop start ") ||
               (held_the_same && calls == (owes_start ? "start " : ""))));
  } else {
    ExpectSameEntries(dir / "source", dir / "root/target", expected);
  }
  RC_ASSERT(NamesOf(dir / "root") == std::vector<std::string>{"target"});
}

// Writes more than any target's application does in a night, but changes no
// entry: a target with more writes than its source would not be replaced.
void PassTarget(Player* source) {
  rocksdb::WriteBatch batch;
  for (int i = 0; i < 20'000; ++i) {
    REQUIRE_OK(batch.Delete("none"));
  }
  source->While([&batch](OpenDb* db) {
    REQUIRE_OK((*db)->Write(rocksdb::WriteOptions(), &batch));
  });
}

void PlayNight(const ScratchDir& dir, const Night& night, Player* source,
               Player* target, bool first, bool has_past, Counts* counts) {
  source->Play(night.source);
  if (night.compact_from <= 700) {
    source->CompactPart(night.compact_from);
  }
  const bool seeds = first && !has_past;
  if (!seeds) {
    target->Play(night.target);
    PassTarget(source);
  }
  const PullOptions options = OptionsOf(night, dir.path(), first);
  bool owes_start = false;  // the application of a swap must be started
  for (size_t run = 0; run < night.crashes.size(); ++run) {
    RunAndCrash(dir, night, run, source->families(), first, &owes_start,
                counts);
    if (fs::exists(options.target_dir) && !night.meddled.empty()) {
      target->Play(night.meddled);
      PassTarget(source);
    }
  }
  BootFor(night, night.crashes.size());
  const bool held_the_same =
      ContentsOf(options.target_dir, source->families()) ==
      ContentsOf(dir / "source", source->families());
  Ferried ended;
  ended.status = MakePull(options)->Run(&ended.summary);
  TEST_SetBootId("");
  if (!ended.status.ok()) {
    RC_FAIL(ended.message());
  }
  Count(night, ended.summary, counts);
  counts->range_deletions +=
      IngestedRangeDeletions(options.target_dir, source->families());
  RC_ASSERT((ended.summary.verified || !night.verifies));
  RequireDone(dir, night, source->families(), first, owes_start,
              held_the_same);
}

}  // namespace

TEST_CASE("child: a refresh that crashes", "[.child]") {
  const char* const dir = getenv("SSTFERRY_TEST_DIR");
  if (dir == nullptr) {
    return;
  }
  Night night;
  const Crash crash = {
      static_cast<uint32_t>(Setting("SSTFERRY_TEST_CRASH_AT")),
      Setting("SSTFERRY_TEST_IS_LATE") != 0};
  night.crashes = {crash};
  night.loses_power = Setting("SSTFERRY_TEST_LOSES_POWER") != 0;
  BootFor(night, Setting("SSTFERRY_TEST_RUN"));
  night.mode = static_cast<PullMode>(Setting("SSTFERRY_TEST_MODE"));
  night.most_point_deletions = Setting("SSTFERRY_TEST_MOST_POINT_DELETIONS");
  night.compacts = Setting("SSTFERRY_TEST_COMPACTS") != 0;
  night.is_unsynced = Setting("SSTFERRY_TEST_IS_UNSYNCED") != 0;
  night.verifies = Setting("SSTFERRY_TEST_VERIFIES") != 0;
  night.lanes = Setting("SSTFERRY_TEST_LANES");
  night.chunk_bytes = Setting("SSTFERRY_TEST_CHUNK_BYTES");
  PullOptions options =
      OptionsOf(night, dir, Setting("SSTFERRY_TEST_ADOPT") != 0);
  std::shared_ptr<PowerLossFileSystem> power;
  if (night.loses_power) {
    power = std::make_shared<PowerLossFileSystem>(std::string(dir) + "/root");
    options.file_system = power;
  }
  std::atomic<bool> counts = !crash.is_late;
  std::atomic<uint32_t> left{crash.at};
  TEST_SetFaultHook([&](const std::string& name) {
    if (name == "Puller:TotalsAgreed") {
      counts = true;
    }
    if (!counts || --left != 0) {
      return;
    }
    if (power == nullptr) {
      raise(SIGKILL);
    }
    power->LosePowerAndExit(Survival::kRandom, crash.at, kCrashed);
  });
  Summary summary;
  MakePull(options)->Run(&summary).PermitUncheckedError();
  TEST_SetFaultHook(nullptr);
}

TEST_CASE("A target with its own history equals the source after a refresh, "
          "also after crashes",
          "[transfer][refresh]") {
  const int worlds = HistoryCount(40);
  Counts counts;
  const auto play = [&] {
    const World world = *WorldGen();
    const ScratchDir dir;
    fs::create_directory(dir / "root");
    Player source(dir / "source", world.kinds);
    Player target(dir / "root/target", world.kinds);
    if (!world.past.empty()) {
      target.Play(world.past);
    }
    for (size_t i = 0; i < world.nights.size(); ++i) {
      PlayNight(dir, world.nights[i], &source, &target, i == 0,
                !world.past.empty(), &counts);
    }
  };
  const bool received = CheckHistories("a refresh leaves the source's entries",
                                   worlds, 100, play);
  std::cerr << counts.refreshes << " refreshes: " << counts.sent
            << " parts sent, " << counts.unchanged << " unchanged, "
            << counts.compared << " compared, " << counts.range_deletions
            << " tables with range deletions ingested, " << counts.crashes
            << " crashes, " << counts.resumed << " chunks resumed; "
            << counts.swaps << " swaps: "
            << counts.swaps_crashed << " crashes, " << counts.swaps_met
            << " while the application was stopped or later, "
            << counts.swaps_resumed << " chunks resumed\n";
  REQUIRE(received);
  REQUIRE(counts.sent > 0);
  REQUIRE(counts.unchanged > 0);
  REQUIRE(counts.compared > 0);
  REQUIRE(counts.crashes > 0);
  REQUIRE(counts.swaps > 0);
  REQUIRE((worlds < 100 || counts.swaps_met > 0));
  REQUIRE((worlds < 400 ||
           (counts.range_deletions > 0 && counts.resumed > 0)));
}

}  // namespace sstferry::test::refresh_history_test
