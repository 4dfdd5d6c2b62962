// Tests the file-system calls of root in a directory where another account may
// change names: that account cannot redirect any call to another file.
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include <nlohmann/json.hpp>

#include "tests/support/catch.h"
#include "tests/support/file_calls.h"
#include "tests/support/process.h"
#include "tests/support/sample_database.h"
#include "tests/support/scratch_dir.h"

namespace sstferry::file_calls_test {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

std::string Listed(const FileCalls& calls) {
  std::string text;
  for (const std::string& offence : calls.offences) text += offence + "\n";
  return text;
}

size_t OffencesIn(const std::string& trace) {
  const FileCalls calls = JudgeFileCalls(trace, "/srv/app");
  INFO(trace << "\n" << Listed(calls));
  REQUIRE(calls.judged > 0);
  return calls.offences.size();
}

TEST_CASE("A call that another account can redirect is an offence",
          "[bad_input][accounts]") {
  const std::string dir =
      "7 openat2(AT_FDCWD</>, \"/srv/app/db\", {flags="
      "O_PATH|O_NOFOLLOW, resolve=RESOLVE_NO_SYMLINKS}, 24) "
      "= 5</srv/app/db>\n";
  // Each line is one offence. The comments number the rules (file_calls.h).
  for (const char* line : {
           // 1. A path from "/" or from the working directory.
           "open(\"/srv/app/x\", O_RDONLY|O_NOFOLLOW) = 3</srv/app/x>",
           "openat(AT_FDCWD</>, \"/srv/app/x\", O_WRONLY|O_CREAT|O_EXCL, 0600) "
           "= 3</srv/app/x>",
           "openat(AT_FDCWD</srv/app>, \"x\", O_RDONLY|O_NOFOLLOW) = -1 ENOENT "
           "(No such file or directory)",
           "openat(AT_FDCWD</>, \"srv/app/x\", O_RDONLY|O_NOFOLLOW) = 3</x>",
           "openat2(AT_FDCWD</>, \"/srv/app/x\", {flags=O_RDONLY|O_NOFOLLOW, "
           "resolve=RESOLVE_NO_MAGICLINKS}, 24) = 3</srv/app/x>",
           "creat(\"/srv/app/x\", 0600) = 3</srv/app/x>",
           "mkdir(\"/srv/app/x\", 0700) = 0",
           "rename(\"/srv/app/x\", \"/root/y\") = 0",
           "rename(\"/root/y\", \"/srv/app/x\") = 0",
           "unlink(\"/srv/app/x\") = 0",
           "rmdir(\"/srv/app/x\") = 0",
           "truncate(\"/srv/app/x\", 0) = 0",
           "chown(\"/srv/app/x\", 1, 1) = 0",
           "lchown(\"/srv/app/x\", 1, 1) = 0",
           "chmod(\"/srv/app/x\", 0600) = 0",
           "link(\"/srv/app/x\", \"/root/y\") = 0",
           "symlink(\"/root\", \"/srv/app/x\") = 0",
           "execve(\"/srv/app/x\", [\"x\"], 0x7ffd /* 9 vars */) = 0",
           // 2. More than one name below a descriptor.
           "openat(5</srv/app/db>, \"a/b\", O_RDONLY|O_NOFOLLOW) = 3</b>",
           "unlinkat(5</srv/app/db>, \"a/b\", 0) = 0",
           "mkdir(\"/proc/self/fd/5/a/b\", 0700) = 0",
           "renameat2(5</srv/app/db>, \"x\", 5</srv/app/db>, \"a/y\", 0) = 0",
           // No call has opened this descriptor.
           "mkdir(\"/proc/self/fd/9/a/b\", 0700) = 0",
           // 3. The last name may be a link, and the call follows it.
           "openat(5</srv/app/db>, \"x\", O_RDONLY) = 3</srv/app/db/x>",
           "openat(5</srv/app/db>, \"x\", O_WRONLY|O_CREAT|O_TRUNC, 0600) = 3",
           "open(\"/proc/self/fd/5/x\", O_RDONLY|O_CLOEXEC) = 3</x>",
           "truncate(\"/proc/self/fd/5/x\", 0) = 0",
           "chmod(\"/proc/self/fd/5/x\", 0600) = 0",
           "fchownat(5</srv/app/db>, \"x\", 1, 1, 0) = 0",
           "fchmodat(5</srv/app/db>, \"x\", 0600) = 0",
           "linkat(5</srv/app/db>, \"x\", 6</root>, \"y\", AT_SYMLINK_FOLLOW) "
           "= 0",
           "execveat(5</srv/app/db>, \"x\", [\"x\"], 0x7f /* 9 vars */, 0) = 0",
       }) {
    INFO(line);
    REQUIRE(OffencesIn(dir + "7 " + line + "\n") == 1);
  }
}

TEST_CASE("A call that no other account can redirect is no offence",
          "[bad_input][accounts]") {
  const std::string dir =
      "7 openat2(AT_FDCWD</>, \"/srv/app/db\", {flags="
      "O_PATH|O_NOFOLLOW, resolve=RESOLVE_NO_SYMLINKS}, 24) "
      "= 5</srv/app/db>\n";
  for (const char* line : {
           "open(\"/srv/application/x\", O_RDONLY) = 3</srv/application/x>",
           "open(\"/srv/app\", O_RDONLY) = 3</srv/app>",  // a name in /srv
           "rename(\"/root/x, y\", \"/root/y\") = 0",
           "openat(5</srv/app/db>, \"x\", O_RDONLY|O_NOFOLLOW) = 3</x>",
           "openat(5</srv/app/db>, \".\", O_RDONLY|O_DIRECTORY) = 3</x>",
           "openat(5</srv/app/db>, \"x\", O_WRONLY|O_CREAT|O_EXCL, 0600) = 3",
           "open(\"/proc/self/fd/5/x\", O_RDONLY|O_NOFOLLOW) = 3</x>",
           "chown(\"/proc/self/fd/5\", 1, 1) = 0",
           "mkdirat(5</srv/app/db>, \"x\", 0700) = 0",
           "unlinkat(5</srv/app/db>, \"x\", AT_REMOVEDIR) = 0",
           "renameat(5</srv/app/db>, \"x\", 5</srv/app/db>, \"y\") = 0",
           "linkat(5</srv/app/db>, \"x\", 6</root>, \"y\", 0) = 0",
           "fchownat(5</srv/app/db>, \"x\", 1, 1, AT_SYMLINK_NOFOLLOW) = 0",
           // Calls of another user.
           "setresuid(1, 1, 1) = 0\n7 open(\"/srv/app/x\", O_RDWR) = 3",
           "setfsuid(1) = 0\n7 open(\"/srv/app/x\", O_RDWR) = 3",
           // A child of another user. Its first call appears before the end of
           // its parent's clone.
           "setresuid(-1, 1, -1) = 0\n7 clone(child_stack=NULL, flags=SIGCHLD "
           "<unfinished ...>\n8 open(\"/srv/app/x\", O_RDWR) = 3\n"
           "7 <... clone resumed>) = 8",
       }) {
    REQUIRE(OffencesIn(dir + "7 " + line + "\n") == 0);
  }
}

TEST_CASE("A directory that root makes in another account's place stays root's "
          "until root gives it away",
          "[bad_input][accounts]") {
  const std::string made =
      "7 openat2(AT_FDCWD</>, \"/srv/app\", {flags=O_PATH, "
      "resolve=RESOLVE_NO_SYMLINKS}, 24) = 5</srv/app>\n"
      "7 mkdirat(5</srv/app>, \"own\", 0700) = 0\n"
      "7 openat(5</srv/app>, \"own\", O_PATH|O_NOFOLLOW) = 6</srv/app/own>\n";
  const std::string used = "7 open(\"/proc/self/fd/6/a/b\", O_RDWR) = 7</b>\n";
  REQUIRE(OffencesIn(made + used) == 0);
  // By its path, the name may still refer to another directory.
  REQUIRE(OffencesIn(made + "7 open(\"/srv/app/own/b\", O_RDWR) = 7\n") == 1);
  REQUIRE(OffencesIn(made + "7 fchown(6</srv/app/own>, 1, 1) = 0\n" + used) ==
          1);
  REQUIRE(OffencesIn(made + "7 renameat(5</srv/app>, \"own\", 5</srv/app>, "
                            "\"moved\") = 0\n" +
                     used) == 0);
  const std::string for_all = "7 mkdirat(5</srv/app>, \"own\", 0777) = 0\n";
  REQUIRE(OffencesIn(for_all + made.substr(made.rfind("7 openat(")) + used) ==
          1);
  // Threads share descriptors. A child process has copies of them.
  const std::string closed = " = 9\n9 close(6</srv/app/own>) = 0\n" + used;
  REQUIRE(OffencesIn(made + "7 clone3({flags=CLONE_VM|CLONE_FILES, "
                            "exit_signal=0}, 88)" + closed) == 1);
  REQUIRE(OffencesIn(made + "7 clone(child_stack=NULL, flags=SIGCHLD)" +
                     closed) == 0);
}

// The account "app" owns a directory with a source, into which it also gets
// replicas.
class TracedPlace {
 public:
  TracedPlace() {
    REQUIRE(chmod(dir_.path().c_str(), 0711) == 0);
    fs::create_directory(app_);
    fs::create_directory(dir_ / "root");
    MakeSampleDatabase(source());
    REQUIRE(lchown(app_.c_str(), kApp, kApp) == 0);
    for (const auto& entry : fs::recursive_directory_iterator(app_)) {
      REQUIRE(lchown(entry.path().c_str(), kApp, kApp) == 0);
    }
  }
  std::string source() const { return app_ + "/orders"; }
  std::string at(const std::string& name) const { return app_ + "/" + name; }
  std::string roots(const std::string& name) const {
    return dir_ / ("root/" + name);
  }

