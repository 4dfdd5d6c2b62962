// Owners and permissions of the files and directories that a pull makes.
#include <grp.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <mutex>

#include "pipeline/disk/access.h"
#include "pipeline/disk/durable.h"
#include "pipeline/disk/workspace.h"
#include "pipeline/pull/target_state.h"
#include "sstferry/status.h"
#include "tests/support/catch.h"
#include "tests/support/replica_world.h"
#include "tests/support/sample_database.h"
#include "tests/support/test_db.h"

namespace sstferry::access_test {
namespace {

namespace fs = std::filesystem;

// Ids that no account on this machine has.
constexpr uint32_t kSomeUser = 48'213;
constexpr uint32_t kSomeGroup = 48'214;

class UmaskScope {
 public:
  explicit UmaskScope(mode_t mask) : old_(umask(mask)) {}
  ~UmaskScope() { umask(old_); }
  UmaskScope(const UmaskScope&) = delete;
  UmaskScope& operator=(const UmaskScope&) = delete;

 private:
  const mode_t old_;
};

bool IsRoot() { return geteuid() == 0; }

struct stat StatOf(const std::string& path) {
  struct stat info {};
  REQUIRE(lstat(path.c_str(), &info) == 0);
  return info;
}

Access AccessOf(const std::string& path) {
  const struct stat info = StatOf(path);
  return {info.st_uid, info.st_gid, info.st_mode & 07777u};
}

void Give(const std::string& path, const Access& access) {
  if (IsRoot()) {
    REQUIRE(lchown(path.c_str(), access.owner, access.group) == 0);
  }
  REQUIRE(chmod(path.c_str(), access.mode) == 0);
}

// Returns the same access, but with the ids of this process if it is not root.
Access Mine(Access access) {
  if (!IsRoot()) {
    access.owner = geteuid();
    access.group = getegid();
  }
  return access;
}

// Requires this access of `dir` and, without execute bits, of all files in it.
void RequireAccess(const std::string& dir, const Access& expected) {
  REQUIRE(AccessOf(dir) == expected);
  size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(dir)) {
    INFO(entry.path().string());
    REQUIRE(entry.is_regular_file());
    REQUIRE(AccessOf(entry.path().string()) == expected.OfFiles());
    ++files;
  }
  REQUIRE(files > 5);
}

// Finds files of a workspace that others could read. Used from any thread.
class Peeper {
 public:
  explicit Peeper(std::string workspace) : workspace_(std::move(workspace)) {}

  void Look(const std::string& point) {
    std::lock_guard<std::mutex> lock(mu_);
    // A directory that a swap replaced keeps its mode.
    if (point.find("xchanged") != std::string::npos ||
        point == "Puller:AfterSwapDone" || point == "Workspace:OldRetired") {
      return;
    }
    Expect(point, workspace_, 0700);
    std::error_code gone;
    for (const auto& entry : fs::directory_iterator(workspace_, gone)) {
      const std::string path = entry.path().string();
      const std::string name = entry.path().filename().string();
      if (name == "staging" || name == "other" || name == "probe") {
        Expect(point, path, 0700);
      } else if (name == "db" && point != "Puller:AccessSet" &&
                 point != "OtherFiles:Placed" &&
                 point != "Workspace:ExchangeRecorded" &&
                 point != "WriteDurably:Written" &&
                 point != "WriteDurably:Synced" &&
                 point != "WriteDurably:Renamed" &&
                 point != "Puller:BeforeSwapDone") {
        Expect(point, path, 0700);
        // All files but complete chunks.
        for (const auto& file : fs::directory_iterator(path, gone)) {
          if (file.path().extension() != ".sst") {
            Expect(point, file.path().string(), 0600);
          }
        }
      } else if (name != "db" && name != "old") {
        Expect(point, path, 0600);
      }
    }
  }

  size_t looks() const { return looks_; }
  const std::vector<std::string>& found() const { return found_; }

