// serve --db-dir, and the commands with --all: real processes.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <thread>

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "format/end_state.h"
#include "pipeline/base/database_name.h"
#include "pipeline/pull/health.h"
#include "sstferry/fleet.h"
#include "tests/support/catch.h"
#include "tests/support/certificates.h"
#include "tests/support/denied_calls.h"
#include "tests/support/process.h"
#include "tests/support/sample_database.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/serve_process.h"
#include "tests/support/test_db.h"

namespace sstferry::fleet_test {

using nlohmann::json;
namespace fs = std::filesystem;

namespace {

// Creates a small database at `top`/`name`.
void MakeDatabase(const std::string& top, const std::string& name) {
  fs::create_directories(fs::path(top + "/" + name).parent_path());
  SampleShape shape;
  shape.entries = 50;
  shape.value_bytes = 100;
  shape.files = 2;
  MakeSampleDatabase(top + "/" + name, shape);
}

using Names = std::vector<std::string>;

void MakeDatabases(const std::string& top,
                   const Names& names = {"a", "b", "c"}) {
  for (const std::string& name : names) MakeDatabase(top, name);
}

struct Ran {
  int code = -1;
  json report;
  std::string err;
  const json& of(const std::string& name) const {
    for (const json& one : report["databases"]) {
      if (one["name"] == name) {
        return one;
      }
    }
    static const json none;
    return none;
  }
};

Ran RunAllOf(std::vector<std::string> words) {
  words.insert(words.end(), {"--all", "--json"});
  Process process(Sstferry(words));
  Ran ran;
  ran.code = process.Wait();
  ran.err = process.err();
  ran.report = json::parse(process.out(), nullptr, false);
  return ran;
}

std::vector<std::string> NamesServed(const std::string& url) {
  Process ls(Sstferry({"ls", url, "--json"}));
  REQUIRE(ls.Wait() == 0);
  std::vector<std::string> names;
  const json listed = json::parse(ls.out(), nullptr, false);
  for (const json& one : listed["databases"]) {
    names.push_back(one["name"]);
  }
  return names;
}

}  // namespace

TEST_CASE(
    "serve --db-dir serves the databases below a directory by their paths",
    "[tools][fleet]") {
  const ScratchDir dir;
  const std::string top = dir / "top";
  MakeDatabase(top, "app/0_1/rocksdb/counts");
  MakeDatabase(top, "users");
  MakeDatabase(dir / "elsewhere", "hidden");
  fs::create_symlink(dir / "elsewhere", top + "/linked");
  fs::create_symlink(dir / "elsewhere/hidden", top + "/hidden");
  fs::create_directories(top + "/users.old-20261125T020003Z");
  WriteBytes(top + "/users.old-20261125T020003Z/CURRENT", "MANIFEST-000001\n");
  fs::create_directories(top + "/bad");
  WriteBytes(top + "/bad/CURRENT", "nonsense");
  ServeProcess server({"--db-dir", top});
  REQUIRE(NamesServed(server.list_url()) ==
          Names{"app/0_1/rocksdb/counts", "bad", "users"});

  MakeDatabase(top, "app/0_2/rocksdb/counts");
  fs::remove_all(top + "/users");
  server.process().Signal(SIGHUP);
  REQUIRE(server.process().WaitForErr("no longer serves users: not found"));
  REQUIRE(
      server.process().WaitForErr("now serves app/0_2/rocksdb/counts"));
  REQUIRE(NamesServed(server.list_url()) ==
          Names{"app/0_1/rocksdb/counts", "app/0_2/rocksdb/counts", "bad"});

  Process one(Sstferry({"pull", server.list_url() + "/app/0_2/rocksdb/counts",
                        dir / "one"}));
  REQUIRE(one.Wait() == 0);
  REQUIRE(EntriesOf(dir / "one") ==
          EntriesOf(top + "/app/0_2/rocksdb/counts"));
  Process climbs(Sstferry({"pull", server.list_url() + "/app/../../elsewhere",
                           dir / "two"}));
  REQUIRE(climbs.Wait() == 2);
}

TEST_CASE("A new database below --db-dir is served after SIGHUP",
          "[tools][fleet]") {
  const ScratchDir dir;
  const std::string top = dir / "top";
  fs::create_directories(top);
  ServeProcess server({"--db-dir", top});
  REQUIRE(NamesServed(server.list_url()).empty());
  MakeDatabase(top, "late");
  server.process().Signal(SIGHUP);
  REQUIRE(server.process().WaitForErr("now serves late"));
  REQUIRE(NamesServed(server.list_url()) == Names{"late"});
}

TEST_CASE("pull --all mirrors every database, even if one is damaged",
          "[tools][fleet]") {
  const ScratchDir dir;
  const std::string top = dir / "top";
  MakeDatabases(top, {"app/0_1/counts", "app/0_2/counts", "users"});
  fs::create_directories(top + "/bad");
  WriteBytes(top + "/bad/CURRENT", "nonsense");
  ServeProcess server({"--db-dir", top});
  const std::string mirror = dir / "mirror";
  const Ran ran = RunAllOf({"pull", server.list_url(), mirror});
  INFO(ran.report.dump(2) << ran.err);
  REQUIRE(ran.code != 0);
  REQUIRE(ran.report["databases"].size() == 4);
  REQUIRE(ran.of("bad")["summary"]["status"] != "OK");
  for (const std::string name : {"app/0_1/counts", "app/0_2/counts", "users"}) {
    REQUIRE(ran.of(name)["summary"]["status"] == "OK");
    REQUIRE(ran.of(name)["behind_ms"] <= ran.report["spread_ms"]);
    REQUIRE(EntriesOf(mirror + "/" + name) == EntriesOf(top + "/" + name));
  }
  // The server removes its snapshots once it notices the closed connections.
  const auto until = Clock::now() + std::chrono::seconds(60);
  while (NamesOf(top).size() > 3 && Clock::now() < until) {
  }
  REQUIRE(NamesOf(top) == Names{"app", "bad", "users"});

  // The second run skips databases that exist, and reports them as present.
  fs::remove_all(top + "/bad");
  MakeDatabase(top, "new");
  server.process().Signal(SIGHUP);
  REQUIRE(server.process().WaitForErr("now serves new"));
  const Ran again = RunAllOf({"pull", server.list_url(), mirror});
  INFO(again.report.dump(2) << again.err);
  REQUIRE(again.code == 0);
  REQUIRE(again.of("users")["present"] == true);
  REQUIRE(again.of("new")["present"] == false);
  REQUIRE(EntriesOf(mirror + "/new") == EntriesOf(top + "/new"));

  // But one that is known to be damaged is a failure, as for one database.
  HealthFile fault = MakeFault(ReplicaFault::kDamaged, "k1", Selection());
  REQUIRE_OK(RecordFault(rocksdb::FileSystem::Default().get(),
                         mirror + "/users", &fault));
  MakeDatabase(top, "newer");
  server.process().Signal(SIGHUP);
  REQUIRE(server.process().WaitForErr("now serves newer"));
  const Ran damaged = RunAllOf({"pull", server.list_url(), mirror});
  INFO(damaged.report.dump(2) << damaged.err);
  REQUIRE(damaged.code == 1);
  REQUIRE(damaged.report["status"] == "CORRUPT");
  REQUIRE(damaged.of("users")["present"] == false);
  REQUIRE(damaged.of("users")["summary"]["status"] == "CORRUPT");
  REQUIRE(damaged.of("new")["present"] == true);
  REQUIRE(damaged.of("newer")["summary"]["status"] == "OK");
}

TEST_CASE("Status of a mirror shows each of its replicas", "[tools][fleet]") {
  const ScratchDir dir;
  const std::string top = dir / "top";
  const std::string mirror = dir / "mirror";
  MakeDatabase(top, "app/one");
  MakeDatabase(top, "two");
  REQUIRE(RunAllOf({"pull", top, mirror}).code == 0);
  fs::remove(mirror + "/app/one/CURRENT");
  Process status(Sstferry({"status", mirror, "--json"}));
  REQUIRE(status.Wait() == 0);
  const json shown = json::parse(status.out(), nullptr, false);
  INFO(shown.dump(2));
  REQUIRE(shown["target"].is_null());
  REQUIRE(shown["replicas"].size() == 2);
  REQUIRE(shown["replicas"][0]["name"] == "app/one");
  REQUIRE(shown["replicas"][0]["health"] == "damaged");
  REQUIRE(shown["replicas"][1]["name"] == "two");
  REQUIRE(shown["replicas"][1]["health"] == "complete");
  REQUIRE(shown["replicas"][1]["problem"].is_null());
  Process text(Sstferry({"status", mirror}));
  REQUIRE(text.Wait() == 0);
  INFO(text.out());
  REQUIRE(text.out().find("mirror: " + mirror + ", 2 replicas\n") == 0);
  REQUIRE(text.out().find("details: sstferry status " + mirror +
                          "/app/one\n") != std::string::npos);

  // The record says which replicas should be there.
  const auto look = [&](int code) {
    Process again(Sstferry({"status", mirror, "--json"}));
    REQUIRE(again.Wait() == code);
    return json::parse(again.out(), nullptr, false);
  };
  fs::remove_all(mirror + "/two");
  for (const bool is_made : {false, true}) {
    if (is_made) fs::create_directory(mirror + "/two");  // is not mounted
    const json now = look(0);
    INFO(now.dump(2));
    REQUIRE(now["replicas"].size() == 2);
    REQUIRE(now["replicas"][1]["name"] == "two");
    REQUIRE(now["replicas"][1]["problem"].get<std::string>().find(
                mirror + "/two: expected a replica") != std::string::npos);
  }
  if (geteuid() == 0) {
    constexpr uid_t kOther = 65534;
    REQUIRE(chown(mirror.c_str(), kOther, kOther) == 0);
    REQUIRE(chown((mirror + "/sstferry.fleet").c_str(), kOther, kOther) == 0);
    REQUIRE(look(0)["replicas"].size() == 2);
  }
  WriteBytes(mirror + "/sstferry.fleet", "{}");
  const json unread = look(1);
  REQUIRE(unread["status"] == "CORRUPT");
  REQUIRE(unread["replicas"].size() == 1);  // the one that can be found
}

TEST_CASE("The metrics of a mirror keep each replica, and count each failure",
          "[tools][fleet][metrics]") {
  const ScratchDir dir;
  const std::string top = dir / "top";
  const std::string mirror = dir / "mirror";
  const std::string file = dir / "m.prom";
  MakeDatabases(top, {"a", "deep/b", "c"});
  const auto run = [&](const std::string& command, const std::string& source) {
    return RunAllOf({command, source, mirror, "--metrics-file", file}).code;
  };
  // Returns the value of a metric of a replica; "" if it has none.
  const auto value = [&](const std::string& metric, const std::string& name) {
    const std::string text = "\n" + BytesOf(file);
    const std::string series = "\nsstferry_replica_" + metric + "{target=\"" +
                               mirror + "/" + name + "\"} ";
    const size_t at = text.find(series);
    REQUIRE(text.find(series, at + 1) == std::string::npos);
    return at == std::string::npos
               ? ""
               : text.substr(at + series.size(),
                             text.find('\n', at + 1) - at - series.size());
  };
  const std::string failures = "consecutive_failures";
  const std::string taken = "snapshot_timestamp_seconds";
  REQUIRE(run("pull", top) == 0);
  for (const std::string name : {"a", "deep/b", "c"}) {
    REQUIRE(value(failures, name) == "0");
    REQUIRE_FALSE(value(taken, name).empty());
  }
  // No database can be listed.
  const std::string before = value(taken, "a");
  for (const std::string count : {"1", "2"}) {
    REQUIRE(run("refresh", dir / "missing") != 0);
    for (const std::string name : {"a", "deep/b", "c"}) {
      REQUIRE(value(failures, name) == count);
    }
  }
  REQUIRE(value(taken, "a") == before);
  // The place of one is refused, and the database of one is gone.
  fs::rename(mirror + "/deep", dir / "away");
  fs::create_directory_symlink(dir / "away", mirror + "/deep");
  fs::remove_all(top + "/a");
  REQUIRE(run("refresh", top) == 1);
  REQUIRE(value(failures, "a") == "2");
  REQUIRE(value(taken, "a") == before);
  REQUIRE(value(failures, "deep/b") == "3");
  REQUIRE(value(failures, "c") == "0");
  // The series end with the replica.
  fs::remove_all(mirror + "/a");
  REQUIRE(run("refresh", top) == 1);
  REQUIRE(value(taken, "a").empty());
  REQUIRE(value(failures, "deep/b") == "4");
}

TEST_CASE("Root writes all metrics of a large mirror of another account",
          "[tools][fleet][metrics]") {
  if (geteuid() != 0) {
    WARN("not run: it needs root, to act as two accounts");
    return;
  }
  constexpr uid_t kOther = 65534;
  constexpr int kReplicas = 400;  // more than a megabyte
  const ScratchDir dir;
  REQUIRE(chmod(dir.path().c_str(), 0755) == 0);
  const std::string place = dir / "app";
  fs::create_directory(place);
  REQUIRE(chown(place.c_str(), kOther, kOther) == 0);
  const std::string file = dir / "m.prom";
  const std::string target = "{target=\"" + place + "/mirror/";
  std::string known;
  for (int i = 0; i < kReplicas; ++i) {
    known += "sstferry_replica_last_success_timestamp_seconds" + target +
             std::to_string(i) + "\"} 7\n";
  }
  WriteBytes(file, known);
  const Ran ran = RunAllOf({"refresh", dir / "missing", place + "/mirror",
                            "--metrics-file", file});
  INFO(ran.report.dump(2) << ran.err);
  REQUIRE(ran.code != 0);
  const std::string text = BytesOf(file);
  REQUIRE(text.size() > 1'048'576);
  REQUIRE(text.ends_with("\n"));
  for (int i = 0; i < kReplicas; ++i) {
    REQUIRE(text.find("\nsstferry_replica_consecutive_failures" + target +
                      std::to_string(i) + "\"} 1\n") != std::string::npos);
  }
}

TEST_CASE("refresh --all --delete moves a replica whose source two runs missed",
          "[tools][fleet]") {
  const ScratchDir dir;
  const std::string top = dir / "top";
  const std::string mirror = dir / "mirror";
  MakeDatabases(top, {"a", "b/1", "c", "d"});
  REQUIRE(RunAllOf({"pull", top, mirror}).code == 0);
  fs::remove_all(top + "/b/1");
  const Ran first = RunAllOf({"refresh", top, mirror, "--delete"});
  INFO(first.report.dump(2) << first.err);
  REQUIRE(first.code == 0);
  REQUIRE(first.report["vanished"].size() == 1);
  REQUIRE(first.report["vanished"][0]["name"] == "b/1");
  REQUIRE(first.report["vanished"][0]["moved_to"].is_null());
  REQUIRE(fs::exists(mirror + "/b/1/CURRENT"));

  // A database that returned for one run is counted from zero again.
  MakeDatabase(top, "b/1");
  REQUIRE(RunAllOf({"refresh", top, mirror, "--delete", "--adopt"}).code == 0);
  fs::remove_all(top + "/b/1");
  REQUIRE(RunAllOf({"refresh", top, mirror, "--delete"}).code == 0);
  REQUIRE(fs::exists(mirror + "/b/1/CURRENT"));
  const Ran second = RunAllOf({"refresh", top, mirror, "--delete"});
  INFO(second.report.dump(2) << second.err);
  REQUIRE(second.code == 0);
  REQUIRE_FALSE(fs::exists(mirror + "/b/1"));
  const std::string moved = second.report["vanished"][0]["moved_to"];
  REQUIRE(IsReservedComponent(fs::path(moved).filename()));
  REQUIRE(fs::exists(moved + "/CURRENT"));
  const Ran third = RunAllOf({"refresh", top, mirror, "--delete"});
  REQUIRE(third.code == 0);
  REQUIRE(third.report["vanished"].empty());
}

TEST_CASE("A database that may still exist does not count as gone",
          "[tools][fleet]") {
  const ScratchDir dir;
  const std::string top = dir / "top";
  const std::string mirror = dir / "mirror";
  const std::string backup = dir / "backup";
  MakeDatabases(top);
  REQUIRE(RunAllOf({"pull", top, mirror}).code == 0);
  fs::create_directory(backup);
  const std::vector<std::vector<std::string>> others = {
      {"verify", top, mirror}, {"archive", "push", top, backup}};
  for (const auto& words : others) REQUIRE(RunAllOf(words).code == 0);
  bool is_listed = false;
  SECTION("its CURRENT is lost") {
    fs::remove(top + "/a/CURRENT");
    is_listed = true;
  }
  SECTION("its volume is not mounted") {
    fs::remove_all(top + "/a");
    fs::create_directory(top + "/a");
  }
  SECTION("a link took its place") {
    fs::rename(top + "/a", dir / "elsewhere");
    fs::create_directory_symlink(dir / "elsewhere", top + "/a");
  }
  for (const bool deletes : {false, true, true, true}) {
    std::vector<std::string> words = {"refresh", top, mirror};
    if (deletes) words.push_back("--delete");
    const Ran ran = RunAllOf(words);
    INFO(ran.report.dump(2) << ran.err);
    REQUIRE(ran.code == 1);
    REQUIRE(ran.of("b")["summary"]["status"] == "OK");
    REQUIRE(ran.report["vanished"].empty());
    REQUIRE(fs::exists(mirror + "/a/CURRENT"));
    REQUIRE(ran.of("a").is_null() != is_listed);
    if (!is_listed) {
      REQUIRE(ran.report["status"] == "SOURCE_ERROR");
      REQUIRE(ran.report["error"]["message"].get<std::string>().find(
                  "lacks a;") != std::string::npos);
      REQUIRE(ran.report["delete_refused"].is_null() != deletes);
      REQUIRE(ran.err.find("a, of which a target has a copy, is a directory or "
                           "a link without") !=
              std::string::npos);
    }
  }
  for (const auto& words : others) {
    const Ran ran = RunAllOf(words);
    INFO(ran.report.dump(2) << ran.err);
    REQUIRE(ran.code == 1);
    REQUIRE(ran.of("b")["summary"]["status"] == "OK");
    REQUIRE(ran.of("a").is_null() != is_listed);
    REQUIRE((is_listed || ran.report["status"] == "SOURCE_ERROR"));
  }
  // Those runs do not count once the database is certainly gone.
  fs::remove_all(top + "/a");
  for (const auto& words : others) REQUIRE(RunAllOf(words).code == 0);
  const std::vector<std::string> refresh = {"refresh", top, mirror, "--delete"};
  const Ran gone = RunAllOf(refresh);
  INFO(gone.report.dump(2) << gone.err);
  REQUIRE(gone.code == 0);
  REQUIRE(gone.report["vanished"][0]["runs"] == 1);
  REQUIRE(fs::exists(mirror + "/a/CURRENT"));
  REQUIRE(RunAllOf(refresh).code == 0);
  REQUIRE_FALSE(fs::exists(mirror + "/a"));
}

TEST_CASE("A replica whose path has a link stays in the record of a mirror",
          "[tools][fleet]") {
  const ScratchDir dir;
  const std::string top = dir / "top";
  const std::string mirror = dir / "mirror";
  MakeDatabases(top, {"a/1", "b", "c"});
  REQUIRE(RunAllOf({"pull", top, mirror}).code == 0);
  fs::remove_all(top + "/a");
  fs::rename(mirror + "/a", dir / "elsewhere");
  fs::create_directory_symlink(dir / "elsewhere", mirror + "/a");
  const std::vector<std::string> refresh = {"refresh", top, mirror, "--delete"};
  const Ran unknown = RunAllOf(refresh);
  INFO(unknown.report.dump(2) << unknown.err);
  REQUIRE(unknown.code == 0);
  REQUIRE(unknown.of("b")["summary"]["status"] == "OK");
  REQUIRE(unknown.report["vanished"][0]["name"] == "a/1");
  REQUIRE(unknown.report["vanished"][0]["runs"] == 1);
  fs::remove(mirror + "/a");
  fs::rename(dir / "elsewhere", mirror + "/a");
  const Ran gone = RunAllOf(refresh);
  INFO(gone.report.dump(2) << gone.err);
  REQUIRE(gone.code == 0);
  REQUIRE(gone.report["vanished"][0]["name"] == "a/1");
  REQUIRE(gone.report["vanished"][0]["runs"] == 2);
  // A replica that is certainly gone leaves the record.
  fs::remove_all(mirror + "/a");
  std::ofstream(mirror + "/a") << "a file";
  const Ran none = RunAllOf(refresh);
  INFO(none.report.dump(2) << none.err);
  REQUIRE(none.code == 0);
  REQUIRE(none.report["vanished"].empty());
}

namespace {

// An operation that finds a difference.
class Differs : public Operation {
 public:
  rocksdb::Status Run(Summary* summary) override {
    summary->status = MakeStatus(EndState::kDifferent, "one key");
    return summary->status;
  }
  void Cancel() override {}
  void SetMaxRate(uint64_t /*bytes_per_sec*/) override {}
  Progress progress() const override { return {}; }
};

}  // namespace

TEST_CASE("Only the failure of a database that is certainly gone is none",
          "[tools][fleet]") {
  const ScratchDir dir;
  const std::string top = dir / "top";
  MakeDatabases(top);
  fs::create_directory(dir / "mirror");
  std::function<void()> lose = [&] { fs::remove_all(top + "/a"); };
  bool differs = false;
  EndState ends = EndState::kSourceError;
  SECTION("it is gone") { ends = EndState::kOk; }
  SECTION("its CURRENT is lost") {
    lose = [&] { fs::remove(top + "/a/CURRENT"); };
  }
  SECTION("its volume is not mounted") {
    lose = [&] {
      fs::remove_all(top + "/a");
      fs::create_directory(top + "/a");
    };
    ends = EndState::kRefused;
  }
  SECTION("it is gone, after a difference was found") {
    differs = true;
    ends = EndState::kDifferent;
  }
  FleetOptions options;
  options.pull.source.directory = top;
  options.pull.target_dir = dir / "mirror";
  options.has_own_operations = true;  // databases are not pinned before
  options.wrap = [&](const PullOptions& one, std::unique_ptr<Operation> pull) {
    if (one.source.name == "a") {
      lose();
      if (differs) pull = std::make_unique<Differs>();
    }
    return pull;
  };
  const std::unique_ptr<Fleet> fleet = MakeFleet(options);
  Summary summary;
  const rocksdb::Status status = fleet->Run(&summary);
  INFO(status.ToString());
  REQUIRE(EndStateOf(status) == ends);
  const FleetMember& lost = fleet->report().members.front();
  REQUIRE(lost.name == "a");
  REQUIRE_FALSE(lost.summary.status.ok());
  REQUIRE(lost.is_gone == (ends == EndState::kOk));
  REQUIRE(fs::exists(dir / "mirror/b/CURRENT"));
}

TEST_CASE("plan --all --delete lists the replicas that the run would move",
          "[tools][fleet]") {
  const ScratchDir dir;
  const std::string top = dir / "top";
  const std::string mirror = dir / "mirror";
  MakeDatabases(top, {"a", "b/1", "c", "d"});
  REQUIRE(RunAllOf({"plan", "refresh", top, mirror, "--delete"}).code == 0);
  REQUIRE_FALSE(fs::exists(mirror));
  REQUIRE(RunAllOf({"pull", top, mirror}).code == 0);
  fs::remove_all(top + "/b/1");
  const std::vector<std::string> plan = {"plan", "refresh", top, mirror,
                                         "--delete"};
  const auto vanished = [&plan] {
    const Ran ran = RunAllOf(plan);
    INFO(ran.report.dump(2) << ran.err);
    REQUIRE(ran.code == 0);
    REQUIRE(ran.report["vanished"].size() == 1);
    return ran.report["vanished"][0];
  };
  // A plan counts no run, however often it is made.
  for (int i = 0; i < 2; ++i) {
    REQUIRE(vanished()["runs"] == 1);
    REQUIRE(vanished()["would_move"] == false);
  }
  REQUIRE(RunAllOf({"refresh", top, mirror, "--delete"}).code == 0);
  REQUIRE(vanished()["name"] == "b/1");
  REQUIRE(vanished()["would_move"] == true);
  REQUIRE(vanished()["moved_to"].is_null());
  std::vector<std::string> words = plan;
  words.push_back("--all");
  REQUIRE(OutputOf(words).find("missing at the source: b/1, for 2 runs; the "
                               "run would move its replica\n") !=
          std::string::npos);
  REQUIRE(fs::exists(mirror + "/b/1/CURRENT"));

  // What the run would refuse, the plan refuses.
  fs::remove_all(top + "/c");
  fs::remove_all(top + "/d");
  const Ran refused = RunAllOf(plan);
  REQUIRE(refused.code == 1);
  REQUIRE(refused.report["delete_refused"].get<std::string>().find(
              "more than half") != std::string::npos);
  const Ran second = RunAllOf({"refresh", top, mirror, "--delete"});
  REQUIRE(second.report["delete_refused"] == refused.report["delete_refused"]);
}

TEST_CASE("A refused pull --all leaves nothing in its directory",
          "[tools][fleet]") {
  const ScratchDir dir;
  fs::create_directory(dir / "none");
  const std::string mirror = dir / "mirror";
  REQUIRE(RunAllOf({"pull", dir / "none", mirror}).code == 1);
  REQUIRE_FALSE(fs::exists(mirror));
  REQUIRE(RunAllOf({"pull", dir / "missing", mirror}).code != 0);
  REQUIRE_FALSE(fs::exists(mirror));
  fs::create_directory(mirror);
  REQUIRE(RunAllOf({"pull", dir / "none", mirror}).code == 1);
  REQUIRE(fs::is_empty(mirror));
}

TEST_CASE("Option --delete refuses an empty list, another file system, and "
          "more than half of the replicas",
          "[tools][fleet]") {
  const ScratchDir dir;
  const std::string top = dir / "top";
  const std::string mirror = dir / "mirror";
  MakeDatabases(top);
  REQUIRE(RunAllOf({"pull", top, mirror}).code == 0);
  std::string why;
  json next;  // command that confirms the deletion; null: none
  SECTION("an empty list") {
    fs::remove_all(top);
    fs::create_directories(top);
    why = "lists no database";
  }
  SECTION("more than half") {
    fs::remove_all(top + "/a");
    fs::remove_all(top + "/b");
    why = "more than half";
  }
  SECTION("another file system") {
    fs::remove_all(top + "/a");
    const std::string record = mirror + "/sstferry.fleet";
    json text = json::parse(BytesOf(record), nullptr, false);
    text["file_system"] = uint64_t{text["file_system"]} + 1;
    WriteBytes(record, text.dump());
    next = "sstferry refresh " + top + " " + mirror + " --all";
    why = "file system of the last run";
  }
  for (int run = 0; run < 3; ++run) {
    const Ran ran = RunAllOf({"refresh", top, mirror, "--delete"});
    INFO(ran.report.dump(2) << ran.err);
    REQUIRE(ran.report["status"] == "REFUSED");
    REQUIRE(ran.report["delete_refused"].get<std::string>().find(why) !=
            std::string::npos);
    REQUIRE(ran.report["error"]["next"] == next);
    REQUIRE(fs::exists(mirror + "/a/CURRENT"));
  }
}

TEST_CASE("Option --delete keeps a replica that a process has open",
          "[tools][fleet]") {
  const ScratchDir dir;
  const std::string top = dir / "top";
  const std::string mirror = dir / "mirror";
  MakeDatabases(top);
  REQUIRE(RunAllOf({"pull", top, mirror}).code == 0);
  fs::remove_all(top + "/a");
  REQUIRE(RunAllOf({"refresh", top, mirror, "--delete"}).code == 0);
  {
    const test::OpenDb open(mirror + "/a", test::OneFamily());
    const Ran busy = RunAllOf({"refresh", top, mirror, "--delete"});
    INFO(busy.report.dump(2) << busy.err);
    REQUIRE(busy.report["status"] == "BUSY");
    REQUIRE(fs::exists(mirror + "/a/CURRENT"));
  }
  REQUIRE(RunAllOf({"refresh", top, mirror, "--delete"}).code == 0);
  REQUIRE_FALSE(fs::exists(mirror + "/a"));
}

TEST_CASE("Option --delete moves a replica without renameat2 flags",
          "[tools][fleet]") {
  const ScratchDir dir;
  const std::string top = dir / "top";
  const std::string mirror = dir / "mirror";
  MakeDatabases(top);
  // A file system that cannot exchange names refreshes replicas in place.
  REQUIRE(RunAllOf({"pull", top, mirror, "--method", "ingest"}).code == 0);
  fs::remove_all(top + "/a");
  REQUIRE(RunAllOf({"refresh", top, mirror, "--delete"}).code == 0);
  Ran moved;
  // NFS, 9p and most FUSE file systems answer EINVAL.
  if (!RunWithDenied({{SYS_renameat2, EINVAL, 4, ~0u}}, [&] {
        moved = RunAllOf({"refresh", top, mirror, "--delete"});
      })) {
    WARN("SKIPPED: needs the right to filter system calls");
    return;
  }
  INFO(moved.report.dump(2) << moved.err);
  REQUIRE(moved.code == 0);
  REQUIRE_FALSE(fs::exists(mirror + "/a"));
  const std::string to = moved.report["vanished"][0]["moved_to"];
  REQUIRE(fs::exists(to + "/CURRENT"));
}

TEST_CASE("A mirror follows no symbolic link below its directory",
          "[tools][fleet]") {
  const ScratchDir dir;
  const std::string top = dir / "top";
  const std::string mirror = dir / "mirror";
  MakeDatabase(top, "app/one");
  MakeDatabase(top, "two");
  fs::create_directories(dir / "outside");
  fs::create_directories(mirror);
  fs::create_directory_symlink(dir / "outside", mirror + "/app");
  fs::create_directory_symlink(dir / "outside", mirror + "/two");
  const Ran ran = RunAllOf({"pull", top, mirror});
  INFO(ran.report.dump(2) << ran.err);
  REQUIRE(ran.of("app/one")["summary"]["status"] == "REFUSED");
  REQUIRE(ran.of("two")["summary"]["status"] == "REFUSED");
  REQUIRE(fs::is_empty(dir / "outside"));
}

TEST_CASE("swap --all stops the application once for all databases",
          "[tools][fleet]") {
  const ScratchDir dir;
  const std::string top = dir / "top";
  const std::string mirror = dir / "mirror";
  MakeDatabases(top);
  REQUIRE(RunAllOf({"pull", top, mirror}).code == 0);
  for (const std::string name : {"a", "b", "c"}) {
    test::OpenDb db(top + "/" + name, test::OneFamily());
    db.Put("new", name);
  }
  const std::string log = dir / "log";
  const Ran ran = RunAllOf({"swap", top, mirror, "--jobs", "1", "--before-swap",
                            "echo stop $SSTFERRY_TARGET_DIR >> " + log,
                            "--after-swap",
                            "echo start $SSTFERRY_EXCHANGED >> " + log});
  INFO(ran.report.dump(2) << ran.err);
  REQUIRE(ran.code == 0);
  REQUIRE(BytesOf(log) == "stop " + mirror + "\nstart yes\n");
  for (const std::string name : {"a", "b", "c"}) {
    REQUIRE(EntriesOf(mirror + "/" + name)["new"] == name);
  }
}

TEST_CASE("pull --all waits for a source that is not running yet",
          "[tools][fleet]") {
  const ScratchDir dir;
  const std::string top = dir / "top";
  MakeDatabase(top, "a");
  MakeDatabase(top, "deep/b");
  const std::string socket = "unix:" + (dir / "socket");
  Process pull(Sstferry({"pull", "--all", socket, dir / "mirror", "--json",
                         "--timeout", "60s"}));
  REQUIRE(pull.WaitForErr("cannot reach the source, trying again"));
  const ServeProcess server({"--db-dir", top}, socket);
  const int code = pull.Wait();
  INFO(pull.err());
  REQUIRE(code == 0);
  REQUIRE(EntriesOf(dir / "mirror/deep/b") == EntriesOf(top + "/deep/b"));
}

TEST_CASE("A mirror over TLS gets the databases that its certificate may read",
          "[tools][fleet][tls]") {
  const ScratchDir dir;
  const std::string top = dir / "top";
  MakeDatabases(top, {"a", "deep/b"});
  MakeDatabase(dir / "other", "secret");
  const TestPki& pki = GoodPki();
  ServeProcess server({"--db-dir", top, "--db",
                       "secret=" + (dir / "other/secret"), "--tls-cert",
                       pki.server.cert, "--tls-key", pki.server.key, "--tls-ca",
                       pki.server.ca, "--allow", "*=target", "--allow",
                       "secret=somebody-else"});
  const std::vector<std::string> tls = {"--tls-cert", pki.client.cert,
                                        "--tls-key",  pki.client.key,
                                        "--tls-ca",   pki.client.ca};
  const auto run = [&](std::vector<std::string> words) {
    words.insert(words.end(), tls.begin(), tls.end());
    return RunAllOf(words);
  };
  const std::string mirror = dir / "mirror";
  const Ran pulled = run({"pull", server.list_url(), mirror});
  INFO(pulled.report.dump(2) << pulled.err);
  REQUIRE(pulled.code == 0);
  REQUIRE(pulled.report["databases"].size() == 2);
  REQUIRE_FALSE(fs::exists(mirror + "/secret"));
  const Ran swapped = run({"swap", server.list_url(), mirror, "--before-swap",
                           "true", "--after-swap", "true"});
  INFO(swapped.report.dump(2) << swapped.err);
  REQUIRE(swapped.code == 0);
  for (const std::string name : {"a", "deep/b"}) {
    REQUIRE(EntriesOf(mirror + "/" + name) == EntriesOf(top + "/" + name));
  }
  const Ran plain = RunAllOf({"refresh", server.list_url(), mirror});
  REQUIRE(plain.code != 0);

  // A database that the certificate may no longer read is not gone.
  ServeProcess narrowed({"--db-dir", top, "--db", "a=" + (top + "/a"),
                         "--tls-cert", pki.server.cert, "--tls-key",
                         pki.server.key, "--tls-ca", pki.server.ca, "--allow",
                         "*=somebody-else", "--allow", "a=target"});
  const Ran hidden =
      run({"refresh", narrowed.list_url(), mirror, "--delete"});
  INFO(hidden.report.dump(2) << hidden.err);
  REQUIRE(hidden.report["status"] == "SOURCE_ERROR");
  REQUIRE(hidden.of("a")["summary"]["status"] == "OK");
  REQUIRE(hidden.report["vanished"].empty());
  REQUIRE(narrowed.process().WaitForErr("deep/b, of which a target has a copy, "
                                        "is hidden from it"));
}

TEST_CASE("Hooks run as root when root swaps a mirror of another account",
          "[tools][fleet]") {
  if (geteuid() != 0) {
    WARN("not run: it needs root, to act as two accounts");
    return;
  }
  constexpr uid_t kOther = 65534;
  const ScratchDir dir;
  chmod(dir.path().c_str(), 0755);
  const std::string top = dir / "top";
  const std::string place = dir / "app";
  fs::create_directory(place);
  REQUIRE(chown(place.c_str(), kOther, kOther) == 0);
  MakeDatabases(top, {"a", "deep/b"});
  const ServeProcess server({"--db-dir", top});  // as root
  const std::string mirror = place + "/mirror";
  const Ran pulled = RunAllOf({"pull", server.list_url(), mirror});
  INFO(pulled.report.dump(2) << pulled.err);
  REQUIRE(pulled.code == 0);
  for (const std::string name : {"a", "deep/b"}) {
    test::OpenDb db(top + "/" + name, test::OneFamily());
    db.Put("new", name);
  }
  fs::create_directory(dir / "roots");
  REQUIRE(chmod((dir / "roots").c_str(), 0700) == 0);
  const std::string log = dir / "roots/log";
  const Ran swapped =
      RunAllOf({"swap", server.list_url(), mirror, "--before-swap",
                "id -u >> " + log, "--after-swap",
                "echo $(id -u) $SSTFERRY_EXCHANGED >> " + log});
  INFO(swapped.report.dump(2) << swapped.err);
  REQUIRE(swapped.code == 0);
  REQUIRE(BytesOf(log) == "0\n0 yes\n");
  for (const std::string name : {"a", "deep/b"}) {
    for (const auto& file : fs::directory_iterator(mirror + "/" + name)) {
      struct stat info;
      REQUIRE(lstat(file.path().c_str(), &info) == 0);
      INFO(file.path());
      REQUIRE(info.st_uid == kOther);
    }
    REQUIRE(EntriesOf(mirror + "/" + name)["new"] == name);
  }
}

TEST_CASE("The snapshots of a mirror are at most spread_ms apart",
          "[tools][fleet]") {
  const ScratchDir dir;
  const std::string top = dir / "top";
  fs::create_directories(top);
  const Names names = {"a", "b", "c"};
  struct Write {
    Clock::time_point begin;
    Clock::time_point end;
  };
  std::vector<std::unique_ptr<test::OpenDb>> databases;
  std::vector<std::vector<Write>> writes(names.size());
  for (const std::string& name : names) {
    rocksdb::Options options;
    options.create_if_missing = true;
    databases.push_back(
        std::make_unique<test::OpenDb>(options, top + "/" + name));
  }
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (uint64_t n = 0; !stop; ++n) {
      for (size_t i = 0; i < names.size(); ++i) {
        const Clock::time_point begin = Clock::now();
        databases[i]->Put("n", std::to_string(n));
        writes[i].push_back({begin, Clock::now()});
      }
    }
  });
  const Ran ran = RunAllOf({"pull", top, dir / "mirror"});
  stop = true;
  writer.join();
  INFO(ran.report.dump(2) << ran.err);
  REQUIRE(ran.code == 0);
  const double spread_ms = ran.report["spread_ms"];
  Clock::time_point last_begin{};
  Clock::time_point first_end = Clock::time_point::max();
  for (size_t i = 0; i < names.size(); ++i) {
    const auto entries = EntriesOf(dir / "mirror/" + names[i]);
    const size_t last = entries.count("n") != 0 ? stoul(entries.at("n")) : 0;
    // The snapshot was taken after the begin of the last write that it has, and
    // before the end of the next write.
    if (entries.count("n") != 0) {
      last_begin = std::max(last_begin, writes[i][last].begin);
    }
    if (last + 1 < writes[i].size()) {
      first_end = std::min(first_end, writes[i][last + 1].end);
    }
  }
  const std::chrono::duration<double, std::milli> apart =
      last_begin - first_end;
  REQUIRE(apart.count() <= spread_ms);
}

