// A directory as a store: the contract of stores, the files on the disk, and
// files that others put there.
#include "pipeline/archive/directory_store.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <utility>

#include "format/end_state.h"
#include "pipeline/archive/init.h"
#include "pipeline/archive/log_writer.h"
#include "pipeline/archive/open_store.h"
#include "tests/pipeline/archive/store_contract.h"
#include "tests/support/catch.h"
#include "tests/support/sample_bytes.h"
#include "tests/support/scratch_dir.h"

namespace {

// The errno that linkat() and renameat2() return, as on a file system that does
// not have hard links or RENAME_NOREPLACE. 0: the calls work.
std::atomic<int> link_error{0};
std::atomic<int> rename_error{0};
// The errno that fstatat() returns, as for an inode that cannot be read.
std::atomic<int> stat_error{0};
// Runs once, after the next call of linkat() that works.
std::function<void()> after_link;
// Counts the calls of fstatat().
std::atomic<uint64_t> looks{0};
// The inode whose calls of fsync() are counted.
std::atomic<ino_t> watched_inode{0};
std::atomic<int> syncs{0};

int Refuse(int error) {
  errno = error;
  return -1;
}

}  // namespace

// These replace the C library's functions in this whole program.
extern "C" int linkat(int from_dir, const char* from, int to_dir,
                      const char* to, int flags) noexcept {
  if (link_error != 0) return Refuse(link_error);
  const auto linked = static_cast<int>(
      syscall(SYS_linkat, from_dir, from, to_dir, to, flags));
  if (linked == 0 && after_link) std::exchange(after_link, nullptr)();
  return linked;
}
extern "C" int renameat2(int from_dir, const char* from, int to_dir,
                         const char* to, unsigned int flags) noexcept {
  return rename_error != 0 ? Refuse(rename_error)
                           : static_cast<int>(syscall(SYS_renameat2, from_dir,
                                                      from, to_dir, to,
                                                      flags));
}
extern "C" int fstatat(int dir, const char* name, struct stat* found,
                       int flags) noexcept {
  ++looks;
  return stat_error != 0 ? Refuse(stat_error)
                         : static_cast<int>(syscall(SYS_newfstatat, dir, name,
                                                    found, flags));
}
extern "C" int fsync(int fd) {
  struct stat info = {};
  if (fstat(fd, &info) == 0 && info.st_ino == watched_inode) ++syncs;
  return static_cast<int>(syscall(SYS_fsync, fd));
}

