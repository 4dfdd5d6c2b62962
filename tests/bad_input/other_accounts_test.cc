// Tests another local account that may change names on the paths that root
// writes. These tests need root; without root they are skipped with a warning.
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include "pipeline/base/database_open.h"
#include "pipeline/base/known_fault.h"
#include "pipeline/base/other_accounts.h"
#include "pipeline/base/standby_record.h"
#include "pipeline/base/stop_signal.h"
#include "pipeline/disk/database_files.h"
#include "pipeline/disk/durable.h"
#include "pipeline/disk/paced_removal.h"
#include "pipeline/pull/health.h"
#include "sstferry/target.h"
#include "tests/support/catch.h"
#include "tests/support/fake_peer.h"
#include "tests/support/sample_database.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/serve_process.h"

namespace sstferry::other_accounts_test {
namespace {

namespace fs = std::filesystem;

// The uid of "nobody", which owns no other files here.
constexpr uid_t kOther = 65534;

bool IsRoot() {
  if (geteuid() != 0) {
    WARN("not run: it needs root, to act as two accounts");
  }
  return geteuid() == 0;
}

void Give(const std::string& path, mode_t mode = 0755) {
  REQUIRE(lchown(path.c_str(), kOther, kOther) == 0);
  if (!fs::is_symlink(path)) REQUIRE(chmod(path.c_str(), mode) == 0);
}

// Lets the other account write to a file or directory of root, with an access
// control list in the kernel's form. Returns false if the file system has none.
bool GiveByList(const std::string& path) {
  const struct {
    uint16_t tag;
    uint16_t permissions;
    uint32_t id;
  } rows[] = {{0x01, 7, UINT32_MAX},  // the owner
              {0x02, 7, kOther},
              {0x04, 5, UINT32_MAX},  // the group
              {0x10, 7, UINT32_MAX},  // the mask
              {0x20, 5, UINT32_MAX}};
  static_assert(sizeof(rows) == 5 * 8);
  const uint32_t version = 2;
  std::string list(reinterpret_cast<const char*>(&version), sizeof(version));
  list.append(reinterpret_cast<const char*>(rows), sizeof(rows));
  const bool is_set = setxattr(path.c_str(), "system.posix_acl_access",
                               list.data(), list.size(), 0) == 0;
  if (!is_set) {
    WARN("not run: TMPDIR has no access control lists");
  }
  return is_set;
}

uid_t OwnerOf(const std::string& path) {
  struct stat info;
  REQUIRE(lstat(path.c_str(), &info) == 0);
  return info.st_uid;
}

// Calls `act`, which must use system calls only, with the rights of the other
// account.
void AsOther(const std::function<bool()>& act) {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const bool is_other = setgroups(0, nullptr) == 0 &&
                          setresgid(kOther, kOther, kOther) == 0 &&
                          setresuid(kOther, kOther, kOther) == 0;
    _exit(is_other && act() ? 0 : 1);
  }
  int state = 0;
  REQUIRE(waitpid(child, &state, 0) == child);
  REQUIRE(WIFEXITED(state));
  REQUIRE(WEXITSTATUS(state) == 0);
}

// A directory of the other account, and files that only root may read and
// write.
struct Places {
  ScratchDir dir;
  std::string app = dir / "app";
  std::string victim = dir / "victim";
  std::string secret = victim + "/secret";
  Places() {
    REQUIRE(chmod(dir.path().c_str(), 0711) == 0);
    fs::create_directory(app);
    Give(app);
    fs::create_directory(victim);
    WriteBytes(secret, "root's");
    chmod(victim.c_str(), 0700);
    chmod(secret.c_str(), 0600);
    MakeSampleDatabase(dir / "source");
  }
  void RequireUntouched() const {
    REQUIRE(BytesOf(secret) == "root's");
    REQUIRE(OwnerOf(secret) == 0);
    REQUIRE(OwnerOf(victim) == 0);
    REQUIRE(std::distance(fs::directory_iterator(victim), {}) == 1);
  }
  // Returns the words that run the tool as `account`. Copies the tool, because
  // the account may not be able to reach the build directory.
  std::vector<std::string> As(uid_t account,
                              const std::vector<std::string>& arguments) const {
    std::vector<std::string> words = Sstferry(arguments);
    const std::string copy = dir / "sstferry";
    if (!fs::exists(copy)) fs::copy_file(words[0], copy);
    words[0] = copy;
    words.insert(words.begin(),
                 {"/usr/bin/setpriv", "--reuid", std::to_string(account),
                  "--regid", std::to_string(account), "--clear-groups"});
    return words;
  }
  PullOptions Options(const std::string& target) const {
    PullOptions options;
    options.method = PullMethod::kIngest;
    options.source.directory = dir / "source";
    options.target_dir = target;
    return options;
  }
};

TEST_CASE("Root writes nothing where another account may change a name",
          "[bad_input][accounts]") {
  if (!IsRoot()) return;
  const bool plans = GENERATE(false, true);
  const bool swaps = GENERATE(false, true);
  Places places;
  std::string target = places.app + "/target";
  SECTION("the parent belongs to another account") {}
  SECTION("a directory above it belongs to another account") {
    fs::create_directory(places.app + "/own");
    target = places.app + "/own/target";
  }
  SECTION("a link leads through a directory of another account") {
    fs::create_directory(places.dir / "own");
    fs::create_directory_symlink(places.dir / "own", places.app + "/link");
    fs::create_directory_symlink(places.app + "/link", places.dir / "way");
    target = places.dir / "way/target";
  }
  SECTION("all accounts may write there") {
    fs::create_directory(places.dir / "all");
    chmod((places.dir / "all").c_str(), 0777);
    target = places.dir / "all/target";
  }
  SECTION("a group may write there") {
    fs::create_directory(places.dir / "group");
    REQUIRE(chown((places.dir / "group").c_str(), 0, kOther) == 0);
    chmod((places.dir / "group").c_str(), 0775);
    target = places.dir / "group/target";
  }
  SECTION("an access control list lets another account write there") {
    fs::create_directory(places.dir / "list");
    chmod((places.dir / "list").c_str(), 0755);
    if (!GiveByList(places.dir / "list")) return;
    target = places.dir / "list/target";
  }
  SECTION("the way leads up from where a link leads") {
    fs::create_directory(places.app + "/own");
    fs::create_directory_symlink(places.app + "/own", places.dir / "way");
    target = places.dir / "way/../target";
  }
  SECTION("the way leads up from a directory that does not exist") {
    target = places.dir / "none/../app/target";
  }
  PullOptions options = places.Options(target);
  options.mode = swaps ? PullMode::kSwap : PullMode::kPull;
  Summary summary;
  const rocksdb::Status status =
      (plans ? MakePlan(options) : MakePull(options))->Run(&summary);
  INFO(status.ToString());
  REQUIRE(EndStateOf(status) == EndState::kRefused);
  REQUIRE(status.ToString().find("run as that account") != std::string::npos);
  REQUIRE_FALSE(fs::exists(target));
  REQUIRE_FALSE(fs::exists(target + ".sstferry"));
}

TEST_CASE("Root works where no other account may change a name",
          "[bad_input][accounts]") {
  if (!IsRoot()) return;
  Places places;
  const std::string sticky = places.dir / "sticky";
  fs::create_directory(sticky);
  chmod(sticky.c_str(), 01777);
  // The group of root has only root.
  const std::string group = places.dir / "group";
  fs::create_directory(group);
  chmod(group.c_str(), 0775);
  const std::string parent =
      GENERATE(std::string("sticky/"), std::string("group/"), std::string());
  const std::string target = places.dir / (parent + "target");
  Summary summary;
  REQUIRE_OK(MakePull(places.Options(target))->Run(&summary));
  // In another account's directory, a refresh in place would open names that
  // the account chose.
  Give(target);
  PullOptions refresh = places.Options(target);
  refresh.mode = PullMode::kRefresh;
  const rocksdb::Status in_place = MakePull(refresh)->Run(&summary);
  INFO(in_place.ToString());
  REQUIRE(EndStateOf(in_place) == EndState::kRefused);
  REQUIRE(in_place.ToString().find("nobody") != std::string::npos);
  // An exchange opens no file there for writing, so these links do no harm.
  for (const char* name : {"last_transfer.json.tmp", "sstferry.health.tmp"}) {
    fs::create_symlink(places.secret, target + "/" + name);
  }
  refresh.mode = PullMode::kSwap;
  refresh.always_swap = true;
  const rocksdb::Status swapped = MakePull(refresh)->Run(&summary);
  INFO(swapped.ToString());
  places.RequireUntouched();
}

TEST_CASE("A workspace of another account is not used",
          "[bad_input][accounts]") {
  if (!IsRoot()) return;
  Places places;
  const std::string target = places.dir / "target";
  const std::string workspace = target + ".sstferry";
  fs::create_directory(workspace);
  WriteBytes(workspace + "/lock", "sstferry workspace 1\n");
  SECTION("its old database is a link, which a removal would follow") {
    fs::create_directory_symlink(places.victim, workspace + "/old");
    Give(workspace, 0700);
  }
  SECTION("others may write to it") { chmod(workspace.c_str(), 0777); }
  SECTION("it is a link") {
    fs::rename(workspace, places.app + "/made");
    fs::create_directory_symlink(places.app + "/made", workspace);
  }
  Summary summary;
  const rocksdb::Status status =
      MakePull(places.Options(target))->Run(&summary);
  INFO(status.ToString());
  REQUIRE(EndStateOf(status) == EndState::kRefused);
  REQUIRE_FALSE(fs::exists(target));
  places.RequireUntouched();
}

TEST_CASE("A removal follows no link, even if the link appears during the "
          "removal",
          "[bad_input][accounts]") {
  if (!IsRoot()) return;
  Places places;
  const std::shared_ptr<rocksdb::FileSystem> disk =
      rocksdb::FileSystem::Default();
  StopSignal stop;
  const std::string old = places.dir / "old";
  SECTION("a link in place of the tree") {
    fs::create_directory_symlink(places.victim, old);
    REQUIRE(EndStateOf(RemoveTreePaced(disk.get(), old, 0, &stop)) ==
            EndState::kRefused);
  }
  SECTION("a link in place of a directory in it, during its removal") {
    fs::create_directories(old + "/archive");
    WriteBytes(old + "/000001.sst", "a table");
    WriteBytes(old + "/archive/000002.log", "a WAL");
    Give(old + "/archive");
    Give(old);
    // Replaces the directory after the removal has checked it and before it
    // opens it.
    int entered = 0;
    TEST_SetFaultHook([&](const std::string& point) {
      std::error_code error;
      if (point == "PacedRemoval:Entering" && ++entered == 2) {
        fs::rename(old + "/archive", places.dir / "moved", error);
        fs::create_directory_symlink(places.victim, old + "/archive", error);
      }
    });
    RemoveTreePaced(disk.get(), old, 0, &stop).PermitUncheckedError();
    TEST_SetFaultHook(nullptr);
  }
  SECTION("a link in place of a file that is truncated") {
    fs::create_directory(old);
    WriteBytes(old + "/000001.sst", std::string(1 << 20, 'x'));
    Give(old + "/000001.sst", 0644);
    Give(old);
    TEST_SetFaultHook([&](const std::string& point) {
      REQUIRE(point != "PacedRemoval:FileCut");  // it opens by name
    });
    REQUIRE_OK(RemoveTreePaced(disk.get(), old, 10 << 20, &stop));
    TEST_SetFaultHook(nullptr);
    REQUIRE_FALSE(fs::exists(old));
  }
  places.RequireUntouched();
}

TEST_CASE("Root uses no config file that others may change",
          "[bad_input][accounts]") {
  if (!IsRoot()) return;
  Places places;
  const std::string dir = places.dir / "etc";
  fs::create_directory(dir);
  const std::string config = dir + "/config.toml";
  WriteBytes(config, "log-level = \"warning\"\n");
  int code = 2;
  SECTION("it belongs to root") { code = 0; }
  SECTION("it belongs to another account") { Give(config, 0644); }
  SECTION("others may write it") { chmod(config.c_str(), 0666); }
  SECTION("an access control list lets another account write it") {
    if (!GiveByList(config)) return;
  }
  SECTION("an access control list lets another account write its directory") {
    if (!GiveByList(dir)) return;
  }
  SECTION("its directory belongs to another account") { Give(dir); }
  SECTION("a link leads to another account's file") {
    fs::rename(config, places.app + "/config.toml");
    fs::create_symlink(places.app + "/config.toml", config);
  }
  Process plan(Sstferry({"plan", places.dir / "source", "--config", config}));
  REQUIRE(plan.Wait() == code);
  if (code != 0) {
    REQUIRE(plan.err().find("others may change") != std::string::npos);
  }
}

TEST_CASE("A Unix socket accepts only the named accounts",
          "[bad_input][accounts]") {
  if (!IsRoot()) return;
  Places places;
  const std::string listen = "unix:" + (places.dir / "socket");
  const bool allows = GENERATE(false, true);
  std::vector<std::string> words = {"--db", "db=" + (places.dir / "source")};
  if (allows) words.insert(words.end(), {"--allow-uid", "daemon"});
  const ServeProcess server(words, listen);
  const auto list = [&](uid_t account) {
    return std::make_unique<Process>(places.As(account, {"ls", listen}));
  };
  const std::unique_ptr<Process> other = list(2);
  REQUIRE(other->Wait() == 1);
  INFO(other->err());
  REQUIRE(other->err().find("DENIED") != std::string::npos);
  REQUIRE(other->err().find("--allow-uid") != std::string::npos);
  REQUIRE(other->out().empty());
  REQUIRE(list(0)->Wait() == 0);
  REQUIRE(list(1)->Wait() == (allows ? 0 : 1));
}

TEST_CASE("No account can take over the transfer of another one at a Unix "
          "socket",
          "[bad_input][accounts]") {
  if (!IsRoot()) return;
  Places places;
  const std::string path = places.dir / "socket";
  const std::string listen = "unix:" + path;
  const ServeProcess server({"--db", "db=" + (places.dir / "source"),
                             "--allow-uid", "daemon"},
                            listen);
  std::unique_ptr<Channel> control;
  Opened opened;
  REQUIRE_OK(OpenSample({path, 0}, &opened, &control));
  std::unique_ptr<Channel> lane;
  REQUIRE_OK(DialLane({path, 0}, opened.transfer_id, 0, &lane));
  // Only this thread has the other account's uid while it connects.
  REQUIRE(syscall(SYS_setresuid, -1, 1, -1) == 0);
  std::unique_ptr<Channel> stolen;
  const rocksdb::Status dialed =
      DialLane({path, 0}, opened.transfer_id, 0, &stolen);
  REQUIRE(syscall(SYS_setresuid, -1, 0, -1) == 0);
  REQUIRE_OK(dialed);
  const rocksdb::Status end = ReceiveEnd(stolen.get());
  INFO(end.ToString());
  REQUIRE(EndStateOf(end) == EndState::kDenied);
}

TEST_CASE("A Unix socket is made only where only root and the server may make "
          "names",
          "[bad_input][accounts]") {
  if (!IsRoot()) return;
  Places places;
  std::unique_ptr<Listener> listener;
  std::string path = places.app + "/socket";
  SECTION("the directory belongs to another account") {}
  SECTION("all accounts may write there") {
    fs::create_directory(places.dir / "all");
    chmod((places.dir / "all").c_str(), 0777);
    path = places.dir / "all/socket";
  }
  SECTION("another account's socket is there") {
    fs::create_directory(places.dir / "sticky");
    chmod((places.dir / "sticky").c_str(), 01777);
    path = places.dir / "sticky/socket";
    REQUIRE_OK(ListenUnix(path, {}, &listener));
    fs::rename(path, path + ".kept");
    listener.reset();
    fs::rename(path + ".kept", path);
    REQUIRE(lchown(path.c_str(), kOther, kOther) == 0);
  }
  const rocksdb::Status status = ListenUnix(path, {}, &listener);
  INFO(status.ToString());
  REQUIRE(EndStateOf(status) == EndState::kRefused);
  const std::string expected =
      path.find("/all/") == std::string::npos
          ? "uid " + std::to_string(kOther)
          : "everybody";
  REQUIRE(status.ToString().find(expected) != std::string::npos);
}

TEST_CASE("A LOCK that is a link is not opened", "[bad_input][accounts]") {
  if (!IsRoot()) return;
  Places places;
  fs::create_symlink(places.secret, places.app + "/LOCK");
  REQUIRE_FALSE(IsDatabaseOpen(places.app));
  DatabaseLock lock;
  REQUIRE(EndStateOf(lock.Take(places.app, GENERATE(false, true))) ==
          EndState::kRefused);
}

TEST_CASE("A pull that root starts in another account's place runs as that "
          "account, and its hooks as root",
          "[bad_input][accounts]") {
  if (!IsRoot()) return;
  Places places;
  const ServeProcess server({"--db", "db=" + (places.dir / "source")});
  const std::string target = places.app + "/target";
  const auto run = [&](const std::string& job,
                       const std::vector<std::string>& more) {
    std::vector<std::string> words = {job, server.url(), target, "--progress",
                                      "never"};
    words.insert(words.end(), more.begin(), more.end());
    Process pull(Sstferry(words));
    const int code = pull.Wait();
    INFO(pull.err());
    REQUIRE(code == 0);
  };
  const std::string config = places.victim + "/config.toml";
  WriteBytes(config, "log-level = \"warning\"\n");
  chmod(config.c_str(), 0600);
  run("pull", {"--config", config});
  REQUIRE(OwnerOf(target) == kOther);
  REQUIRE(OwnerOf(target + "/CURRENT") == kOther);
  const std::string said = places.victim + "/said";
  const std::string metrics = places.victim + "/metrics.prom";
  run("swap", {"--always-swap", "--method", "clone", "--before-swap",
               "id -u >> " + said, "--after-swap",
               "id -u >> " + said + "; echo $SSTFERRY_EXCHANGED >> " + said,
               "--metrics-file", metrics});
  REQUIRE(BytesOf(said) == "0\n0\nyes\n");
  REQUIRE(OwnerOf(metrics) == 0);
  REQUIRE(BytesOf(metrics).find("sstferry_replica_runs_total") !=
          std::string::npos);
  run("refresh", {});
  REQUIRE(OwnerOf(target + "/last_transfer.json") == kOther);
  REQUIRE_FALSE(fs::exists(target + ".sstferry"));
  SECTION("a failed hook ends it") {
    Process pull(Sstferry({"swap", server.url(), target, "--always-swap",
                           "--method", "clone", "--before-swap", "exit 7"}));
    REQUIRE(pull.Wait() == 1);
    REQUIRE(pull.err().find("ended with code 7") != std::string::npos);
  }
  SECTION("a signal ends it, with the running hook") {
    Process pull(
        Sstferry({"swap", server.url(), target, "--always-swap", "--method",
                  "clone", "--before-swap",
                  "echo runs > " + places.victim + "/runs; sleep 600"}));
    while (!fs::exists(places.victim + "/runs")) {
    }
    pull.Signal(SIGTERM);
    REQUIRE(pull.Wait() == 4);
  }
  SECTION("links do not lead out of the place") {
    fs::remove(places.victim + "/said");
    fs::remove(places.victim + "/metrics.prom");
    fs::remove(config);
    fs::create_symlink(places.secret, target + "/last_transfer.json.tmp");
    Process pull(Sstferry({"refresh", server.url(), target}));
    REQUIRE(pull.Wait() != 0);
    places.RequireUntouched();
  }
}

TEST_CASE("SIGTERM ends a pull that root started for another account with code "
          "4, and the same command resumes it",
          "[bad_input][accounts]") {
  if (!IsRoot()) return;
  Places places;
  const ServeProcess server({"--db", "db=" + (places.dir / "source")});
  const std::string target = places.app + "/target";
  const std::vector<std::string> words = {"pull",          server.url(),
                                          target,          "--chunk-bytes",
                                          "64Ki",          "--progress",
                                          "never",         "--max-rate"};
  std::vector<std::string> slow = words;
  slow.push_back("20k");
  Process pull(Sstferry(slow));
  REQUIRE(pull.WaitForBytesIn(target + ".sstferry/db"));
  pull.Signal(SIGTERM);
  REQUIRE(pull.Wait() == 4);
  INFO(pull.err());
  REQUIRE(pull.err().find("CANCELLED") != std::string::npos);
  REQUIRE(OwnerOf(target + ".sstferry") == kOther);
  // The account may have put any command into its journal, for example one with
  // hooks. Root would run these hooks, so its status must not show the command.
  Process roots_look(Sstferry({"status", target}));
  Process own_look(places.As(kOther, {"status", target}));
  roots_look.Wait();
  own_look.Wait();
  INFO(roots_look.out() << own_look.out());
  REQUIRE(roots_look.out().find("unfinished: ") != std::string::npos);
  REQUIRE(roots_look.out().find("--max-rate") == std::string::npos);
  REQUIRE(roots_look.out().find("next: run the same command again") !=
          std::string::npos);
  REQUIRE(own_look.out().find("sstferry pull ") != std::string::npos);
  std::vector<std::string> fast = words;
  fast.push_back("100M");
  Process again(Sstferry(fast));
  REQUIRE(again.Wait() == 0);
  REQUIRE(OwnerOf(target) == kOther);
}

TEST_CASE("The account that owns a served database cannot read other files "
          "through it",
          "[bad_input][accounts]") {
  if (!IsRoot()) return;
  Places places;
  const std::string source = places.app + "/source";
  fs::rename(places.dir / "source", source);
  for (const std::string& name : NamesOf(source)) {
    Give(source + "/" + name, 0644);
  }
  Give(source);
  ServeProcess server({"--db", "db=" + source});
  const auto pull = [&](const std::string& target) {
    return std::make_unique<Process>(
        places.As(kOther, {"pull", server.url(), places.app + "/" + target,
                           "--method", "clone", "--progress", "never"}));
  };
  AsOther([&] { return open(places.secret.c_str(), O_RDONLY) < 0; });
  SECTION("through a link") {
    AsOther([&] {
      return symlink(places.secret.c_str(),
                     (source + "/OPTIONS-999999").c_str()) == 0;
    });
    const std::unique_ptr<Process> refused = pull("copy");
    REQUIRE(refused->Wait() == 1);
    REQUIRE(refused->err().find("expected a regular file") !=
            std::string::npos);
    REQUIRE_FALSE(fs::exists(places.app + "/copy"));
  }
  SECTION("through a FIFO, which does not block the server") {
    AsOther([&] {
      return mkfifo((source + "/OPTIONS-999999").c_str(), 0666) == 0;
    });
    const std::unique_ptr<Process> refused = pull("copy");
    REQUIRE(refused->Wait(std::chrono::seconds(60)) == 1);
    REQUIRE(refused->err().find("found a FIFO") != std::string::npos);
  }
  SECTION("through a directory in place of the snapshot's") {
    fs::create_directory(places.victim + "/db");
    HostPort where;
    REQUIRE_OK(ParseHostPort(server.address(), &where));
    Opened opened;
    std::unique_ptr<Channel> control;
    REQUIRE_OK(OpenSample(where, &opened, &control));
    std::string snapshot;
    for (const std::string& name : NamesOf(places.app)) {
      if (name.find("-snapshot-") != std::string::npos) snapshot = name;
    }
    REQUIRE_FALSE(snapshot.empty());
    const std::string path = places.app + "/" + snapshot;
    AsOther([&] {
      return rename(path.c_str(), (places.app + "/moved").c_str()) == 0 &&
             symlink(places.victim.c_str(), path.c_str()) == 0;
    });
    server.process().Signal(SIGTERM);
    REQUIRE(server.process().Wait() == 0);
    REQUIRE(fs::exists(places.victim + "/db"));
    fs::remove(places.victim + "/db");
  }
  places.RequireUntouched();
}

TEST_CASE("Root promotes another account's standby as this account, and runs "
          "the hooks itself",
          "[bad_input][accounts]") {
  if (!IsRoot()) return;
  Places places;
  const std::string standby = places.app + "/standby";
  const std::string hooks = places.victim + "/hooks";
  ServeProcess server({"--db", "db=" + (places.dir / "source")});
  Process follower(places.As(kOther, {"follow", server.url(), standby}));
  REQUIRE(follower.WaitForErr("following "));
  Process promote(Sstferry(
      {"promote", standby, "--source-is-down", "--before",
       "id -u > " + hooks + "; kill -TERM " + std::to_string(follower.pid()),
       "--after", "echo $SSTFERRY_EXCHANGED >> " + hooks}));
  const int code = promote.Wait();
  INFO(promote.err());
  REQUIRE(code == 0);
  REQUIRE(promote.err().find("runs as account nobody") != std::string::npos);
  REQUIRE(BytesOf(hooks) == "0\nyes\n");
  REQUIRE(OwnerOf(standby + "/CURRENT") == kOther);
  REQUIRE(follower.Wait() == 0);
  fs::remove(hooks);
  places.RequireUntouched();
}

TEST_CASE("A note that another account forged ends no process",
          "[bad_input][accounts]") {
  if (!IsRoot()) return;
  Places places;
  const std::string target = places.app + "/target";
  const std::string staging = target + ".sstferry/staging";
  Process victim({"/usr/bin/setsid", "/bin/sleep", "600"});
  std::ifstream boot("/proc/sys/kernel/random/boot_id");
  std::string boot_id;
  std::getline(boot, boot_id);
  const std::string stat =
      BytesOf("/proc/" + std::to_string(victim.pid()) + "/stat");
  std::istringstream fields(stat.substr(stat.rfind(')') + 2));
  std::string start;
  for (int field = 3; field <= 22; ++field) fields >> start;
  const std::string note = std::to_string(victim.pid()) + " " + start + " " +
                           boot_id + "\n";
  const std::string mark = "sstferry workspace 1\n";
  AsOther([&] {
    const auto write_to = [](const std::string& path, const std::string& text) {
      const int fd = open(path.c_str(), O_CREAT | O_WRONLY, 0600);
      return write(fd, text.data(), text.size()) ==
             static_cast<ssize_t>(text.size());
    };
    return mkdir((target + ".sstferry").c_str(), 0700) == 0 &&
           mkdir(staging.c_str(), 0700) == 0 &&
           write_to(target + ".sstferry/lock", mark) &&
           write_to(staging + "/command", note);
  });
  Process pull(Sstferry({"pull", places.dir / "source", target, "--progress",
                         "never"}));
  const int code = pull.Wait();
  INFO(pull.err());
  REQUIRE(code != -1);
  REQUIRE(victim.Wait(std::chrono::milliseconds(0)) == -1);
}

TEST_CASE("A file that an account may not read does not count as damaged",
          "[bad_input][accounts]") {
  if (!IsRoot()) return;
  Places places;
  const std::string replica = places.victim + "/replica";
  REQUIRE(Process(Sstferry({"pull", places.dir / "source", replica})).Wait() ==
          0);
  const std::string target = places.app + "/target";
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{
           {"status", replica},
           {"pull", replica, target},
           {"plan", "pull", replica, target},
           {"promote", replica},
           {"view", replica, target}}) {
    Process run(places.As(kOther, words));
    const int code = run.Wait();
    INFO(words[0] << ": " << run.out() << run.err());
    REQUIRE(code == 1);
    REQUIRE((run.err() + run.out()).find("Permission denied") !=
            std::string::npos);
    REQUIRE((run.err() + run.out()).find("damaged") == std::string::npos);
    REQUIRE((run.err() + run.out()).find("CORRUPT") == std::string::npos);
  }
  HealthFile health;
  FollowFile record;
  bool found = false;
  AsOther([&] {
    return EndStateOf(ReadKnownFault(replica, &health)) == EndState::kDenied &&
           EndStateOf(ReadStandbyRecord(replica, &found, &record)) ==
               EndState::kDenied &&
           found;
  });
  // In a readable replica, an unreadable file is still reported.
  REQUIRE(chmod(places.victim.c_str(), 0755) == 0);
  HealthFile fault =
      MakeFault(ReplicaFault::kDifferent, "a key differs", Selection());
  REQUIRE_OK(RecordFault(rocksdb::FileSystem::Default().get(), replica,
                         &fault));
  REQUIRE(chmod((replica + "/sstferry.health").c_str(), 0600) == 0);
  AsOther([&] {
    return EndStateOf(ReadKnownFault(replica, &health)) == EndState::kDenied;
  });
}

}  // namespace
}  // namespace sstferry::other_accounts_test
