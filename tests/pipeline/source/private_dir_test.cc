#include "pipeline/snapshot/private_dir.h"

#include <unistd.h>
#include <utime.h>

#include <filesystem>
#include <fstream>

#include "tests/pipeline/source/snapshot_support.h"
#include "tests/support/catch.h"
#include "tests/support/sample_database.h"

namespace sstferry::private_dir_test {
namespace {

constexpr char kDirectory[] = "SSTFERRY_TEST_HOLDER_DIR";

TEST_CASE("The snapshot holder holds a snapshot until it is killed",
          "[.child][snapshot]") {
  if (FromParent(kDirectory).empty()) {
    return;  // only runs as the second process of the cases below
  }
  SnapshotOptions options;
  options.database_dir = FromParent(kDirectory);
  std::unique_ptr<Snapshot> snapshot;
  REQUIRE_OK(Snapshot::Create(options, &snapshot));
  TellParent(snapshot->directory());
  for (;;) {
    pause();
  }
}

TEST_CASE("PrivateDir of a killed process is removed by the next snapshot",
          "[snapshot][crash]") {
  ScratchDir tree;
  rocksdb::Options plain;
  {
    test::OpenDb db(plain, tree / "db");
    REQUIRE_OK(db->Put(rocksdb::WriteOptions(), "k", "v"));
    REQUIRE_OK(db->Flush(rocksdb::FlushOptions()));
  }
  const std::string before = Fingerprint(tree / "db");
  SnapshotOptions options;
  options.database_dir = tree / "db";
  ChildCase dead("The snapshot holder holds a snapshot until it is killed",
                 {{kDirectory, tree / "db"}});
  const std::string left = dead.Listen();
  REQUIRE(std::filesystem::exists(left + "/db/CURRENT"));
  // While the process runs, others leave its directory alone.
  std::unique_ptr<Snapshot> snapshot;
  REQUIRE_OK(Snapshot::Create(options, &snapshot));
  CHECK(std::filesystem::exists(left + "/db/CURRENT"));
  dead.Kill();
  CHECK(std::filesystem::exists(left + "/db/CURRENT"));
  std::vector<std::string> lines;
  options.log = [&lines](LogLevel, const std::string& line) {
    lines.push_back(line);
  };
  std::unique_ptr<Snapshot> next;
  REQUIRE_OK(Snapshot::Create(options, &next));
  CHECK_FALSE(std::filesystem::exists(left));
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].find(left) != std::string::npos);
  // The snapshot of this running process is not removed.
  CHECK(std::filesystem::exists(snapshot->directory() + "/db/CURRENT"));
  CHECK(ReadAll(*snapshot, "default").size() == 1);
  CHECK(Fingerprint(tree / "db") == before);
}

TEST_CASE("RemoveLeftoverSnapshots changes nothing that it does not recognize",
          "[snapshot]") {
  ScratchDir tree;
  const std::vector<std::string> foreign = {
      ".sstferry-snapshot-1-0123456789abcdef",
      "db.sstferry-snapshot--0123456789abcdef",
      "db.sstferry-snapshot-1-0123456789abcdeg",
      "db.sstferry-snapshot-1-0123",
      "db.sstferry-snapshot-x1-0123456789abcdef",
      "db"};
  for (const std::string& name : foreign) {
    std::filesystem::create_directory(tree / name);
    std::ofstream(tree / (name + "/lock")) << "";
  }
  std::string dead;
  {
    std::unique_ptr<PrivateDir> dir;
    REQUIRE_OK(PrivateDir::Create(tree.path(), "db", &dir));
    WriteBytes(dir->db() + "/file", "of the snapshot");
    dir->Keep(true);  // as if its process had died
    dead = dir->path();
  }
  const std::string young = "db.sstferry-snapshot-2-0123456789abcdef";
  std::filesystem::create_directory(tree / young);
  const std::string old = "db.sstferry-snapshot-3-0123456789abcdef";
  std::filesystem::create_directory(tree / old);
  std::ofstream(tree / (old + "/lock.new")) << "sstf";
  const utimbuf long_ago{1000, 1000};
  REQUIRE(utime((tree / old).c_str(), &long_ago) == 0);
  REQUIRE_OK(RemoveLeftoverSnapshots(tree.path(), nullptr));
  CHECK_FALSE(std::filesystem::exists(dead));
  CHECK_FALSE(std::filesystem::exists(tree / old));
  CHECK(std::filesystem::exists(tree / young));
  for (const std::string& name : foreign) {
    CHECK(std::filesystem::exists(tree / name));
  }
}