namespace sstferry::directory_store_test {
namespace {

namespace fs = std::filesystem;

std::unique_ptr<ObjectStore> Open(const std::string& directory) {
  StoreOptions options;
  options.where.directory = directory;
  options.timeouts.retry = std::chrono::milliseconds(50);
  std::unique_ptr<ObjectStore> store;
  const rocksdb::Status opened = OpenStore(options, &store);
  INFO(opened.ToString());
  REQUIRE(opened.ok());
  return store;
}

std::string Contents(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return test::BytesIn(in);
}

struct NoLinks {
  explicit NoLinks(int error) { link_error = error; }
  ~NoLinks() { link_error = rename_error = 0; }
};

}  // namespace

TEST_CASE("A directory keeps the contract of stores", "[archive]") {
  const ScratchDir scratch;
  const fs::path place = fs::path(scratch.path()) / "archive";
  fs::create_directory(place);
  CheckStoreContract(Open(place).get());
}

TEST_CASE("One of 32 clients that put a key into a directory wins",
          "[archive]") {
  const ScratchDir scratch;
  std::vector<std::unique_ptr<ObjectStore>> clients;
  std::vector<ObjectStore*> pointers;
  for (int i = 0; i < 32; ++i) {
    clients.push_back(Open(scratch.path()));
    pointers.push_back(clients.back().get());
  }
  for (int round = 0; round < 10; ++round) {
    CHECK(RaceToPut(pointers, "race/" + std::to_string(round)) == 1);
  }
}

TEST_CASE("An object is a file with the directory's permissions",
          "[archive]") {
  const ScratchDir scratch;
  const fs::path place = fs::path(scratch.path()) / "archive";
  fs::create_directory(place);
  REQUIRE(chmod(place.c_str(), 0750) == 0);
  const auto store = Open(place);
  REQUIRE(PutBytes(store.get(), "files/0a/b", "bytes", true).ok());
  CHECK(Contents(place / "files/0a/b") == "bytes");
  struct stat info = {};
  REQUIRE(stat((place / "files/0a/b").c_str(), &info) == 0);
  CHECK((info.st_mode & 07777) == 0640);
  CHECK(info.st_nlink == 1);
  REQUIRE(stat((place / "files/0a").c_str(), &info) == 0);
  CHECK((info.st_mode & 07777) == 0750);
  REQUIRE(store->Delete({"files/0a/b"}).ok());
  CHECK_FALSE(fs::exists(place / "files"));
}

TEST_CASE("Files that root puts into a user's archive belong to that user",
          "[archive]") {
  if (geteuid() != 0) {
    WARN("SKIPPED: needs root");
    return;
  }
  constexpr uid_t kUser = 61751;
  const ScratchDir scratch;
  const fs::path place = fs::path(scratch.path()) / "archive";
  fs::create_directory(place);
  REQUIRE(chown(place.c_str(), kUser, kUser) == 0);
  REQUIRE(chmod(place.c_str(), 0700) == 0);
  const auto store = Open(place);
  REQUIRE(PutBytes(store.get(), "files/0a/b", "bytes", true).ok());
  for (const auto& entry : fs::recursive_directory_iterator(place)) {
    INFO(entry.path());
    struct stat info = {};
    REQUIRE(lstat(entry.path().c_str(), &info) == 0);
    CHECK(info.st_uid == kUser);
    CHECK(info.st_gid == kUser);
  }
}

TEST_CASE("No link below a directory is followed", "[archive]") {
  const ScratchDir scratch;
  const fs::path root = scratch.path();
  fs::create_directory(root / "archive");
  fs::create_directory(root / "elsewhere");
  std::ofstream(root / "elsewhere/secret") << "secret";
  fs::create_symlink(root / "elsewhere", root / "archive/dir");
  fs::create_symlink(root / "elsewhere/secret", root / "archive/file");
  fs::create_symlink(root / "elsewhere/made", root / "archive/dangling");
  REQUIRE(mkfifo((root / "archive/fifo").c_str(), 0600) == 0);
  const auto store = Open(root / "archive");
  std::string bytes;
  ObjectInfo info;
  for (const char* key : {"dir/secret", "file", "dangling", "fifo"}) {
    INFO(key);
    CHECK_FALSE(GetBytes(store.get(), key, 100, &bytes).ok());
    CHECK_FALSE(store->Head(key, &info).ok());
  }
  CHECK_FALSE(PutBytes(store.get(), "dir/new", "x", false).ok());
  CHECK_FALSE(PutBytes(store.get(), "dangling", "x", true).ok());
  CHECK_FALSE(fs::exists(root / "elsewhere/new"));
  CHECK_FALSE(fs::exists(root / "elsewhere/made"));
  // A put replaces a link by a file, and does not change the link's target.
  CHECK(PutBytes(store.get(), "file", "new", false).ok());
  CHECK(Contents(root / "elsewhere/secret") == "secret");
  CHECK(store->Delete({"dir/secret"}).ok());  // the object does not exist
  CHECK(fs::exists(root / "elsewhere/secret"));

  std::vector<ObjectInfo> objects;
  uint64_t foreign = 0;
  REQUIRE(ListAll(store.get(), "", 100, &objects, &foreign).ok());
  REQUIRE(objects.size() == 1);
  CHECK(objects[0].key == "file");
  CHECK(foreign == 3);
}

// A log of months is a directory of a million files: a page must not look up
// those of the other pages.
TEST_CASE("A large directory is listed in pages, in order", "[archive]") {
  const ScratchDir scratch;
  const fs::path root = scratch.path();
  fs::create_directory(root / "many");
  std::vector<std::string> expected;
  for (int i = 0; i < 40'000; ++i) {
    const std::string key = "many/" + std::to_string(i * 7919LL % 100'003);
    std::ofstream(root / key) << i;
    expected.push_back(key);
    // Empty directories also count toward the size of a page.
    fs::create_directory(root / ("many/" + std::to_string(i) + "-empty"));
  }
  std::sort(expected.begin(), expected.end());
  std::vector<ObjectInfo> objects;
  const auto store = Open(root);
  looks = 0;
  uint64_t pages = 0;
  REQUIRE(ListPages(store.get(), "many/", 100'000, [&](ListPage* page) {
            ++pages;
            std::move(page->objects.begin(), page->objects.end(),
                      std::back_inserter(objects));
            return StoreResult();
          }).ok());
  CHECK(looks <= 40'100);  // as many as files
  CHECK(pages > 1);
  CHECK(pages < 10);
  REQUIRE(objects.size() == expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    REQUIRE(objects[i].key == expected[i]);
  }
}

// A full disk takes no bytes, but it must be possible to prune it.
TEST_CASE("A directory tells the time on a full disk", "[archive]") {
  const ScratchDir scratch;
  const auto store = Open(scratch.path());
  UnixSeconds before = 0;
  REQUIRE(store->Now(&before).ok());
  REQUIRE(PutBytes(store.get(), "a", "bytes", false).ok());
  rlimit limit = {};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &limit) == 0);
  const rlimit full = {0, limit.rlim_max};
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  REQUIRE(setrlimit(RLIMIT_FSIZE, &full) == 0);
  UnixSeconds now = 0;
  const StoreResult told = store->Now(&now);
  const StoreResult put = PutBytes(store.get(), "b", "bytes", false);
  const StoreResult deleted = store->Delete({"a"});
  setrlimit(RLIMIT_FSIZE, &limit);
  signal(SIGXFSZ, handler);
  CHECK(put.code == StoreCode::kNoSpace);
  CHECK(told.ok());
  CHECK(now >= before);
  CHECK(deleted.ok());
}

