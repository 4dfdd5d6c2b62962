// The directories that a pull finds, and what it may do to them.
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <thread>
#include <vector>

#include "pipeline/base/database_open.h"
#include "pipeline/base/rocksdb_compat.h"
#include "pipeline/disk/database_files.h"
#include "pipeline/disk/durable.h"
#include "pipeline/disk/exchange_record.h"
#include "pipeline/disk/paced_removal.h"
#include "pipeline/disk/workspace.h"
#include "rocksdb/db.h"
#include "rocksdb/env.h"
#include "sstferry/descriptor.h"
#include "tests/support/catch.h"
#include "tests/support/denied_calls.h"
#include "tests/support/sample_database.h"
#include "tests/support/scratch_dir.h"

namespace sstferry::workspace_test {
namespace {

namespace fs = std::filesystem;
using rocksdb::Status;

const std::string kId(32, 'a');

Status OpenIt(const std::string& target, bool swap,
              std::unique_ptr<Workspace>* workspace) {
  const Status status =
      Workspace::Open(target, swap ? Existing::kSwap : Existing::kRefuse,
                      rocksdb::FileSystem::Default(), nullptr, workspace);
  return status.ok() ? (*workspace)->Clear() : status;
}

Status OpenIt(const std::string& target, bool swap = false) {
  std::unique_ptr<Workspace> workspace;
  return OpenIt(target, swap, &workspace);
}

// Opens the workspace of a refresh in place.
Status OpenItBeside(const std::string& target) {
  std::unique_ptr<Workspace> workspace;
  return Workspace::OpenBeside(target, /*open_here=*/false,
                               rocksdb::FileSystem::Default(), nullptr,
                               &workspace);
}

// Opens the workspace of a refresh by files. Sets *state to the state of an
// earlier exchange.
Status OpenToRefresh(const std::string& target, SwapState* state = nullptr) {
  std::unique_ptr<Workspace> workspace;
  const Status status =
      Workspace::Open(target, Existing::kRefresh,
                      rocksdb::FileSystem::Default(), nullptr, &workspace);
  if (status.ok() && state != nullptr) {
    *state = workspace->swap_state();
  }
  return status;
}

void RequireRefused(const Status& status, const std::string& sentence) {
  INFO(status.ToString());
  REQUIRE(EndStateOf(status) == EndState::kRefused);
  REQUIRE(MessageOf(status).find(sentence) != std::string::npos);
}

void MakeDir(const std::string& path, const std::string& content) {
  fs::create_directory(path);
  WriteBytes(path + "/content", content);
}

TEST_CASE("Workspace refuses a target that is not empty and leaves it alone",
          "[target][workspace]") {
  ScratchDir dir;
  MakeDir(dir / "target", "precious");
  const bool is_database = GENERATE(false, true);
  if (is_database) WriteBytes(dir / "target/CURRENT", "MANIFEST-000001\n");
  RequireRefused(OpenIt(dir / "target"),
                 is_database ? "is not empty and holds a database that was "
                               "not pulled"
                             : "name another directory");
  REQUIRE(NamesOf(dir.path()) == std::vector<std::string>{"target"});
  REQUIRE(BytesOf(dir / "target/content") == "precious");
}

TEST_CASE("Workspace adds its caller's advice if the target is a replica",
          "[target][workspace]") {
  ScratchDir dir;
  MakeDir(dir / "target", "precious");
  WriteBytes(dir / "target/last_transfer.json",
             "{\"transfer_id\": \"" + kId + "\", \"source\": \"sst://db1/a\"}");
  RequireRefused(OpenIt(dir / "target"),
                 "is not empty and holds a replica; name another directory");
  std::unique_ptr<Workspace> workspace;
  RequireRefused(
      Workspace::Open(dir / "target", Existing::kRefuse,
                      rocksdb::FileSystem::Default(), nullptr, &workspace,
                      WorkspaceUse::kPull, "do that"),
      "is not empty and holds a replica; next: do that");
  REQUIRE(BytesOf(dir / "target/content") == "precious");
}

TEST_CASE("Workspace refuses a target that is not a directory",
          "[target][workspace]") {
  ScratchDir dir;
  WriteBytes(dir / "file", "precious");
  fs::create_directory(dir / "elsewhere");
  fs::create_directory_symlink(dir / "elsewhere", dir / "link");
  for (const char* name : {"file", "link"}) {
    for (const bool swap : {false, true}) {
      RequireRefused(OpenIt(dir / name, swap), "found a file or a link");
    }
  }
  REQUIRE(NamesOf(dir.path()) ==
          std::vector<std::string>{"elsewhere", "file", "link"});
}

TEST_CASE("Workspace refuses a target without a parent",
          "[target][workspace]") {
  ScratchDir dir;
  RequireRefused(OpenIt(dir / "missing/target"), "does not exist");
  REQUIRE(NamesOf(dir.path()).empty());
}

TEST_CASE("Workspace refuses a parent that cannot be written",
          "[target][workspace]") {
  ScratchDir dir;
  fs::create_directory(dir / "parent");
  REQUIRE(chmod((dir / "parent").c_str(), 0555) == 0);
  REQUIRE(chmod(dir.path().c_str(), 0755) == 0);
  // Root may write anywhere, so test as nobody.
  const pid_t child = fork();
  if (child == 0) {
    if (getuid() == 0 && setuid(65534) != 0) {
      _exit(3);
    }
    const Status status = OpenIt(dir / "parent/target");
    const bool right =
        EndStateOf(status) == EndState::kRefused &&
        status.ToString().find("name a TARGET_DIR in") != std::string::npos;
    _exit(right ? 0 : 1);
  }
  int result = -1;
  REQUIRE(waitpid(child, &result, 0) == child);
  REQUIRE(WIFEXITED(result));
  REQUIRE(WEXITSTATUS(result) == 0);
}

TEST_CASE("Workspace refuses a mount point and names a sub-directory",
          "[target][workspace]") {
  ScratchDir dir;
  fs::create_directory(dir / "mounted");
  if (mount("none", (dir / "mounted").c_str(), "tmpfs", 0, "size=1m") != 0) {
    WARN("SKIPPED: this process may not mount");
    return;
  }
  const Status status = OpenIt(dir / "mounted");
  const bool made = fs::exists(dir / "mounted.sstferry");
  const Status below = OpenIt(dir / "mounted/db");
  umount((dir / "mounted").c_str());
  RequireRefused(status, "is a mount point");
  RequireRefused(status, dir / "mounted/db");
  REQUIRE_FALSE(made);
  REQUIRE_OK(below);
}

TEST_CASE("Workspace keeps an unfinished pull until Clear()",
          "[target][workspace]") {
  ScratchDir dir;
  std::unique_ptr<Workspace> workspace;
  REQUIRE_OK(OpenIt(dir / "target", false, &workspace));
  WriteBytes(workspace->journal_path(), "journal");
  WriteBytes(workspace->staging_dir() + "/0-0.sst", "staged");
  WriteBytes(workspace->db_dir() + "/CURRENT", "database");
  workspace.reset();
  REQUIRE_OK(Workspace::Open(dir / "target", Existing::kRefuse,
                             rocksdb::FileSystem::Default(), nullptr,
                             &workspace));
  REQUIRE(workspace->has_unfinished());
  REQUIRE(BytesOf(workspace->staging_dir() + "/0-0.sst") == "staged");
  REQUIRE_OK(workspace->ClearStaging());
  REQUIRE(NamesOf(workspace->staging_dir()).empty());
  REQUIRE(BytesOf(workspace->db_dir() + "/CURRENT") == "database");
  REQUIRE(workspace->has_unfinished());
  REQUIRE_OK(workspace->Clear());
  REQUIRE_FALSE(workspace->has_unfinished());
  REQUIRE(NamesOf(workspace->db_dir()).empty());
}

TEST_CASE("Workspace never deletes a directory that it did not make",
          "[target][workspace]") {
  ScratchDir dir;
  MakeDir(dir / "target.sstferry", "precious");
  RequireRefused(OpenIt(dir / "target"), "was not made by sstferry");
  WriteBytes(dir / "target.sstferry/lock", "another tool's lock\n");
  RequireRefused(OpenIt(dir / "target"), "was not made by sstferry");
  REQUIRE(BytesOf(dir / "target.sstferry/content") == "precious");
  fs::remove_all(dir / "target.sstferry");
  WriteBytes(dir / "target.sstferry", "");
  RequireRefused(OpenIt(dir / "target"), "was not made by sstferry");
  REQUIRE(fs::exists(dir / "target.sstferry"));
}

TEST_CASE("Workspace uses one whose creation was interrupted",
          "[target][workspace][crash]") {
  for (const char* mark : {"", "sstferry w"}) {
    ScratchDir dir;
    fs::create_directory(dir / "target.sstferry");
    WriteBytes(dir / "target.sstferry/lock", mark);
    REQUIRE_OK(OpenIt(dir / "target"));
  }
}

TEST_CASE("Workspace removes one whose removal was interrupted",
          "[target][workspace][crash]") {
  ScratchDir dir;
  MakeDir(dir / "target", "precious");
  fs::create_directories(dir / "target.sstferry/staging");
  const bool is_ours = GENERATE(true, false);
  WriteBytes(dir / "target.sstferry/lock",
             is_ours ? "sstferry workspace 1\n" : "sstferry w");
  RequireRefused(OpenIt(dir / "target"), "is not empty");
  REQUIRE(fs::exists(dir / "target.sstferry") == !is_ours);
}

TEST_CASE("Workspace is busy for a second pull until the first has ended",
          "[target][workspace]") {
  ScratchDir dir;
  std::unique_ptr<Workspace> first;
  REQUIRE_OK(OpenIt(dir / "target", false, &first));
  WriteBytes(first->staging_dir() + "/0-0.sst", "on its way");
  const Status second = OpenIt(dir / "target");
  INFO(second.ToString());
  REQUIRE(EndStateOf(second) == EndState::kBusy);
  REQUIRE(ExitCodeOf(EndState::kBusy) == 5);
  REQUIRE(BytesOf(first->staging_dir() + "/0-0.sst") == "on its way");
  first.reset();
  REQUIRE_OK(OpenIt(dir / "target"));
}

TEST_CASE("Workspace names the error of a file system that locks no file",
          "[target][workspace]") {
  ScratchDir dir;
  Status status;
  if (!RunWithDenied({{SYS_flock, ENOLCK}},
                     [&] { status = OpenIt(dir / "target"); })) {
    WARN("SKIPPED: needs the right to filter system calls");
    return;
  }
  INFO(status.ToString());
  REQUIRE(EndStateOf(status) == EndState::kInternal);
  REQUIRE(MessageOf(status).find("No locks available") != std::string::npos);
}

TEST_CASE("Workspace is busy while another process has the database open",
          "[target][workspace]") {
  ScratchDir dir;
  fs::create_directory(dir / "target");
  // RocksDB's lock is an fcntl lock. A process cannot see its own locks, so
  // another process must hold it.
  int ready[2];
  int done[2];
  REQUIRE(pipe(ready) == 0);
  REQUIRE(pipe(done) == 0);
  const pid_t child = fork();
  if (child == 0) {
    const int fd = open((dir / "target/LOCK").c_str(), O_RDWR | O_CREAT, 0644);
    struct flock lock {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    char byte = fcntl(fd, F_SETLK, &lock) == 0 ? 'y' : 'n';
    close(done[1]);
    if (write(ready[1], &byte, 1) != 1 || read(done[0], &byte, 1) != 0) {
      _exit(1);
    }
    _exit(0);
  }
  close(done[0]);
  char byte = 0;
  REQUIRE(read(ready[0], &byte, 1) == 1);
  REQUIRE(byte == 'y');
  const Status status = OpenItBeside(dir / "target");
  close(done[1]);
  REQUIRE(waitpid(child, nullptr, 0) == child);
  close(ready[0]);
  close(ready[1]);
  INFO(status.ToString());
  REQUIRE(EndStateOf(status) == EndState::kBusy);
  REQUIRE(MessageOf(status).find("holds its LOCK") != std::string::npos);
  REQUIRE_OK(OpenItBeside(dir / "target"));
}

// Tests a lock from another process.
bool IsLockedForOthers(const std::string& path) {
  const pid_t child = fork();
  if (child == 0) {
    const int fd = open(path.c_str(), O_RDWR);
    struct flock lock {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    _exit(fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK ? 0 : 1);
  }
  int result = -1;
  REQUIRE(waitpid(child, &result, 0) == child);
  return WIFEXITED(result) && WEXITSTATUS(result) == 0;
}

TEST_CASE("Workspace is busy while this process has the database open",
          "[target][workspace]") {
  ScratchDir dir;
  rocksdb::Options options;
  options.create_if_missing = true;
  std::unique_ptr<rocksdb::DB> db;
  // The application opens it under another name than the pull.
  REQUIRE_OK(rocksdb::DB::Open(options, dir / "./target", IntoDb(&db)));
  REQUIRE(IsLockedForOthers(dir / "target/LOCK"));
  Status status;
  const auto open = [&] { status = OpenItBeside(dir / "target"); };
  if (GENERATE(false, true)) {
    open();
  } else if (!RunWithDenied({{SYS_close_range, EPERM}}, open)) {
    WARN("SKIPPED: needs the right to filter system calls");
    return;
  }
  INFO(status.ToString());
  REQUIRE(EndStateOf(status) == EndState::kBusy);
  REQUIRE(MessageOf(status).find("this process holds") != std::string::npos);
  // The check must not release the application's lock.
  REQUIRE(IsLockedForOthers(dir / "target/LOCK"));
}

TEST_CASE("A lock that this process takes while a thread asks for it stays",
          "[target][workspace]") {
  ScratchDir dir;
  rocksdb::Options options;
  options.create_if_missing = true;
  std::vector<Descriptor> many;  // makes it slow to look at all of them
  for (int i = 0; i < 500; ++i) {
    many.push_back(OpenPath("/dev/null", O_RDONLY));
  }
  for (int i = 0; i < 10; ++i) {
    std::atomic<bool> is_open{false};
    std::thread asks([&] {
      while (!is_open) IsDatabaseOpen(dir / "target");
    });
    std::unique_ptr<rocksdb::DB> db;
    const Status opened =
        rocksdb::DB::Open(options, dir / "target", IntoDb(&db));
    is_open = true;
    asks.join();
    REQUIRE_OK(opened);
    REQUIRE(IsLockedForOthers(dir / "target/LOCK"));
    REQUIRE(DatabaseProcess(dir / "target") == getpid());
  }
}

TEST_CASE("Workspace publishes by a rename and leaves nothing else",
          "[target][workspace]") {
  ScratchDir dir;
  const bool empty_target = GENERATE(false, true);
  if (empty_target) {
    fs::create_directory(dir / "target");
  }
  std::unique_ptr<Workspace> workspace;
  REQUIRE_OK(OpenIt(dir / "target/", false, &workspace));
  WriteBytes(workspace->db_dir() + "/content", "new");
  std::string note;
  REQUIRE_OK(workspace->Publish(&note));
  REQUIRE(note.empty());
  REQUIRE(NamesOf(dir.path()) == std::vector<std::string>{"target"});
  REQUIRE(BytesOf(dir / "target/content") == "new");
}

TEST_CASE(
    "Workspace refuses to publish over a directory that appeared meanwhile",
    "[target][workspace]") {
  ScratchDir dir;
  std::unique_ptr<Workspace> workspace;
  REQUIRE_OK(OpenIt(dir / "target", false, &workspace));
  MakeDir(dir / "target", "theirs");
  std::string note;
  REQUIRE_FALSE(workspace->Publish(&note).ok());
  REQUIRE(BytesOf(dir / "target/content") == "theirs");
}

// Makes the state after a crash right after an exchange: db/ has the old
// database. `more` are further lines of the record of the exchange.
void ExchangeAndStop(const ScratchDir& dir, const std::string& more = "") {
  MakeDir(dir / "target", "old");
  {
    std::unique_ptr<Workspace> workspace;
    REQUIRE_OK(OpenIt(dir / "target", true, &workspace));
    WriteBytes(workspace->db_dir() + "/content", "new");
    WriteBytes(workspace->db_dir() + "/last_transfer.json",
               "{\"transfer_id\": \"" + kId + "\"}");
  }
  const auto inode = [](const std::string& path) {
    struct stat info;
    REQUIRE(stat(path.c_str(), &info) == 0);
    return std::to_string(info.st_ino);
  };
  const std::string db = dir / "target.sstferry/db";
  WriteBytes(dir / "target.sstferry/exchange",
             kId + "\n" + inode(db) + "\n" + inode(dir / "target") + "\n" +
                 more);
  fs::rename(dir / "target", dir / "aside");
  fs::rename(db, dir / "target");
  fs::rename(dir / "aside", db);
}

TEST_CASE("No process, and no thread of this one, opens the old database while "
          "it is exchanged",
          "[target][workspace]") {
  ScratchDir dir;
  MakeDir(dir / "target", "old");
  WriteBytes(dir / "target/CURRENT", "MANIFEST-000001\n");
  const bool has_lock = GENERATE(false, true);
  if (has_lock) WriteBytes(dir / "target/LOCK", "");
  std::unique_ptr<Workspace> workspace;
  REQUIRE_OK(OpenIt(dir / "target", true, &workspace));
  WriteBytes(workspace->db_dir() + "/CURRENT", "MANIFEST-000002\n");
  REQUIRE_OK(workspace->BeginSwap(kId));
  bool is_held = false;
  Status opened;
  TEST_SetFaultHook([&](const std::string& name) {
    if (name == "OtherFiles:Placed") {
      is_held = IsLockedForOthers(dir / "target/LOCK");
      rocksdb::FileLock* lock = nullptr;
      opened = rocksdb::Env::Default()->LockFile(dir / "target/LOCK", &lock);
    }
  });
  std::vector<std::string> kept;
  const Status swapped = workspace->Swap([] { return Status::OK(); }, &kept);
  TEST_SetFaultHook(nullptr);
  REQUIRE_OK(swapped);
  REQUIRE(is_held);
  REQUIRE_FALSE(opened.ok());
  REQUIRE(BytesOf(dir / "target/CURRENT") == "MANIFEST-000002\n");
  REQUIRE_FALSE(fs::exists(dir / "target/LOCK"));
}

TEST_CASE("A failed exchange leaves no LOCK beside an incomplete OPTIONS file",
          "[target][workspace]") {
  ScratchDir dir;
  MakeDir(dir / "target", "old");
  WriteBytes(dir / "target/CURRENT", "MANIFEST-000001\n");
  WriteBytes(dir / "target/OPTIONS-000005", "[Version]\n");  // torn
  std::unique_ptr<Workspace> workspace;
  REQUIRE_OK(OpenIt(dir / "target", true, &workspace));
  WriteBytes(workspace->db_dir() + "/CURRENT", "MANIFEST-000002\n");
  REQUIRE_OK(workspace->BeginSwap(kId));
  std::vector<std::string> kept;
  const Status failed = workspace->Swap(
      [] { return MakeStatus(EndState::kCorrupt, "a fault was found"); },
      &kept);
  REQUIRE(EndStateOf(failed) == EndState::kCorrupt);
  REQUIRE_FALSE(fs::exists(dir / "target/LOCK"));
  REQUIRE_OK(CheckExchangeable(dir / "target"));
}

TEST_CASE("Any command completes the exchange of a refresh, because it has no "
          "hooks",
          "[target][workspace][crash]") {
  ScratchDir dir;
  ExchangeAndStop(dir, "refresh\n");
  SECTION("a refresh by files") {
    SwapState state = SwapState::kNone;
    REQUIRE_OK(OpenToRefresh(dir / "target", &state));
    REQUIRE(state == SwapState::kExchanged);
  }
  SECTION("a refresh in place") { REQUIRE_OK(OpenItBeside(dir / "target")); }
  SECTION("a swap") {
    std::unique_ptr<Workspace> workspace;
    REQUIRE_OK(Workspace::Open(dir / "target", Existing::kSwap,
                               rocksdb::FileSystem::Default(), nullptr,
                               &workspace));
    REQUIRE(workspace->swap_state() == SwapState::kExchanged);
  }
  REQUIRE(BytesOf(dir / "target/content") == "new");
  REQUIRE(BytesOf(dir / "target.sstferry/db/content") == "old");
}

TEST_CASE("Only a swap continues a swap if its hooks may have run",
          "[target][workspace][crash]") {
  ScratchDir dir;
  ExchangeAndStop(dir);
  fs::rename(dir / "target", dir / "aside");
  fs::rename(dir / "target.sstferry/db", dir / "target");
  fs::rename(dir / "aside", dir / "target.sstferry/db");
  for (const Status& status : {OpenToRefresh(dir / "target"),
                               OpenItBeside(dir / "target"),
                               OpenIt(dir / "target")}) {
    RequireRefused(status, "run the same swap again");
  }
  REQUIRE(BytesOf(dir / "target/content") == "old");
  REQUIRE(BytesOf(dir / "target.sstferry/db/content") == "new");
}

TEST_CASE("Workspace keeps both databases of an interrupted swap",
          "[target][workspace][crash]") {
  ScratchDir dir;
  ExchangeAndStop(dir);
  SECTION("a swap completes it") {
    std::unique_ptr<Workspace> workspace;
    REQUIRE_OK(Workspace::Open(dir / "target", Existing::kSwap,
                               rocksdb::FileSystem::Default(), nullptr,
                               &workspace));
    REQUIRE(workspace->swap_state() == SwapState::kExchanged);
    REQUIRE(workspace->swap_transfer() == kId);
    REQUIRE(BytesOf(dir / "target/content") == "new");
  }
  SECTION("no other command completes it") {
    RequireRefused(OpenIt(dir / "target"), "run the same swap again");
    RequireRefused(OpenItBeside(dir / "target"),
                   "run the same swap again");
    RequireRefused(OpenToRefresh(dir / "target"),
                   "run the same swap again");
    REQUIRE(BytesOf(dir / "target/content") == "new");
  }
  SECTION("if the new database was moved away") {
    fs::rename(dir / "target", dir / "elsewhere");
    RequireRefused(OpenIt(dir / "target"), "move the old database");
    RequireRefused(OpenIt(dir / "target", true), "move the old database");
  }
  SECTION("if another directory replaced the new database") {
    fs::rename(dir / "target", dir / "elsewhere");
    MakeDir(dir / "target", "another");
    const std::string old = dir / "target.sstferry/db";
    RequireRefused(OpenIt(dir / "target", true),
                   "if it is the new one, move " + old);
    REQUIRE(BytesOf(dir / "target/content") == "another");
  }
  SECTION("if the new database has lost its record") {
    fs::remove(dir / "target/last_transfer.json");
    const Status status = OpenIt(dir / "target", true);
    RequireRefused(status, "may be the new database (copied, or");
    REQUIRE(MessageOf(status).find("move the old database back") ==
            std::string::npos);
    REQUIRE(BytesOf(dir / "target/content") == "new");
  }
  REQUIRE(BytesOf(dir / "target.sstferry/db/content") == "old");
}

Status OpenToSwap(const std::string& target,
                  std::unique_ptr<Workspace>* workspace) {
  return Workspace::Open(target, Existing::kSwap,
                         rocksdb::FileSystem::Default(), nullptr, workspace);
}

TEST_CASE("Only a name that certainly does not exist is no directory",
          "[target][workspace]") {
  ScratchDir dir;
  std::string inode = "1";
  REQUIRE_OK(FindInode(dir / "missing", &inode));
  REQUIRE(inode.empty());
  WriteBytes(dir / "file", "");
  REQUIRE_OK(FindInode(dir / "file/missing", &inode));
  REQUIRE(inode.empty());
  REQUIRE_OK(FindInode(dir.path(), &inode));
  REQUIRE_FALSE(inode.empty());
  REQUIRE_FALSE(FindInode(dir / std::string(300, 'x'), &inode).ok());
}

TEST_CASE("An old database that cannot be looked at for a moment is kept",
          "[target][workspace]") {
  ScratchDir dir;
  ExchangeAndStop(dir);
  std::unique_ptr<Workspace> workspace;
  REQUIRE_OK(OpenToSwap(dir / "target", &workspace));
  REQUIRE(workspace->swap_state() == SwapState::kExchanged);
  Status status;
  std::string path;
  const auto retire = [&] {
    status = workspace->RetireOld(/*keeps=*/true, &path);
  };
  std::vector<DeniedCall> calls = {
      {SYS_newfstatat, EIO, 3, AT_SYMLINK_NOFOLLOW}};
#ifdef SYS_lstat  // of an older libc
  calls.push_back({SYS_lstat, EIO});
#endif
  if (!RunWithDenied(calls, retire)) {
    WARN("SKIPPED: needs the right to filter system calls");
    return;
  }
  INFO(status.ToString());
  REQUIRE_FALSE(status.ok());
  REQUIRE(workspace->swap_state() == SwapState::kExchanged);
  REQUIRE(BytesOf(dir / "target.sstferry/db/content") == "old");
  // The record says that there is an old database.
  fs::rename(dir / "target.sstferry/db", dir / "aside");
  RequireRefused(workspace->RetireOld(/*keeps=*/true, &path), "only copy");
  REQUIRE(fs::exists(dir / "target.sstferry/exchange"));
  fs::rename(dir / "aside", dir / "target.sstferry/db");
  REQUIRE_OK(workspace->RetireOld(/*keeps=*/true, &path));
  REQUIRE(BytesOf(path + "/content") == "old");
  REQUIRE(BytesOf(dir / "target/content") == "new");
}

TEST_CASE("An exchange whose directories have each other's inode numbers is "
          "refused",
          "[target][workspace]") {
  ScratchDir dir;
  ExchangeAndStop(dir);
  const std::string record = dir / "target.sstferry/exchange";
  const std::string text = BytesOf(record);
  const size_t second = text.find('\n') + 1;
  const size_t third = text.find('\n', second) + 1;
  SECTION("after another mount") {
    WriteBytes(record, text.substr(0, second) + text.substr(third) +
                           text.substr(second, third - second));
  }
  SECTION("if the new database lost its record") {
    fs::remove(dir / "target/last_transfer.json");
  }
  SECTION("if the old database is a copy of the new one") {
    fs::copy(dir / "target/last_transfer.json", dir / "target.sstferry/db");
  }
  std::unique_ptr<Workspace> workspace;
  const Status status = OpenToSwap(dir / "target", &workspace);
  INFO(status.ToString());
  REQUIRE(EndStateOf(status) == EndState::kRefused);
  REQUIRE(MessageOf(status).find("remove") == std::string::npos);
  REQUIRE(BytesOf(dir / "target/content") == "new");
  REQUIRE(BytesOf(dir / "target.sstferry/db/content") == "old");
  // The advice works.
  fs::rename(dir / "target.sstferry/db", dir / "kept");
  REQUIRE_OK(OpenToSwap(dir / "target", &workspace));
  REQUIRE(workspace->swap_state() == SwapState::kNone);
}

TEST_CASE("A database below which something is mounted is not exchanged, and a "
          "removal does not enter the mount",
          "[target][workspace]") {
  ScratchDir dir;
  const std::string target = dir / "a target";
  const std::string archive = target + "/archive";
  fs::create_directories(archive);
  WriteBytes(target + "/CURRENT", "MANIFEST-000001\n");
  REQUIRE_OK(CheckExchangeable(target));
  if (mount("none", archive.c_str(), "tmpfs", 0, "size=1m") != 0) {
    WARN("SKIPPED: this process may not mount");
    return;
  }
  WriteBytes(archive + "/000007.log", "precious");
  StopSignal stop;
  const auto file_system = rocksdb::FileSystem::Default();
  const Status exchanged = CheckExchangeable(target);
  const Status paced = RemoveTreePaced(file_system.get(), target,
                                       /*bytes_per_sec=*/0, &stop);
  const Status emptied = EmptyDirectoryPaced(file_system.get(), target,
                                             "CURRENT", /*bytes_per_sec=*/0,
                                             &stop);
  const Status removed = RemoveTree(file_system.get(), target);
  const bool is_there = fs::exists(archive + "/000007.log");
  umount(archive.c_str());
  for (const Status& status : {exchanged, paced, emptied, removed}) {
    RequireRefused(status, "/archive");
  }
  REQUIRE(is_there);
  REQUIRE_OK(RemoveTree(file_system.get(), target));
  REQUIRE_FALSE(fs::exists(target));
}

TEST_CASE("Workspace deletes nothing if the record of an exchange is invalid",
          "[target][workspace][corruption]") {
  for (const char* record : {"", "id\n", "../../etc\n1\n2\n"}) {
    ScratchDir dir;
    ExchangeAndStop(dir);
    WriteBytes(dir / "target.sstferry/exchange", record);
    RequireRefused(OpenIt(dir / "target", true), "expected the record");
    REQUIRE(BytesOf(dir / "target.sstferry/db/content") == "old");
    REQUIRE(BytesOf(dir / "target/content") == "new");
  }
}

}  // namespace
}  // namespace sstferry::workspace_test