TEST_CASE("Names that are unsafe as a path below a mirror are refused",
          "[tools][fleet]") {
  for (const std::string name :
       {"", "/", "/a", "a/", "a//b", ".", "..", "a/..", "../a", "a/./b", "a b",
        "a.sstferry", "a.sstferry/b", "x/b.sstferry-snapshot-1-2",
        "sstferry.fleet", "a.old-20261125T020003Z",
        "a.old-20261125T020003Z-2/b", "1/2/3/4/5/6/7/8/9"}) {
    INFO(name);
    REQUIRE_FALSE(CheckReplicaName(name).ok());
  }
  REQUIRE_FALSE(CheckReplicaName(std::string("a\0b", 3)).ok());
  REQUIRE_FALSE(CheckReplicaName(std::string(241, 'a')).ok());
  for (const std::string name :
       {"a", "...", "a/b", "app-1/0_1/rocksdb/counts", "old-1", "a.old",
        "1/2/3/4/5/6/7/8"}) {
    INFO(name);
    REQUIRE(CheckReplicaName(name).ok());
  }
}

TEST_CASE("Option --all refuses a source of one database, and its options "
          "need --all",
          "[tools][fleet]") {
  const ScratchDir dir;
  const auto err_of = [](const std::vector<std::string>& words) {
    Process process(Sstferry(words));
    REQUIRE(process.Wait() == 2);
    return process.err();
  };
  REQUIRE(err_of({"pull", "--all", "sst://db1/users", dir / "x"})
              .find("expected a server without a NAME") != std::string::npos);
  REQUIRE(err_of({"pull", "sst://db1/users", dir / "x", "--delete"})
              .find("--delete: needs --all") != std::string::npos);
  REQUIRE(err_of({"verify", "--all", "sst://db1", "sst://db2/users"})
              .find("expected a server without a NAME") != std::string::npos);
  REQUIRE(err_of({"archive", "push", "sst://db1/users", dir / "x", "--jobs=2"})
              .find("--jobs: needs --all") != std::string::npos);
  REQUIRE(err_of({"archive", "check", dir / "x", "--all"})
              .find("--all: needs archive push") != std::string::npos);
  REQUIRE(err_of({"pull", "--all", "sst://db1", dir / "x", "--cf", "a"})
              .find("--cf: expected none with --all") != std::string::npos);
}