TEST_CASE("The time of a file that another account may set is not believed",
          "[archive]") {
  const ScratchDir scratch;
  const fs::path own = fs::path(scratch.path()) / ".sstferry";
  const fs::path clock = own / ("clock-" + std::to_string(geteuid()));
  const auto store = Open(scratch.path());
  UnixSeconds before = 0;
  REQUIRE(store->Now(&before).ok());
  REQUIRE(fs::exists(clock));
  const auto now = [&] {
    UnixSeconds told = 0;
    REQUIRE(store->Now(&told).ok());
    CHECK(told >= before);
    CHECK(told < before + 600);
  };
  SECTION("a file with another name, too") {
    std::ofstream(own / "other") << "x";
    fs::remove(clock);
    fs::create_hard_link(own / "other", clock);
    now();
    CHECK(Contents(own / "other") == "x");
  }
  SECTION("a file that holds something") {
    std::ofstream(clock) << "of somebody";
    now();
    CHECK(Contents(clock) == "of somebody");
  }
  SECTION("a link") {
    fs::remove(clock);
    fs::create_symlink(own / "dangling", clock);
    now();
    CHECK_FALSE(fs::exists(own / "dangling"));
  }
  SECTION("a file of another account") {
    if (geteuid() != 0) {
      WARN("SKIPPED: needs root");
      return;
    }
    REQUIRE(chown(clock.c_str(), 61751, 61751) == 0);
    fs::last_write_time(clock, fs::file_time_type::clock::now() -
                                   std::chrono::hours(2));
    now();
    CHECK(fs::last_write_time(clock) < fs::file_time_type::clock::now() -
                                           std::chrono::hours(1));
  }
}

TEST_CASE("What a put left at a crash is removed once it is old",
          "[archive]") {
  const ScratchDir scratch;
  const fs::path own = fs::path(scratch.path()) / ".sstferry";
  fs::create_directory(own);
  const auto store = Open(scratch.path());
  UnixSeconds now = 0;
  REQUIRE(store->Now(&now).ok());
  std::ofstream(own / "put-1") << "old";
  std::ofstream(own / "put-2") << "new";
  fs::last_write_time(own / "put-1", fs::file_time_type::clock::now() -
                                         std::chrono::hours(2));
  std::vector<ObjectInfo> objects;
  REQUIRE(ListAll(store.get(), "", 10, &objects).ok());
  CHECK(objects.empty());
  uint64_t removed = 0;
  REQUIRE(store->RemoveUploads(
                   now - 3600, [](const std::string&) { return false; },
                   &removed)
              .ok());
  CHECK(removed == 1);
  CHECK_FALSE(fs::exists(own / "put-1"));
  CHECK(fs::exists(own / "put-2"));
}

TEST_CASE("The name of an object that another process put is synced",
          "[archive]") {
  const ScratchDir scratch;
  const fs::path files = fs::path(scratch.path()) / "files";
  fs::create_directory(files);
  std::ofstream(files / "a") << "of a killed process";
  struct stat info = {};
  REQUIRE(stat(files.c_str(), &info) == 0);
  const auto store = Open(scratch.path());
  syncs = 0;
  watched_inode = info.st_ino;
  REQUIRE(PutBytes(store.get(), "files/a", "bytes", /*if_absent=*/true).code ==
          StoreCode::kExists);
  watched_inode = 0;
  CHECK(syncs > 0);
}

