// Looks at files of a source that have no answer, or that only the server of a
// network file system can answer.
#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "format/end_state.h"
#include "pipeline/base/database_open.h"
#include "pipeline/follow/followed_source.h"
#include "pipeline/snapshot/pinned_files.h"
#include "pipeline/snapshot/posix_files.h"
#include "pipeline/snapshot/snapshot.h"
#include "pipeline/snapshot/snapshot_manifest.h"
#include "tests/pipeline/source/snapshot_support.h"
#include "tests/support/catch.h"
#include "tests/support/denied_calls.h"
#include "tests/support/test_db.h"

namespace sstferry::file_looks_test {
namespace {

SnapshotOptions AsFiles(const std::string& directory) {
  SnapshotOptions options;
  options.database_dir = directory;
  options.as_files = true;
  return options;
}

rocksdb::Status Take(const std::string& directory) {
  std::unique_ptr<Snapshot> snapshot;
  return Snapshot::Create(AsFiles(directory), &snapshot);
}

FollowedSourceOptions Followed(const std::string& directory) {
  FollowedSourceOptions options;
  options.database_dir = directory;
  return options;
}

void Put(test::OpenDb* db, int from, int to) {
  for (int i = from; i < to; ++i) {
    REQUIRE_OK((*db)->Put(rocksdb::WriteOptions(), "key" + std::to_string(i),
                          "value"));
  }
}

TEST_CASE("A file that cannot be looked at is not one that does not exist",
          "[snapshot]") {
  const ScratchDir dir;
  FileId id;
  REQUIRE_OK(FileIdOf(dir / "none", &id));
  CHECK_FALSE(id.exists());
  REQUIRE_OK(FileIdOfName(dir.path(), &id));
  CHECK(id.exists());
  const std::string too_long = dir / std::string(300, 'x');
  CHECK(EndStateOf(FileIdOf(too_long, &id)) == EndState::kSourceError);
  CHECK(EndStateOf(FileIdOfName(too_long, &id)) == EndState::kSourceError);
  CHECK(EndStateOf(FileIdOf(-1, "closed", &id)) == EndState::kSourceError);
  bool is_named = true;
  CHECK(EndStateOf(IsNamed(-1, dir.path(), &is_named)) ==
        EndState::kSourceError);
  CHECK_FALSE(is_named);
}

TEST_CASE("The second look at a MANIFEST and a WAL asks their file system, and "
          "no answer is no size",
          "[snapshot]") {
  const ScratchDir tree;
  test::OpenDb db(rocksdb::Options(), tree / "db");
  Put(&db, 0, 10);
  ManifestTail manifest(tree / "db");
  FollowedSource source(Followed(tree / "db"));
  bool changed = false;
  bool more = false;
  REQUIRE_OK(manifest.Follow(&changed));
  REQUIRE_OK(source.ReadRound(/*list=*/true, &more));
  REQUIRE(source.last_sequence() == 10);
  Put(&db, 10, 20);
  rocksdb::Status looked;
  rocksdb::Status round;
  // The system calls without this flag may be answered from a cache.
  if (!RunWithDenied({{SYS_statx, EIO, 2, AT_STATX_FORCE_SYNC}}, [&] {
        looked = manifest.Follow(&changed);
        round = source.ReadRound(/*list=*/true, &more);
      })) {
    WARN("the kernel filters no calls");
    return;
  }
  CHECK(EndStateOf(looked) == EndState::kSourceError);
  CHECK(EndStateOf(round) == EndState::kSourceError);
  REQUIRE_OK(manifest.Follow(&changed));
  REQUIRE_OK(source.ReadRound(/*list=*/true, &more));
  CHECK(source.last_sequence() == 20);
}

TEST_CASE("A snapshot from which a WAL or its end is gone is not sent",
          "[snapshot]") {
  const ScratchDir tree;
  test::OpenDb db(rocksdb::Options(), tree / "db");
  Put(&db, 0, 10);
  const SnapshotOptions options = AsFiles(tree / "db");
  std::unique_ptr<PinnedFiles> pinned;
  REQUIRE_OK(PinnedFiles::Link(options, &pinned));
  REQUIRE_OK(pinned->Confirm());
  REQUIRE_OK(pinned->Copy());
  std::unique_ptr<Snapshot> snapshot;
  REQUIRE_OK(Snapshot::OfPinned(options, *pinned, &snapshot));
  snapshot.reset();
  const std::string files = pinned->dir().db();
  const std::string wal = files + "/" + FilesWith(files, ".log").at(0);
  SECTION("the WAL") { std::filesystem::remove(wal); }
  SECTION("its end") { std::filesystem::resize_file(wal, 0); }
  const auto status = Snapshot::OfPinned(options, *pinned, &snapshot);
  INFO(status.ToString());
  CHECK(EndStateOf(status) == EndState::kSourceError);
}

TEST_CASE("A database on a network file system is read unless another machine "
          "may write it",
          "[snapshot]") {
  const ScratchDir tree;
  REQUIRE_OK(CheckWriterIsHere(tree / "missing"));
  // A file system whose type is unknown may be one of a network.
  const std::vector<DeniedCall> unknown = {{SYS_statfs, EIO}};
  rocksdb::Status open_here;
  rocksdb::Status closed;
  rocksdb::Status snapshot;
  rocksdb::Status round;
  bool is_denied = false;
  {
    test::OpenDb db(rocksdb::Options(), tree / "db");
    Put(&db, 0, 10);
    is_denied =
        RunWithDenied(unknown, [&] { open_here = Take(tree / "db"); });
  }
  is_denied = is_denied &&
              RunWithDenied(unknown, [&] { closed = Take(tree / "db"); });
  // For a lock of an open file the kernel names no process, as for a lock of
  // another machine.
  const Descriptor lock = OpenPath(tree / "db/LOCK", O_RDWR);
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  REQUIRE(fcntl(lock.get(), F_OFD_SETLK, &whole) == 0);
  if (!is_denied || DatabaseProcess(tree / "db") != 0) {
    WARN("the kernel filters no calls, or does not tell who has a lock");
    return;
  }
  REQUIRE_OK(open_here);
  REQUIRE_OK(closed);
  REQUIRE_OK(Take(tree / "db"));  // on this file system
  REQUIRE(RunWithDenied(unknown, [&] {
    bool more = false;
    snapshot = Take(tree / "db");
    round = FollowedSource(Followed(tree / "db")).ReadRound(true, &more);
  }));
  CHECK(EndStateOf(snapshot) == EndState::kRefused);
  CHECK(EndStateOf(round) == EndState::kRefused);
}

// Locks the open file `lock` with a child process that shares this process's
// table of descriptors. The lock belongs to the table, but the kernel names the
// child. Unless `keeps`, the child then gets its own table without the file.
// Returns the child's id, or nullopt if the kernel does not allow this.
std::optional<pid_t> LockByChild(int lock, bool keeps) {
  int ready[2];
  REQUIRE(pipe(ready) == 0);
  const auto child =
      static_cast<pid_t>(syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0));
  if (child == 0) {  // must use system calls only
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    struct flock whole {};
    whole.l_type = F_WRLCK;
    whole.l_whence = SEEK_SET;
    const bool is_locked =
        syscall(SYS_fcntl, lock, F_SETLK, &whole) == 0 &&
        (keeps ||
         syscall(SYS_close_range, lock, lock, CLOSE_RANGE_UNSHARE) == 0);
    const char byte = is_locked ? 'y' : 'n';
    syscall(SYS_write, ready[1], &byte, 1);
    syscall(SYS_ppoll, nullptr, 0, nullptr, nullptr, 0);  // until it is killed
    _exit(0);
  }
  REQUIRE(child > 0);
  char byte = 0;
  const ssize_t got = read(ready[0], &byte, 1);
  close(ready[0]);
  close(ready[1]);
  REQUIRE(got == 1);
  if (byte == 'y') {
    return child;
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  return std::nullopt;
}

TEST_CASE("The holder of a LOCK is on another machine if it has no LOCK open "
          "here",
          "[snapshot]") {
  const ScratchDir tree;
  {
    test::OpenDb db(rocksdb::Options(), tree / "db");
    Put(&db, 0, 10);
  }
  const Descriptor lock = OpenPath(tree / "db/LOCK", O_RDWR);
  const bool keeps = GENERATE(true, false);
  const std::optional<pid_t> child = LockByChild(lock.get(), keeps);
  if (!child.has_value()) {
    WARN("the kernel does not close a range of descriptors");
    return;
  }
  const std::optional<pid_t> holder = DatabaseProcess(tree / "db");
  rocksdb::Status looked;
  // A file system whose type is unknown may be FUSE, which names a process of
  // another machine by its id there. A process here may have the same id.
  const bool is_denied = RunWithDenied(
      {{SYS_statfs, EIO}}, [&] { looked = CheckWriterIsHere(tree / "db"); });
  kill(*child, SIGKILL);
  REQUIRE(waitpid(*child, nullptr, 0) == *child);
  if (!is_denied || holder != child) {
    WARN("the kernel filters no calls, or does not tell who has a lock");
    return;
  }
  INFO(looked.ToString());
  CHECK(looked.ok() == keeps);
  CHECK((keeps || EndStateOf(looked) == EndState::kRefused));
}

}  // namespace
}  // namespace sstferry::file_looks_test