TEST_CASE("plan --all plans every database and changes nothing",
          "[tools][fleet]") {
  const ScratchDir dir;
  const std::string top = dir / "top";
  MakeDatabases(top, {"a", "deep/b"});
  fs::create_directories(top + "/bad");
  WriteBytes(top + "/bad/CURRENT", "nonsense");
  const ServeProcess server({"--db-dir", top});
  const std::string mirror = dir / "mirror";
  Ran ran = RunAllOf({"plan", server.list_url(), mirror});
  INFO(ran.report.dump(2) << ran.err);
  REQUIRE(ran.code == 1);
  REQUIRE(ran.report["databases"].size() == 3);
  REQUIRE(ran.of("bad")["summary"]["status"] != "OK");
  for (const char* name : {"a", "deep/b"}) {
    REQUIRE(ran.of(name)["summary"]["status"] == "OK");
    REQUIRE(ran.of(name)["summary"]["method"] == "clone");
  }
  REQUIRE_FALSE(fs::exists(mirror));

  // The plan of a refresh. Its text has one row per database.
  fs::remove_all(top + "/bad");
  REQUIRE(RunAllOf({"pull", top, mirror}).code == 0);
  MakeDatabase(top, "new");
  const std::vector<std::string> before = NamesOf(mirror);
  ran = RunAllOf({"plan", "refresh", top, mirror});
  INFO(ran.report.dump(2) << ran.err);
  REQUIRE(ran.code == 0);
  REQUIRE(ran.report["databases"].size() == 3);
  REQUIRE(NamesOf(mirror) == before);
  ran = RunAllOf({"plan", top, mirror});
  REQUIRE(ran.of("a")["present"] == true);
  REQUIRE(ran.of("new")["present"] == false);
  const std::string text = OutputOf({"plan", "refresh", "--all", top, mirror});
  INFO(text);
  REQUIRE(text.starts_with("plan refresh: 3 of 3 databases of " + top));
  REQUIRE(text.find("\ndeep/b  ok") != std::string::npos);
}

