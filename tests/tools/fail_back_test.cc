// sstferry follow --adopt: a former primary becomes a standby of the new one.
#include <signal.h>
#include <sys/stat.h>

#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "pipeline/base/database_name.h"
#include "pipeline/disk/old_directories.h"
#include "rocksdb/file_system.h"
#include "sstferry/follow.h"
#include "tests/support/catch.h"
#include "tests/support/process.h"
#include "tests/support/sample_bytes.h"
#include "tests/support/sample_database.h"
#include "tests/support/standby_world.h"

namespace sstferry::test::fail_back_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

json Ran(std::vector<std::string> words, int code = 0) {
  words.push_back("--json");
  return json::parse(OutputOf(words, code));
}

std::string MessageIn(const json& ran) {
  return ran["error"]["message"].get<std::string>();
}

// Waits until the standby has all writes up to a sequence.
void AwaitStandby(const std::string& dir, uint64_t sequence) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  json status;
  while (!fs::exists(dir + "/sstferry.follow") ||
         (status = Ran({"status", dir})["standby"])["durable_sequence"] <
             sequence) {
    INFO(status.dump());
    REQUIRE(std::chrono::steady_clock::now() < end);
  }
}

// Follows with --adopt up to `sequence`. Returns the follower's messages.
std::string Follow(const std::string& source, const std::string& dir,
                   uint64_t sequence) {
  Process follower(Sstferry({"follow", source, dir, "--adopt"}));
  AwaitStandby(dir, sequence);
  follower.Signal(SIGTERM);
  REQUIRE(follower.Wait() == 0);
  return follower.err();
}

std::string Adopt(const FailedOver& world, uint64_t sequence) {
  return Follow(world.new_dir(), world.old_dir(), sequence);
}

// Returns the fingerprint with the directory `from` replaced by `to`.
std::string Moved(std::string fingerprint, const std::string& from,
                  const std::string& to) {
  for (size_t at = fingerprint.find(from + "/"); at != std::string::npos;
       at = fingerprint.find(from + "/", at + to.size())) {
    fingerprint.replace(at, from.size(), to);
  }
  return fingerprint;
}

// Requires that the standby equals the new primary, which must be closed.
void RequireFollowed(const FailedOver& world) {
  const std::string view = world.new_dir() + "-view";
  Ran({"view", world.old_dir(), view});
  FailedOver::RequireSame(view, world.new_dir());
  fs::remove_all(view);
}

std::string BytesOfFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return BytesIn(in);
}

json LastTransferIn(const std::string& dir) {
  std::ifstream in(dir + "/last_transfer.json");
  return json::parse(in);
}

uint64_t SequenceOf(const std::string& dir) {
  OpenDb db(dir, {{"default", Quiet()}, {"other", Quiet()}});
  return db->GetLatestSequenceNumber();
}

std::map<ino_t, std::string> TablesByInode(const std::string& dir) {
  std::map<ino_t, std::string> tables;
  for (const std::string& path : PathsWith(dir, ".sst")) {
    struct stat info;
    REQUIRE(stat(path.c_str(), &info) == 0);
    tables[info.st_ino] = path;
  }
  return tables;
}

size_t SharedTables(const std::string& a, const std::string& b) {
  size_t shared = 0;
  const std::map<ino_t, std::string> tables = TablesByInode(b);
  for (const auto& [inode, path] : TablesByInode(a)) {
    shared += tables.count(inode);
  }
  return shared;
}

TEST_CASE("A former primary becomes a standby, and its old directory is kept",
          "[tools][follow][adopt]") {
  const FailedOver world;
  const std::string before = Fingerprint(world.old_dir());
  const json refused = Ran({"follow", world.new_dir(), world.old_dir()}, 1);
  INFO(refused.dump());
  REQUIRE(MessageIn(refused).find("found a database") != std::string::npos);
  REQUIRE(refused["error"]["next"] == "sstferry follow " + world.new_dir() +
                                          " " + world.old_dir() + " --adopt");
  REQUIRE(Fingerprint(world.old_dir()) == before);
  auto application = std::make_unique<OpenDb>(
      world.new_dir(), Families{{"default", Quiet()}, {"other", Quiet()}});
  Process follower(
      Sstferry({"follow", world.new_dir(), world.old_dir(), "--adopt"}));
  AwaitStandby(world.old_dir(), (*application)->GetLatestSequenceNumber());
  const std::vector<std::string> kept =
      FailedOver::KeptBeside(world.old_dir());
  REQUIRE(kept.size() == 1);
  for (int i = 0; i < 50; ++i) {
    application->Put("live" + std::to_string(i), "v", "other");
  }
  AwaitStandby(world.old_dir(), (*application)->GetLatestSequenceNumber());
  const json status = Ran({"status", world.old_dir()});
  REQUIRE(status["standby"]["cuts"]["first"] == 1);
  REQUIRE(status["target"]["old"][0]["path"] == kept[0]);
  follower.Signal(SIGTERM);
  REQUIRE(follower.Wait() == 0);
  INFO(follower.err());
  REQUIRE(follower.err().find("the replaced database is kept in " + kept[0]) !=
          std::string::npos);
  REQUIRE(follower.err().find("compared and linked") != std::string::npos);
  REQUIRE_FALSE(fs::exists(world.old_dir() + ".sstferry"));
  application.reset();
  RequireFollowed(world);
  // The eight tables from before the failover were linked, not sent.
  const json last = LastTransferIn(world.old_dir());
  REQUIRE(last["files_reused"] == 8);
  REQUIRE(SharedTables(world.old_dir(), kept[0]) == 8);
  const std::string other = world.new_dir() + "-all";
  Follow(world.new_dir(), other, SequenceOf(world.new_dir()));
  REQUIRE(LastTransferIn(other)["files_reused"] == 0);
  REQUIRE(last["wire_bytes"] < LastTransferIn(other)["wire_bytes"]);
  // The kept directory is unchanged, and its application can open it.
  REQUIRE(Fingerprint(kept[0]) == Moved(before, world.old_dir(), kept[0]));
  world.RequireOld(kept[0]);
  RequireFollowed(world);
}

