// sstferry follow, promote and view as an operator runs them: real processes
// while an application writes.
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "format/end_state.h"
#include "format/follow_file.h"
#include "pipeline/base/rocksdb_compat.h"
#include "pipeline/base/standby_record.h"
#include "rocksdb/compaction_filter.h"
#include "sstferry/follow.h"
#include "tests/support/catch.h"
#include "tests/support/edited_options.h"
#include "tests/support/process.h"
#include "tests/support/sample_bytes.h"
#include "tests/support/serve_process.h"
#include "tests/support/standby_world.h"
#include "tools/sstferry/left_process.h"

namespace sstferry::test::follow_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Runs `sstferry WORDS --json` and returns its object.
json Ran(std::vector<std::string> words, int code = 0) {
  words.push_back("--json");
  return json::parse(OutputOf(words, code));
}

std::string Contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return BytesIn(in);
}

// Waits until the standby is durable up to `sequence`. Returns its status.
json AwaitAll(const StandbyWorld& world, const std::string& dir,
              uint64_t sequence) {
  json status;
  const auto has_all = [&] {
    if (!fs::exists(dir + "/sstferry.follow")) return false;
    status = Ran({"status", dir})["standby"];
    return status["durable_sequence"] >= sequence;
  };
  const bool is_durable = AwaitThat(has_all, std::chrono::minutes(2));
  INFO(status.dump());
  REQUIRE(is_durable);
  return status;
}

TEST_CASE("A source is followed, viewed and promoted", "[tools][follow]") {
  StandbyWorld world;
  world.Write(50);
  world.source()->Flush();
  world.Write(50);
  const std::string dir = world.dir();
  Process follower(Sstferry({"follow", world.source_dir(), dir, "--durable",
                             "20ms"}));
  AwaitAll(world, dir, world.sequence());
  for (int i = 0; i < 5; ++i) {
    world.Write(20);
    world.source()->Flush();
  }
  const json status = AwaitAll(world, dir, world.sequence());
  REQUIRE(status["followed"] == true);
  REQUIRE(status["promoted"] == false);
  REQUIRE(status["cuts"]["first"] == 1);
  for (const char* const option :
       {"--source-is-down", "--after-source-closed"}) {
    const json busy = Ran({"promote", dir, option, "--after", "true"}, 5);
    INFO(busy.dump());
    REQUIRE(busy["status"] == "BUSY");
    REQUIRE(busy["error"]["message"] ==
            dir + ": a follower is running; give --before a command that stops "
                  "it, such as 'systemctl disable --now sstferry-follow@NAME'");
    REQUIRE(busy["error"]["next"].is_null());
  }
  REQUIRE(Ran({"pull", world.source_dir(), dir}, 1)["status"] == "REFUSED");
  const std::string view = world.root() + "/view";
  Ran({"view", dir, view});
  REQUIRE(world.RequirePrefix(view) == world.sequence());
  // A new column family is a barrier: it reaches the standby in the next cut.
  world.source()->Create({"third", Quiet()});
  world.source()->Put("k", "v", "third");
  world.Write(20);
  const uint64_t sequence = world.sequence();
  const json with_third = AwaitAll(world, dir, sequence);
  INFO(with_third.dump() << follower.err());
  // A cut for an unlogged flush, whose WAL was deleted before it was read, may
  // bring the family first.
  REQUIRE(with_third["cuts"]["barrier"].get<int>() +
              with_third["cuts"]["unlogged"].get<int>() >=
          1);
  world.CloseSource();
  const std::string marks = world.root() + "/hooks";
  const json promoted =
      Ran({"promote", dir, "--after-source-closed", "--wait", "60s", "--before",
           "kill -TERM " + std::to_string(follower.pid()) +
               "; echo before >> " + marks,
           "--after", "echo after $SSTFERRY_EXCHANGED >> " + marks});
  REQUIRE(promoted["standby"]["promoted"] == true);
  REQUIRE(promoted["standby"]["sequence"] == sequence);
  std::ifstream hooks(marks);
  REQUIRE(BytesIn(hooks) ==
          "before\nafter yes\n");
  REQUIRE(follower.Wait() == 0);
  REQUIRE_FALSE(fs::exists(dir + ".sstferry"));
  OpenDb db(dir, {{"default", Quiet()}, {"other", Quiet()},
                  {"third", Quiet()}});
  REQUIRE(db->GetLatestSequenceNumber() == sequence);
  std::string value;
  REQUIRE_OK(db->Get(rocksdb::ReadOptions(), db.cf("third"), "k", &value));
  REQUIRE(value == "v");
}

TEST_CASE("follow redraws a line with moment, lag and bytes to replay, only on "
          "a terminal",
          "[tools][follow]") {
  StandbyWorld world;
  world.Write(50);
  const std::string dir = world.dir();
  const bool shows = GENERATE(true, false);
  std::vector<std::string> words = {"follow", world.source_dir(), dir};
  if (shows) {
    words.insert(words.end(), {"--progress", "always"});
  }
  Process follower(Sstferry(words));
  AwaitAll(world, dir, world.sequence());
  if (shows) {
    REQUIRE(follower.WaitForErr("\ras of 20"));
  }
  follower.Signal(SIGTERM);
  REQUIRE(follower.Wait() == 0);
  const std::string err = follower.err();
  INFO(err);
  REQUIRE((err.find("\ras of 20") != std::string::npos) == shows);
  REQUIRE((err.find("Z  lag ") != std::string::npos) == shows);
  REQUIRE((err.find(" to replay") != std::string::npos) == shows);
  REQUIRE(err.ends_with("\r\x1b[K") == shows);
}