TEST_CASE("verify --all compares every database, the worst result sets the "
          "exit code",
          "[tools][fleet]") {
  const ScratchDir dir;
  const std::string top = dir / "top";
  const std::string mirror = dir / "mirror";
  MakeDatabases(top, {"a", "deep/b", "c"});
  REQUIRE(RunAllOf({"pull", top, mirror}).code == 0);
  MakeDatabase(mirror, "more");  // not in the source: ignored
  const ServeProcess server({"--db-dir", top});
  Ran ran = RunAllOf({"verify", server.list_url(), mirror});
  INFO(ran.report.dump(2) << ran.err);
  REQUIRE(ran.code == 0);
  REQUIRE(ran.report["databases"].size() == 3);
  REQUIRE(ran.of("deep/b")["summary"]["compared"] == "files");

  fs::remove_all(mirror + "/deep/b");
  SampleShape other;
  other.entries = 51;
  MakeSampleDatabase(mirror + "/deep/b", other);
  ran = RunAllOf({"verify", server.list_url(), mirror});
  INFO(ran.report.dump(2) << ran.err);
  REQUIRE(ran.code == 3);
  REQUIRE(ran.report["status"] == "DIFFERENT");
  REQUIRE(ran.of("a")["summary"]["status"] == "OK");
  REQUIRE(ran.of("deep/b")["summary"]["differences"] > 0);
  REQUIRE(ran.of("c")["summary"]["status"] == "OK");
  const std::string text =
      OutputOf({"verify", "--all", server.list_url(), mirror}, 3);
  INFO(text);
  REQUIRE(text.starts_with("verify: 2 of 3 databases of "));
  REQUIRE(text.find("\ndeep/b  DIFFERENT") != std::string::npos);

  // A database that cannot be compared counts as worse than one that differs.
  fs::remove_all(mirror + "/c");
  ran = RunAllOf({"verify", top, mirror, "--jobs", "1"});
  INFO(ran.report.dump(2) << ran.err);
  REQUIRE(ran.code == 1);
  REQUIRE(ran.of("deep/b")["summary"]["status"] == "DIFFERENT");
}