TEST_CASE("Nothing is put into a directory that its path no longer leads to",
          "[archive]") {
  const ScratchDir scratch;
  const fs::path place = fs::path(scratch.path()) / "archive";
  const fs::path away = fs::path(scratch.path()) / "away";
  fs::create_directory(place);
  const auto store = Open(place);
  REQUIRE(PutBytes(store.get(), "a", "bytes", true).ok());
  const auto put = [&store] {
    return PutBytes(store.get(), "b", "bytes", true);
  };
  fs::rename(place, away);
  const StoreResult missing = put();
  CHECK(missing.code == StoreCode::kMoved);
  CHECK(EndStateOf(missing.status) == EndState::kRefused);
  fs::create_directory(place);
  const StoreResult other = put();
  CHECK(other.code == StoreCode::kMoved);
  CHECK(EndStateOf(other.status) == EndState::kRefused);
  CHECK(other.status.ToString().find("found another one") !=
        std::string::npos);
  CHECK_FALSE(fs::exists(place / "b"));
  CHECK_FALSE(fs::exists(away / "b"));

  fs::remove(place);
  fs::create_directory_symlink(away, place);
  CHECK(PutBytes(store.get(), "c", "bytes", true).ok());
  fs::remove(place);
  fs::rename(away, place);
  stat_error = EACCES;
  const StoreResult hidden = put();
  stat_error = 0;
  CHECK(hidden.code == StoreCode::kMoved);
  CHECK(EndStateOf(hidden.status) == EndState::kDenied);
  CHECK_FALSE(fs::exists(place / "b"));
  CHECK(put().ok());
}

TEST_CASE("A segment does not count as put if the directory is moved meanwhile",
          "[archive]") {
  const ScratchDir scratch;
  const fs::path place = fs::path(scratch.path()) / "archive";
  const fs::path away = fs::path(scratch.path()) / "away";
  fs::create_directory(place);
  const auto store = Open(place);
  constexpr uint64_t kNow = 1'000'000'000;
  LogWriterOptions options;
  options.has_if_absent = true;
  options.now_micros = [] { return kNow; };
  LogWriter log(SetId{1}, FollowPosition{"id", 5, 6, 6, {}, 9, 100, {}}, kNow,
                kNow, options);
  const std::string bytes = "bytes";
  FollowEnd end;
  end.last_sequence = 7;
  REQUIRE_OK(log.Append({{9, 100, bytes}}, end, kNow));
  after_link = [&] { fs::rename(place, away); };
  REQUIRE(EndStateOf(log.Put(store.get())) == EndState::kRefused);
  CHECK(log.state().segments == 0);
  CHECK(log.state().unput_bytes == bytes.size());
  fs::rename(away, place);
  REQUIRE_OK(log.Put(store.get()));
  CHECK(log.state().segments == 1);
}

// The store learns that there are no links when it names the first file.
TEST_CASE("A first put without hard links asks for each digest once",
          "[archive]") {
  const NoLinks no_links(EPERM);
  const ScratchDir scratch;
  const auto store = Open(scratch.path());
  const std::string bytes = "ten bytes.";
  const SliceSource source(bytes);
  std::vector<uint64_t> asked;
  PutRequest request;
  request.key = "a";
  request.bytes = &source;
  request.digest = [&](uint64_t offset, uint64_t n, Sha256Digest* sha256) {
    asked.push_back(offset);
    *sha256 = Sha256Of(rocksdb::Slice(bytes.data() + offset, n));
    return rocksdb::Status::OK();
  };
  request.piece_bytes = 4;
  REQUIRE(store->Put(request).ok());
  CHECK(asked == std::vector<uint64_t>{0, 4, 8});
  CHECK(Contents(fs::path(scratch.path()) / "a") == bytes);
}