TEST_CASE("A follower audits after a periodic cut, and status shows the audit",
          "[tools][follow]") {
  StandbyWorld world;
  world.Write(50);
  const std::string dir = world.dir();
  Process follower(Sstferry({"follow", world.source_dir(), dir, "--cut-every",
                             "3s", "--max-audit", "2KB"}));
  AwaitAll(world, dir, world.sequence());
  REQUIRE(OutputOf({"status", dir}).find("audit: ") != std::string::npos);
  json audit;
  const auto is_audited = [&] {
    world.Write(20);
    const json status = AwaitAll(world, dir, world.sequence());
    REQUIRE(status["cuts"]["damage"] == 0);
    audit = status["audit"];
    return audit["slices"] >= 1;
  };
  REQUIRE(AwaitThat(is_audited, std::chrono::minutes(2)));
  INFO(audit.dump());
  REQUIRE(audit["entries"] > 0);
  REQUIRE(audit["differences"] == 0);
  REQUIRE(audit["difference"] == nullptr);
  REQUIRE(audit["families"] == json::object());
  REQUIRE(audit["damage"] == nullptr);
  // A follower killed in an audit leaves hard links; the next one removes them.
  kill(follower.pid(), SIGKILL);
  follower.Wait();
  Process next(Sstferry({"follow", world.source_dir(), dir, "--max-audit",
                         "0"}));
  world.Write(20);
  AwaitAll(world, dir, world.sequence());
  kill(next.pid(), SIGTERM);
  REQUIRE(next.Wait() == 0);
  for (const auto& entry : fs::directory_iterator(world.root())) {
    const std::string path = entry.path();
    REQUIRE(path.find(".sstferry-snapshot-") == std::string::npos);
  }
}

TEST_CASE("A planned move has the entries that the source flushed at its close",
          "[tools][follow]") {
  StandbyWorld world;
  world.Write(50);
  const std::string dir = world.dir();
  Process follower(Sstferry({"follow", world.source_dir(), dir}));
  AwaitAll(world, dir, world.sequence());
  rocksdb::WriteOptions unlogged;
  unlogged.disableWAL = true;
  OpenDb& db = *world.source();
  for (int i = 0; i < 100; ++i) {
    REQUIRE_OK(db->Put(unlogged, db.cf("other"), "unlogged" + std::to_string(i),
                       "v"));
  }
  const uint64_t sequence = world.sequence();
  world.CloseSource();
  REQUIRE(Ran({"promote", dir, "--after-source-closed", "--wait", "60s",
               "--before", "kill -TERM " + std::to_string(follower.pid())})
              ["standby"]["sequence"] == sequence);
  REQUIRE(follower.Wait() == 0);
  INFO(follower.err());
  OpenDb moved(dir, {{"default", Quiet()}, {"other", Quiet()}});
  std::string value;
  for (int i = 0; i < 100; ++i) {
    REQUIRE_OK(moved->Get(rocksdb::ReadOptions(), moved.cf("other"),
                          "unlogged" + std::to_string(i), &value));
  }
}

// Waits until the last answer of the standby's source is older than this.
void AwaitHeardAge(const std::string& dir, uint64_t millis) {
  REQUIRE(AwaitThat([&] {
    return Ran({"status", dir})["standby"]["heard_age_millis"] > millis;
  }));
}

// Waits until the standby's status says that its source is (not) closed.
void AwaitClosed(const std::string& dir, bool is_closed) {
  const auto is_so = [&] {
    return Ran({"status", dir})["standby"]["source_closed"] == is_closed;
  };
  REQUIRE(AwaitThat(is_so, std::chrono::minutes(2)));
}

