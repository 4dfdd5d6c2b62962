#include "tests/crash/crash_world.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <mutex>
#include <set>

#include "pipeline/disk/durable.h"
#include "pipeline/pull/pull_identity.h"
#include "sstferry/target.h"
#include "tests/support/catch.h"
#include "tests/support/compacted.h"
#include "tests/support/power_loss_file_system.h"
#include "tests/support/process.h"
#include "tests/support/sample_database.h"
#include "tests/support/test_db.h"

namespace sstferry {
namespace {

namespace fs = std::filesystem;
constexpr int kCrashed = 99;
constexpr int kKilled = 128 + SIGKILL;
// A refresh that crashes prints this when its source may remove the snapshot.
constexpr char kMayLetGo[] = "the refresh is recorded\n";

std::string Setting(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool Refreshes(Scenario scenario) { return scenario == Scenario::kInPlace; }

bool Clones(Scenario scenario) {
  return scenario == Scenario::kClone || scenario == Scenario::kCloneUnsynced ||
         scenario == Scenario::kCloneSwap ||
         scenario == Scenario::kCloneRefresh;
}

bool Defers(Scenario scenario) {
  return scenario == Scenario::kUnsynced ||
         scenario == Scenario::kCloneUnsynced;
}

// Sets units of 128 KiB, so that some files have several.
void MakeClone(PullOptions* options) {
  options->method = PullMethod::kClone;
  options->chunk_bytes = 64 << 10;
}

bool Links(Scenario scenario) { return scenario == Scenario::kLinkedSwap; }

bool Swaps(Scenario scenario) {
  return scenario == Scenario::kSwap || scenario == Scenario::kSwapFirst ||
         scenario == Scenario::kSwapOwed || scenario == Scenario::kCloneSwap ||
         Links(scenario);
}

bool Exchanges(Scenario scenario) {
  return Swaps(scenario) || scenario == Scenario::kCloneRefresh;
}

// Returns true for scenarios that replace a database.
bool HasOld(Scenario scenario) {
  return Exchanges(scenario) && scenario != Scenario::kSwapFirst;
}

// Returns true for scenarios that link files of that database.
bool Reuses(Scenario scenario) {
  return scenario == Scenario::kCloneSwap ||
         scenario == Scenario::kCloneRefresh;
}

// Sets a swap whose hooks record in a file that the application is stopped and
// started.
void MakeSwap(const std::string& hooks, PullOptions* options) {
  const auto note = [hooks](const char* line) {
    std::ofstream(hooks, std::ios::app) << line << "\n";
    return rocksdb::Status::OK();
  };
  options->mode = PullMode::kSwap;
  options->adopt = true;
  options->delete_rate_bytes_per_sec = 3'276'800;  // deletes 64 KiB at a time
  options->before_swap = [note](const SwapEvent&) { return note("stop"); };
  options->after_swap = [note](const SwapEvent&) { return note("start"); };
}

// Makes files in the last level and some that overlap.
void MakeSource(const std::string& path) {
  const test::Families families = test::OneFamily(test::SmallFiles());
  test::OpenDb db(path, families);
  test::FillCompacted(&db, 0, 1200);
  for (int round = 0; round < 2; ++round) {
    for (uint64_t i = 0; i < 400; ++i) {
      db.Put(test::NumberedKey(5000 + 2 * i + round % 2),
             test::RandomBytes(1000, i));
    }
    db.Flush();
  }
}

// Names of the application's files.
constexpr char kTheirs[] = "application.json";  // the source's
constexpr char kOwn[] = "own.txt";              // the replaced replica's
constexpr fs::perms kOwnMode{0751};

// Deletes keys, the last ones among them, and adds new ones.
void ChangeSource(const std::string& path) {
  test::OpenDb db(path, test::OneFamily(test::SmallFiles()));
  // Each change is in a file of its own.
  db.DeleteRange(test::NumberedKey(100), test::NumberedKey(140));
  db.Flush();
  for (uint64_t i = 5600; i < 5800; ++i) {
    db.Delete(test::NumberedKey(i));
  }
  db.Flush();
  for (uint64_t i = 300; i < 500; ++i) {
    db.Put(test::NumberedKey(i), test::RandomBytes(1000, i));
  }
  db.Flush();
}

// Sets a refresh by files of a database without a record of its source. With
// --adopt alone, it would be refreshed in place.
void MakeCloneRefresh(PullOptions* options) {
  options->mode = PullMode::kRefresh;
  options->adopt = true;
  options->delete_rate_bytes_per_sec = 3'276'800;  // deletes 64 KiB at a time
}

// Sets a refresh in place in which a few deletions become a range deletion.
void MakeInPlace(PullOptions* options) {
  options->mode = PullMode::kRefresh;
  options->most_point_deletions = 20;
}

// Returns true if the crash table promises that recorded chunks are not sent
// again.
bool HoldsChunks(Scenario scenario, const Crash& crash) {
  static const std::set<std::string> points = {
      "Ingestor:JournalSynced",   "Ingestor:Ingested",
      "Puller:TotalsAgreed",
      "Puller:DatabaseClosed",    "Puller:DatabaseSynced",
      "Puller:SummaryWritten",    "Workspace:ExchangeRecorded",
      "JournalFile:TailCut",      "Puller:StagedIngested",
      "UnitStore:RecordsSynced",  "FinishClone:OptionsWritten",
      "FinishClone:ManifestWritten", "CloneTarget:CurrentWritten",
      "Puller:BeforeSwapDone"};
  // The plan of a refresh ends with the process of its source, unless
  // everything has been received.
  const bool is_left =
      !Links(scenario) || crash.point != "Ingestor:JournalSynced";
  return !Refreshes(scenario) && is_left && points.count(crash.point) != 0 &&
         (!Defers(scenario) || crash.how == "kill");
}

void MakeOld(const std::string& path) {
  SampleShape shape;
  shape.entries = 20;
  shape.value_bytes = 30'000;
  MakeSampleDatabase(path, shape);
  WriteBytes(path + "/" + kOwn, "own");
  fs::permissions(path + "/" + kOwn, kOwnMode);
}

}  // namespace

TEST_CASE("child: a pull that crashes", "[.child]") {
  const std::string point = Setting("SSTFERRY_TEST_POINT");
  if (point.empty()) {
    return;
  }
  PullOptions options;
  options = PullFrom(Setting("SSTFERRY_TEST_SOURCE"),
                     Setting("SSTFERRY_TEST_ROOT") + "/target");
  options.snapshot_ttl = std::chrono::hours(1);
  options.restart = Setting("SSTFERRY_TEST_RESTART") == "yes";
  options.durability = Setting("SSTFERRY_TEST_DURABILITY") == "none"
                           ? Durability::kNone
                           : Durability::kChunk;
  if (Setting("SSTFERRY_TEST_MODE") == "in place") {
    MakeInPlace(&options);
  }
  if (Setting("SSTFERRY_TEST_MODE") == "clone refresh") {
    MakeCloneRefresh(&options);
  }
  if (Setting("SSTFERRY_TEST_METHOD") == "clone") {
    MakeClone(&options);
  }
  if (!Setting("SSTFERRY_TEST_HOOKS").empty()) {
    MakeSwap(Setting("SSTFERRY_TEST_HOOKS"), &options);
    options.keeps_old = Setting("SSTFERRY_TEST_MODE") == "linked swap";
    options.adopt = !options.keeps_old;
  }
  const std::string how = Setting("SSTFERRY_TEST_HOW");
  const uint64_t seed = std::stoull(Setting("SSTFERRY_TEST_SEED"));
  std::shared_ptr<PowerLossFileSystem> power;
  if (how != "kill") {
    power = std::make_shared<PowerLossFileSystem>(
        Setting("SSTFERRY_TEST_ROOT"));
    options.file_system = power;
  }
  std::atomic<uint64_t> left{std::stoull(Setting("SSTFERRY_TEST_NTH"))};
  TEST_SetFaultHook([&](const std::string& name) {
    if (name == "Refresh:SummaryWritten") {
      std::cout << kMayLetGo << std::flush;
    }
    if (name != point || --left != 0) {
      return;
    }
    if (power == nullptr) {
      raise(SIGKILL);
    }
    power->LosePowerAndExit(
        how == "random" ? Survival::kRandom : Survival::kNothing, seed,
        kCrashed);
  });
  REQUIRE_OK(RunPull(options).status);
}

std::string ToString(const Crash& crash) {
  return crash.point + " hit " + std::to_string(crash.nth) + " " + crash.how +
         " seed " + std::to_string(crash.seed);
}

CrashWorld::CrashWorld() {
  MakeSource(source());
  WriteBytes(source() + "/" + kTheirs, std::string(300'000, 'x'));
  REQUIRE_OK(RunPull(PullFrom(source(), dir_ / "replica")).status);
  before_ = EntriesOf(source());
  fs::copy(source(), dir_ / "older", fs::copy_options::recursive);
  ChangeSource(source());
  MakeOld(dir_ / "old");
}

PullOptions CrashWorld::Options(Scenario scenario) const {
  PullOptions options = PullFrom(source(), target());
  options.snapshot_ttl = std::chrono::hours(1);
  if (Refreshes(scenario)) {
    MakeInPlace(&options);
  }
  if (scenario == Scenario::kCloneRefresh) {
    MakeCloneRefresh(&options);
  }
  options.restart = scenario == Scenario::kRestart;
  options.durability =
      Defers(scenario) ? Durability::kNone : Durability::kChunk;
  if (Clones(scenario)) {
    MakeClone(&options);
  }
  if (Swaps(scenario)) {
    MakeSwap(hooks(), &options);
    options.keeps_old = Links(scenario);
    options.adopt = !options.keeps_old;
  }
  return options;
}

void CrashWorld::Prepare(Scenario scenario) {
  fs::remove_all(root());
  fs::create_directory(root());
  fs::remove(hooks());
  if (HasOld(scenario)) {
    fs::copy(OldOf(scenario), target(), fs::copy_options::recursive);
  }
  if (Refreshes(scenario)) {
    fs::copy(dir_ / "replica", target(), fs::copy_options::recursive);
  }
  if (scenario == Scenario::kAgain || scenario == Scenario::kRestart) {
    REQUIRE(Die(Scenario::kFresh, {"Ingestor:Ingested", 1, "kill", 1}));
    std::ofstream(root() + "/target.sstferry/journal", std::ios::app)
        << "torn";
  } else if (scenario == Scenario::kSwapOwed) {
    REQUIRE(Die(scenario, {"Workspace:Exchanged", 1, "kill", 1}));
  }
}

std::map<std::string, uint64_t> CrashWorld::CountHits(Scenario scenario) {
  Prepare(scenario);
  std::mutex mu;
  std::map<std::string, uint64_t> hits;
  TEST_SetFaultHook([&](const std::string& name) {
    std::lock_guard<std::mutex> lock(mu);
    hits[name]++;
  });
  const Summary summary = RunPull(Options(scenario));
  TEST_SetFaultHook(nullptr);
  REQUIRE_OK(summary.status);
  if (Clones(scenario)) {
    const bool reuses = Reuses(scenario);
    REQUIRE((summary.files_reused > 0) == reuses);
    REQUIRE((reuses || summary.chunks_cloned > summary.files_cloned));
    return hits;
  }
  const bool sends_changes = Refreshes(scenario) || Links(scenario);
  REQUIRE((summary.chunks_delta > 0) == sends_changes);
  REQUIRE((summary.chunks_built > 0) != sends_changes);
  REQUIRE((summary.files_reused > 0) == Links(scenario));
  return hits;
}

bool CrashWorld::Die(Scenario scenario, const Crash& crash) {
  const PullOptions options = Options(scenario);
  Process child(
      CaseOfThisProgram("child: a pull that crashes"),
      {{"SSTFERRY_TEST_POINT", crash.point},
       {"SSTFERRY_TEST_NTH", std::to_string(crash.nth)},
       {"SSTFERRY_TEST_HOW", crash.how},
       {"SSTFERRY_TEST_SEED", std::to_string(crash.seed)},
       {"SSTFERRY_TEST_SOURCE", source()},
       {"SSTFERRY_TEST_ROOT", root()},
       {"SSTFERRY_TEST_RESTART", options.restart ? "yes" : "no"},
       {"SSTFERRY_TEST_MODE",
        Refreshes(scenario) || Links(scenario) || Reuses(scenario)
            ? NameOf(scenario)
            : "pull"},
       {"SSTFERRY_TEST_METHOD", Clones(scenario) ? "clone" : "ingest"},
       {"SSTFERRY_TEST_HOOKS", Swaps(scenario) ? hooks() : ""},
       {"SSTFERRY_TEST_DURABILITY",
        options.durability == Durability::kNone ? "none" : "chunk"}});
  const int code = child.Wait();
  child_output_ = child.out() + child.err();
  INFO(child_output_);
  REQUIRE((code == 0 || code == (crash.how == "kill" ? kKilled : kCrashed)));
  return code != 0;
}

bool CrashWorld::PullAndCrash(Scenario scenario, const Crash& crash) {
  Prepare(scenario);
  return Die(scenario, crash);
}

void CrashWorld::RequireTargetWhole(Scenario scenario, const Crash& crash) {
  INFO(child_output_);
  static const std::set<std::string> after = {
      "Workspace:Exchanged",   "Workspace:Published",
      "Workspace:PartRemoved", "Puller:AfterSwapDone",
      "Workspace:OldRetired",  "PacedRemoval:Entering",
      "Workspace:OldKept",
      "PacedRemoval:FileCut",
      "PacedRemoval:FileRemoved"};
  const bool published =
      after.count(crash.point) != 0 || scenario == Scenario::kSwapOwed;
  if (!fs::exists(target())) {
    REQUIRE_FALSE(published);
    REQUIRE_FALSE(HasOld(scenario));
    return;
  }
  const auto entries = EntriesOf(target());
  const bool is_new = entries == EntriesOf(source());
  if (Refreshes(scenario)) {
    REQUIRE((is_new || entries == before_));
    return;
  }
  const bool was_there = HasOld(scenario);
  REQUIRE((is_new || (was_there && !published &&
                      entries == EntriesOf(OldOf(scenario)))));
}

void CrashWorld::RequireNextPullCompletes(Scenario scenario,
                                          const Crash& crash) {
  INFO(child_output_);
  PullOptions options = Options(scenario);
  options.restart = false;
  TEST_SetBootId(crash.how == "kill" ? "" : "the next one");
  const Summary summary = RunPull(options);
  TEST_SetBootId("");
  INFO(summary.status.ToString());
  // The message says "is complete", or "is not empty" if the workspace was
  // almost removed.
  const bool was_complete = EndStateOf(summary.status) == EndState::kRefused &&
                            NextOf(summary.status).starts_with(
                                "sstferry refresh ");
  REQUIRE((summary.status.ok() || (was_complete && !Exchanges(scenario))));
  if (summary.status.ok() && HoldsChunks(scenario, crash)) {
    REQUIRE(summary.chunks_resumed > 0);
  }
  if (summary.status.ok() && Reuses(scenario)) {
    REQUIRE(summary.files_reused > 0);
  }
  test::Expectation expected;
  expected.families = test::OneFamily(test::SmallFiles());
  if (Refreshes(scenario) || Clones(scenario) || Links(scenario)) {
    test::ExpectSameEntries(source(), target(), expected);
  } else {
    test::ExpectEqual(source(), target(), expected);
  }
  REQUIRE(BytesOf(target() + "/" + kTheirs) ==
          BytesOf(source() + "/" + kTheirs));
  if (scenario == Scenario::kSwap || scenario == Scenario::kSwapOwed) {
    REQUIRE(BytesOf(target() + "/" + kOwn) == "own");
    REQUIRE(fs::status(target() + "/" + kOwn).permissions() == kOwnMode);
  }
  if (Links(scenario)) {
    Summary removed;
    REQUIRE_OK(MakeOldRemoval(options, 1)->Run(&removed));
    const std::vector<std::string> old = NamesOf(root());
    REQUIRE(old.size() == 2);
    REQUIRE(old.back().starts_with("target.old-"));
    REQUIRE_OK(MakeOldRemoval(options, 0)->Run(&removed));
  }
  REQUIRE(NamesOf(root()) == std::vector<std::string>{"target"});
  // A pull that was killed before it had recorded its request, or that was
  // dropped, leaves a snapshot. The snapshot's lease ends it.
  for (const std::string& name : NamesOf(dir_.path())) {
    if (name.find(".sstferry-snapshot-") != std::string::npos) {
      INFO(name << " after " << crash.point);
      // An exchange releases its source before the application is stopped, and
      // a refresh in place before it compacts. After that, the source may be
      // removing the snapshot.
      const bool let_go = Exchanges(scenario) ||
                          child_output_.find(kMayLetGo) != std::string::npos;
      REQUIRE((let_go || fs::exists(dir_ / (name + "/lease"))));
      fs::remove_all(dir_ / name);
    }
  }
  if (Swaps(scenario)) {
    RequireServed();
  }
  REQUIRE(NamesOf(dir_.path()) ==
          std::vector<std::string>{"disk", "old", "older", "replica",
                                   "source"});
}

// Requires that the last hook call was "start", and that the pull that
// completed the crashed one called both hooks.
void CrashWorld::RequireServed() {
  const std::string calls = BytesOf(hooks());
  INFO(calls);
  fs::remove(hooks());
  REQUIRE(calls.size() >= std::string("stop\nstart\n").size());
  REQUIRE(calls.substr(calls.size() - 6) == "start\n");
}

}  // namespace sstferry
