// Tests unusual environments of a process: limits, mounts, no /proc, names, a
// umask. The command works, or it reports the problem before it moves data, and
// leaves nothing beside the source.
#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>

#include "rocksdb/db.h"
#include "tests/support/catch.h"
#include "tests/support/denied_calls.h"
#include "tests/support/process.h"
#include "tests/support/sample_database.h"
#include "tests/support/sanitizer.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/serve_process.h"
#include "tests/support/test_db.h"

namespace sstferry::process_world_test {
namespace {

namespace fs = std::filesystem;

// Returns words that run a shell command and then the tool, in one process.
std::vector<std::string> After(const std::string& command,
                               const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {"/bin/sh", "-c", command + "; exec \"$@\"",
                                    "sh"};
  for (const std::string& word : Sstferry(arguments)) {
    words.push_back(word);
  }
  return words;
}

struct Ended {
  int code = -1;
  std::string err;
};

Ended Run(const std::vector<std::string>& words) {
  Process process(words);
  const int code = process.Wait();
  return {code, process.err()};
}

void RequireSays(const Ended& ended, int code, const std::string& text) {
  INFO(ended.err);
  REQUIRE(ended.code == code);
  REQUIRE(ended.err.find(text) != std::string::npos);
  REQUIRE(ended.err.find("/proc/self/fd") == std::string::npos);
}

bool HasSnapshots(const std::string& dir) {
  for (const std::string& name : NamesOf(dir)) {
    if (name.find(".sstferry-snapshot-") != std::string::npos) {
      return true;
    }
  }
  return false;
}

void MakeSource(const std::string& path, bool in_wal_only = false) {
  SampleShape shape;
  shape.entries = 3000;
  shape.in_wal_only = in_wal_only;
  MakeSampleDatabase(path, shape);
}

// A bind mount of a directory onto itself.
class Mounted {
 public:
  explicit Mounted(const std::string& path) : path_(path) {
    fs::create_directories(path);
    is_there_ =
        mount(path.c_str(), path.c_str(), nullptr, MS_BIND, nullptr) == 0;
  }
  ~Mounted() {
    if (is_there_) umount(path_.c_str());
  }
  bool is_there() const { return is_there_; }