TEST_CASE("A planned move uses only the current answers of the source",
          "[tools][follow]") {
  StandbyWorld world;
  world.Write(50);
  const std::string dir = world.dir();
  const std::string source = world.source_dir();
  SECTION("no follower runs") {
    Process follower(Sstferry({"follow", source, dir}));
    AwaitAll(world, dir, world.sequence());
    world.CloseSource();
    AwaitClosed(dir, true);
    follower.Signal(SIGKILL);
    follower.Wait();
    AwaitClosed(dir, true);  // the status still shows the old answer
    const json refused = Ran({"promote", dir, "--after-source-closed"}, 1);
    INFO(refused.dump());
    REQUIRE(refused["status"] == "REFUSED");
    REQUIRE(refused["error"]["message"].get<std::string>().ends_with(
        "no follower is running, so nothing can report that the source is "
        "closed"));
    REQUIRE(refused["error"]["code"] == "REFUSED");
    REQUIRE(refused["error"]["next"] == "sstferry follow " + source + " " +
                                            dir);
  }
  SECTION("the server is gone") {
    ServeProcess server({"--db", "db=" + source});
    Process follower(Sstferry({"follow", server.url(), dir}));
    AwaitAll(world, dir, world.sequence());
    world.CloseSource();
    AwaitClosed(dir, true);
    server.process().Signal(SIGKILL);
    server.process().Wait();
    AwaitClosed(dir, false);
    const json late = Ran({"promote", dir, "--after-source-closed", "--wait",
                           "2s", "--before", "true"}, 4);
    REQUIRE(late["status"] == "DEADLINE");
  }
  SECTION("the source is opened again before the promotion") {
    Process follower(Sstferry({"follow", source, dir}));
    AwaitAll(world, dir, world.sequence());
    world.CloseSource();
    AwaitClosed(dir, true);
    world.OpenSource();
    AwaitClosed(dir, false);
    world.Write(1000);
    const json late = Ran({"promote", dir, "--after-source-closed", "--wait",
                           "2s", "--before", "true"}, 4);
    REQUIRE(late["status"] == "DEADLINE");
  }
  SECTION("the source is opened again, and its cut is still running") {
    Process follower(Sstferry({"follow", source, dir, "--max-rate", "50K"}));
    AwaitAll(world, dir, world.sequence());
    for (int i = 0; i < 4; ++i) {
      world.source()->Put("large" + std::to_string(i), RandomBytes(50'000, i));
    }
    world.CloseSource();
    AwaitClosed(dir, true);
    world.OpenSource();  // its recovery writes a table, which is sent slowly
    REQUIRE(follower.WaitForErr("needs a cut of the source (new-life",
                               std::chrono::minutes(1)));
    const json status = Ran({"status", dir})["standby"];
    INFO(status.dump());
    REQUIRE(status["cuts"]["new-life"] == 0);
    REQUIRE(status["source_closed"] == false);
  }
  SECTION("the source is opened again while the follower is stopped") {
    Process follower(Sstferry({"follow", source, dir}));
    AwaitAll(world, dir, world.sequence());
    world.CloseSource();
    PromoteOptions options;
    options.dir = dir;
    options.after_source_closed = true;
    options.before = [&](const SwapEvent&) {
      world.OpenSource();
      AwaitClosed(dir, false);
      follower.Signal(SIGTERM);
      return rocksdb::Status::OK();
    };
    StandbyState state;
    const rocksdb::Status refused = MakePromote(options)->Run(&state);
    REQUIRE(EndStateOf(refused) == EndState::kRefused);
    REQUIRE(MessageOf(refused) ==
            dir + ": the source was opened again, or stopped answering; "
                  "nothing was promoted");
  }
  REQUIRE(IsStandby(dir));
}

std::string MessageIn(const json& object) {
  return object["error"]["message"];
}

// Runs a follower until it has all writes, and stops it.
void FollowOnce(const StandbyWorld& world) {
  Process follower(Sstferry({"follow", world.source_dir(), world.dir()}));
  AwaitAll(world, world.dir(), world.sequence());
  follower.Signal(SIGTERM);
  REQUIRE(follower.Wait() == 0);
  INFO(follower.err());  // closing an in-process source logs nothing
  REQUIRE(follower.err().find("in-process") == std::string::npos);
}

std::string TableIn(const std::string& dir) {
  for (const auto& entry : fs::directory_iterator(dir)) {
    if (entry.path().extension() == ".sst") return entry.path();
  }
  FAIL("no table in " << dir);
  return "";
}

TEST_CASE("promote refuses a damaged standby, and a new follow repairs it",
          "[tools][follow][promote]") {
  StandbyWorld world;
  world.Write(50);
  world.source()->Flush();
  world.Write(50);
  FollowOnce(world);
  const std::string dir = world.dir();
  const std::string table = TableIn(dir);
  const auto bytes = fs::file_size(table);
  const std::string manifest = [&] {
    for (const auto& entry : fs::directory_iterator(dir)) {
      const std::string name = entry.path().filename();
      if (name.starts_with("MANIFEST-")) return name;
    }
    return std::string();
  }();
  const std::string mend = "sstferry follow " + world.source_dir() + " " + dir;
  const std::string damage =
      GENERATE(as<std::string>(), "missing", "short", "manifest", "wal",
               "flipped");
  INFO(damage);
  std::string found;
  if (damage == "missing") {
    fs::remove(table);
    found = table + ": " + manifest + " names it, but it is missing";
  } else if (damage == "short") {
    fs::resize_file(table, bytes - 1);
    found = table + ": expected " + std::to_string(bytes) + " bytes, as " +
            manifest + " says, found " + std::to_string(bytes - 1);
  } else if (damage == "wal") {
    const std::string wal = world.newest_wal();
    const auto durable = fs::file_size(wal);
    fs::resize_file(wal, durable - 1);
    found = wal + ": expected at least " + std::to_string(durable) +
            " bytes, as sstferry.followed says, found " +
            std::to_string(durable - 1);
  } else if (damage == "manifest") {
    std::fstream file(dir + "/" + manifest,
                      std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(20);
    file.put('\x7f');
    found = dir + "/" + manifest + ": its first ";
  } else {
    std::fstream file(table, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(40);
    file.put('\x7f');
    file.close();
    // Only a command that reads the bytes finds the damage. It records it.
    const json verified = Ran({"verify", world.source_dir(), dir}, 1);
    INFO(verified.dump());
    REQUIRE(verified["error"]["next"] == mend);
    REQUIRE(fs::exists(dir + "/sstferry.health"));
    found = "found 20";
  }
  const std::string hooks = world.root() + "/hooks";
  const json refused = Ran({"promote", dir, "--source-is-down", "--before",
                            "touch " + hooks}, 1);
  INFO(refused.dump());
  REQUIRE(refused["status"] == "CORRUPT");
  const std::string message = MessageIn(refused);
  REQUIRE(message.starts_with(
      dir + ": the standby was not promoted, because it is known to be damaged "
            "("));
  REQUIRE(message.find(found) != std::string::npos);
  REQUIRE(message.ends_with(
      "); nothing was changed (--force promotes it as it is)"));
  REQUIRE(refused["error"]["next"] == mend);
  REQUIRE_FALSE(fs::exists(hooks));
  REQUIRE(IsStandby(dir));
  const json status = Ran({"status", dir});
  REQUIRE(status["target"]["health"] == "damaged");
  REQUIRE(status["target"]["next"] == mend);
  const std::string text = OutputOf({"status", dir}, 0);
  INFO(text);
  REQUIRE(text.find("next: " + mend + "\n") != std::string::npos);
  REQUIRE(text.find("next:") == text.rfind("next:"));
  if (GENERATE(false, true)) {
    const json forced = Ran({"promote", dir, "--source-is-down", "--force"});
    REQUIRE(forced["standby"]["promoted"] == true);
    REQUIRE(forced["standby"]["fault"].is_string());
    REQUIRE(fs::exists(dir + "/sstferry.health"));
    REQUIRE(Ran({"status", dir})["target"]["health"] == "damaged");
    return;
  }
  // A new follower repairs the standby with a cut.
  Process follower(Sstferry({"follow", world.source_dir(), dir}));
  // The source cannot continue from a truncated WAL, hence the other reason.
  const std::string reason = damage == "wal" ? "not-held" : "damage";
  REQUIRE(follower.WaitForErr("needs a cut of the source (" + reason + ": " +
                                 dir + ": it is known to be damaged (",
                             std::chrono::minutes(1)));
  json mended;
  const auto has_cut = [&] {
    mended = Ran({"status", dir});
    return mended["standby"]["cuts"][reason] == 1;
  };
  const bool is_mended = AwaitThat(has_cut, std::chrono::minutes(2));
  INFO(mended.dump());
  REQUIRE(is_mended);
  REQUIRE(mended["target"]["health"] == "complete");
  follower.Signal(SIGTERM);
  REQUIRE(follower.Wait() == 0);
  Ran({"promote", dir, "--source-is-down"});
  REQUIRE(world.RequirePrefix(dir) == world.sequence());
}

TEST_CASE("promote checks the standby again after --before",
          "[tools][follow][promote]") {
  StandbyWorld world;
  world.Write(50);
  world.source()->Flush();
  FollowOnce(world);
  const std::string dir = world.dir();
  const std::string marks = world.root() + "/hooks";
  const json refused =
      Ran({"promote", dir, "--source-is-down", "--before",
           "rm " + TableIn(dir), "--after",
           "echo after $SSTFERRY_EXCHANGED >> " + marks}, 1);
  INFO(refused.dump());
  REQUIRE(refused["status"] == "CORRUPT");
  REQUIRE_FALSE(fs::exists(marks));
  REQUIRE(IsStandby(dir));
}

// Opens `dir` as an application does that may be the first. Returns true on
// success.
bool OpensOrMakes(const std::string& dir) {
  rocksdb::Options options;
  options.create_if_missing = true;
  options.create_missing_column_families = true;
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  std::unique_ptr<rocksdb::DB> db;
  const rocksdb::Status status = rocksdb::DB::Open(
      options, dir, {{"default", options}, {"other", options}}, &handles,
      IntoDb(&db));
  for (rocksdb::ColumnFamilyHandle* const handle : handles) delete handle;
  return status.ok();
}

TEST_CASE("No RocksDB opens a standby or makes a database in it",
          "[tools][follow][promote]") {
  StandbyWorld world;
  world.Write(50);
  world.source()->Flush();
  world.Write(50);
  FollowOnce(world);
  const std::string dir = world.dir();
  if (GENERATE(false, true)) {
    // A standby of an earlier version has no CURRENT; its follower adds it.
    fs::remove(dir + "/CURRENT");
    REQUIRE(Ran({"status", dir})["standby"]["promoted"] == false);
    FollowOnce(world);
  }
  const std::string table = TableIn(dir);
  for (int i = 0; i < 3; ++i) REQUIRE_FALSE(OpensOrMakes(dir));
  std::vector<std::string> families;
  REQUIRE_FALSE(rocksdb::DB::ListColumnFamilies({}, dir, &families).ok());
  std::unique_ptr<rocksdb::DB> db;
  const rocksdb::Options options;
  REQUIRE_FALSE(rocksdb::DB::OpenForReadOnly(options, dir, IntoDb(&db)).ok());
  REQUIRE_FALSE(rocksdb::DB::OpenAsSecondary(options, dir,
                                             world.root() + "/second",
                                             IntoDb(&db))
                    .ok());
  REQUIRE(fs::exists(table));
  REQUIRE(Contents(dir + "/CURRENT") == kStandbyCurrent);
  REQUIRE(Ran({"pull", world.source_dir(), dir, "--if-absent"}, 1)["status"] ==
          "REFUSED");
  Ran({"promote", dir, "--source-is-down"});
  REQUIRE(world.RequirePrefix(dir) == world.sequence());
}

TEST_CASE("A database that another program made in a standby is no promotion",
          "[tools][follow][promote]") {
  StandbyWorld world;
  world.Write(50);
  world.source()->Flush();
  FollowOnce(world);
  const std::string dir = world.dir();
  fs::remove(dir + "/CURRENT");
  OpensOrMakes(dir);
  REQUIRE(OpensOrMakes(dir));
  const std::string current = Contents(dir + "/CURRENT");
  const std::string marks = world.root() + "/hooks";
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"promote", dir, "--source-is-down", "--force",
                                 "--after", "touch " + marks},
        std::vector<std::string>{"follow", world.source_dir(), dir}}) {
    const json refused = Ran(words, 1);
    INFO(refused.dump());
    REQUIRE(refused["status"] == "REFUSED");
    REQUIRE(MessageIn(refused).find("another program made a database") !=
            std::string::npos);
  }
  REQUIRE(Ran({"status", dir})["standby"]["fault"].get<std::string>().find(
              "another program") != std::string::npos);
  REQUIRE_FALSE(fs::exists(marks));
  REQUIRE(Contents(dir + "/CURRENT") == current);
  REQUIRE(fs::exists(dir + "/sstferry.follow"));
}

TEST_CASE("view reports that the standby is damaged",
          "[tools][follow][promote]") {
  StandbyWorld world;
  world.Write(50);
  world.source()->Flush();
  FollowOnce(world);
  std::ofstream(TableIn(world.dir()), std::ios::app) << "x";
  Process view(Sstferry({"view", world.dir(), world.root() + "/view"}));
  view.Wait();
  INFO(view.err());
  REQUIRE(view.err().find("the standby of this view has a problem: it is known "
                          "to be damaged (") != std::string::npos);
}

TEST_CASE("view of an ordinary database says that it is not a standby",
          "[tools][follow]") {
  StandbyWorld world;
  world.Write(50);
  Process view(Sstferry({"view", world.source_dir(), world.root() + "/view"}));
  REQUIRE(view.Wait() == 0);
  INFO(view.err());
  REQUIRE(view.err().find(world.source_dir() + " is not a standby; the view "
                                               "has the state") !=
          std::string::npos);
}

TEST_CASE("promote says that it waits for the follower to end",
          "[tools][follow][promote]") {
  StandbyWorld world;
  world.Write(50);
  const std::string dir = world.dir();
  Process follower(Sstferry({"follow", world.source_dir(), dir}));
  AwaitAll(world, dir, world.sequence());
  // Stops the follower only once promote has said that it waits.
  const std::string said = world.root() + "/said";
  const std::string stop =
      "(until grep -q \"waiting up to 30 s for the follower of\" " + said +
      "; do :; done; kill -TERM " + std::to_string(follower.pid()) +
      ") >/dev/null 2>&1 &";
  Process promote({"/bin/sh", "-c",
                   Sstferry({})[0] + " promote " + dir +
                       " --source-is-down --before '" + stop + "' 2>" + said});
  const int code = promote.Wait();
  INFO(Contents(said));
  REQUIRE(code == 0);
  REQUIRE(HasCurrent(dir));
}

TEST_CASE("promote is refused while the source may be open",
          "[tools][follow][promote]") {
  StandbyWorld world;
  world.Write(50);
  const std::string dir = world.dir();
  const std::string source = world.source_dir();
  const std::string unless = " (--source-is-down skips this check)";
  if (GENERATE(true, false)) {
    FollowOnce(world);
    const json refused = Ran({"promote", dir}, 1);
    REQUIRE(refused["status"] == "REFUSED");
    REQUIRE(MessageIn(refused) ==
            dir + ": no follower is running, so it is unknown whether the "
                  "source is still open" + unless);
    REQUIRE(refused["error"]["next"] == "sstferry follow " + source + " " +
                                            dir);
    REQUIRE(OutputOf({"status", dir}, 0)
                .ends_with("\nfollowed: no follower is running\nnext: start "
                           "its unit, or sstferry follow " + source + " " +
                           dir + " with the options that it had, such as "
                                 "--tls\n"));
    return;
  }
  ServeProcess server({"--db", "db=" + source});
  Process follower(Sstferry({"follow", server.url(), dir}));
  AwaitAll(world, dir, world.sequence());
  json status;
  REQUIRE(AwaitThat([&] {
    status = Ran({"status", dir})["standby"];
    return status["source_open"] == true;
  }));
  REQUIRE(status["heard_age_millis"] < 60'000);
  const std::string hooks = world.root() + "/hooks";
  const std::vector<std::string> promote = {
      "promote", dir, "--before",
      "touch " + hooks + "; kill -TERM " + std::to_string(follower.pid()),
      "--after", "true"};
  const json refused = Ran(promote, 1);
  INFO(refused.dump());
  REQUIRE(refused["status"] == "REFUSED");
  REQUIRE(MessageIn(refused).starts_with(
      dir + ": expected a source that is down, but a process had " +
      server.url() + " open "));
  REQUIRE(MessageIn(refused).ends_with(
      " ms ago, as the follower heard" + unless));
  REQUIRE(refused["error"]["next"] ==
          "sstferry promote " + dir + " --after-source-closed --before '" +
              promote[3] + "' --after true");
  REQUIRE_FALSE(fs::exists(hooks));
  const std::string how =
      GENERATE(as<std::string>(), "closed", "gone", "known");
  INFO(how);
  if (how == "closed") {
    world.CloseSource();
    AwaitClosed(dir, true);
    REQUIRE(Ran({"status", dir})["standby"]["source_open"] == false);
    REQUIRE(Ran(promote)["standby"]["promoted"] == true);
  } else if (how == "gone") {
    server.process().Signal(SIGKILL);
    server.process().Wait();
    AwaitHeardAge(dir, 5000);
    // The follower begins to wait after the last answer.
    int code = 1;
    std::string err;
    const auto is_promoted = [&] {
      REQUIRE_FALSE(fs::exists(hooks));
      Process run(Sstferry(promote));
      code = run.Wait();
      err = run.err();
      return code != 1;
    };
    REQUIRE(AwaitThat(is_promoted));
    INFO(err);
    REQUIRE(code == 0);
    REQUIRE(err.find("the follower of " + dir +
                     " gets no answer from the source, which may still be open there; last answer: 2") !=
            std::string::npos);
  } else {
    std::vector<std::string> words = promote;
    words.push_back("--source-is-down");
    REQUIRE(Ran(words)["standby"]["promoted"] == true);
  }
  REQUIRE(fs::exists(hooks));
  REQUIRE(follower.Wait() == 0);
}

TEST_CASE("promote is refused while an answer of the source arrives slowly",
          "[tools][follow][promote]") {
  StandbyWorld world;
  world.Write(50);
  const std::string dir = world.dir();
  ServeProcess server(
      {"--db", "db=" + world.source_dir(), "--max-rate", "200K"});
  Process follower(Sstferry({"follow", server.url(), dir}));
  AwaitAll(world, dir, world.sequence());
  world.source()->Put("large", RandomBytes(8'000'000, 1));  // 40 s
  AwaitHeardAge(dir, 6000);
  const std::string hooks = world.root() + "/hooks";
  const json refused = Ran({"promote", dir, "--before", "touch " + hooks}, 1);
  INFO(refused.dump());
  REQUIRE(refused["status"] == "REFUSED");
  REQUIRE(MessageIn(refused).starts_with(
      dir + ": the follower has not waited 6 s for an answer from " +
      server.url() + " (last answer: 2"));
  REQUIRE_FALSE(fs::exists(hooks));
  follower.Signal(SIGTERM);
  REQUIRE(follower.Wait() == 0);
}

TEST_CASE("promote is refused until a new follower had time for an answer",
          "[tools][follow][promote]") {
  StandbyWorld world;
  world.Write(50);
  ServeProcess server({"--db", "db=" + world.source_dir()});
  const std::string dir = world.dir();
  {
    Process follower(Sstferry({"follow", server.url(), dir}));
    AwaitAll(world, dir, world.sequence());
    follower.Signal(SIGTERM);
    REQUIRE(follower.Wait() == 0);
  }
  // Removes the recorded answers of the source, so none is recent.
  const std::string marks = dir + "/sstferry.followed";
  fs::remove(marks);
  server.process().Signal(SIGKILL);
  server.process().Wait();
  Process follower(Sstferry({"follow", server.url(), dir}));
  REQUIRE(AwaitThat([&] {
    return Ran({"status", dir})["standby"]["followed"] == true;
  }));
  const std::string stop = "kill -TERM " + std::to_string(follower.pid());
  const json refused = Ran({"promote", dir, "--before", stop}, 1);
  INFO(refused.dump());
  REQUIRE(MessageIn(refused) ==
          dir + ": the follower has just started and has no answer from its "
                "source yet; wait 6 s (--source-is-down skips this check)");
  REQUIRE(refused["error"]["next"] ==
          "sstferry promote " + dir + " --before '" + stop + "'");
  int code = 1;
  std::string err;
  REQUIRE(AwaitThat([&] {
    Process run(Sstferry({"promote", dir, "--before", stop}));
    code = run.Wait();
    err = run.err();
    return code != 1;
  }));
  INFO(err);
  REQUIRE(code == 0);
  REQUIRE(err.find("gets no answer from the source, which may still be open "
                   "there; last answer: never") != std::string::npos);
}

TEST_CASE("Nothing is promoted unless --before ends with 0",
          "[tools][follow][promote]") {
  StandbyWorld world;
  world.Write(50);
  FollowOnce(world);
  REQUIRE(Ran({"promote", world.dir(), "--source-is-down", "--before",
               "exit 3"}, 1)["status"] == "REFUSED");
  REQUIRE(IsStandby(world.dir()));
  Process both(Sstferry({"promote", world.dir(), "--source-is-down",
                         "--after-source-closed"}));
  REQUIRE(both.Wait() == 2);
  INFO(both.err());
  REQUIRE(both.err().find("--source-is-down: expected only one of "
                          "--source-is-down and ") != std::string::npos);
}

TEST_CASE("Only the next promotion ends a command that a killed one left",
          "[tools][follow][promote]") {
  StandbyWorld world;
  world.Write(20);
  FollowOnce(world);
  const std::string id = world.root() + "/id";
  Process killed(Sstferry({"promote", world.dir(), "--source-is-down",
                           "--before",
                           "echo $$ > " + id + "; echo hook runs >&2; "
                           "exec 2> /dev/null >&2; sleep 600"}));
  REQUIRE(killed.WaitForErr("hook runs"));
  const pid_t hook = std::stoi(Contents(id));
  const std::string name = NameOfProcess(hook);
  REQUIRE_FALSE(name.empty());
  // A refresh of a standby is refused, and ends no command of its promotion.
  REQUIRE(Ran({"refresh", world.source_dir(), world.dir()}, 1)["status"] ==
          "REFUSED");
  REQUIRE(IsRunning(name));
  killed.Signal(SIGKILL);
  REQUIRE(killed.Wait() == 128 + SIGKILL);
  REQUIRE(IsRunning(name));
  const json promoted = Ran({"promote", world.dir(), "--source-is-down"});
  REQUIRE(promoted["standby"]["promoted"] == true);
  REQUIRE_FALSE(IsRunning(name));
}

TEST_CASE("last_transfer.json records the promotion",
          "[tools][follow][promote]") {
  StandbyWorld world;
  world.Write(50);
  Process follower(Sstferry({"follow", world.source_dir(), world.dir()}));
  AwaitAll(world, world.dir(), world.sequence());
  const uint64_t cut = world.sequence();
  world.Write(50);
  AwaitAll(world, world.dir(), world.sequence());
  Ran({"promote", world.dir(), "--source-is-down", "--before",
       "kill -TERM " + std::to_string(follower.pid())});
  const json last = json::parse(Contents(world.dir() + "/last_transfer.json"));
  INFO(last.dump());
  REQUIRE(last["command"] == "promote");
  REQUIRE(last["snapshot_sequence"] == world.sequence());
  REQUIRE(last["snapshot_taken_at"].is_string());
  REQUIRE(last["promoted"]["at"] == last["finished_at"]);
  REQUIRE(last["promoted"]["cut_sequence"] <= cut);
  const json complete = Ran({"status", world.dir()})["target"]["complete"];
  REQUIRE(complete["snapshot_sequence"] == world.sequence());
  REQUIRE(complete["finished_at"] == last["finished_at"]);
}

TEST_CASE("A promoted database is not made of its former source again",
          "[tools][follow][promote]") {
  StandbyWorld world;
  world.Write(50);
  FollowOnce(world);
  const std::string dir = world.dir();
  Ran({"promote", dir, "--source-is-down"});
  const Families families = {{"default", Quiet()}, {"other", Quiet()}};
  { OpenDb(dir, families).Put("written since", "v"); }
  const json verified = Ran({"verify", world.source_dir(), dir}, 3);
  INFO(verified.dump());
  REQUIRE(MessageIn(verified).find("right was promoted at ") !=
          std::string::npos);
  REQUIRE(verified["error"]["next"].is_null());
  REQUIRE_FALSE(fs::exists(dir + "/sstferry.health"));
  const std::vector<std::string> refresh = {"refresh", world.source_dir(), dir};
  for (const char* const method : {"clone", "ingest"}) {
    std::vector<std::string> words = refresh;
    words.insert(words.end(), {"--method", method});
    const json refused = Ran(words, 1);
    INFO(refused.dump());
    REQUIRE(refused["status"] == "REFUSED");
    REQUIRE(MessageIn(refused).find("was promoted at ") != std::string::npos);
    std::string value;
    REQUIRE_OK(OpenDb(dir, families)
                   ->Get(rocksdb::ReadOptions(), "written since", &value));
  }
  const json followed = Ran({"follow", world.source_dir(), dir}, 1);
  INFO(followed.dump());
  REQUIRE(followed["status"] == "REFUSED");
  REQUIRE(MessageIn(followed).find("was promoted at 2") != std::string::npos);
  REQUIRE(followed["error"]["next"].is_null());
  const std::string status = OutputOf({"status", dir}, 0);
  INFO(status);
  REQUIRE(status.find("\na database, promoted at 2") != std::string::npos);
  fs::remove(TableIn(dir));
  const json target = Ran({"status", dir})["target"];
  REQUIRE(target["complete"]["promoted_at"].is_string());
  REQUIRE(target["complete"]["age_seconds"].is_null());
  REQUIRE(target["health"] == "damaged");
  REQUIRE(target["next"].is_null());
}

TEST_CASE("promote of what is not a standby never advises a follower for a "
          "database",
          "[tools][follow][promote]") {
  StandbyWorld world;
  world.Write(50);
  FollowOnce(world);
  Ran({"promote", world.dir(), "--source-is-down"});
  const std::string promoted = Contents(world.dir() + "/last_transfer.json");
  const auto refused = [](const std::string& dir) {
    const json answer = Ran({"promote", dir, "--source-is-down"}, 1);
    REQUIRE(answer["status"] == "REFUSED");
    return answer["error"];
  };
  const json twice = refused(world.dir());
  INFO(twice.dump());
  REQUIRE(twice["message"].get<std::string>().find(
              "was promoted at " +
              json::parse(promoted)["promoted"]["at"].get<std::string>()) !=
          std::string::npos);
  REQUIRE(twice["next"].is_null());
  REQUIRE(Contents(world.dir() + "/last_transfer.json") == promoted);

  const json plain = refused(world.source_dir());
  REQUIRE(plain["message"].get<std::string>().find("found a database") !=
          std::string::npos);
  REQUIRE(plain["next"].is_null());

  const json missing = refused(world.dir() + "-none");
  REQUIRE(missing["message"].get<std::string>().find("no such directory") !=
          std::string::npos);
  REQUIRE(missing["next"].is_null());

  const std::string empty = world.dir() + "-empty";
  fs::create_directory(empty);
  REQUIRE(refused(empty)["next"] == "sstferry follow SOURCE " + empty);
}

TEST_CASE("A killed follower resumes without a new first cut",
          "[tools][follow]") {
  StandbyWorld world;
  world.Write(50);
  const std::string dir = world.dir();
  uint64_t firsts = 0;
  for (int i = 0; i < 3; ++i) {
    Process follower(Sstferry({"follow", world.source_dir(), dir}));
    world.Write(20);
    const json status = AwaitAll(world, dir, world.sequence());
    firsts = status["cuts"]["first"];
    follower.Signal(SIGKILL);
    follower.Wait();
  }
  REQUIRE(firsts == 1);
  REQUIRE(Ran({"promote", dir, "--source-is-down"})["standby"]["sequence"] ==
          world.sequence());
  REQUIRE(world.RequirePrefix(dir) == world.sequence());
}

// Receives the messages that a service manager would get.
class ServiceManager {
 public:
  explicit ServiceManager(const std::string& path)
      : fd_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    REQUIRE(path.size() < sizeof(address.sun_path));
    std::memcpy(address.sun_path, path.data(), path.size());
    REQUIRE(bind(fd_, reinterpret_cast<const sockaddr*>(&address),
                 static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) +
                                        path.size() + 1)) == 0);
  }
  ~ServiceManager() { close(fd_); }
  void Await(const std::string& begin) {
    std::string told;
    while (!told.starts_with(begin)) {
      char text[1024];
      const ssize_t bytes = recv(fd_, text, sizeof(text), 0);
      REQUIRE(bytes > 0);
      told.assign(text, static_cast<size_t>(bytes));
    }
  }

 private:
  const int fd_;
};

