// Attributes of a directory other than owner, group and mode: a directory that
// replaces it gets them, or the pull is refused before data is sent.
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <utility>
#include <vector>

#include "sstferry/descriptor.h"
#include "tests/support/catch.h"
#include "tests/support/denied_calls.h"
#include "tests/support/replica_world.h"
#include "tests/support/sample_database.h"
#include "tests/support/test_db.h"

namespace sstferry::attributes_test {
namespace {

namespace fs = std::filesystem;

constexpr char kAccessList[] = "system.posix_acl_access";
constexpr char kDefaultList[] = "system.posix_acl_default";
constexpr char kNote[] = "user.note";
// An id that no account on this machine has.
constexpr uint32_t kSomeUser = 48'213;

void Append(std::string* bytes, uint64_t value, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    bytes->push_back(static_cast<char>(value >> (8 * i)));
  }
}

// Returns an access control list in the kernel's form: rwx for the owner, r-x
// for `user` and the group, nothing for others.
std::string ListFor(uint32_t user) {
  const std::vector<std::pair<std::pair<uint16_t, uint16_t>, uint32_t>> rows = {
      {{0x01, 7}, UINT32_MAX}, {{0x02, 5}, user},       {{0x04, 5}, UINT32_MAX},
      {{0x10, 5}, UINT32_MAX}, {{0x20, 0}, UINT32_MAX},
  };
  std::string bytes;
  Append(&bytes, 2, 4);
  for (const auto& [entry, id] : rows) {
    Append(&bytes, entry.first, 2);
    Append(&bytes, entry.second, 2);
    Append(&bytes, id, 4);
  }
  return bytes;
}

bool Set(const std::string& path, const char* name, const std::string& value) {
  return setxattr(path.c_str(), name, value.data(), value.size(), 0) == 0;
}

// Returns the value of an attribute, or "" if it is missing.
std::string Get(const std::string& path, const char* name) {
  char value[1024];
  const ssize_t bytes =
      getxattr(path.c_str(), name, value, sizeof(value));
  return bytes < 0 ? "" : std::string(value, static_cast<size_t>(bytes));
}

bool SetFlag(const std::string& path, int flag) {
  const Descriptor directory = OpenPath(path, O_RDONLY | O_DIRECTORY);
  int flags = 0;
  if (ioctl(directory.get(), FS_IOC_GETFLAGS, &flags) != 0) return false;
  flags |= flag;
  return ioctl(directory.get(), FS_IOC_SETFLAGS, &flags) == 0;
}

bool HasFlag(const std::string& path, int flag) {
  const Descriptor directory = OpenPath(path, O_RDONLY | O_DIRECTORY);
  int flags = 0;
  REQUIRE(ioctl(directory.get(), FS_IOC_GETFLAGS, &flags) == 0);
  return (flags & flag) != 0;
}

bool GiveAll(const std::string& path) {
  return Set(path, kNote, "kept") && Set(path, kAccessList,
                                         ListFor(kSomeUser)) &&
         Set(path, kDefaultList, ListFor(kSomeUser + 1)) &&
         SetFlag(path, FS_NODUMP_FL);
}

// While it exists, temporary directories are made on a file system that
// supports all these attributes.
class WithAttributes {
 public:
  WithAttributes() {
    if (const char* const before = std::getenv("TMPDIR")) before_ = before;
    for (const std::string& place :
         {fs::temp_directory_path().string(), std::string("/var/tmp"),
          fs::current_path().string()}) {
      setenv("TMPDIR", place.c_str(), 1);
      if (access(place.c_str(), W_OK) == 0 && GiveAll(ScratchDir().path())) {
        found_ = true;
        return;
      }
    }
    WARN("SKIPPED: expected a file system with access control lists, user "
         "attributes and flags in TMPDIR, /var/tmp or here, found none");
  }
  ~WithAttributes() {
    before_.empty() ? unsetenv("TMPDIR") : setenv("TMPDIR", before_.c_str(), 1);
  }
  bool found() const { return found_; }

