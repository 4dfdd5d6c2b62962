// The old databases next to TARGET_DIR that a swap may delete.
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <memory>

#include "pipeline/base/rocksdb_compat.h"
#include "pipeline/disk/old_directories.h"
#include "rocksdb/db.h"
#include "tests/support/catch.h"
#include "tests/support/sample_database.h"
#include "tests/support/scratch_dir.h"

namespace sstferry::old_directories_test {
namespace {

namespace fs = std::filesystem;

// Makes an old directory as a swap does, and returns its path.
std::string PutAway(const ScratchDir& dir, const std::string& contents) {
  const std::string made = dir / "made";
  fs::create_directory(made);
  WriteBytes(made + "/000012.sst", contents);
  std::string path;
  REQUIRE_OK(MarkOldDirectory(rocksdb::FileSystem::Default().get(),
                              dir / "target", made, &path));
  fs::rename(made, path);
  return path;
}

// Renames an old directory, as if the swap had given it this name.
std::string Rename(const ScratchDir& dir, const std::string& path,
                   const std::string& name) {
  const std::string renamed = dir / name;
  fs::rename(path, renamed);
  struct stat info;
  REQUIRE(stat(renamed.c_str(), &info) == 0);
  WriteBytes(renamed + "/sstferry.old",
             "sstferry old database 1\n" + std::to_string(info.st_ino) +
                 "\n" + name + "\n");
  return renamed;
}

// Renames an old directory to another date.
std::string Redate(const ScratchDir& dir, const std::string& path,
                   const std::string& date) {
  return Rename(dir, path, "target.old-" + date);
}

std::vector<std::string> Remove(const ScratchDir& dir, uint32_t keep) {
  StopSignal stop;
  std::vector<std::string> removed;
  REQUIRE_OK(RemoveOldDirectories(rocksdb::FileSystem::Default().get(),
                                  dir / "target", keep, /*bytes_per_sec=*/0,
                                  &stop, &removed));
  return removed;
}

TEST_CASE("The newest old databases stay, and older ones are deleted",
          "[target][old]") {
  ScratchDir dir;
  const std::string first =
      Redate(dir, PutAway(dir, "1"), "20261123T020003Z");
  const std::string second =
      Redate(dir, PutAway(dir, "2"), "20261124T020003Z");
  const std::string third =
      Redate(dir, PutAway(dir, "3"), "20261124T020003Z-2");
  const std::string tenth =
      Redate(dir, PutAway(dir, "10"), "20261124T020003Z-10");
  const std::vector<OldDirectory> found = ListOldDirectories(dir / "target/");
  REQUIRE(found.size() == 4);
  REQUIRE(found[0].path == tenth);
  REQUIRE(found[1].path == third);
  REQUIRE(found[2].path == second);
  REQUIRE(found[3].path == first);
  REQUIRE(found[3].replaced_at == "2026-11-23T02:00:03Z");
  REQUIRE(Remove(dir, 4).empty());
  REQUIRE(Remove(dir, 3) == std::vector<std::string>{first});
  REQUIRE(Remove(dir, 1) == std::vector<std::string>{third, second});
  REQUIRE(Remove(dir, 0) == std::vector<std::string>{tenth});
  REQUIRE(fs::is_empty(dir.path()));
}

TEST_CASE("What a standby's source lost is listed with what its removal frees, "
          "and never deleted",
          "[target][old]") {
  ScratchDir dir;
  const std::string lost = dir / "target.sstferry-lost-20261125T020003Z";
  fs::create_directory(lost);
  fs::create_directory(dir / "target");
  WriteBytes(lost + "/000012.sst", "own");
  WriteBytes(lost + "/000014.sst", "also in the standby");
  fs::create_hard_link(lost + "/000014.sst", dir / "target/000014.sst");
  const std::vector<OldDirectory> found = ListOldDirectories(dir / "target");
  REQUIRE(found.size() == 1);
  REQUIRE(found[0].path == lost);
  REQUIRE(found[0].replaced_at == "2026-11-25T02:00:03Z");
  REQUIRE(found[0].own_bytes == 3);
  REQUIRE(Remove(dir, 0).empty());
}

TEST_CASE("Two databases that are replaced in one second get two names",
          "[target][old]") {
  ScratchDir dir;
  for (int i = 0; i < 5; ++i) {
    PutAway(dir, "x");
  }
  REQUIRE(ListOldDirectories(dir / "target").size() == 5);
}

TEST_CASE("The database that was replaced last stays, whatever the clock said",
          "[target][old]") {
  ScratchDir dir;
  // The clock was ahead when the first one was replaced.
  const std::string ahead =
      Redate(dir, PutAway(dir, "1"), "20300131T235959Z-2");
  const std::string second = PutAway(dir, "2");
  REQUIRE(Remove(dir, 1) == std::vector<std::string>{ahead});
  const std::string third = PutAway(dir, "3");
  REQUIRE(Remove(dir, 1) == std::vector<std::string>{second});
  REQUIRE(BytesOf(third + "/000012.sst") == "3");
}

TEST_CASE("Only directories that a swap made are deleted, whatever their names",
          "[target][old]") {
  ScratchDir dir;
  const std::string date = "target.old-20261123T020003Z";
  std::string precious = dir / date;
  SECTION("a directory of that name") {
    fs::create_directory(precious);
  }
  SECTION("a copy of one that a swap made") {
    const std::string own = PutAway(dir, "own");
    fs::copy(own, dir / "copy", fs::copy_options::recursive);
    // The copy exists, so it has another inode number.
    REQUIRE(Remove(dir, 0) == std::vector<std::string>{own});
    precious = own;
    fs::rename(dir / "copy", precious);
  }
  SECTION("a link to one that a swap made") {
    fs::rename(Redate(dir, PutAway(dir, "own"), "20261123T020003Z"),
               dir / "elsewhere");
    fs::create_directory_symlink(dir / "elsewhere", precious);
    precious = dir / "elsewhere";
  }
  SECTION("one whose record is a link") {
    precious = Redate(dir, PutAway(dir, "own"), "20261123T020003Z");
    fs::rename(precious + "/sstferry.old", dir / "record");
    fs::create_symlink(dir / "record", precious + "/sstferry.old");
  }
  SECTION("one whose record others may write") {
    precious = Redate(dir, PutAway(dir, "own"), "20261123T020003Z");
    fs::permissions(precious + "/sstferry.old", fs::perms{0660});
  }
  SECTION("one of another target, or without a valid time") {
    for (const char* name : {"other.old-20261123T020003Z",
                             "target.old-20261323T020003Z", "target.old-",
                             "target.old-20261123T020003Z.txt"}) {
      Rename(dir, PutAway(dir, "own"), name);
    }
    precious = dir / "target.old-20261323T020003Z";
  }
  if (!fs::exists(precious + "/000012.sst")) {
    WriteBytes(precious + "/000012.sst", "precious");
  }
  const std::string before = BytesOf(precious + "/000012.sst");
  REQUIRE(ListOldDirectories(dir / "target").empty());
  REQUIRE(Remove(dir, 0).empty());
  REQUIRE(BytesOf(precious + "/000012.sst") == before);
}

TEST_CASE("A database that was used again after a swap is not an old one if "
          "someone else moves it away",
          "[target][old]") {
  ScratchDir dir;
  const std::string target = dir / "target";
  fs::rename(PutAway(dir, "precious"), target);
  const std::string kept = target + ".old-20261202T080000Z";
  fs::rename(target, kept);
  REQUIRE(ListOldDirectories(target).empty());
  REQUIRE(Remove(dir, 0).empty());
  REQUIRE(BytesOf(kept + "/000012.sst") == "precious");
}

TEST_CASE("An old database that a process has open is not deleted",
          "[target][old]") {
  ScratchDir dir;
  MakeSampleDatabase(dir / "made", SampleShape());
  std::string path;
  REQUIRE_OK(MarkOldDirectory(rocksdb::FileSystem::Default().get(),
                              dir / "target", dir / "made", &path));
  fs::rename(dir / "made", path);
  const auto child_has_it = [&] {
    // LOCK is a lock of the process, so another process must hold it.
    const pid_t child = fork();
    if (child == 0) {
      std::unique_ptr<rocksdb::DB> db;
      const bool open = rocksdb::DB::Open({}, path, IntoDb(&db)).ok();
      raise(open ? SIGSTOP : SIGKILL);
      _exit(0);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, WUNTRACED) == child);
    REQUIRE(WIFSTOPPED(status));
    return child;
  };
  const pid_t child = child_has_it();
  REQUIRE(Remove(dir, 0).empty());
  kill(child, SIGKILL);
  REQUIRE(waitpid(child, nullptr, 0) == child);
  REQUIRE(Remove(dir, 0) == std::vector<std::string>{path});
}

TEST_CASE("A stopped deletion is continued by the next", "[target][old]") {
  ScratchDir dir;
  const std::string path = PutAway(dir, std::string(300'000, 'x'));
  StopSignal stop;
  stop.Stop();
  std::vector<std::string> removed;
  const rocksdb::Status status = RemoveOldDirectories(
      rocksdb::FileSystem::Default().get(), dir / "target", 0,
      /*bytes_per_sec=*/100'000, &stop, &removed);
  REQUIRE(EndStateOf(status) == EndState::kCancelled);
  REQUIRE(removed.empty());
  REQUIRE(ListOldDirectories(dir / "target").size() == 1);
  REQUIRE(Remove(dir, 0) == std::vector<std::string>{path});
  REQUIRE_FALSE(fs::exists(path));
}

}  // namespace
}  // namespace sstferry::old_directories_test