TEST_CASE("A database that a process has open is not adopted",
          "[tools][follow][adopt]") {
  const FailedOver world;
  {
    const OpenDb holds(world.old_dir(),
                       {{"default", Quiet()}, {"other", Quiet()}});
    const json busy =
        Ran({"follow", world.new_dir(), world.old_dir(), "--adopt"}, 5);
    INFO(busy.dump());
    REQUIRE(busy["status"] == "BUSY");
    REQUIRE(MessageIn(busy).find("--adopt: the database must be closed") !=
            std::string::npos);
  }
  REQUIRE(FailedOver::KeptBeside(world.old_dir()).empty());
  // No process can use the directory while Adopt has it locked.
  std::unique_ptr<Standby> standby;
  REQUIRE_OK(Standby::Adopt(world.old_dir(), rocksdb::FileSystem::Default(),
                            &standby));
  REQUIRE(Ran({"refresh", world.new_dir(), world.old_dir(), "--adopt"},
              5)["status"] == "BUSY");
  standby.reset();
  world.RequireOld(world.old_dir());
}

TEST_CASE("A file that differs from the former primary's is sent, not linked",
          "[tools][follow][adopt]") {
  const FailedOver world;
  const std::string table = PathsWith(world.old_dir(), ".sst").front();
  {
    std::fstream file(table, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(5);
    const char byte = static_cast<char>(file.get() ^ 1);
    file.seekp(5);
    file.put(byte);
  }
  const std::string said = Adopt(world, SequenceOf(world.new_dir()));
  INFO(said);
  REQUIRE(said.find("1 of 8 units of files here differ") != std::string::npos);
  const std::vector<std::string> kept =
      FailedOver::KeptBeside(world.old_dir());
  REQUIRE(kept.size() == 1);
  REQUIRE(LastTransferIn(world.old_dir())["files_reused"] == 7);
  REQUIRE(SharedTables(world.old_dir(), kept[0]) == 7);
  RequireFollowed(world);
  REQUIRE(Ran({"verify", world.new_dir(), world.old_dir()})["status"] == "OK");
}

TEST_CASE("Records in a former primary's directory are ignored",
          "[tools][follow][adopt]") {
  const FailedOver world;
  // Records of its time as primary: a finding, a position that is too high, an
  // interrupted pull.
  for (const char* const name : {"sstferry.health", "sstferry.followed",
                                 "last_transfer.json", "sstferry.files",
                                 "of-the-application"}) {
    WriteBytes(world.old_dir() + "/" + name, "of a life before");
  }
  const std::string left = world.old_dir() + ".sstferry";
  fs::create_directories(left + "/db");
  WriteBytes(left + "/lock", "sstferry workspace 1\n");
  WriteBytes(left + "/journal", "of a life before");
  WriteBytes(left + "/db/000009.sst", "of a life before");
  Adopt(world, SequenceOf(world.new_dir()));
  REQUIRE_FALSE(fs::exists(left));
  const std::vector<std::string> kept =
      FailedOver::KeptBeside(world.old_dir());
  REQUIRE(kept.size() == 1);
  for (const char* const name : {"sstferry.health", "sstferry.followed",
                                 "of-the-application"}) {
    INFO(name);
    REQUIRE(BytesOfFile(kept[0] + "/" + name) == "of a life before");
    REQUIRE((!fs::exists(world.old_dir() + "/" + name) ||
             BytesOfFile(world.old_dir() + "/" + name) != "of a life before"));
  }
  REQUIRE(LastTransferIn(world.old_dir())["files_reused"] == 8);
  RequireFollowed(world);
  REQUIRE(Ran({"status", world.old_dir()})["standby"]["fault"].is_null());
}

TEST_CASE("Files of a former primary in a private directory are linked, at "
          "the first cut and later",
          "[tools][follow][adopt]") {
  const FailedOver world;
  fs::permissions(world.old_dir(), fs::perms::owner_all);
  OpenDb application(world.new_dir(),
                     {{"default", Quiet()}, {"other", Quiet()}});
  Process follower(
      Sstferry({"follow", world.new_dir(), world.old_dir(), "--adopt"}));
  AwaitStandby(world.old_dir(), application->GetLatestSequenceNumber());
  REQUIRE(LastTransferIn(world.old_dir())["files_reused"] == 8);
  application.Create({"third", Quiet()});  // a barrier: another cut
  application.Put("k", "v", "third");
  AwaitStandby(world.old_dir(), application->GetLatestSequenceNumber());
  REQUIRE(Ran({"status", world.old_dir()})["standby"]["cuts"]["barrier"] == 1);
  REQUIRE(LastTransferIn(world.old_dir())["files_reused"] >= 8);
  follower.Signal(SIGTERM);
  REQUIRE(follower.Wait() == 0);
  REQUIRE(fs::status(world.old_dir()).permissions() == fs::perms::owner_all);
}

TEST_CASE("The name of the kept directory is never an existing one",
          "[tools][follow][adopt]") {
  const FailedOver world;
  const auto now = static_cast<uint64_t>(std::time(nullptr));
  for (uint64_t i = 0; i < 600; ++i) {
    fs::create_directory(world.old_dir() + kAdoptedInfix +
                         DateInName(now + i));
  }
  Adopt(world, SequenceOf(world.new_dir()));
  size_t found = 0;
  for (const std::string& dir : FailedOver::KeptBeside(world.old_dir())) {
    if (fs::is_empty(dir)) {
      continue;
    }
    found++;
    REQUIRE(dir.ends_with("Z-2"));
    world.RequireOld(dir);
  }
  REQUIRE(found == 1);
}

TEST_CASE(
    "Option --adopt keeps no directory if the target is missing or a standby",
    "[tools][follow][adopt]") {
  const FailedOver world;
  const uint64_t sequence = SequenceOf(world.new_dir());
  Adopt(world, sequence);
  Adopt(world, sequence);  // as when a systemd unit restarts
  REQUIRE(FailedOver::KeptBeside(world.old_dir()).size() == 1);
  fs::remove_all(world.old_dir());
  Adopt(world, sequence);
  REQUIRE(FailedOver::KeptBeside(world.old_dir()).size() == 1);
  RequireFollowed(world);
}

TEST_CASE("A planned move back sends no table", "[tools][follow][adopt]") {
  const FailedOver world;
  const uint64_t sequence = SequenceOf(world.new_dir());
  Adopt(world, sequence);
  // Moves back: promotes the old primary and lets the new one follow it.
  Ran({"promote", world.old_dir(), "--source-is-down"});
  Follow(world.old_dir(), world.new_dir(), sequence);
  const json last = LastTransferIn(world.new_dir());
  INFO(last.dump());
  uint64_t tables = 0;
  for (const std::string& path : PathsWith(world.old_dir(), ".sst")) {
    tables += fs::file_size(path);
  }
  REQUIRE(last["bytes_reused"] == tables);
  REQUIRE(Ran({"verify", world.old_dir(), world.new_dir()})["status"] == "OK");
}

// A file system without hard links.
class WithoutLinks : public rocksdb::FileSystemWrapper {
 public:
  WithoutLinks() : FileSystemWrapper(rocksdb::FileSystem::Default()) {}
  const char* Name() const override { return "WithoutLinks"; }
  rocksdb::IOStatus LinkFile(const std::string&, const std::string&,
                             const rocksdb::IOOptions&,
                             rocksdb::IODebugContext*) override {
    return rocksdb::IOStatus::NotSupported("no links");
  }
};

TEST_CASE("Option --adopt changes nothing on a file system without hard links",
          "[tools][follow][adopt]") {
  const FailedOver world;
  const std::string before = Fingerprint(world.old_dir());
  FollowOptions follow;
  follow.pull.source.directory = world.new_dir();
  follow.pull.target_dir = world.old_dir();
  follow.pull.file_system = std::make_shared<WithoutLinks>();
  follow.pull.lanes = 1;
  follow.adopt = true;
  StandbyState state;
  const rocksdb::Status status = MakeFollow(follow)->Run(&state);
  INFO(status.ToString());
  REQUIRE(EndStateOf(status) == EndState::kRefused);
  REQUIRE(MessageOf(status).find("hard links") != std::string::npos);
  REQUIRE(Fingerprint(world.old_dir()) == before);
  REQUIRE_FALSE(fs::exists(world.old_dir() + ".sstferry"));
}

}  // namespace
}  // namespace sstferry::test::fail_back_test
