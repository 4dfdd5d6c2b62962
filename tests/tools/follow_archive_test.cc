// sstferry follow into an archive, and restores of points in time, as an
// operator runs them: real processes while an application writes.
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

#include "format/end_state.h"
#include "pipeline/archive/archive.h"
#include "pipeline/archive/log_index.h"
#include "pipeline/archive/open_store.h"
#include "pipeline/archive/push.h"
#include "pipeline/archive/snapshot_source.h"
#include "pipeline/disk/durable.h"
#include "sstferry/archive.h"
#include "tests/support/catch.h"
#include "tests/support/process.h"
#include "tests/support/restored.h"
#include "tests/support/standby_world.h"
#include "tools/sstferry/archive_metrics.h"

namespace sstferry::test::follow_archive_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

json Ran(std::vector<std::string> words, int code = 0) {
  words.push_back("--json");
  return json::parse(OutputOf(words, code));
}

using Words = std::vector<std::string>;

Words operator+(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// Restores ARCHIVE@WHICH and returns the sequence of the restored database.
uint64_t RestoredAt(const StandbyWorld& world, const std::string& archive,
                    const std::string& which, const Words& key) {
  const std::string target = world.root() + "/restored";
  fs::remove_all(target);
  Ran(Words{"pull", archive + "@" + which, target} + key);
  return world.RequirePrefix(target);
}

// Waits until the log restores all that the source has now. Returns the end of
// the newest window.
std::string AwaitLog(const StandbyWorld& world, const std::string& archive,
                     const Words& key) {
  const std::string target = world.root() + "/awaited";
  json list;
  std::string newest;
  const auto has_all = [&] {
    list = Ran(Words{"archive", "list", archive} + key);
    if (list["windows"].empty()) return false;
    newest = list["windows"].back()["end"].get<std::string>();
    fs::remove_all(target);
    Ran(Words{"pull", archive + "@" + newest, target} + key);
    return world.RequirePrefix(target) == world.sequence();
  };
  const bool is_whole = AwaitThat(has_all, std::chrono::minutes(2));
  INFO(list.dump());
  REQUIRE(is_whole);
  return newest;
}

TEST_CASE("A followed archive restores each point in time of its source",
          "[tools][follow]") {
  StandbyWorld world;
  world.Write(50);
  const std::string archive = world.root() + "/archive";
  InitArchive(archive);
  const std::string key_file = world.root() + "/key";
  std::ofstream(key_file) << std::string(64, '7');
  fs::permissions(key_file, fs::perms::owner_read);
  const Words key = {"--key-file", key_file};
  const Words follow =
      Words{"follow", world.source_dir(), archive, "--segment", "100ms"} + key;
  Process follower(Sstferry(follow));
  AwaitLog(world, archive, key);  // the first set
  world.Write(20);
  const uint64_t first = world.sequence();
  const std::string then = AwaitLog(world, archive, key);
  world.source()->Flush();
  world.Write(20);
  AwaitLog(world, archive, key);
  follower.Signal(SIGKILL);
  follower.Wait();
  world.Write(20);
  Process again(Sstferry(follow));
  const std::string now = AwaitLog(world, archive, key);
  again.Signal(SIGTERM);
  REQUIRE(again.Wait() == 0);
  REQUIRE(RestoredAt(world, archive, then, key) == first);
  REQUIRE(RestoredAt(world, archive, now, key) == world.sequence());
  REQUIRE(RestoredAt(world, archive, "sequence:" + std::to_string(first),
                     key) == first);
  // Without the key, check verifies the chain of segments, but pull is refused.
  const json check = Ran({"archive", "check", archive, "--read-data", "100%"});
  REQUIRE(check["segments"] > 0);
  REQUIRE(check["orphan_segments"] == 0);
  REQUIRE(check["sets"].size() == 1);  // the second follower continued the log
  const std::string target = world.root() + "/restored";
  fs::remove_all(target);
  const json drilled =
      Ran(Words{"archive", "check", archive, "--drill", target} + key);
  INFO(drilled.dump());
  REQUIRE(drilled["drill"]["status"] == "OK");
  REQUIRE(drilled["drill"]["time"].is_null());
  REQUIRE(drilled["log_drill"]["status"] == "OK");
  REQUIRE(drilled["log_drill"]["opened"] == true);
  REQUIRE(drilled["log_drill"]["set"] == drilled["sets"][0]["set"]);
  const std::string time = drilled["log_drill"]["time"];
  REQUIRE(drilled["windows"].front()["begin"].get<std::string>() <= time);
  REQUIRE(time <= drilled["windows"].back()["end"].get<std::string>());
  REQUIRE(Ran({"pull", archive + "@" + then, target}, 1)["status"] ==
          "REFUSED");
  REQUIRE_FALSE(fs::exists(target));
  // Removes the first segment of each log.
  std::map<fs::path, fs::path> firsts;  // by the directory of their log
  for (const auto& entry : fs::recursive_directory_iterator(archive + "/wal")) {
    if (entry.is_regular_file()) {
      fs::path& lowest = firsts[entry.path().parent_path()];
      lowest = lowest.empty() ? entry.path() : std::min(lowest, entry.path());
    }
  }
  for (const auto& [log, segment] : firsts) {
    fs::remove(segment);
  }
  const json refused =
      Ran(Words{"pull", archive + "@" + then, target} + key, 1);
  INFO(refused.dump());
  REQUIRE_FALSE(fs::exists(target));
}

TEST_CASE("A follower into an archive waits if the source returned without a "
          "table",
          "[tools][follow]") {
  StandbyWorld world;
  world.Write(50);
  world.source()->Flush();
  world.CloseSource();
  const std::string older = world.root() + "/older";
  fs::copy(world.source_dir(), older, fs::copy_options::recursive);
  std::string table;
  for (const auto& entry : fs::directory_iterator(older)) {
    if (entry.path().extension() == ".sst") table = entry.path().filename();
  }
  REQUIRE(table != "");
  fs::rename(older + "/" + table, world.root() + "/table");
  world.OpenSource();
  const std::string archive = world.root() + "/archive";
  InitArchive(archive);
  Process follower(Sstferry({"follow", world.source_dir(), archive, "--segment",
                             "100ms", "--max-rate", "none"}));
  AwaitLog(world, archive, {});
  world.CloseSource();
  fs::rename(world.source_dir(), world.root() + "/gone");
  fs::rename(older, world.source_dir());
  REQUIRE(follower.WaitForErr(table, std::chrono::seconds(60)));
  fs::rename(world.root() + "/table", world.source_dir() + "/" + table);
  world.OpenSource();
  world.Write(20);
  AwaitLog(world, archive, {});
  follower.Signal(SIGTERM);
  REQUIRE(follower.Wait() == 0);
}

TEST_CASE("A drill confirms that a set equals its log up to that set",
          "[tools][follow]") {
  StandbyWorld world;
  world.Write(50);
  const std::string archive = world.root() + "/archive";
  InitArchive(archive);
  Process follower(Sstferry({"follow", world.source_dir(), archive, "--segment",
                             "100ms", "--cut-every", "1s"}));
  AwaitLog(world, archive, {});
  world.Write(20);
  world.source()->Flush();
  const auto has_sets = [&] {
    world.Write(1);
    return Ran({"archive", "list", archive})["sets"].size() >= 3;
  };
  REQUIRE(AwaitThat(has_sets, std::chrono::minutes(2)));
  world.Write(5);
  AwaitLog(world, archive, {});
  follower.Signal(SIGTERM);
  REQUIRE(follower.Wait() == 0);
  const std::string target = world.root() + "/restored";
  const json drilled = Ran({"archive", "check", archive, "--drill", target});
  INFO(drilled.dump());
  const json& continued = drilled["continued_drill"];
  REQUIRE(continued["status"] == "OK");
  REQUIRE(continued["same_as"] == drilled["drill"]["set"]);
  REQUIRE(continued["set"] != drilled["drill"]["set"]);
  REQUIRE(continued["sequence"] == drilled["drill"]["sequence"]);
  REQUIRE(continued["entries"] == drilled["drill"]["entries"]);
  REQUIRE(continued["entries"] > 0);
  REQUIRE_FALSE(fs::exists(target));
}

TEST_CASE("A drill that ends before it has restored the log is not good",
          "[tools][follow]") {
  using Clock = std::chrono::steady_clock;
  StandbyWorld world;
  world.Write(50);
  const std::string archive = world.root() + "/archive";
  InitArchive(archive);
  Process follower(
      Sstferry({"follow", world.source_dir(), archive, "--segment", "100ms"}));
  AwaitLog(world, archive, {});
  world.Write(20);
  AwaitLog(world, archive, {});
  follower.Signal(SIGTERM);
  REQUIRE(follower.Wait() == 0);
  ArchiveOptions options;
  options.action = ArchiveAction::kCheck;
  options.store.where.directory = archive;
  options.drill_dir = world.root() + "/restored";
  EndState expected = EndState::kOk;
  SECTION("it is stopped") { expected = EndState::kCancelled; }
  SECTION("its deadline passes") {
    expected = EndState::kDeadline;
    options.deadline = std::chrono::seconds(3);
  }
  const Clock::time_point late =
      Clock::now() + options.deadline + std::chrono::seconds(1);
  const std::unique_ptr<ArchiveJob> job = MakeArchiveJob(options);
  ArchiveReport report;
  // Ends the job while it removes the first database, which it has opened.
  TEST_SetFaultHook([&](const std::string& name) {
    if (name != "Workspace:LeftoverRemoved" || !report.drill.has_value() ||
        !report.drill->is_opened) {
      return;
    }
    if (expected == EndState::kCancelled) {
      job->Cancel();
    }
    while (expected == EndState::kDeadline && Clock::now() < late) {
      std::this_thread::yield();
    }
  });
  const rocksdb::Status status = job->Run(&report);
  TEST_SetFaultHook(nullptr);
  INFO(status.ToString());
  REQUIRE(EndStateOf(status) == expected);
  const std::string last =
      "sstferry_archive_last_drill_timestamp_seconds{archive=\"" + archive +
      "\"} 7\n";
  REQUIRE(ArchiveMetricsText(options, report, last).find(last) !=
          std::string::npos);
}

TEST_CASE("A drill reports a set that differs from its log up to that set",
          "[tools][follow]") {
  StandbyWorld world;
  world.Write(50);
  // Copies the source; the copy gets other writes, up to the same sequence.
  world.CloseSource();
  const std::string other = world.root() + "/other";
  fs::copy(world.source_dir(), other);
  world.OpenSource();
  const std::string archive = world.root() + "/archive";
  InitArchive(archive);
  Process follower(
      Sstferry({"follow", world.source_dir(), archive, "--segment", "100ms"}));
  AwaitLog(world, archive, {});
  world.Write(20);
  AwaitLog(world, archive, {});
  follower.Signal(SIGTERM);
  REQUIRE(follower.Wait() == 0);
  {
    OpenDb db(other, {{"default", Quiet()}, {"other", Quiet()}});
    while (db->GetLatestSequenceNumber() < world.sequence()) {
      REQUIRE_OK(db->Put({}, "another history", "x"));
    }
  }
  // Pushes the copy as a set whose record says that the log continues to it.
  StoreOptions where;
  where.where.directory = archive;
  std::unique_ptr<ObjectStore> store;
  REQUIRE_OK(OpenStore(where, &store));
  const Archive opened(store.get());
  ArchiveLog log;
  REQUIRE_OK(ReadLog(opened, &log));
  const LogPath path = FirstPathOf(log, log.sets.at(0).log);
  PushOptions push;
  push.log = {path.segments.back().lineage, path.segments.back().number,
              path.segments.back().end_micros};
  push.next_segment = [&] { return push.log.segment + 1; };
  SnapshotOptions snapshot;
  snapshot.database_dir = other;
  std::unique_ptr<SnapshotSource> source;
  REQUIRE_OK(SnapshotSource::Take(snapshot, &source));
  PushSummary pushed;
  REQUIRE_OK(PushSet(opened, source.get(), push, &pushed));
  const json drilled =
      Ran({"archive", "check", archive, "--drill", world.root() + "/restored"},
          1);
  INFO(drilled.dump());
  REQUIRE(drilled["drill"]["status"] == "OK");
  const json& continued = drilled["continued_drill"];
  REQUIRE(continued["status"] == "CORRUPT");
  REQUIRE(continued["same_as"].is_null());
  const std::string error = continued["error"];
  REQUIRE(error.find("differ, one of the set ") != std::string::npos);
  REQUIRE(error.find("one of the set " + SetNameText(pushed.name) + ": ") !=
          std::string::npos);
  REQUIRE(error.find("column family 'default'") != std::string::npos);
}

TEST_CASE("A follower refuses options of the other kind of target",
          "[tools][follow]") {
  StandbyWorld world;
  const std::string archive = world.root() + "/archive";
  InitArchive(archive);
  const auto refuse = [&world](const std::string& to,
                               const std::vector<std::string>& option) {
    std::vector<std::string> words = {"follow", world.source_dir(), to};
    words.insert(words.end(), option.begin(), option.end());
    Process process(Sstferry(words));
    REQUIRE(process.Wait() == 2);
    INFO(process.err());
    REQUIRE(process.err().find(option[0]) != std::string::npos);
  };
  refuse(archive, {"--durable", "1s"});
  refuse(archive, {"--keep-identity"});
  refuse(world.dir(), {"--segment", "1s"});
  refuse(world.dir(), {"--label", "nightly"});
  refuse(world.dir(), {"--key-file", "/no/such"});
}

}  // namespace
}  // namespace sstferry::test::follow_archive_test