 private:
  void Expect(const std::string& point, const std::string& path,
              mode_t expected) {
    struct stat info {};
    if (lstat(path.c_str(), &info) == 0) {
      ++looks_;
      if ((info.st_mode & 07777) != expected) {
        found_.push_back(point + " " + path);
      }
    }
  }

  const std::string workspace_;
  std::mutex mu_;
  size_t looks_ = 0;
  std::vector<std::string> found_;
};

TEST_CASE("Other users cannot read files of an unfinished pull, whatever the "
          "umask",
          "[target][access]") {
  const UmaskScope open(0);
  const PullMode mode = GENERATE(PullMode::kSwap, PullMode::kRefresh);
  ReplicaWorld world;
  PullOptions options = world.Options();
  REQUIRE_OK(RunPull(options).status);  // seeds
  world.ChangeSource();
  options.mode = mode;
  Peeper peeper(world.target() + ".sstferry");
  TEST_SetFaultHook([&peeper](const std::string& point) {
    peeper.Look(point);
  });
  const Summary summary = RunPull(options);
  TEST_SetFaultHook(nullptr);
  REQUIRE_OK(summary.status);
  REQUIRE(peeper.looks() > 50);
  REQUIRE(peeper.found() == std::vector<std::string>());
}

TEST_CASE("A new database has the access of the directory that it replaces",
          "[target][access]") {
  const UmaskScope usual(022);
  ReplicaWorld world;
  PullOptions options = world.Options();
  const Access expected =
      Mine({kSomeUser, kSomeGroup, GENERATE(0750u, 0700u, 02775u)});
  SECTION("an empty directory") {
    fs::create_directory(world.target());
  }
  SECTION("a swap") {
    REQUIRE_OK(RunPull(options).status);
    world.ChangeSource();
  }
  SECTION("a swap without a sync before its end") {
    REQUIRE_OK(RunPull(options).status);
    world.ChangeSource();
    options.durability = Durability::kNone;
  }
  Give(world.target(), expected);
  const Summary summary = RunPull(options);
  REQUIRE_OK(summary.status);
  RequireAccess(world.target(), expected);
  REQUIRE(EntriesOf(world.target()) == EntriesOf(world.source()));
}

TEST_CASE("A new database has the access that the options request",
          "[target][access]") {
  ReplicaWorld world;
  PullOptions options = world.Options();
  const Access asked = Mine({kSomeUser, kSomeGroup, 0710});
  options.target_owner = asked.owner;
  options.target_group = asked.group;
  options.target_mode = asked.mode;
  REQUIRE_OK(RunPull(options).status);
  RequireAccess(world.target(), asked);
  REQUIRE(chmod(world.target().c_str(), 0755) == 0);
  REQUIRE_OK(RunPull(options).status);
  RequireAccess(world.target(), asked);
}

TEST_CASE("A database in a new place has the access of an ordinary directory",
          "[target][access]") {
  const mode_t mask = GENERATE(022, 027, 077, 0);
  const UmaskScope scope(mask);
  ReplicaWorld world;
  REQUIRE_OK(RunPull(world.Options()).status);
  RequireAccess(world.target(), {geteuid(), getegid(), 0755u & ~mask});
}

TEST_CASE("A refresh in place adds files with the access of existing ones",
          "[target][access]") {
  ReplicaWorld world;
  PullOptions options = world.Options();
  REQUIRE_OK(RunPull(options).status);
  world.ChangeSource();
  options.mode = PullMode::kRefresh;
  options.chunk_bytes = 100'000;
  // An application may give files other permissions than those of the
  // directory.
  const Access directory = Mine({geteuid(), kSomeGroup, 0750});
  const Access file = Mine({geteuid(), kSomeGroup, 0644});
  Give(world.target(), directory);
  for (const auto& entry : fs::directory_iterator(world.target())) {
    Give(entry.path().string(), file);
  }
  const Summary summary = RunPull(options);
  REQUIRE_OK(summary.status);
  REQUIRE(summary.chunks > 0);
  REQUIRE(AccessOf(world.target()) == directory);
  for (const auto& entry : fs::directory_iterator(world.target())) {
    INFO(entry.path().string());
    REQUIRE(AccessOf(entry.path().string()) == file);
  }
  REQUIRE(EntriesOf(world.target()) == EntriesOf(world.source()));
}

TEST_CASE("A refresh in place refuses to change the owner or mode",
          "[target][access]") {
  ReplicaWorld world;
  PullOptions options = world.Options();
  REQUIRE_OK(RunPull(options).status);
  REQUIRE(chmod(world.target().c_str(), 0750) == 0);
  options.mode = PullMode::kRefresh;
  options.target_mode = 0700;
  const Summary refused = RunPull(options);
  REQUIRE(EndStateOf(refused.status) == EndState::kRefused);
  REQUIRE(MessageOf(refused.status).find("0700") != std::string::npos);
  REQUIRE(MessageOf(refused.status).find("0750") != std::string::npos);
  world.RequireNothingLeft();
  options.target_mode = 0750;
  REQUIRE_OK(RunPull(options).status);
}

TEST_CASE("Permissions that lock the owner out are refused before a name is "
          "made",
          "[target][access]") {
  ReplicaWorld world;
  PullOptions options = world.Options();
  fs::create_directory(world.target());
  REQUIRE(chmod(world.target().c_str(), 0550) == 0);
  const Summary refused = RunPull(options);
  REQUIRE(EndStateOf(refused.status) == EndState::kRefused);
  REQUIRE(MessageOf(refused.status).find("0550") != std::string::npos);
  REQUIRE(MessageOf(refused.status).find("--permissions") !=
          std::string::npos);
  REQUIRE(world.calls().empty());
  REQUIRE_FALSE(fs::exists(world.target() + ".sstferry"));
  options.target_mode = 0750;
  REQUIRE_OK(RunPull(options).status);
}

// Calls `look` in a child that is not root, and returns its result.
bool AsAnotherUser(const std::function<bool()>& look) {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const bool dropped = setgroups(0, nullptr) == 0 &&
                         setgid(kSomeGroup) == 0 && setuid(kSomeUser) == 0;
    _exit(dropped && look() ? 0 : 1);
  }
  int code = -1;
  REQUIRE(waitpid(child, &code, 0) == child);
  return WIFEXITED(code) && WEXITSTATUS(code) == 0;
}

