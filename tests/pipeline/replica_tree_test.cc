// A mirror's directory: what is durable of it.
#include "pipeline/disk/replica_tree.h"

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <memory>

#include "tests/support/catch.h"
#include "tests/support/scratch_dir.h"

namespace {

// The inode whose calls of fsync() are counted.
std::atomic<ino_t> watched_inode{0};
std::atomic<int> syncs{0};

}  // namespace

// Replaces the C library's function in this whole program.
extern "C" int fsync(int fd) {
  struct stat info = {};
  if (fstat(fd, &info) == 0 && info.st_ino == watched_inode) ++syncs;
  return static_cast<int>(syscall(SYS_fsync, fd));
}

namespace sstferry::replica_tree_test {
namespace {

TEST_CASE("The name of a new mirror is synced", "[fleet]") {
  const ScratchDir scratch;
  struct stat info = {};
  REQUIRE(stat(scratch.path().c_str(), &info) == 0);
  watched_inode = info.st_ino;
  std::unique_ptr<ReplicaTree> tree;
  REQUIRE_OK(ReplicaTree::Open(scratch / "mirror", &tree));
  watched_inode = 0;
  REQUIRE(syncs > 0);
}

}  // namespace
}  // namespace sstferry::replica_tree_test