TEST_CASE("A follower reports its state to its service manager and Prometheus",
          "[tools][follow]") {
  StandbyWorld world;
  world.Write(50);
  const std::string file = world.root() + "/standby.prom";
  ServiceManager manager(world.root() + "/notify");
  Process follower(Sstferry({"follow", world.source_dir(), world.dir(),
                             "--metrics-file", file, "--view-every", "1s"}),
                   {{"NOTIFY_SOCKET", world.root() + "/notify"}});
  manager.Await("READY=1\nSTATUS=taking a cut");
  manager.Await("READY=1\nSTATUS=at sequence " +
                std::to_string(world.sequence()));
  world.Write(20);
  AwaitAll(world, world.dir(), world.sequence());
  REQUIRE(AwaitThat([&] {
    const json status = AwaitAll(world, world.dir(), world.sequence());
    return !status["view_age_millis"].is_null();
  }));
  for (int i = 0; i < 2; ++i) {  // the second message is from after the view
    manager.Await("READY=1\nSTATUS=at sequence " +
                  std::to_string(world.sequence()));
  }
  follower.Signal(SIGTERM);
  manager.Await("STOPPING=1");
  REQUIRE(follower.Wait() == 0);
  REQUIRE(RequireView(world.dir() + ".view/current") <= world.sequence());
  const std::string text = Contents(file);
  INFO(text);
  const std::string target = "target=\"" + world.dir() + "\"} ";
  REQUIRE(text.find("sstferry_standby_view_age_seconds{" + target) !=
          std::string::npos);
  REQUIRE(text.find("sstferry_standby_lag_seconds{" + target) !=
          std::string::npos);
  REQUIRE(text.find("sstferry_standby_behind_bytes{" + target + "0\n") !=
          std::string::npos);
  REQUIRE(text.find("sstferry_standby_cuts_total{reason=\"first\"," + target +
                    "1\n") != std::string::npos);
  for (const char* name : {"heard_timestamp_seconds", "source_open",
                           "written_timestamp_seconds"}) {
    INFO(name);
    REQUIRE(text.find("sstferry_standby_" + std::string(name) + "{" + target) !=
            std::string::npos);
  }
}

