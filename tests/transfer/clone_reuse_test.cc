// Tests clones that send only the files that the target does not have.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utime.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <random>

#include "pipeline/base/last_transfer.h"
#include "pipeline/disk/durable.h"
#include "rocksdb/sst_file_writer.h"
#include "sstferry/target.h"
#include "tests/support/catch.h"
#include "tests/support/sample_bytes.h"
#include "tests/support/test_db.h"

namespace sstferry::test::clone_reuse_test {
namespace {

namespace fs = std::filesystem;

PullOptions Swapping(const ScratchDir& dir) {
  PullOptions options;
  options.source.directory = dir / "source";
  options.target_dir = dir / "target";
  options.method = PullMethod::kClone;
  options.mode = PullMode::kSwap;
  return options;
}

Ferried Run(const PullOptions& options) {
  Ferried ran;
  ran.status = MakePull(options)->Run(&ran.summary);
  return ran;
}

Ferried Swap(const ScratchDir& dir) { return Run(Swapping(dir)); }

// Makes four tables of 200 kB that nothing compacts, and a WAL with entries.
void MakeSource(const std::string& path,
                const rocksdb::ColumnFamilyOptions& options = Quiet()) {
  OpenDb db(path, OneFamily(options));
  for (int table = 0; table < 4; ++table) {
    for (int i = 0; i < 200; ++i) {
      db.Put(NumberedKey(1000 * table + i), RandomBytes(1000, 7 * table + i));
    }
    db.Flush();
  }
}

void Change(const std::string& path, const std::string& value,
            const rocksdb::ColumnFamilyOptions& options = Quiet()) {
  OpenDb db(path, OneFamily(options));
  db.Put(NumberedKey(5), value);
  db.Flush();
}

uint64_t BytesWith(const std::string& directory, const std::string& suffix) {
  uint64_t bytes = 0;
  for (const std::string& path : PathsWith(directory, suffix)) {
    bytes += fs::file_size(path);
  }
  return bytes;
}

ino_t InodeOf(const std::string& path) {
  struct stat info;
  REQUIRE(stat(path.c_str(), &info) == 0);
  return info.st_ino;
}

// Flips one bit on the disk. The file's size, inode and modification time stay
// the same. (On some file systems, direct reads do not see bytes that are not
// on the disk yet.)
void Rot(const std::string& path, uint64_t at) {
  struct stat info;
  REQUIRE(stat(path.c_str(), &info) == 0);
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(at));
    const int byte = file.get();
    file.seekp(static_cast<std::streamoff>(at));
    file.put(static_cast<char>(byte ^ 0x10));
    REQUIRE(file.good());
  }
  const timespec times[2] = {info.st_atim, info.st_mtim};
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  REQUIRE(fd >= 0);
  REQUIRE(fsync(fd) == 0);
  REQUIRE(futimens(fd, times) == 0);
  close(fd);
}

std::string BytesOf(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return BytesIn(in);
}