 private:
  const std::string path_;
  bool is_there_ = false;
};

TEST_CASE("A limit of file sizes counts as a full disk, and nothing stays "
          "beside the source",
          "[bad_input][limits]") {
  const ScratchDir dir;
  const bool in_wal_only = GENERATE(false, true);
  MakeSource(dir / "source", in_wal_only);
  const std::string method = GENERATE("ingest", "clone");
  // The unit of ulimit -f is 512 bytes.
  const Ended ended =
      Run(After("ulimit -f 200", {"pull", dir / "source", dir / "target",
                                  "--method", method, "--snapshot-ttl", "0"}));
  INFO(method << (in_wal_only ? ", WAL" : ", tables"));
  RequireSays(ended, 4, "NO_SPACE: ");
  REQUIRE(ended.err.find("File too large") != std::string::npos);
  REQUIRE_FALSE(HasSnapshots(dir.path()));
  REQUIRE_FALSE(fs::exists(dir / "target"));
}

TEST_CASE("A server with a limit of file sizes continues to serve",
          "[bad_input][limits]") {
  const ScratchDir dir;
  MakeSource(dir / "large", /*in_wal_only=*/true);
  MakeSource(dir / "small");
  Process serve(After("ulimit -f 1000",
                      {"serve", "--db", "large=" + (dir / "large"), "--db",
                       "small=" + (dir / "small"), "--snapshot-ttl", "0",
                       "--listen", "unix:" + (dir / "socket")}));
  REQUIRE(serve.WaitForOut("listening on "));
  const std::string url = "unix:" + (dir / "socket");
  const Ended ended = Run(Sstferry({"pull", url + ":large", dir / "a",
                                    "--method", "ingest"}));
  RequireSays(ended, 4, "NO_SPACE: ");
  REQUIRE(Run(Sstferry({"pull", url + ":small", dir / "b"})).code == 0);
  serve.Signal(SIGTERM);
  REQUIRE(serve.Wait() == 0);
  REQUIRE_FALSE(HasSnapshots(dir.path()));
}

TEST_CASE("A target name that is too long for the names beside it is refused "
          "before data moves",
          "[bad_input][limits]") {
  const ScratchDir dir;
  MakeSource(dir / "source");
  const std::string most(220, 'a');
  RequireSays(Run(Sstferry({"pull", dir / "source", dir / (most + "a")})), 1,
              "name too long: expected at most 220 bytes, found 221");
  REQUIRE(NamesOf(dir.path()) == std::vector<std::string>{"source"});
  REQUIRE(Run(Sstferry({"pull", dir / "source", dir / most})).code == 0);
  REQUIRE(Run(Sstferry({"swap", dir / "source", dir / most, "--verify"}))
              .code == 0);
}

TEST_CASE("A source may have a name of the maximum length",
          "[bad_input][limits]") {
  const ScratchDir dir;
  const std::string name(255, 's');
  MakeSource(dir / name);
  REQUIRE(Run(Sstferry({"pull", dir / name, dir / "target"})).code == 0);
  REQUIRE(EntriesOf(dir / name) == EntriesOf(dir / "target"));
  REQUIRE_FALSE(HasSnapshots(dir.path()));
}

TEST_CASE("Without /proc, every command reports that first",
          "[bad_input][limits]") {
  const ScratchDir dir;
  MakeSource(dir / "source");
  std::vector<std::string> words = {"/usr/bin/unshare", "-m"};
  for (const std::string& word :
       After("mount -t tmpfs none /proc || exit 77",
             {"pull", dir / "source", dir / "target"})) {
    words.push_back(word);
  }
  const Ended ended = Run(words);
  if (geteuid() != 0 || ended.code == 77 ||
      ended.err.find("unshare") != std::string::npos) {
    WARN("skipped: no mounts can be made");
    return;
  }
  RequireSays(ended, 1, "sstferry pull: REFUSED: expected /proc, found none");
  REQUIRE(NamesOf(dir.path()) == std::vector<std::string>{"source"});
}

TEST_CASE("A database that is a mount point is refused first, with a command "
          "that works",
          "[bad_input][limits]") {
  const ScratchDir dir;
  const Mounted mounted(dir / "mounted");
  if (!mounted.is_there()) {
    WARN("skipped: no mounts can be made");
    return;
  }
  MakeSource(dir / "mounted");
  const std::string own = (dir / "mounted") + "/.sstferry";
  const std::string next = " --snapshot-dir " + own;
  RequireSays(Run(Sstferry({"pull", dir / "mounted", dir / "target"})), 1,
              "next: " + Sstferry({})[0] + " pull " + (dir / "mounted") + " " +
                  (dir / "target") + next);
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{
           {"plan", dir / "mounted"},
           {"plan", "pull", dir / "mounted", dir / "target"},
           {"refresh", dir / "mounted", dir / "target"},
           {"follow", dir / "mounted", dir / "standby"},
           {"serve", dir / "mounted", "--listen",
            "unix:" + (dir / "socket")}}) {
    INFO(command[0]);
    const Ended ended = Run(Sstferry(command));
    INFO(ended.err);
    REQUIRE(ended.code == 1);
    REQUIRE(ended.err.find(": REFUSED: ") != std::string::npos);
    REQUIRE(ended.err.find(next) != std::string::npos);
    REQUIRE(ended.err.find("/proc/self/fd") == std::string::npos);
  }
  REQUIRE(NamesOf(dir.path()) == std::vector<std::string>{"mounted"});