TEST_CASE("A follower continues despite unknown options, and counts them",
          "[tools][follow]") {
  StandbyWorld world;
  world.Write(50);
  EditOptions(world.source_dir(), "[DBOptions]\n",
              "[DBOptions]\n  shape_of_a_fork=round\n");
  const std::string file = world.root() + "/standby.prom";
  Process follower(Sstferry({"follow", world.source_dir(), world.dir(),
                             "--metrics-file", file}));
  AwaitAll(world, world.dir(), world.sequence());
  world.Write(20);
  const json status = AwaitAll(world, world.dir(), world.sequence());
  REQUIRE(status["unknown_options"] == 1);
  follower.Signal(SIGTERM);
  REQUIRE(follower.Wait() == 0);
  INFO(follower.err());
  REQUIRE(follower.err().find("'shape_of_a_fork' = 'round' (the database)") !=
          std::string::npos);
  const std::string text = Contents(file);
  INFO(text);
  REQUIRE(text.find("sstferry_standby_unknown_options{target=\"" +
                    world.dir() + "\"} 1\n") != std::string::npos);
}

// Asks the server for its followers until `holds` accepts the list.
json AwaitFollowers(const ServeProcess& server,
                    const std::function<bool(const json&)>& holds) {
  json followers;
  const auto is_so = [&] {
    followers = Ran({"status", server.list_url()})["source"]["followers"];
    return holds(followers);
  };
  const bool is_accepted = AwaitThat(is_so, std::chrono::minutes(2));
  INFO(followers.dump());
  REQUIRE(is_accepted);
  return followers;
}