TEST_CASE("A swap by clone sends only files that the target does not have",
          "[transfer][clone][reuse]") {
  const ScratchDir dir;
  MakeSource(dir / "source");
  REQUIRE_OK(Swap(dir).status);
  const uint64_t received = BytesWith(dir / "target", ".sst");
  Change(dir / "source", "changed");
  const uint64_t more = BytesWith(dir / "source", ".sst") - received;
  const Ferried night = Swap(dir);
  INFO(night.message());
  REQUIRE_OK(night.status);
  REQUIRE(night.summary.exchanged);
  REQUIRE(night.summary.files_reused == 4);
  REQUIRE(night.summary.bytes_reused == received);
  REQUIRE(night.summary.bytes_skipped == received);
  REQUIRE(night.summary.sst_bytes < more + 32'000);
  REQUIRE(night.summary.files_cloned < 7);
  REQUIRE_FALSE(fs::exists(dir / "target.sstferry"));
  ExpectSameEntries(dir / "source", dir / "target");
  for (const std::string& path : PathsWith(dir / "target", ".sst")) {
    REQUIRE(BytesOf(path) ==
            BytesOf(dir / "source/" + fs::path(path).filename().string()));
  }
}

TEST_CASE("After a swap, the old and the new copy together need the space of "
          "one copy and of the sent files",
          "[transfer][clone][reuse]") {
  const ScratchDir dir;
  MakeSource(dir / "source");
  REQUIRE_OK(Ferry(dir / "source", dir / "target", [] {
               PullOptions options;
               options.method = PullMethod::kClone;
               return options;
             }()).status);
  Change(dir / "source", "changed");
  std::map<ino_t, uint64_t> blocks;
  const auto count = [&](const std::string& copy) {
    for (const std::string& path : PathsWith(copy, "")) {
      struct stat info;
      REQUIRE(lstat(path.c_str(), &info) == 0);
      blocks[info.st_ino] = static_cast<uint64_t>(info.st_size);
    }
  };
  PullOptions options = Swapping(dir);
  options.after_swap = [&](const SwapEvent& event) {
    REQUIRE(event.exchanged);
    count(dir / "target.sstferry/db");  // the old copy, before its deletion
    return rocksdb::Status::OK();
  };
  const Ferried swapped = Run(options);
  INFO(swapped.message());
  REQUIRE_OK(swapped.status);
  REQUIRE(swapped.summary.files_reused == 4);
  REQUIRE_FALSE(blocks.empty());
  count(dir / "target");
  uint64_t both = 0;
  for (const auto& [inode, bytes] : blocks) both += bytes;
  uint64_t one = 0;
  for (const std::string& path : PathsWith(dir / "source", "")) {
    one += fs::file_size(path);
  }
  REQUIRE(both * 10 < one * 13);
  ExpectSameEntries(dir / "source", dir / "target");
}

TEST_CASE("Files are reused from a target that an application has open and "
          "writes to, and neither database changes the other",
          "[transfer][clone][reuse]") {
  const ScratchDir dir;
  MakeSource(dir / "source");
  REQUIRE_OK(Swap(dir).status);
  Change(dir / "source", "changed");
  std::optional<OpenDb> app;
  app.emplace(dir / "target", OneFamily(Quiet()));
  for (int i = 0; i < 500; ++i) app->Put(NumberedKey(i), "of the target");
  app->Flush();
  app->Put("more", "in the target's WAL");
  PullOptions options = Swapping(dir);
  options.adopt = true;  // the target has more writes than its source
  options.before_swap = [&app](const SwapEvent&) {
    app->Compact();  // deletes the tables that the new one links
    app.reset();
    return rocksdb::Status::OK();
  };
  const Ferried night = Run(options);
  INFO(night.message());
  REQUIRE_OK(night.status);
  REQUIRE(night.summary.files_reused == 4);
  ExpectSameEntries(dir / "source", dir / "target");
}

TEST_CASE("If nothing changed, no file is sent, nothing is exchanged and no "
          "hook is called",
          "[transfer][clone][reuse]") {
  const ScratchDir dir;
  MakeSource(dir / "source");
  REQUIRE_OK(Swap(dir).status);
  const bool opened = GENERATE(false, true);
  const bool verify = GENERATE(false, true);
  if (opened) OpenDb(dir / "target", OneFamily(Quiet()));
  const ino_t before = InodeOf(dir / "target");
  PullOptions options = Swapping(dir);
  options.verify = verify;
  uint64_t hooks = 0;
  options.before_swap = options.after_swap = [&hooks](const SwapEvent&) {
    hooks++;
    return rocksdb::Status::OK();
  };
  const Ferried night = Run(options);
  INFO(night.message());
  REQUIRE_OK(night.status);
  REQUIRE_FALSE(night.summary.exchanged);
  REQUIRE(night.summary.state == "complete");
  REQUIRE(night.summary.verified == verify);
  REQUIRE(night.summary.sst_bytes == 0);
  REQUIRE(night.summary.files_cloned == 0);
  REQUIRE(night.summary.files_reused == 4);
  REQUIRE(hooks == 0);
  REQUIRE(InodeOf(dir / "target") == before);
  REQUIRE_FALSE(fs::exists(dir / "target.sstferry"));
  LastTransfer last;
  REQUIRE(ReadLastTransfer(dir / "target", &last));
  REQUIRE(last.transfer_id == night.summary.transfer_id);
  ExpectSameEntries(dir / "source", dir / "target");
  options.always_swap = true;
  const Ferried always = Run(options);
  INFO(always.message());
  REQUIRE_OK(always.status);
  REQUIRE(always.summary.exchanged);
  REQUIRE(always.summary.verified == verify);
  REQUIRE(hooks == 2);
  REQUIRE(InodeOf(dir / "target") != before);
  ExpectSameEntries(dir / "source", dir / "target");
}

TEST_CASE("An unchanged WAL with entries causes no exchange until an "
          "application opens the target",
          "[transfer][clone][reuse]") {
  const ScratchDir dir;
  MakeSource(dir / "source");
  std::optional<OpenDb> app(std::in_place, dir / "source",
                            OneFamily(Quiet()));
  app->Put("key", "in the WAL");
  REQUIRE_OK(Swap(dir).status);
  const Ferried same = Swap(dir);
  INFO(same.message());
  REQUIRE_OK(same.status);
  REQUIRE_FALSE(same.summary.exchanged);
  SECTION("then the source writes") { app->Put("key", "in the WAl"); }
  SECTION("then an application opens the target") {
    OpenDb(dir / "target", OneFamily(Quiet()));
  }
  const Ferried night = Swap(dir);
  INFO(night.message());
  REQUIRE_OK(night.status);
  REQUIRE(night.summary.exchanged);
  app.reset();
  ExpectSameEntries(dir / "source", dir / "target");
}

TEST_CASE("A source that was rolled back and wrote an equally long WAL counts "
          "as changed",
          "[transfer][clone][reuse]") {
  const ScratchDir dir;
  MakeSource(dir / "source");
  fs::copy(dir / "source", dir / "older", fs::copy_options::recursive);
  OpenDb(dir / "source", OneFamily(Quiet())).Put("key", "once");
  REQUIRE_OK(Swap(dir).status);
  REQUIRE_FALSE(Swap(dir).summary.exchanged);
  fs::remove_all(dir / "source");
  fs::copy(dir / "older", dir / "source", fs::copy_options::recursive);
  OpenDb(dir / "source", OneFamily(Quiet())).Put("key", "then");
  const Ferried night = Swap(dir);
  INFO(night.message());
  REQUIRE_OK(night.status);
  REQUIRE(night.summary.exchanged);
  REQUIRE(night.summary.files_reused == 4);
  ExpectSameEntries(dir / "source", dir / "target");
}

TEST_CASE("A target that differs from what was published is exchanged",
          "[transfer][clone][reuse]") {
  const ScratchDir dir;
  MakeSource(dir / "source");
  REQUIRE_OK(Swap(dir).status);
  PullOptions options = Swapping(dir);
  SECTION("its application wrote to its WAL") {
    OpenDb db(dir / "target", OneFamily(Quiet()));
    db.Put("key", "of the target");
    options.adopt = true;  // it is newer than the source
  }
  SECTION("its application wrote and flushed") {
    OpenDb db(dir / "target", OneFamily(Quiet()));
    db.Put("key", "of the target");
    db.Flush();
    options.adopt = true;
  }
  SECTION("its application made a column family") {
    OpenDb db(dir / "target", OneFamily(Quiet()));
    db.Create({"another", Quiet()});
  }
  SECTION("its application compacted it") {
    OpenDb db(dir / "target", OneFamily(Quiet()));
    db.Compact();
  }
  SECTION("it must get the source's id") { options.keep_identity = true; }
  SECTION("its record names another source") {
    const std::string path = dir / "target/last_transfer.json";
    std::string text = BytesOf(path);
    const std::string key = "\"source_database_id\": \"";
    text.replace(text.find(key) + key.size(), 4, "beef");
    std::ofstream(path, std::ios::binary) << text;
    options.adopt = true;
  }
  const Ferried night = Run(options);
  INFO(night.message());
  REQUIRE_OK(night.status);
  REQUIRE(night.summary.exchanged);
  ExpectSameEntries(dir / "source", dir / "target");
}

TEST_CASE("Blob files are reused if their modification time is the same",
          "[transfer][clone][reuse]") {
  const ScratchDir dir;
  rocksdb::ColumnFamilyOptions blobs = Quiet();
  blobs.enable_blob_files = true;
  blobs.min_blob_size = 100;
  MakeSource(dir / "source", blobs);
  REQUIRE_OK(Swap(dir).status);
  Change(dir / "source", "changed", blobs);
  std::vector<std::string> files = PathsWith(dir / "target", ".blob");
  REQUIRE(files.size() == 4);
  const bool touched = GENERATE(false, true);
  if (touched) REQUIRE(utime(files.front().c_str(), nullptr) == 0);
  const Ferried night = Swap(dir);
  INFO(night.message());
  REQUIRE_OK(night.status);
  REQUIRE(night.summary.files_reused == (touched ? 7 : 8));
  // The files that were sent now have the source's modification time.
  Change(dir / "source", "again", blobs);
  const Ferried next = Swap(dir);
  REQUIRE_OK(next.status);
  REQUIRE(next.summary.files_reused == 9);
  ExpectSameEntries(dir / "source", dir / "target");
}

// Gives all blob files one time in whole seconds, as images of containers do.
void NormaliseTimes(const std::string& path) {
  const timespec times[2] = {{1, 0}, {1, 0}};
  for (const std::string& file : PathsWith(path, ".blob")) {
    REQUIRE(utimensat(AT_FDCWD, file.c_str(), times, 0) == 0);
  }
}

TEST_CASE("Of blob files with equal times in whole seconds, only those with "
          "equal bytes are reused",
          "[transfer][clone][reuse]") {
  const ScratchDir dir;
  rocksdb::ColumnFamilyOptions blobs = Quiet();
  blobs.enable_blob_files = true;
  blobs.min_blob_size = 100;
  // Two builds from one base have the same database id and file numbers.
  const auto build = [&](int first, int salt) {
    OpenDb db(dir / "source", OneFamily(blobs));
    for (int i = first; i < first + 50; ++i) {
      db.Put(NumberedKey(i), RandomBytes(1000, salt + i));
    }
    db.Flush();
  };
  build(0, 0);
  fs::copy(dir / "source", dir / "base", fs::copy_options::recursive);
  build(1000, 10'000);
  NormaliseTimes(dir / "source");
  REQUIRE_OK(Swap(dir).status);
  const std::vector<std::string> before = PathsWith(dir / "source", ".blob");
  REQUIRE(before.size() == 2);
  fs::remove_all(dir / "source");
  fs::copy(dir / "base", dir / "source", fs::copy_options::recursive);
  build(1000, 20'000);
  NormaliseTimes(dir / "source");
  for (const std::string& path : before) {
    REQUIRE(fs::exists(path));
  }
  const Ferried night = Swap(dir);
  INFO(night.message());
  REQUIRE_OK(night.status);
  ExpectSameEntries(dir / "source", dir / "target");
  REQUIRE(night.summary.files_reused == 2);  // those of the base
}

TEST_CASE("Verify finds a reused file that the disk changed, and fetches it "
          "from the source",
          "[transfer][clone][reuse][corruption]") {
  const ScratchDir dir;
  MakeSource(dir / "source");
  REQUIRE_OK(Swap(dir).status);
  const std::string path = PathsWith(dir / "target", ".sst").front();
  const uint64_t chunk_bytes = GENERATE(64 << 10, 64'000'000);
  Rot(path, fs::file_size(path) / 2);
  if (GENERATE(false, true)) Change(dir / "source", "changed");
  PullOptions options = Swapping(dir);
  options.chunk_bytes = chunk_bytes;
  options.verify = true;
  const Ferried night = Run(options);
  INFO(night.message());
  REQUIRE_OK(night.status);
  REQUIRE(night.summary.exchanged);
  REQUIRE(night.summary.verified);
  REQUIRE(night.summary.files_reused == 3);
  REQUIRE(night.notes_mention("differ from the source's and are fetched again; "
                              "check the disk here"));
  ExpectSameEntries(dir / "source", dir / "target");
  REQUIRE(Run(options).summary.files_reused >= 4);
}

TEST_CASE("Verify reads all units of a reused file that was fetched again",
          "[transfer][clone][reuse][corruption]") {
  const ScratchDir dir;
  MakeSource(dir / "source");
  REQUIRE_OK(Swap(dir).status);
  const std::string path = PathsWith(dir / "target", ".sst").front();
  REQUIRE(fs::file_size(path) > 200'000);
  Rot(path, 100'000);  // in the first of two units
  const std::string received =
      dir / "target.sstferry/db/" + fs::path(path).filename().string();
  TEST_SetFaultHook([&](const std::string& point) {
    if (point == "FinishClone:OptionsWritten") Rot(received, 150'000);
  });
  PullOptions options = Swapping(dir);
  options.chunk_bytes = 64 << 10;
  options.verify = true;
  const Ferried night = Run(options);
  TEST_SetFaultHook(nullptr);
  INFO(night.message());
  REQUIRE(night.notes_mention("1 of "));
  REQUIRE(night.state() == EndState::kCorrupt);
  REQUIRE(night.message().find(fs::path(path).filename().string()) !=
          std::string::npos);
  REQUIRE_FALSE(night.summary.verified);
  REQUIRE_FALSE(night.summary.exchanged);
}

TEST_CASE("A MANIFEST or OPTIONS that the disk changed is not published",
          "[transfer][clone][reuse][corruption]") {
  const ScratchDir dir;
  MakeSource(dir / "source");
  const std::string prefix = GENERATE("MANIFEST-", "OPTIONS-", "IDENTITY");
  std::string rotten;
  // The files are written, and are synced next.
  TEST_SetFaultHook([&](const std::string& point) {
    if (point != "Puller:AccessSet") return;
    for (const auto& entry :
         fs::directory_iterator(dir / "target.sstferry/db")) {
      const std::string name = entry.path().filename();
      if (name.starts_with(prefix)) rotten = name;
    }
    Rot(dir / ("target.sstferry/db/" + rotten), 20);
  });
  PullOptions options = Swapping(dir);
  options.verify = GENERATE(false, true);
  const Ferried refused = Run(options);
  TEST_SetFaultHook(nullptr);
  INFO(refused.message());
  REQUIRE_FALSE(rotten.empty());
  REQUIRE(refused.state() == EndState::kCorrupt);
  REQUIRE(refused.message().find(rotten) != std::string::npos);
  REQUIRE_FALSE(fs::exists(dir / "target"));
  const Ferried again = Run(options);
  INFO(again.message());
  REQUIRE_OK(again.status);
  ExpectSameEntries(dir / "source", dir / "target");
}

TEST_CASE("A clone whose files have only equal identities is not reported as "
          "verified",
          "[transfer][clone][reuse]") {
  const ScratchDir dir;
  MakeSource(dir / "source");
  REQUIRE_OK(Swap(dir).status);
  Change(dir / "source", "changed");
  const Ferried night = Swap(dir);
  REQUIRE_OK(night.status);
  REQUIRE(night.summary.files_reused == 4);
  REQUIRE_FALSE(night.summary.verified);
}

TEST_CASE("A clone that sends all is verified against the source",
          "[transfer][clone][reuse]") {
  const ScratchDir dir;
  MakeSource(dir / "source");
  PullOptions options;
  options.method = PullMethod::kClone;
  options.chunk_bytes = GENERATE(64 << 10, 64'000'000);
  options.durability = GENERATE(Durability::kChunk, Durability::kNone);
  options.verify = true;
  const Ferried moved = Ferry(dir / "source", dir / "target", options,
                              GENERATE(Via::kDirectory, Via::kTcp));
  INFO(moved.message());
  REQUIRE_OK(moved.status);
  REQUIRE(moved.summary.verified);
  ExpectSameEntries(dir / "source", dir / "target");
}

TEST_CASE("A file whose permissions differ from those of the new database is "
          "not linked, and keeps them",
          "[transfer][clone][reuse]") {
  const ScratchDir dir;
  MakeSource(dir / "source");
  REQUIRE_OK(Swap(dir).status);
  Change(dir / "source", "changed");
  const std::string path = PathsWith(dir / "target", ".sst").front();
  REQUIRE(chmod(path.c_str(), 0640) == 0);
  const ino_t inode = InodeOf(path);
  PullOptions options = Swapping(dir);
  struct stat info {};
  options.after_swap = [&](const SwapEvent&) {
    const std::string old =
        dir / "target.sstferry/db/" + fs::path(path).filename().string();
    REQUIRE(stat(old.c_str(), &info) == 0);
    return rocksdb::Status::OK();
  };
  const Ferried swapped = Run(options);
  INFO(swapped.message());
  REQUIRE_OK(swapped.status);
  REQUIRE(swapped.summary.files_reused == 3);
  REQUIRE(swapped.notes_mention("owner or permissions"));
  REQUIRE(info.st_ino == inode);
  REQUIRE((info.st_mode & 07777) == 0640);
}

std::map<std::string, fs::perms> ModesOfTables(const std::string& directory) {
  std::map<std::string, fs::perms> modes;
  for (const std::string& path : PathsWith(directory, ".sst")) {
    modes[path] = fs::status(path).permissions();
  }
  REQUIRE_FALSE(modes.empty());
  return modes;
}

TEST_CASE("Other permissions since files were linked change no file of the old "
          "database",
          "[transfer][clone][reuse]") {
  const ScratchDir dir;
  MakeSource(dir / "source");
  PullOptions first = Swapping(dir);
  first.target_mode = 0755;
  REQUIRE_OK(Run(first).status);
  Change(dir / "source", "changed");
  const std::map<std::string, fs::perms> before =
      ModesOfTables(dir / "target");
  int exchanges = 0;
  PullOptions options = Swapping(dir);
  options.before_swap = [&](const SwapEvent&) {
    exchanges++;
    REQUIRE(ModesOfTables(dir / "target") == before);
    return rocksdb::Status::OK();
  };
  SECTION("for the run that resumes") {
    const std::unique_ptr<Operation> pull = MakePull(options);
    TEST_SetFaultHook([&](const std::string& name) {
      if (name == "Puller:TotalsAgreed") pull->Cancel();
    });
    Summary stopped;
    REQUIRE(EndStateOf(pull->Run(&stopped)) == EndState::kCancelled);
    options.target_mode = 0700;
  }
  SECTION("of TARGET_DIR, during the run") {
    TEST_SetFaultHook([&](const std::string& name) {
      if (name == "Puller:TotalsAgreed") {
        fs::permissions(dir / "target", fs::perms{0700});
      }
    });
    const Ferried refused = Run(options);
    INFO(refused.message());
    REQUIRE(refused.state() == EndState::kRefused);
    REQUIRE(exchanges == 0);
    REQUIRE(ModesOfTables(dir / "target") == before);
  }
  TEST_SetFaultHook(nullptr);
  const Ferried swapped = Run(options);
  INFO(swapped.message());
  REQUIRE_OK(swapped.status);
  REQUIRE(exchanges == 1);
  for (const auto& [path, mode] : ModesOfTables(dir / "target")) {
    REQUIRE(mode == fs::perms{0600});
  }
  ExpectSameEntries(dir / "source", dir / "target");
}

TEST_CASE("A new target links from an older copy beside it",
          "[transfer][clone][reuse]") {
  const ScratchDir dir;
  MakeSource(dir / "source");
  REQUIRE_OK(Swap(dir).status);
  fs::rename(dir / "target", dir / "older");
  Change(dir / "source", "changed");
  PullOptions options = Swapping(dir);
  options.mode = PullMode::kPull;
  options.reuse_dir = dir / "older";
  // The table has several units, and one of them differs. It must not be
  // written through the link.
  const bool rotten = GENERATE(false, true);
  options.verify = rotten;
  options.chunk_bytes = 64 << 10;
  const std::string table = PathsWith(dir / "older", ".sst").front();
  if (rotten) Rot(table, fs::file_size(table) / 2);
  const std::string before = Fingerprint(dir / "older");
  const Ferried moved = Run(options);
  INFO(moved.message());
  REQUIRE_OK(moved.status);
  REQUIRE(moved.summary.files_reused == (rotten ? 3 : 4));
  REQUIRE(Fingerprint(dir / "older") == before);
  ExpectSameEntries(dir / "source", dir / "target");
  SECTION("but never from the source") {
    fs::remove_all(dir / "target");
    options.reuse_dir = dir / "source";
    REQUIRE(Run(options).state() == EndState::kRefused);
  }
}

TEST_CASE("A damaged target provides no files", "[transfer][clone][reuse]") {
  const ScratchDir dir;
  MakeSource(dir / "source");
  REQUIRE_OK(Swap(dir).status);
  fs::remove(PathsWith(dir / "target", ".sst").front());
  const Ferried night = Swap(dir);
  INFO(night.message());
  REQUIRE_OK(night.status);
  REQUIRE(night.summary.files_reused == 0);
  REQUIRE(night.notes_mention("no file of"));
  ExpectSameEntries(dir / "source", dir / "target");
}

// A source over many nights: it writes, flushes, compacts, ingests, and is
// rolled back to an older copy. After a rollback it gives the same file numbers
// to other contents. The target's application does the same kinds of changes.
class Nights {
 public:
  Nights(const ScratchDir& dir, uint64_t seed) : dir_(dir), random_(seed) {
    blobs_.enable_blob_files = Chance(2);
    blobs_.min_blob_size = 100;
    families_ = {{"default", blobs_}, {"other", Quiet()}};
    Write(dir_ / "source");
  }

  void Day() {
    if (Chance(4)) {
      RollBack();
    }
    if (Chance(3)) {
      Remember();
    }
    for (uint64_t i = Below(3); i > 0; --i) Write(dir_ / "source");
    if (fs::exists(dir_ / "target") && Chance(2)) Write(dir_ / "target");
  }

  Ferried Night() {
    PullOptions options = Swapping(dir_);
    options.chunk_bytes = Chance(2) ? 64 << 10 : 64'000'000;
    options.verify = Chance(3);
    options.adopt = true;  // the target may have more writes than its source
    return Run(options);
  }

  void RequireEqual() {
    for (const auto& family : families_) {
      INFO(family.name);
      REQUIRE(EntriesOf(dir_ / "source", families_, family.name) ==
              EntriesOf(dir_ / "target", families_, family.name));
    }
  }

 private:
  uint64_t Below(uint64_t n) { return random_() % n; }
  bool Chance(uint64_t one_in) { return Below(one_in) == 0; }

  void Write(const std::string& path) {
    OpenDb db(path, families_);
    const uint64_t actions = 2 + Below(6);
    for (uint64_t i = 0; i < actions; ++i) {
      const std::string family = Chance(3) ? "other" : "default";
      switch (Below(7)) {
        case 0:
          db.Flush();
          break;
        case 1:
          db.Compact(family);
          break;
        case 2:
          db.DeleteRange(NumberedKey(Below(400)), NumberedKey(400 + Below(99)),
                         family);
          break;
        case 3:
          Ingest(&db, family);
          break;
        default:
          PutSome(&db, family);
      }
    }
  }

  void PutSome(OpenDb* db, const std::string& family) {
    const uint64_t at = Below(500);
    const uint64_t salt = random_();
    for (uint64_t i = at; i < at + 60; ++i) {
      db->Put(NumberedKey(i), RandomBytes(300, salt + i), family);
    }
    if (Chance(2)) db->Flush();
  }

  // Ingests the same file again, in half of the calls.
  void Ingest(OpenDb* db, const std::string& family) {
    const std::string path = dir_ / "external.sst";
    if (!fs::exists(path) || Chance(2)) {
      rocksdb::Options options;
      rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), options);
      REQUIRE_OK(writer.Open(path));
      const uint64_t at = Below(500);
      const uint64_t salt = random_();
      for (uint64_t i = at; i < at + 40; ++i) {
        REQUIRE_OK(writer.Put(NumberedKey(i), RandomBytes(200, salt + i)));
      }
      REQUIRE_OK(writer.Finish());
    }
    rocksdb::IngestExternalFileOptions options;
    options.write_global_seqno = Chance(2);
    REQUIRE_OK((*db)->IngestExternalFile(db->cf(family), {path}, options));
  }

  void Remember() {
    fs::remove_all(dir_ / "older");
    fs::copy(dir_ / "source", dir_ / "older", fs::copy_options::recursive);
  }

  // Rolls back as an operator does who copies with rsync -a: modification times
  // are preserved.
  void RollBack() {
    if (!fs::exists(dir_ / "older")) {
      return;
    }
    fs::remove_all(dir_ / "source");
    fs::copy(dir_ / "older", dir_ / "source", fs::copy_options::recursive);
    for (const std::string& path : PathsWith(dir_ / "older", "")) {
      fs::last_write_time(
          dir_ / "source/" + fs::path(path).filename().string(),
          fs::last_write_time(path));
    }
  }

  const ScratchDir& dir_;
  std::mt19937_64 random_;
  rocksdb::ColumnFamilyOptions blobs_ = Quiet();
  Families families_;
};

TEST_CASE("Ten nights of any history end with the source's entries",
          "[transfer][clone][reuse]") {
  const char* const asked = std::getenv("SSTFERRY_CLONE_NIGHTS_SEEDS");
  const uint64_t seeds = asked == nullptr ? 3 : std::stoull(asked);
  uint64_t reused = 0;
  uint64_t unchanged = 0;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    const ScratchDir dir;
    Nights nights(dir, seed);
    for (int night = 0; night < 10; ++night) {
      nights.Day();
      const Ferried ran = nights.Night();
      INFO("seed " << seed << " night " << night << ": " << ran.message());
      REQUIRE_OK(ran.status);
      reused += ran.summary.files_reused;
      unchanged += ran.summary.exchanged ? 0 : 1;
      nights.RequireEqual();
    }
  }
  REQUIRE(reused > 0);
  INFO("nights that were not exchanged: " << unchanged);
}

}  // namespace
}  // namespace sstferry::test::clone_reuse_test