  const std::vector<std::string> chosen = {"--snapshot-dir", own};
  const auto with = [&chosen](std::vector<std::string> command) {
    command.insert(command.end(), chosen.begin(), chosen.end());
    return Run(Sstferry(command)).code;
  };
  REQUIRE(with({"pull", dir / "mounted", dir / "target", "--method",
                GENERATE("ingest", "clone")}) == 0);
  REQUIRE(EntriesOf(dir / "mounted") == EntriesOf(dir / "target"));
  REQUIRE(NamesOf(own).empty());
  REQUIRE_FALSE(fs::exists(dir / "target/.sstferry"));
  REQUIRE(with({"refresh", dir / "mounted", dir / "target"}) == 0);
}

TEST_CASE("A replica in a lower layer of overlayfs is refused before a hook "
          "stops its application",
          "[bad_input][limits]") {
  const ScratchDir dir;
  MakeSource(dir / "source");
  for (const char* name : {"low", "up", "work", "all"}) {
    fs::create_directory(dir / name);
  }
  const std::string method = GENERATE("clone", "ingest");
  REQUIRE(Run(Sstferry({"pull", dir / "source", dir / "low/replica", "--method",
                        method}))
              .code == 0);
  const std::string layers = "lowerdir=" + (dir / "low") + ",upperdir=" +
                             (dir / "up") + ",workdir=" + (dir / "work");
  const std::string all = dir / "all";
  if (mount("overlay", all.c_str(), "overlay", 0, layers.c_str()) != 0) {
    WARN("SKIPPED: needs the right to mount, and overlayfs");
    return;
  }
  {
    test::OpenDb db(dir / "source", {{"default", test::Quiet()}});
    db.Put("more", "entries");
  }
  const auto swap = [&](const std::string& target) {
    return Run(Sstferry({"swap", dir / "source", target, "--method", method,
                         "--before-swap", "touch " + (dir / "stopped")}));
  };
  RequireSays(swap(all + "/replica"), 1, "lower layer of overlayfs");
  REQUIRE_FALSE(fs::exists(dir / "stopped"));
  REQUIRE(EntriesOf(all + "/replica").count("more") == 0);
  // A directory that was made in the upper layer can be exchanged.
  REQUIRE(Run(Sstferry({"pull", all + "/replica", all + "/upper", "--method",
                        method}))
              .code == 0);
  const Ended swapped = swap(all + "/upper");
  INFO(swapped.err);
  REQUIRE(swapped.code == 1);  // another database needs --adopt
  REQUIRE(Run(Sstferry({"swap", dir / "source", all + "/upper", "--method",
                        method, "--adopt"}))
              .code == 0);
  REQUIRE(EntriesOf(all + "/upper").count("more") == 1);
  REQUIRE(umount(all.c_str()) == 0);
}

TEST_CASE("A file system that cannot exchange two names is refused before a "
          "hook stops the application",
          "[bad_input][limits]") {
  const ScratchDir dir;
  MakeSource(dir / "source");
  const std::string method = GENERATE("clone", "ingest");
  const auto run = [&](const std::string& command, const std::string& target,
                       const std::vector<std::string>& more) {
    std::vector<std::string> words = {command, dir / "source", dir / target};
    words.insert(words.end(), more.begin(), more.end());
    Ended ended;
    // NFS, 9p and most FUSE file systems return this error.
    if (!RunWithDenied({{SYS_renameat2, EINVAL, 4, ~0u}},
                       [&] { ended = Run(Sstferry(words)); })) {
      ended.code = 77;
    }
    return ended;
  };
  const Ended pulled = run("pull", "replica", {"--method", method});
  if (pulled.code == 77) {
    WARN("SKIPPED: needs the right to filter system calls");
    return;
  }
  INFO(pulled.err);
  REQUIRE(pulled.code == 0);
  {
    test::OpenDb db(dir / "source", {{"default", test::Quiet()}});
    db.Put("more", "entries");
  }
  const std::vector<std::string> swap = {"--method", method, "--before-swap",
                                         "touch " + (dir / "stopped")};
  RequireSays(run("swap", "replica", swap), 1,
              "expected a file system that exchanges two names in one step");
  REQUIRE_FALSE(fs::exists(dir / "stopped"));
  REQUIRE(NamesOf(dir.path()) ==
          std::vector<std::string>{"replica", "source"});
  REQUIRE(EntriesOf(dir / "replica").count("more") == 0);
  // The first swap creates the directory, so it exchanges nothing.
  REQUIRE(run("swap", "new", {"--method", method}).code == 0);
  REQUIRE(EntriesOf(dir / "new").count("more") == 1);
  // Runs the command that the refusal names.
  if (method == "clone") {
    RequireSays(run("refresh", "replica", {}), 1,
                "\nnext: sstferry refresh " + (dir / "source") + " " +
                    (dir / "replica") + " --method ingest");
    REQUIRE(NamesOf(dir.path()) ==
            std::vector<std::string>{"new", "replica", "source"});
    REQUIRE(EntriesOf(dir / "replica").count("more") == 0);
  }
  REQUIRE(run("refresh", "replica", {"--method", "ingest"}).code == 0);
  REQUIRE(EntriesOf(dir / "replica").count("more") == 1);
}

TEST_CASE("Commands work without calls that an older container runtime denies",
          "[bad_input][limits]") {
  const ScratchDir dir;
  MakeSource(dir / "source");
  const std::string method = GENERATE("clone", "ingest");
  Ended pulled;
  Ended swapped;
  if (!RunWithDenied({{SYS_statx, EPERM},
                      {SYS_copy_file_range, EPERM},
                      {SYS_close_range, EPERM},
                      {SYS_faccessat2, EPERM},
                      {SYS_openat2, EPERM}},
                     [&] {
                       pulled = Run(Sstferry({"pull", dir / "source",
                                              dir / "target", "--method",
                                              method}));
                       swapped = Run(Sstferry({"swap", dir / "source",
                                               dir / "target", "--method",
                                               method}));
                     })) {
    WARN("SKIPPED: needs the right to filter system calls");
    return;
  }
  INFO(pulled.err << swapped.err);
  REQUIRE(pulled.code == 0);
  REQUIRE(swapped.code == 0);
  REQUIRE(EntriesOf(dir / "source") == EntriesOf(dir / "target"));
}

TEST_CASE("A file system that reports no size does not count as full",
          "[bad_input][limits]") {
  const ScratchDir dir;
  MakeSource(dir / "source");
  const std::string disk = dir / "disk";
  fs::create_directory(disk);
  if (mount("none", disk.c_str(), "ramfs", 0, nullptr) != 0) {
    WARN("SKIPPED: needs the right to mount");
    return;
  }
  const std::string method = GENERATE("clone", "ingest");
  Process plan(Sstferry({"plan", "pull", dir / "source", disk + "/target",
                         "--method", method}));
  const int planned = plan.Wait();
  const Ended pulled = Run(Sstferry(
      {"pull", dir / "source", disk + "/target", "--method", method}));
  const bool equal =
      pulled.code == 0 &&
      EntriesOf(dir / "source") == EntriesOf(disk + "/target");
  const int unmounted = umount(disk.c_str());
  INFO(plan.out() << plan.err() << pulled.err);
  REQUIRE(planned == 0);
  REQUIRE(plan.out().find("are free there") == std::string::npos);
  REQUIRE(equal);
  REQUIRE(unmounted == 0);
}

TEST_CASE("The given command reports that the account of the files does not "
          "exist",
          "[bad_input][limits]") {
  if (geteuid() != 0) {
    WARN("SKIPPED: needs root");
    return;
  }
  const ScratchDir dir;
  MakeSource(dir / "source");
  REQUIRE(Run(Sstferry({"pull", dir / "source", dir / "target"})).code == 0);
  REQUIRE(Run({"/bin/chown", "-R", "61752", dir.path()}).code == 0);
  RequireSays(Run(Sstferry({"refresh", dir / "source", dir / "target"})), 1,
              "sstferry refresh: REFUSED: user 61752");
}

// Sets the chattr flags of a file or directory.
bool SetFlags(const std::string& path, int flags) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const bool done = file >= 0 && ioctl(file, FS_IOC_SETFLAGS, &flags) == 0;
  close(file);
  return done;
}