TEST_CASE("A server lists its followers and the lag of each",
          "[tools][follow]") {
  StandbyWorld world;
  world.Write(50);
  ServeProcess server({"--db", "db=" + world.source_dir()});
  AwaitFollowers(server, [](const json& all) { return all.empty(); });
  Process follower(Sstferry({"follow", server.url(), world.dir()}));
  AwaitAll(world, world.dir(), world.sequence());
  world.source()->Create({"third", Quiet()});
  world.source()->Put("k", "v", "third");
  AwaitAll(world, world.dir(), world.sequence());
  json told = AwaitFollowers(server, [](const json& all) {
                return all.size() == 1 && all[0]["behind_bytes"] == 0;
              })[0];
  INFO(told.dump());
  REQUIRE(told["database"] == "db");
  REQUIRE(told["target"].get<std::string>().ends_with(":" + world.dir()));
  REQUIRE(told["behind_millis"] == 0);
  REQUIRE(told["held_bytes"] > 0);
  REQUIRE(told["cuts"] >= 2);
  REQUIRE(told["cut_reason"] == "barrier");
  follower.Signal(SIGSTOP);
  world.Write(20);
  told = AwaitFollowers(server, [](const json& all) {
           return all[0]["behind_millis"] > 100;
         })[0];
  REQUIRE(told["behind_bytes"] > 0);
  REQUIRE(told["behind_bytes"] <= told["held_bytes"]);
  const std::string text = OutputOf({"status", server.url()}, 0);
  INFO(text);
  REQUIRE(text.find("LAST CUT") != std::string::npos);
  REQUIRE(text.find(":" + world.dir() + "\n") != std::string::npos);
  follower.Signal(SIGCONT);
  AwaitAll(world, world.dir(), world.sequence());
  follower.Signal(SIGTERM);
  REQUIRE(follower.Wait() == 0);
  AwaitFollowers(server, [](const json& all) { return all.empty(); });
}

