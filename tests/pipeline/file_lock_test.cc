// The flock of a directory's file: a lock that another process holds is told
// apart from one that the file system does not give.
#include "pipeline/base/file_lock.h"

#include <fcntl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <string>

#include "format/end_state.h"
#include "tests/support/catch.h"
#include "tests/support/denied_calls.h"
#include "tests/support/sample_database.h"
#include "tests/support/scratch_dir.h"

namespace sstferry::test::file_lock_test {
namespace {

TEST_CASE("Only a lock that is held is busy", "[file_lock]") {
  const ScratchDir dir;
  const std::string path = dir / "lock";
  WriteBytes(path, "");
  const Descriptor first = OpenToLock(path);
  const Descriptor second = OpenToLock(path);
  REQUIRE_OK(LockFile(first.get(), path));
  REQUIRE(IsFileLocked(path));
  REQUIRE(EndStateOf(LockFile(second.get(), path)) == EndState::kBusy);
  // As NFSv4 answers if a file is not open for writing.
  const Descriptor unlockable = OpenPath(path, O_PATH);
  const rocksdb::Status status = LockFile(unlockable.get(), path);
  INFO(status.ToString());
  REQUIRE(EndStateOf(status) == EndState::kInternal);
  REQUIRE(MessageOf(status) ==
          "cannot lock " + path + ": Bad file descriptor");
}

TEST_CASE("A file is locked through a descriptor that may write, if possible",
          "[file_lock]") {
  const ScratchDir dir;
  const std::string path = dir / "lock";
  WriteBytes(path, "");
  const auto mode = [&path] {
    const Descriptor file = OpenToLock(path);
    return file.is_open() ? fcntl(file.get(), F_GETFL) & O_ACCMODE : -1;
  };
  REQUIRE(mode() == O_RDWR);
  int denied = 0;
  for (const int error : {EACCES, EPERM, EROFS}) {
    if (!RunWithDenied({{SYS_openat, error, 2, O_RDWR}},
                       [&] { denied = mode(); })) {
      WARN("SKIPPED: needs the right to filter system calls");
      return;
    }
    REQUIRE(denied == O_RDONLY);
  }
  REQUIRE_FALSE(OpenToLock(dir / "none").is_open());
  REQUIRE(errno == ENOENT);
}

}  // namespace
}  // namespace sstferry::test::file_lock_test