TEST_CASE("An owner that cannot be set is refused, with what to do",
          "[target][access]") {
  if (!IsRoot()) {
    return;  // only root can become another user
  }
  ScratchDir dir;
  fs::create_directory(dir / "open");
  REQUIRE(chmod(dir.path().c_str(), 0755) == 0);
  REQUIRE(chmod((dir / "open").c_str(), 0777) == 0);
  PullOptions options;
  options.method = PullMethod::kIngest;
  options.target_dir = dir / "open/target";
  const auto refused = [&options] {
    Access access;
    const rocksdb::Status status = ChooseAccess(options, &access);
    return EndStateOf(status) == EndState::kRefused &&
           MessageOf(status).find("--owner") != std::string::npos;
  };
  REQUIRE(AsAnotherUser([&] { return !refused(); }));  // no directory exists
  options.target_owner = 0;
  REQUIRE(AsAnotherUser(refused));
  options.target_owner = kSomeUser;
  REQUIRE(AsAnotherUser([&] { return !refused(); }));
  options.target_group = 0;
  REQUIRE(AsAnotherUser(refused));
  options.target_owner.reset();
  options.target_group.reset();
  fs::create_directory(options.target_dir);  // belongs to root
  REQUIRE(AsAnotherUser(refused));
  options.target_owner = kSomeUser;
  options.target_group = kSomeGroup;
  REQUIRE(AsAnotherUser([&] { return !refused(); }));
  REQUIRE(fs::is_empty(options.target_dir));
  REQUIRE(std::distance(fs::directory_iterator(dir / "open"),
                        fs::directory_iterator()) == 1);
  // A refresh in place is refused, too: its files would have another owner.
  WriteBytes(options.target_dir + "/CURRENT", "MANIFEST-000001\n");
  REQUIRE(AsAnotherUser([&options] {
    Access access;
    return EndStateOf(ChooseFileAccess(PullOptions(), options.target_dir,
                                       &access)) == EndState::kRefused;
  }));
}