TEST_CASE("A store's address is a bucket or an absolute path", "[archive]") {
  StoreAddress where;
  REQUIRE(ParseStoreAddress("s3://bucket/fleet/orders/", &where).ok());
  CHECK(where.bucket == "bucket");
  CHECK(where.prefix == "fleet/orders");
  CHECK(where.ToString() == "s3://bucket/fleet/orders");
  REQUIRE(ParseStoreAddress("s3://bucket", &where).ok());
  CHECK(where.prefix.empty());
  CHECK(where.ToString() == "s3://bucket");
  REQUIRE(ParseStoreAddress("/mnt/nfs/orders", &where).ok());
  CHECK(where.is_directory());
  for (const char* text : {"", "bucket", "s3://", "s3:///x", "s3://b//c",
                           "s3://b/a b", "s3://b/../c", "s3://b/%41"}) {
    INFO(text);
    CHECK(ParseStoreAddress(text, &where).IsInvalidArgument());
  }
  StoreOptions options;
  options.where.directory = "/no/such/directory";
  std::unique_ptr<ObjectStore> store;
  CHECK(EndStateOf(OpenStore(options, &store)) == EndState::kRefused);
}

TEST_CASE("A directory without hard links keeps the contract by renames",
          "[archive]") {
  const NoLinks no_links(GENERATE(EPERM, EOPNOTSUPP, ENOSYS));
  const ScratchDir scratch;
  const fs::path place = fs::path(scratch.path()) / "archive";
  fs::create_directory(place);
  CheckStoreContract(Open(place).get());
  std::vector<std::unique_ptr<ObjectStore>> clients;
  std::vector<ObjectStore*> pointers;
  for (int i = 0; i < 8; ++i) {
    clients.push_back(Open(place));
    pointers.push_back(clients.back().get());
  }
  CHECK(RaceToPut(pointers, "race/key") == 1);
  // Without hard links and such renames, Init refuses and names the reason.
  rename_error = EINVAL;
  fs::create_directory(fs::path(scratch.path()) / "other");
  const auto other = Open(fs::path(scratch.path()) / "other");
  ArchiveHead head;
  std::vector<std::string> notes;
  const rocksdb::Status status = InitArchive(other.get(), {}, &head, &notes);
  INFO(status.ToString());
  CHECK(EndStateOf(status) == EndState::kRefused);
  CHECK(status.ToString().find("neither hard links nor a rename") !=
        std::string::npos);
}

TEST_CASE("An archive is created only in an empty directory", "[archive]") {
  const ScratchDir scratch;
  const fs::path place = scratch.path();
  const auto store = Open(place);
  ArchiveHead head;
  std::vector<std::string> notes;
  const auto init = [&] {
    return InitArchive(store.get(), {}, &head, &notes);
  };
  // Allowed names: lost+found of a volume, and files of an earlier attempt.
  fs::create_directory(place / "lost+found");
  fs::create_directory(place / ".sstferry");
  const std::string name = GENERATE("CURRENT", "000007.sst", ".hidden");
  std::ofstream(place / name) << "not an archive";
  const rocksdb::Status refused = init();
  CHECK(EndStateOf(refused) == EndState::kRefused);
  CHECK(refused.ToString().find(name == "CURRENT" ? "found a database"
                                                  : name) !=
        std::string::npos);
  CHECK_FALSE(fs::exists(place / "ARCHIVE"));
  CHECK_FALSE(fs::exists(place / "init"));
  fs::remove(place / name);
  REQUIRE(init().ok());
  CHECK(init().ToString().find("there is an archive already") !=
        std::string::npos);
}

TEST_CASE("A list leaves out no object that cannot be looked up",
          "[archive][store]") {
  const ScratchDir scratch;
  const std::unique_ptr<ObjectStore> store = Open(scratch.path());
  for (const char* key : {"sets/a", "sets/b"}) {
    REQUIRE_OK(PutBytes(store.get(), key, "bytes", false).status);
  }
  std::vector<ObjectInfo> objects;
  for (const int error : {EIO, ESTALE, EACCES}) {
    stat_error = error;
    const StoreResult listed = ListAll(store.get(), "sets/", 10, &objects);
    stat_error = 0;
    CAPTURE(error, objects.size());
    REQUIRE_FALSE(listed.ok());
  }
  stat_error = ENOENT;  // deleted since its name was read
  const StoreResult listed = ListAll(store.get(), "sets/", 10, &objects);
  stat_error = 0;
  REQUIRE_OK(listed.status);
  REQUIRE(objects.empty());
  REQUIRE_OK(ListAll(store.get(), "sets/", 10, &objects).status);
  REQUIRE(objects.size() == 2);
}

}  // namespace sstferry::directory_store_test