TEST_CASE("archive push --all makes an archive for each database and pushes it",
          "[tools][fleet]") {
  const ScratchDir dir;
  const std::string top = dir / "top";
  MakeDatabases(top, {"a", "deep/b", "c"});
  const std::string backup = dir / "backup";
  const std::vector<std::string> push = {"archive", "push", top, backup,
                                         "--metrics-file", dir / "p.prom"};
  // push does not create the top directory: its volume may not be mounted.
  Ran ran = RunAllOf(push);
  REQUIRE(ran.code == 1);
  REQUIRE_FALSE(fs::exists(backup));
  fs::create_directory(backup);
  REQUIRE(chmod(backup.c_str(), 0700) == 0);
  WriteBytes(top + "/c/CURRENT", "nonsense");
  ran = RunAllOf(push);
  INFO(ran.report.dump(2) << ran.err);
  REQUIRE(ran.code == 1);
  REQUIRE(ran.report["action"] == "push");
  REQUIRE(ran.report["databases"].size() == 3);
  REQUIRE(ran.of("c")["summary"]["status"] != "OK");
  for (const std::string name : {"a", "deep/b"}) {
    REQUIRE(ran.of(name)["summary"]["status"] == "OK");
    REQUIRE(ran.of(name)["summary"]["sets"].size() == 1);
    REQUIRE(fs::status(backup + "/" + name).permissions() ==
            fs::perms::owner_all);
    REQUIRE(BytesOf(dir / "p.prom")
                .find("{archive=\"" + backup + "/" + name + "\"}") !=
            std::string::npos);
  }
  // A second push, from a server, adds a set to each archive.
  fs::remove_all(top + "/c");
  MakeDatabase(top, "c");
  const ServeProcess server({"--db-dir", top});
  const std::string text =
      OutputOf({"archive", "push", "--all", server.list_url(), backup});
  INFO(text);
  REQUIRE(text.starts_with("push: 3 of 3 databases of "));
  OutputOf({"pull", backup + "/deep/b", dir / "restored"});
  REQUIRE(EntriesOf(dir / "restored") == EntriesOf(top + "/deep/b"));
  const json list = json::parse(
      OutputOf({"archive", "list", backup + "/a", "--json"}), nullptr, false);
  REQUIRE(list["sets"].size() == 2);
  // A symbolic link below the top directory is not followed.
  fs::create_directory(dir / "elsewhere");
  MakeDatabase(top, "led/d");
  fs::create_symlink(dir / "elsewhere", backup + "/led");
  ran = RunAllOf({"archive", "push", top, backup});
  REQUIRE(ran.code == 1);
  REQUIRE(ran.of("led/d")["summary"]["status"] == "REFUSED");
  REQUIRE(fs::is_empty(dir / "elsewhere"));
}

}  // namespace sstferry::fleet_test