  // Starts the tool as root, under strace.
  std::unique_ptr<Process> Start(const Words& arguments) {
    Words words = StraceWords(dir_ / ("trace-" + std::to_string(++traces_)));
    for (const std::string& word : Sstferry(arguments)) words.push_back(word);
    // LeakSanitizer does not work in a traced process.
    return std::make_unique<Process>(
        words, std::map<std::string, std::string>{
                   {"ASAN_OPTIONS", "detect_leaks=0"}});
  }
  void Run(const Words& arguments) {
    const std::unique_ptr<Process> tool = Start(arguments);
    const int code = tool->Wait(std::chrono::minutes(3));
    INFO(arguments[0] << ": " << tool->err());
    REQUIRE(code == 0);
  }
  // Checks the traces of all processes, which must have ended.
  FileCalls Judge() const {
    FileCalls all;
    for (int i = 1; i <= traces_; ++i) {
      const std::string trace = BytesOf(dir_ / ("trace-" + std::to_string(i)));
      const FileCalls calls = JudgeFileCalls(trace, app_);
      REQUIRE(calls.judged > 0);
      all.judged += calls.judged;
      all.offences.insert(all.offences.end(), calls.offences.begin(),
                          calls.offences.end());
    }
    return all;
  }

 private:
  static constexpr uid_t kApp = 1;  // "daemon"
  const ScratchDir dir_;
  const std::string app_ = dir_ / "app";
  int traces_ = 0;
};

TEST_CASE("No call of root in another account's directory can be redirected",
          "[bad_input][accounts]") {
  if (geteuid() != 0 || !fs::exists("/usr/bin/strace")) {
    WARN("not run: it needs root and strace");
    return;
  }
  TracedPlace place;
  if (place.Start({"--version"})->Wait() != 0) {
    WARN("not run: this machine lets nobody trace a process");
    return;
  }
  SECTION("serve, the pulls from it, and the release of a snapshot") {
    const std::string socket = "unix:" + place.roots("socket");
    const std::unique_ptr<Process> serve =
        place.Start({"serve", "--db", "db=" + place.source(), "--listen",
                     socket, "--allow-uid", "1"});
    REQUIRE(serve->WaitForOut("\n"));
    const std::string url = socket + ":db";
    place.Run({"ls", socket});
    place.Run({"pull", url, place.at("copy"), "--verify"});
    place.Run({"refresh", url, place.at("copy")});
    place.Run({"pull", url, place.at("clone"), "--method", "clone"});
    const Words swap = {"swap",
                        url,
                        place.at("clone"),
                        "--method",
                        "clone",
                        "--always-swap",
                        "--before-swap",
                        "true",
                        "--after-swap",
                        "true",
                        "--metrics-file",
                        place.roots("pull.prom")};
    place.Run(swap);
    place.Run({"pull", url, place.roots("copy"), "--snapshot", "latest"});
    place.Run({"refresh", url, place.roots("copy")});
    place.Run({"swap", url, place.roots("copy"), "--method", "clone"});
    place.Run({"plan", "refresh", url, place.at("copy")});
    // The pull is killed while it moves data, so its snapshot stays.
    const std::unique_ptr<Process> pull = place.Start(
        {"pull", url, place.roots("killed"), "--max-rate", "20k",
         "--chunk-bytes", "64Ki"});
    REQUIRE(pull->WaitForBytesIn(place.roots("killed.sstferry/db")));
    pull->Signal(SIGKILL);
    pull->Wait();
    REQUIRE(serve->WaitForErr("is retained for"));
    // status creates no names, so it is not traced.
    Process status(Sstferry({"status", place.source(), "--json"}));
    REQUIRE(status.Wait() == 0);
    const auto received =
        nlohmann::json::parse(status.out())["source"]["snapshots"];
    REQUIRE(received.size() == 1);
    place.Run({"release", place.source(), received[0]["id"]});
    serve->Signal(SIGTERM);
    REQUIRE(serve->Wait() == 0);
  }
  SECTION("pulls from a directory") {
    place.Run({"pull", place.source(), place.at("copy"), "--verify"});
    place.Run({"pull", place.source(), place.roots("copy")});
    place.Run({"pull", place.source(), place.roots("clone"), "--method",
               "clone"});
    place.Run({"plan", place.source()});
  }
  SECTION("commands that read a database and a replica") {
    Process pull(Sstferry({"pull", place.source(), place.at("copy")}));
    REQUIRE(pull.Wait() == 0);
    place.Run({"status", place.source(), "--json"});
    place.Run({"status", place.at("copy")});
    place.Run({"verify", place.source(), place.at("copy")});
    place.Run({"plan", "refresh", place.source(), place.at("copy")});
  }
  SECTION("an archive of a database, and a restore from it") {
    fs::create_directory(place.roots("archive"));
    place.Run({"archive", "init", place.roots("archive")});
    place.Run({"archive", "push", place.source(), place.roots("archive")});
    place.Run({"archive", "check", place.roots("archive"), "--read-data",
               "100%"});
    place.Run({"pull", place.roots("archive"), place.at("restored")});
  }
  SECTION("a standby, which root neither makes nor promotes there") {
    const std::unique_ptr<Process> follow =
        place.Start({"follow", place.source(), place.at("standby")});
    REQUIRE(follow->Wait() == 1);
    INFO(follow->err());
    REQUIRE(follow->err().find("REFUSED") != std::string::npos);
    Process made({"/usr/bin/setpriv", "--reuid", "1", "--clear-groups",
                  "/bin/mkdir", place.at("standby")});
    REQUIRE(made.Wait() == 0);
    REQUIRE(place.Start({"promote", place.at("standby")})->Wait() == 1);
  }
  const FileCalls calls = place.Judge();
  INFO(Listed(calls));
  REQUIRE(calls.offences.empty());
  REQUIRE(calls.judged > 20);
}

}  // namespace
}  // namespace sstferry::file_calls_test