TEST_CASE("An immutable file of the source is named as immutable",
          "[bad_input][limits]") {
  const ScratchDir dir;
  MakeSource(dir / "source");
  std::string table;
  for (const std::string& name : NamesOf(dir / "source")) {
    if (name.ends_with(".sst")) table = (dir / "source/") + name;
  }
  if (!SetFlags(table, FS_IMMUTABLE_FL)) {
    WARN("SKIPPED: needs a right, and a file system with such a flag");
    return;
  }
  const Ended ended = Run(Sstferry({"pull", dir / "source", dir / "target"}));
  REQUIRE(SetFlags(table, 0));
  RequireSays(ended, 1, "found an immutable or append-only one");
  REQUIRE_FALSE(HasSnapshots(dir.path()));
}

TEST_CASE("A refresh or swap of a replica with an immutable file names it "
          "before data moves",
          "[bad_input][limits]") {
  const ScratchDir dir;
  MakeSource(dir / "source");
  const std::string target = dir / "target";
  REQUIRE(Run(Sstferry({"pull", dir / "source", target, "--method", "ingest"}))
              .code == 0);
  {
    test::OpenDb db(dir / "source", test::OneFamily());
    db.Put("new", "1");
    db.Flush();
  }
  struct Row {
    std::string command;
    std::string path;
    int flags;
  };
  const std::vector<Row> rows = {
      {"refresh", target + "/CURRENT", FS_IMMUTABLE_FL},
      {"refresh", target + "/last_transfer.json", FS_APPEND_FL},
      {"refresh", target, FS_APPEND_FL},
      {"swap", target, FS_IMMUTABLE_FL}};
  for (const Row& row : rows) {
    INFO(row.command << " " << row.path);
    if (!SetFlags(row.path, row.flags)) {
      WARN("SKIPPED: needs a right, and a file system with such a flag");
      return;
    }
    const Ended ended =
        Run(Sstferry({row.command, dir / "source", target, "--json"}));
    REQUIRE(SetFlags(row.path, 0));
    RequireSays(ended, 1,
                "REFUSED: target " + target + ": " + row.path +
                    " is immutable or append-only");
    REQUIRE(ended.err.find("next: chattr -i -a " + row.path) !=
            std::string::npos);
    REQUIRE_FALSE(fs::exists(target + ".sstferry"));
  }
  REQUIRE(Run(Sstferry({"refresh", dir / "source", target, "--verify"})).code ==
          0);
}