// Whoever owns the parent can rename a directory of another account there.
TEST_CASE("RemoveLeftoverSnapshots empties no directory that was given the "
          "name of a snapshot",
          "[snapshot][hostile]") {
  namespace fs = std::filesystem;
  ScratchDir tree;
  const std::string name = tree / "db.sstferry-snapshot-4-0123456789abcdef";
  fs::create_directories(name + "/db");
  WriteBytes(name + "/db/file", "precious");
  WriteBytes(name + "/release", "precious");
  bool has_lock = true;
  SECTION("without a lock") { has_lock = false; }
  SECTION("with an empty lock") { WriteBytes(name + "/lock", ""); }
  SECTION("with the lock of a workspace") {
    WriteBytes(name + "/lock", "sstferry workspace 1\n");
  }
  SECTION("with the lock of a snapshot") {
    std::unique_ptr<PrivateDir> dir;
    REQUIRE_OK(PrivateDir::Create(tree.path(), "db", &dir));
    fs::copy(dir->own_path() + "/lock", name + "/lock");
  }
  const utimbuf long_ago{1000, 1000};
  REQUIRE(utime(name.c_str(), &long_ago) == 0);
  const std::string before = Fingerprint(name);
  const auto status = RemoveLeftoverSnapshots(tree.path(), nullptr);
  INFO(status.ToString());
  CHECK(status.ok() != has_lock);
  CHECK((status.ok() || MessageOf(status).find(name) != std::string::npos));
  REQUIRE(fs::exists(name));
  CHECK(Fingerprint(name) == before);
}

TEST_CASE("PrivateDir says what to do if its parent cannot be used",
          "[snapshot]") {
  ScratchDir tree;
  std::unique_ptr<PrivateDir> dir;
  const auto status = PrivateDir::Create(tree / "absent", "db", &dir);
  CHECK(EndStateOf(status) == EndState::kSourceError);
  CHECK(MessageOf(status).find("--snapshot-dir") != std::string::npos);
}

TEST_CASE("A directory that took the name of a private directory is left alone",
          "[snapshot][hostile]") {
  namespace fs = std::filesystem;
  ScratchDir tree;
  MakeSampleDatabase(tree / "db");
  fs::create_directories(tree / "victim/db");
  fs::create_directories(tree / "victim/held");
  for (const char* name :
       {"db/file", "held/file", "lock", "lease", "options"}) {
    WriteBytes(tree / ("victim/" + std::string(name)), "precious");
  }
  const std::string victim = Fingerprint(tree / "victim");
  SnapshotOptions options;
  options.database_dir = tree / "db";
  std::string log;
  options.log = [&log](LogLevel, const std::string& line) {
    log += line + "\n";
  };
  std::unique_ptr<Snapshot> snapshot;
  REQUIRE_OK(Snapshot::Create(options, &snapshot));
  const std::string path = snapshot->directory();
  const std::string own_path = snapshot->own_path();
  fs::rename(path, tree / "moved");
  const bool by_link = GENERATE(true, false);
  if (by_link) {
    fs::create_symlink(tree / "victim", path);
  } else {
    fs::rename(tree / "victim", path);
  }
  // The snapshot still reads its own files, and no lease is written through a
  // link.
  CHECK(ReadAll(*snapshot, "default") == EntriesOf(tree / "db"));
  CHECK(fs::exists(own_path + "/db/CURRENT"));
  if (by_link) {
    Lease lease;
    CHECK_FALSE(WriteLease(path, lease).ok());
    CHECK_FALSE(AskForRelease(path).ok());
    ForgetRelease(path);
    RemoveLease(path);
  }
  snapshot.reset();
  CHECK(fs::is_empty(tree / "moved"));
  CHECK(log.find("was not changed") != std::string::npos);
  if (by_link) {
    CHECK(fs::is_symlink(path));
    fs::remove(path);
  } else {
    fs::rename(path, tree / "victim");
  }
  CHECK(Fingerprint(tree / "victim") == victim);
}

TEST_CASE("A link inside a private directory is removed and not followed",
          "[snapshot][hostile]") {
  namespace fs = std::filesystem;
  ScratchDir tree;
  MakeSampleDatabase(tree / "db");
  fs::create_directory(tree / "victim");
  WriteBytes(tree / "victim/file", "precious");
  SnapshotOptions options;
  options.database_dir = tree / "db";
  std::unique_ptr<Snapshot> snapshot;
  REQUIRE_OK(Snapshot::Create(options, &snapshot));
  const std::string path = snapshot->directory();
  fs::create_symlink(tree / "victim", path + "/db/below");
  fs::create_symlink(tree / "victim", path + "/replay");
  fs::create_directories(path + "/db/deep/deeper");
  snapshot.reset();
  CHECK_FALSE(fs::exists(path));
  CHECK(fs::exists(tree / "victim/file"));
}

}  // namespace
}  // namespace sstferry::private_dir_test