class DropsOld : public rocksdb::CompactionFilter {
 public:
  const char* Name() const override { return "sstferry.test.DropsOld"; }
  bool Filter(int, const rocksdb::Slice& key, const rocksdb::Slice&,
              std::string*, bool*) const override {
    return key == "old";
  }
};

TEST_CASE("A standby keeps entries that a compaction filter drops, and says so",
          "[tools][follow]") {
  const std::string how =
      GENERATE(as<std::string>(), "plain", "exact", "exact, then plain");
  INFO(how);
  const bool is_exact = how != "plain";
  const DropsOld filter;
  rocksdb::ColumnFamilyOptions filtered = Quiet();
  filtered.compaction_filter = &filter;
  rocksdb::DBOptions options;
  options.create_if_missing = true;
  options.create_missing_column_families = true;
  StandbyWorld world;
  const std::string source = world.root() + "/filtered";
  const std::string dir = world.dir();
  OpenDb db(source, {{"default", Quiet()}, {"filtered", filtered}}, options);
  db.Put("kept", "v", "filtered");
  db.Put("old", "v", "filtered");
  std::vector<std::string> words = {"follow", source, dir};
  if (is_exact) words.push_back("--exact-filters");
  Process follower(Sstferry(words));
  AwaitAll(world, dir, db->GetLatestSequenceNumber());
  db.Flush();
  db.Compact("filtered");
  std::string value;
  REQUIRE(db->Get(rocksdb::ReadOptions(), db.cf("filtered"), "old", &value)
              .IsNotFound());
  db.Put("new", "v", "filtered");
  json status;
  // The writes may arrive before the cut that the compaction requests.
  const auto has_cut = [&] {
    status = AwaitAll(world, dir, db->GetLatestSequenceNumber());
    return !is_exact || status["cuts"]["filter"] != 0;
  };
  REQUIRE(AwaitThat(has_cut, std::chrono::minutes(2)));
  INFO(status.dump() << follower.err());
  // RocksDB may compact in two steps, and each requests a cut.
  const uint64_t filter_cuts = status["cuts"]["filter"];
  REQUIRE((filter_cuts > 0) == is_exact);
  REQUIRE(status["filtered_families"] ==
          (is_exact ? json::array() : json::array({"filtered"})));
  const std::string says = "as if the compaction filters of filtered had not";
  REQUIRE((OutputOf({"status", dir}, 0).find(says) == std::string::npos) ==
          is_exact);
  follower.Signal(SIGTERM);
  REQUIRE(follower.Wait() == 0);
  INFO(follower.err());
  REQUIRE((follower.err().find(says) == std::string::npos) == is_exact);
  if (how == "exact, then plain") {
    // A restart without --exact-filters keeps them until the next cut.
    Process again(Sstferry({"follow", source, dir}));
    db.Put("old", "v", "filtered");
    AwaitAll(world, dir, db->GetLatestSequenceNumber());
    db.Flush();
    db.Compact("filtered");
    db.Put("newer", "v", "filtered");
    const json cut = AwaitAll(world, dir, db->GetLatestSequenceNumber());
    INFO(cut.dump());
    REQUIRE(cut["cuts"]["filter"] > filter_cuts);
    REQUIRE(cut["filtered_families"] == json::array({"filtered"}));
    again.Signal(SIGTERM);
    REQUIRE(again.Wait() == 0);
    return;
  }
  Ran({"promote", dir, "--source-is-down"});
  OpenDb promoted(dir, {{"default", Quiet()}, {"filtered", Quiet()}});
  const rocksdb::Status got = promoted->Get(
      rocksdb::ReadOptions(), promoted.cf("filtered"), "old", &value);
  REQUIRE((is_exact ? got.IsNotFound() : got.ok()));
}

TEST_CASE("A follower receives WAL bytes at no more than --max-rate",
          "[tools][follow]") {
  StandbyWorld world;
  world.Write(5);
  Process follower(Sstferry({"follow", world.source_dir(), world.dir(),
                             "--max-rate", "200K"}));
  AwaitAll(world, world.dir(), world.sequence());
  const auto begin = std::chrono::steady_clock::now();
  // The first write exceeds the budget, and the third one waits for that.
  for (int i = 0; i < 3; ++i) {
    world.source()->Put("large", std::string(400'000, 'v'));
    AwaitAll(world, world.dir(), world.sequence());
  }
  REQUIRE(std::chrono::steady_clock::now() - begin > std::chrono::seconds(1));
}

}  // namespace
}  // namespace sstferry::test::follow_test