TEST_CASE("The next command removes what a killed one left in --snapshot-dir",
          "[bad_input][limits]") {
  const ScratchDir dir;
  MakeSource(dir / "source");
  const std::string own = dir / "source/.sstferry";
  Process pull(Sstferry({"pull", dir / "source", dir / "target", "--max-rate",
                         "64K", "--snapshot-dir", own, "--progress", "json",
                         "--progress-interval", "20ms"}));
  REQUIRE(pull.WaitForErr("\"transfer\""));
  pull.Signal(SIGKILL);
  pull.Wait();
  REQUIRE(HasSnapshots(own));
  REQUIRE(Run(Sstferry({"pull", dir / "source", dir / "target", "--restart",
                        "--snapshot-dir", own}))
              .code == 0);
  REQUIRE(NamesOf(own).empty());
}

TEST_CASE("A umask that removes all permissions does not remove the owner's",
          "[bad_input][limits]") {
  const ScratchDir dir;
  MakeSource(dir / "source");
  const std::string target = dir / "target";
  if (geteuid() == 0) {  // root may read and write despite modes
    REQUIRE(Run({"/bin/chown", "-R", "65534", dir.path()}).code == 0);
  }
  const auto run = [](const char* command, const std::string& from,
                      const std::string& to) {
    std::vector<std::string> words = After("umask 0777", {command, from, to});
    if (geteuid() == 0) {
      words.insert(words.begin(), {"/usr/bin/setpriv", "--reuid=65534",
                                   "--regid=65534", "--clear-groups"});
    }
    return Run(words);
  };
  const Ended pulled = run("pull", dir / "source", target);
  INFO(pulled.err);
  REQUIRE(pulled.code == 0);
  struct stat info;
  REQUIRE(stat(target.c_str(), &info) == 0);
  REQUIRE((info.st_mode & 0700) == 0700);
  REQUIRE(run("refresh", dir / "source", target).code == 0);
}

TEST_CASE("A closed reader of the output does not stop an exchange",
          "[bad_input][limits]") {
  const ScratchDir dir;
  MakeSource(dir / "source");
  REQUIRE(Run(Sstferry({"pull", dir / "source", dir / "target"})).code == 0);
  std::string command;
  for (const std::string& word :
       Sstferry({"swap", dir / "source", dir / "target", "--json",
                 "--after-swap", "touch " + (dir / "started")})) {
    command += "'" + word + "' ";
  }
  const Ended ended = Run({"/bin/sh", "-c", command + " 2>&1 | true"});
  REQUIRE(ended.code == 0);
  REQUIRE(EntriesOf(dir / "source") == EntriesOf(dir / "target"));
}

// The first files that a process opens would get the numbers 0 to 2, and log
// messages would be written into them.
TEST_CASE("With standard input, output and error closed, no message is written "
          "into a database",
          "[bad_input][limits]") {
  const ScratchDir dir;
  MakeSource(dir / "source");
  const std::string before = BytesOf(dir / "source/CURRENT");
  for (const char* command : {"pull", "refresh", "swap"}) {
    INFO(command);
    const Ended ended = Run(After("exec <&- >&- 2>&-",
                                  {command, dir / "source", dir / "target",
                                   "--log-level", "debug"}));
    REQUIRE(ended.code == 1);  // because its output was lost
    REQUIRE(Run(Sstferry({"verify", dir / "source", dir / "target"})).code ==
            0);
    for (const std::string& name : NamesOf(dir / "target")) {
      INFO(name);
      REQUIRE(BytesOf(dir / ("target/" + name)).find(" debug ") ==
              std::string::npos);
    }
  }
  REQUIRE(BytesOf(dir / "source/CURRENT") == before);

  REQUIRE(fs::create_directory(dir / "sockets"));
  const std::string socket = dir / "sockets/socket";
  Process serve(After("exec <&- >&- 2>&-", {"serve", dir / "source",
                                            "--listen", "unix:" + socket}));
  REQUIRE(serve.WaitForBytesIn(dir / "sockets"));
  const std::string open = "/proc/" + std::to_string(serve.pid()) + "/fd/";
  REQUIRE(fs::read_symlink(open + "0") == "/dev/null");
  REQUIRE(fs::read_symlink(open + "1") == "/");
  REQUIRE(fs::read_symlink(open + "2") == "/dev/null");
}

