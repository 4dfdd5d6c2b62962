// Tests PowerLossFileSystem, alone and with RocksDB.
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "pipeline/base/rocksdb_compat.h"
#include "rocksdb/db.h"
#include "rocksdb/env.h"
#include "tests/support/catch.h"
#include "tests/support/power_loss_file_system.h"
#include "tests/support/sample_database.h"
#include "tests/support/scratch_dir.h"

namespace sstferry::power_loss_file_system_test {
namespace {

namespace fs = std::filesystem;
using rocksdb::FileOptions;
using rocksdb::IOOptions;
using rocksdb::Status;
const IOOptions kIo;
using Names = std::vector<std::string>;

// An empty disk below a scratch directory.
struct Disk {
  Disk() : root(scratch / "disk") { fs::create_directory(root); }
  std::string operator/(const std::string& name) const {
    return root + "/" + name;
  }
  // Turns the power on. Everything on the disk so far is durable.
  PowerLossFileSystem& TurnOn() {
    power.reset();
    power = std::make_unique<PowerLossFileSystem>(root);
    return *power;
  }
  void Lose(Survival survival = Survival::kNothing, uint64_t seed = 1) {
    REQUIRE(power->Strangers().empty());
    power->LosePower(survival, seed);
  }

  ScratchDir scratch;
  std::string root;
  std::unique_ptr<PowerLossFileSystem> power;
};

std::unique_ptr<rocksdb::FSWritableFile> Append(
    PowerLossFileSystem* power, const std::string& path,
    const std::string& bytes) {
  std::unique_ptr<rocksdb::FSWritableFile> file;
  REQUIRE_OK(power->ReopenWritableFile(path, FileOptions(), &file, nullptr));
  REQUIRE_OK(file->Append(bytes, kIo, nullptr));
  return file;
}

void Write(PowerLossFileSystem* power, const std::string& path,
           const std::string& bytes) {
  const auto file = Append(power, path, bytes);
  REQUIRE_OK(file->Fsync(kIo, nullptr));
  REQUIRE_OK(file->Close(kIo, nullptr));
}

ino_t InodeOf(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 ? info.st_ino : 0;
}

TEST_CASE("A power cut loses bytes and names that were not synced",
          "[crash][support]") {
  Disk disk;
  PowerLossFileSystem& power = disk.TurnOn();
  const bool sync_file = GENERATE(true, false);
  const bool sync_names = GENERATE(true, false);
  const auto file = Append(&power, disk / "a", "bytes");
  if (sync_file) {
    REQUIRE_OK(file->Sync(kIo, nullptr));
  } else {
    REQUIRE_OK(file->RangeSync(0, 5, kIo, nullptr));  // promises nothing
  }
  REQUIRE_OK(file->Append("more", kIo, nullptr));
  if (sync_names) {
    REQUIRE_OK(SyncDirectory(&power, disk.root));
  }
  REQUIRE(BytesOf(disk / "a") == "bytesmore");
  disk.Lose();
  REQUIRE(fs::exists(disk / "a") == sync_names);
  if (sync_names) {
    REQUIRE(BytesOf(disk / "a") == (sync_file ? "bytes" : ""));
  }
  // After a power cut, every call fails.
  REQUIRE_FALSE(file->Append("x", kIo, nullptr).ok());
  REQUIRE_FALSE(file->Sync(kIo, nullptr).ok());
  REQUIRE_FALSE(power.CreateDir(disk / "d", kIo, nullptr).ok());
  REQUIRE_FALSE(SyncDirectory(&power, disk.root).ok());
}

TEST_CASE("A power cut restores overwritten and truncated bytes",
          "[crash][support]") {
  Disk disk;
  WriteBytes(disk / "a", "0123456789");
  PowerLossFileSystem& power = disk.TurnOn();
  std::unique_ptr<rocksdb::FSRandomRWFile> random;
  std::unique_ptr<rocksdb::FSWritableFile> file;
  SECTION("by a random write") {
    REQUIRE_OK(power.NewRandomRWFile(disk / "a", {}, &random, nullptr));
    REQUIRE_OK(random->Write(3, "abc", kIo, nullptr));
    REQUIRE_OK(random->Write(8, "defg", kIo, nullptr));
    REQUIRE(BytesOf(disk / "a") == "012abc67defg");
  }
  SECTION("by truncating it on creation") {
    REQUIRE_OK(power.NewWritableFile(disk / "a", {}, &file, nullptr));
    REQUIRE_OK(file->Append("new", kIo, nullptr));
    REQUIRE(BytesOf(disk / "a") == "new");
  }
  SECTION("by truncating it and writing more") {
    REQUIRE_OK(power.ReopenWritableFile(disk / "a", {}, &file, nullptr));
    REQUIRE_OK(file->Truncate(4, kIo, nullptr));
    REQUIRE_OK(file->PositionedAppend("abcdefghij", 4, kIo, nullptr));
    REQUIRE(fs::file_size(disk / "a") == 14);
  }
  REQUIRE(power.unsynced_files() == 1);
  disk.Lose();
  REQUIRE(BytesOf(disk / "a") == "0123456789");
}

TEST_CASE("A sync makes overwritten bytes durable", "[crash][support]") {
  Disk disk;
  WriteBytes(disk / "a", "0123456789");
  PowerLossFileSystem& power = disk.TurnOn();
  std::unique_ptr<rocksdb::FSRandomRWFile> file;
  REQUIRE_OK(power.NewRandomRWFile(disk / "a", {}, &file, nullptr));
  REQUIRE_OK(file->Write(3, "abc", kIo, nullptr));
  REQUIRE_OK(file->Fsync(kIo, nullptr));
  REQUIRE(power.unsynced_files() == 0);
  disk.Lose();
  REQUIRE(BytesOf(disk / "a") == "012abc6789");
}

std::string Read(PowerLossFileSystem* power, const std::string& path,
                 size_t bytes) {
  std::unique_ptr<rocksdb::FSRandomAccessFile> file;
  REQUIRE_OK(power->NewRandomAccessFile(path, {}, &file, nullptr));
  std::string scratch(bytes, '\0');
  rocksdb::Slice found;
  REQUIRE_OK(file->Read(0, bytes, kIo, &found, scratch.data(), nullptr));
  return found.ToString();
}

TEST_CASE("Bytes whose sync failed can be read until their cache is dropped",
          "[crash][support]") {
  Disk disk;
  WriteBytes(disk / "a", "0123456789");
  PowerLossFileSystem& power = disk.TurnOn();
  std::unique_ptr<rocksdb::FSRandomRWFile> random;
  REQUIRE_OK(power.NewRandomRWFile(disk / "a", {}, &random, nullptr));
  power.FailSync("/a", 1, rocksdb::IOStatus::NoSpace("full"));
  REQUIRE_OK(random->Write(8, "abcd", kIo, nullptr));
  REQUIRE(random->Fsync(kIo, nullptr).IsNoSpace());
  REQUIRE(BytesOf(disk / "a") == "01234567abcd");
  REQUIRE(power.unsynced_files() == 0);
  const bool again = GENERATE(false, true);
  if (again) REQUIRE_OK(random->Write(8, "A", kIo, nullptr));
  REQUIRE_OK(random->Fsync(kIo, nullptr));
  REQUIRE(Read(&power, disk / "a", 12) ==
          (again ? "01234567Abcd" : "01234567abcd"));
  const std::string on_disk =
      std::string(again ? "01234567A9" : "0123456789") + std::string(2, '\0');
  if (GENERATE(false, true)) {
    disk.Lose();
  } else {
    std::unique_ptr<rocksdb::FSRandomAccessFile> file;
    REQUIRE_OK(power.NewRandomAccessFile(disk / "a", {}, &file, nullptr));
    REQUIRE_OK(file->InvalidateCache(0, 0));
    REQUIRE(Read(&power, disk / "a", 12) == on_disk);
  }
  REQUIRE(BytesOf(disk / "a") == on_disk);
}

TEST_CASE("A power cut undoes renames, links and removals",
          "[crash][support]") {
  Disk disk;
  WriteBytes(disk / "a", "a");
  WriteBytes(disk / "b", "b");
  fs::create_directory(disk / "d");
  WriteBytes(disk / "d/in", "in");
  fs::create_directory(disk / "empty");
  const ino_t inode = InodeOf(disk / "empty");
  PowerLossFileSystem& power = disk.TurnOn();
  REQUIRE_OK(power.RenameFile(disk / "a", disk / "b", kIo, nullptr));
  REQUIRE_OK(power.LinkFile(disk / "b", disk / "c", kIo, nullptr));
  REQUIRE_OK(power.DeleteFile(disk / "b", kIo, nullptr));
  REQUIRE_OK(RemoveTree(&power, disk / "d"));
  REQUIRE_OK(power.DeleteDir(disk / "empty", kIo, nullptr));
  REQUIRE_OK(power.CreateDir(disk / "d", kIo, nullptr));
  REQUIRE(NamesOf(disk.root) == Names{"c", "d"});
  REQUIRE(BytesOf(disk / "c") == "a");
  const bool synced = GENERATE(false, true);
  if (synced) {
    REQUIRE_OK(SyncDirectory(&power, disk.root));
    REQUIRE(power.unsynced_names() == 1);  // the removal of d/in
  }
  disk.Lose();
  if (synced) {
    REQUIRE(NamesOf(disk.root) == Names{"c", "d"});
    REQUIRE(fs::is_empty(disk / "d"));
  } else {
    REQUIRE(NamesOf(disk.root) == Names{"a", "b", "d", "empty"});
    REQUIRE(BytesOf(disk / "a") == "a");
    REQUIRE(BytesOf(disk / "b") == "b");
    REQUIRE(BytesOf(disk / "d/in") == "in");
    // The directory is the same inode, because records may identify it by that.
    REQUIRE(InodeOf(disk / "empty") == inode);
  }
}

TEST_CASE("A power cut undoes an exchange, and a rename into another directory",
          "[crash][support]") {
  Disk disk;
  fs::create_directories(disk / "work/db");
  WriteBytes(disk / "work/db/x", "new");
  fs::create_directory(disk / "target");
  WriteBytes(disk / "target/x", "old");
  PowerLossFileSystem& power = disk.TurnOn();
  REQUIRE_OK(ExchangeNames(&power, disk / "work/db", disk / "target"));
  REQUIRE(BytesOf(disk / "target/x") == "new");
  const std::string synced =
      GENERATE(as<std::string>(), "nothing", "exchange", "all");
  if (synced != "nothing") {
    REQUIRE_OK(SyncDirectory(&power, disk.root));
  }
  REQUIRE_OK(RenameToNew(&power, disk / "work/db", disk / "old"));
  REQUIRE_FALSE(RenameToNew(&power, disk / "target", disk / "old").ok());
  Write(&power, disk / "target/y", "y");
  if (synced == "all") {
    REQUIRE_OK(SyncDirectory(&power, disk.root));
    REQUIRE_OK(SyncDirectory(&power, disk / "target"));
  }
  disk.Lose();
  REQUIRE(BytesOf(disk / "target/x") ==
          (synced == "nothing" ? "old" : "new"));
  REQUIRE(fs::exists(disk / "target/y") == (synced == "all"));
  REQUIRE(fs::exists(disk / "work/db") == (synced != "all"));
  REQUIRE(fs::exists(disk / "old") == (synced == "all"));
  if (synced == "all") {
    REQUIRE(BytesOf(disk / "old/x") == "old");
  }
}

TEST_CASE("If the name of a directory is not synced, a power cut loses all of "
          "its contents",
          "[crash][support]") {
  Disk disk;
  PowerLossFileSystem& power = disk.TurnOn();
  REQUIRE_OK(power.CreateDir(disk / "d", kIo, nullptr));
  Write(&power, disk / "d/a", "a");
  REQUIRE_OK(SyncDirectory(&power, disk / "d"));
  const bool moved_out = GENERATE(false, true);
  if (moved_out) {
    REQUIRE_OK(power.RenameFile(disk / "d", disk / "e", kIo, nullptr));
    REQUIRE_OK(SyncDirectory(&power, disk.root));
  }
  disk.Lose();
  REQUIRE(NamesOf(disk.root) == (moved_out ? Names{"e"} : Names{}));
  REQUIRE((!moved_out || BytesOf(disk / "e/a") == "a"));
}

TEST_CASE("A random power cut tears at any byte and keeps dependent changes "
          "together",
          "[crash][support]") {
  std::set<std::string> contents;
  std::set<std::string> names;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Disk disk;
    PowerLossFileSystem& power = disk.TurnOn();
    Write(&power, disk / "a", "sync");
    Append(&power, disk / "a", "torn");
    REQUIRE_OK(power.RenameFile(disk / "a", disk / "b", kIo, nullptr));
    REQUIRE_OK(power.RenameFile(disk / "b", disk / "c", kIo, nullptr));
    Write(&power, disk / "other", "o");
    disk.Lose(Survival::kRandom, seed);
    std::string all;
    for (const std::string& name : NamesOf(disk.root)) {
      all += name + " ";
      if (name != "other") {
        contents.insert(BytesOf(disk / name));
      }
    }
    names.insert(all);
  }
  // No file is in two places, because a rename is one change. c never exists
  // without a.
  REQUIRE(names == std::set<std::string>{"", "a ", "b ", "c ", "other ",
                                         "a other ", "b other ", "c other "});
  for (const std::string& bytes : contents) {
    INFO(bytes);
    REQUIRE(bytes.rfind("sync", 0) == 0);
  }
  for (const std::string& bytes :
       {std::string("sync"), std::string("synct"), std::string("synctorn"),
        std::string("syncto\0\0", 8)}) {
    INFO(bytes);
    REQUIRE(contents.count(bytes) == 1);
  }
}

TEST_CASE("Changes that bypass the file system are found", "[crash][support]") {
  Disk disk;
  WriteBytes(disk / "a", "a");
  fs::create_directory(disk / "d");
  PowerLossFileSystem& power = disk.TurnOn();
  Write(&power, disk / "d/b", "b");
  REQUIRE(power.Strangers().empty());
  SECTION("a new file") { WriteBytes(disk / "d/new", ""); }
  SECTION("a new directory") { fs::create_directory(disk / "new"); }
  SECTION("appended bytes") {
    std::ofstream(disk / "d/b", std::ios::app) << "more";
  }
  SECTION("a removal") { fs::remove(disk / "a"); }
  SECTION("a rename") { fs::rename(disk / "d", disk / "e"); }
  SECTION("a replaced file") {
    WriteBytes(disk / "x", "a");
    fs::rename(disk / "x", disk / "a");
  }
  REQUIRE_FALSE(power.Strangers().empty());
  power.LosePower(Survival::kRandom, 1);
}

// Puts keys into a database, each with or without a sync, then cuts the power.
// Returns the number of keys that the database still has.
size_t KeysAfterPowerLoss(bool sync, Survival survival, uint64_t seed) {
  Disk disk;
  {
    const auto power = std::make_shared<PowerLossFileSystem>(disk.root);
    const auto env = rocksdb::NewCompositeEnv(power);
    rocksdb::Options options;
    options.create_if_missing = true;
    options.env = env.get();
    options.write_buffer_size = 64 << 10;
    std::unique_ptr<rocksdb::DB> db;
    REQUIRE_OK(rocksdb::DB::Open(options, disk / "db", IntoDb(&db)));
    REQUIRE_OK(SyncDirectory(power.get(), disk.root));
    rocksdb::WriteOptions how;
    how.sync = sync;
    for (int i = 0; i < 200; ++i) {
      REQUIRE_OK(db->Put(how, std::to_string(1000 + i),
                         std::string(1000, 'v')));
    }
    // No flush may run: RocksDB opens no database whose MANIFEST is torn in the
    // middle of a flush.
    REQUIRE_OK(db->PauseBackgroundWork());
    power->LosePower(survival, seed);
    db->ContinueBackgroundWork().PermitUncheckedError();
    db->Close().PermitUncheckedError();
  }
  return EntriesOf(disk / "db").size();
}

TEST_CASE("RocksDB keeps its promises on a disk that loses power",
          "[crash][support]") {
  REQUIRE(KeysAfterPowerLoss(true, Survival::kNothing, 0) == 200);
  REQUIRE(KeysAfterPowerLoss(false, Survival::kNothing, 0) < 200);
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    INFO("seed " << seed);
    REQUIRE(KeysAfterPowerLoss(true, Survival::kRandom, seed) == 200);
  }
}

}  // namespace
}  // namespace sstferry::power_loss_file_system_test