 private:
  std::string before_;
  bool found_ = false;
};

TEST_CASE("A directory that replaces another one gets its attributes",
          "[target][access]") {
  const WithAttributes place;
  if (!place.found()) return;
  ReplicaWorld world;
  PullOptions options = world.Options();
  options.method = GENERATE(PullMethod::kIngest, PullMethod::kClone);
  bool replaces = true;
  SECTION("an empty directory") {
    fs::create_directory(world.target());
    replaces = false;
  }
  SECTION("a swap") {}
  SECTION("a refresh by files") {
    options.mode = PullMode::kRefresh;
    options.method = PullMethod::kClone;
  }
  if (replaces) {
    REQUIRE_OK(RunPull(options).status);
    world.ChangeSource();
  }
  REQUIRE(GiveAll(world.target()));
  // The parent's default list must not be used.
  REQUIRE(Set(world.root(), kDefaultList, ListFor(kSomeUser + 2)));
  struct stat before {};
  REQUIRE(stat(world.target().c_str(), &before) == 0);
  REQUIRE_OK(RunPull(options).status);
  struct stat after {};
  REQUIRE(stat(world.target().c_str(), &after) == 0);
  REQUIRE(after.st_ino != before.st_ino);
  REQUIRE(after.st_mode == before.st_mode);
  REQUIRE(Get(world.target(), kNote) == "kept");
  REQUIRE(Get(world.target(), kAccessList) == ListFor(kSomeUser));
  REQUIRE(Get(world.target(), kDefaultList) == ListFor(kSomeUser + 1));
  REQUIRE(HasFlag(world.target(), FS_NODUMP_FL));
  // New files have the access as if they had been made in the old directory.
  std::string user;
  Append(&user, kSomeUser + 1, 4);
  size_t made = 0;
  for (const auto& entry : fs::directory_iterator(world.target())) {
    INFO(entry.path().string());
    const std::string list = Get(entry.path(), kAccessList);
    made += list.find(user) != std::string::npos ? 1 : 0;
    REQUIRE((list.empty() || list.find(user) != std::string::npos));
    REQUIRE((!list.empty() || entry.path().extension() == ".sst"));
  }
  REQUIRE(made > 4);
  REQUIRE(EntriesOf(world.target()) == EntriesOf(world.source()));
}

TEST_CASE("A directory without access control lists gets none from its parent",
          "[target][access]") {
  const WithAttributes place;
  if (!place.found()) return;
  ReplicaWorld world;
  PullOptions options = world.Options();
  REQUIRE_OK(RunPull(options).status);
  world.ChangeSource();
  REQUIRE(Set(world.root(), kDefaultList, ListFor(kSomeUser)));
  REQUIRE_OK(RunPull(options).status);
  REQUIRE(Get(world.target(), kAccessList).empty());
  REQUIRE(Get(world.target(), kDefaultList).empty());
  for (const auto& entry : fs::directory_iterator(world.target())) {
    INFO(entry.path().string());
    REQUIRE(Get(entry.path(), kAccessList).empty());
  }
}

TEST_CASE("A refusal names an attribute that cannot be kept, before data is "
          "sent",
          "[target][access][refused]") {
  const WithAttributes place;
  if (!place.found()) return;
  ReplicaWorld world;
  PullOptions options = world.Options();
  bool replaces = true;
  std::string next;
  SECTION("an empty directory") {
    fs::create_directory(world.target());
    replaces = false;
  }
  SECTION("a swap") {}
  SECTION("a refresh by files") {
    options.mode = PullMode::kRefresh;
    options.method = PullMethod::kClone;
    next = "sstferry refresh " + world.source() + " " + world.target() +
           " --method ingest";
  }
  if (replaces) {
    REQUIRE_OK(RunPull(options).status);
    world.ChangeSource();
    world.Forget();
  }
  REQUIRE(Set(world.target(), kNote, "kept"));
  const long call = GENERATE(SYS_fsetxattr, SYS_fgetxattr, SYS_flistxattr);
  const std::string before = test::Fingerprint(world.target());
  Summary refused;
  if (!RunWithDenied({{call, EPERM}},
                     [&] { refused = RunPull(options); })) {
    WARN("SKIPPED: needs the right to filter system calls");
    return;
  }
  INFO(refused.status.ToString());
  REQUIRE(EndStateOf(refused.status) == EndState::kRefused);
  REQUIRE((call == SYS_flistxattr ||
           MessageOf(refused.status).find(kNote) != std::string::npos));
  REQUIRE(NextOf(refused.status) == next);
  REQUIRE(refused.chunks == 0);
  REQUIRE(world.calls().empty());
  REQUIRE(test::Fingerprint(world.target()) == before);
  world.RequireNothingLeft();
  REQUIRE_OK(RunPull(options).status);
}

TEST_CASE("A swap works on a file system without extended attributes",
          "[target][access]") {
  ReplicaWorld world;
  PullOptions options = world.Options();
  REQUIRE_OK(RunPull(options).status);
  world.ChangeSource();
  Summary swapped;
  if (!RunWithDenied({{SYS_flistxattr, ENOTSUP}},
                     [&] { swapped = RunPull(options); })) {
    WARN("SKIPPED: needs the right to filter system calls");
    return;
  }
  REQUIRE_OK(swapped.status);
}

}  // namespace
}  // namespace sstferry::attributes_test