TEST_CASE("A pull needs no HOME and no directory for temporary files",
          "[bad_input][limits]") {
  const ScratchDir dir;
  MakeSource(dir / "source");
  REQUIRE(Run(After("unset HOME; export TMPDIR=/nowhere",
                    {"pull", dir / "source", dir / "target"}))
              .code == 0);
}

TEST_CASE("With too little memory, a pull ends with a message, and the next "
          "one resumes",
          "[bad_input][limits]") {
  if (test::kSanitized) return;  // sanitizers reserve terabytes
  const std::string method = GENERATE("ingest", "clone");
  const ScratchDir dir;
  MakeSource(dir / "source");
  const auto entries = EntriesOf(dir / "source");
  int refused = 0;
  // With less, the dynamic loader cannot load the libraries.
  for (int mebibytes = 90; mebibytes <= 1500; mebibytes += mebibytes / 4) {
    const std::string target = dir / std::to_string(mebibytes);
    const std::vector<std::string> words = {"pull", dir / "source", target,
                                            "--method", method};
    // A short timeout, because a pull retries if its source cannot start a
    // thread.
    std::vector<std::string> soon = words;
    soon.insert(soon.end(), {"--timeout", "1s"});
    const Ended ended = Run(
        After("ulimit -v " + std::to_string(mebibytes * 1024), soon));
    INFO(mebibytes << " MiB: " << ended.code << ' ' << ended.err);
    REQUIRE(ended.code >= 0);
    REQUIRE(ended.code < 6);  // ended by no signal
    if (ended.code != 0) {
      ++refused;
      REQUIRE(ended.err.find("sstferry") != std::string::npos);
      REQUIRE(Run(Sstferry(words)).code == 0);
    }
    REQUIRE(EntriesOf(target) == entries);
  }
  REQUIRE(refused > 0);
}

TEST_CASE("With too few threads, a pull ends with a message, and the next one "
          "resumes",
          "[bad_input][limits]") {
  if (geteuid() != 0) {
    WARN("SKIPPED: counts the threads of an account that has no others");
    return;
  }
  const ScratchDir dir;
  MakeSource(dir / "source");
  const auto entries = EntriesOf(dir / "source");
  REQUIRE(chmod(dir.path().c_str(), 0777) == 0);
  constexpr char kAccount[] = "64123";
  Process give({"/bin/chown", "-R", kAccount, dir / "source"});
  REQUIRE(give.Wait() == 0);
  fs::copy_file(Sstferry({})[0], dir / "sstferry");
  int refused = 0;
  for (int threads = 1; threads <= 64; threads *= 2) {
    const std::string target = dir / std::to_string(threads);
    const std::vector<std::string> pull = {
        "/usr/bin/setpriv", "--reuid", kAccount, "--regid", kAccount,
        "--clear-groups", dir / "sstferry", "pull", dir / "source", target};
    std::vector<std::string> words = {"/usr/bin/prlimit",
                                      "--nproc=" + std::to_string(threads)};
    words.insert(words.end(), pull.begin(), pull.end());
    const Ended ended = Run(words);
    INFO(threads << " threads: " << ended.code << ' ' << ended.err);
    REQUIRE(ended.code >= 0);
    REQUIRE(ended.code < 6);
    if (ended.code != 0) {
      ++refused;
      REQUIRE(ended.err.find("thread") != std::string::npos);
      REQUIRE(Run(pull).code == 0);
    }
    REQUIRE(EntriesOf(target) == entries);
  }
  REQUIRE(refused > 0);
}

}  // namespace
}  // namespace sstferry::process_world_test