TEST_CASE("Another user's workspace is refused, and its status is not guessed",
          "[target][access]") {
  if (!IsRoot()) {
    return;  // only root can become another user
  }
  ScratchDir dir;
  const std::string target = dir / "open/target";
  fs::create_directories(target + ".sstferry");
  WriteBytes(target + ".sstferry/lock", "sstferry workspace 1\n");
  REQUIRE(chmod(dir.path().c_str(), 0755) == 0);
  REQUIRE(chmod((dir / "open").c_str(), 0777) == 0);
  const auto refused = [](const rocksdb::Status& status) {
    return EndStateOf(status) == EndState::kRefused;
  };
  const auto looks = [&] {
    TargetState state;
    bool is_target = false;
    return !refused(ReadTargetState(target, &state, &is_target));
  };
  const auto works = [&] {
    std::unique_ptr<Workspace> workspace;
    return !refused(Workspace::Open(target, Existing::kRefuse,
                                    rocksdb::FileSystem::Default(), nullptr,
                                    &workspace));
  };
  REQUIRE(chmod((target + ".sstferry").c_str(), 0700) == 0);
  REQUIRE(AsAnotherUser([&] { return !looks() && !works(); }));
  REQUIRE(chmod((target + ".sstferry").c_str(), 0755) == 0);
  REQUIRE(AsAnotherUser([&] { return looks() && !works(); }));
}

TEST_CASE("The state of a replica whose record may not be read is not guessed",
          "[target][access]") {
  if (!IsRoot()) {
    return;  // only root can become another user
  }
  ScratchDir dir;
  const std::string target = dir / "target";
  fs::create_directory(target);
  WriteBytes(target + "/last_transfer.json", "{\"transfer_id\": \"1\"}");
  REQUIRE(chmod(dir.path().c_str(), 0755) == 0);
  REQUIRE(chmod(target.c_str(), 0755) == 0);
  const auto state_is = [&target](EndState state) {
    TargetState found;
    bool is_target = false;
    return EndStateOf(ReadTargetState(target, &found, &is_target)) == state;
  };
  REQUIRE(chmod((target + "/last_transfer.json").c_str(), 0600) == 0);
  REQUIRE(AsAnotherUser([&] { return state_is(EndState::kDenied); }));
  REQUIRE(state_is(EndState::kOk));
  REQUIRE(chmod((target + "/last_transfer.json").c_str(), 0644) == 0);
  REQUIRE(AsAnotherUser([&] { return state_is(EndState::kOk); }));
  // status reports the same.
  REQUIRE(chmod((target + "/last_transfer.json").c_str(), 0600) == 0);
  REQUIRE(AsAnotherUser([&] {
    StatusOptions options;
    options.where.directory = target;
    StatusReport report;
    return EndStateOf(MakeStatusQuery(options)->Run(&report)) ==
           EndState::kDenied;
  }));
}

TEST_CASE("Access is never given through a link", "[target][access]") {
  ScratchDir dir;
  WriteBytes(dir / "file", "x");
  REQUIRE(chmod((dir / "file").c_str(), 0640) == 0);
  fs::create_symlink(dir / "file", dir / "link");
  REQUIRE_FALSE(SetAccess(dir / "link", {Access::kAsMade, Access::kAsMade,
                                         0666})
                    .ok());
  REQUIRE(AccessOf(dir / "file").mode == 0640);
}

}  // namespace
}  // namespace sstferry::access_test
