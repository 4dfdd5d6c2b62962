// Tests a pull that root starts on its terminal and that runs as another
// account: that account must get no access to the terminal, and must not write
// control characters to it. These tests need root; without root they are
// skipped with a warning.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>

#include "tests/support/catch.h"
#include "tests/support/process.h"
#include "tests/support/sample_database.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/serve_process.h"

namespace sstferry::account_terminal_test {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;
using std::chrono::steady_clock;

constexpr uid_t kOther = 65534;  // "nobody"

bool IsRoot() {
  if (geteuid() != 0) {
    WARN("not run: it needs root, to act as two accounts");
  }
  return geteuid() == 0;
}

// A program whose controlling terminal is a new one, as in a shell. The program
// also has the terminal as descriptor 9.
class Terminal {
 public:
  Terminal(Words words, unsigned short columns) {
    master_ = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    REQUIRE(master_ >= 0);
    REQUIRE(grantpt(master_) == 0);
    REQUIRE(unlockpt(master_) == 0);
    winsize size{};
    size.ws_col = columns;
    size.ws_row = 24;
    REQUIRE(ioctl(master_, TIOCSWINSZ, &size) == 0);
    const std::string name = ptsname(master_);
    std::string token = "TOKEN_OF_ROOT=";
    for (int i = 0; i < 300; ++i) token += "secret-of-root ";
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    pid_ = fork();
    REQUIRE(pid_ >= 0);
    if (pid_ == 0) {
      setsid();
      const int terminal = open(name.c_str(), O_RDWR);
      ioctl(terminal, TIOCSCTTY, 0);
      for (const int fd : {0, 1, 2, 9}) dup2(terminal, fd);
      putenv(token.data());
      execv(argv[0], argv.data());
      _exit(127);
    }
  }
  ~Terminal() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    close(master_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  void Type(const std::string& keys) {
    REQUIRE(write(master_, keys.data(), keys.size()) ==
            static_cast<ssize_t>(keys.size()));
  }
  // Reads until the output contains `text`. Returns false if the program closes
  // the terminal first, or after a minute.
  bool WaitFor(const std::string& text) {
    const auto limit = steady_clock::now() + std::chrono::minutes(1);
    while (text_.find(text) == std::string::npos) {
      pollfd wait = {master_, POLLIN, 0};
      if (steady_clock::now() >= limit || poll(&wait, 1, 60'000) <= 0) {
        return false;
      }
      char bytes[4096];
      const ssize_t got = read(master_, bytes, sizeof(bytes));
      if (got <= 0) return false;  // EIO
      text_.append(bytes, static_cast<size_t>(got));
    }
    return true;
  }
  // Waits for the program's end with `code`. Returns all of its output.
  std::string End(int code) {
    WaitFor(std::string("\0never", 6));
    int state = 0;
    REQUIRE(waitpid(pid_, &state, 0) == pid_);
    pid_ = -1;
    INFO(text_);
    REQUIRE(WIFEXITED(state));
    REQUIRE(WEXITSTATUS(state) == code);
    return text_;
  }

 private:
  int master_ = -1;
  pid_t pid_ = -1;
  std::string text_;
};

struct World {
  ScratchDir dir;
  std::string app = dir / "app";
  World() {
    REQUIRE(chmod(dir.path().c_str(), 0711) == 0);
    fs::create_directory(app);
    REQUIRE(lchown(app.c_str(), kOther, kOther) == 0);
  }
  // Makes a program that replaces ssh.
  std::string Ssh(const std::string& script) const {
    WriteBytes(dir / "ssh", "#!/bin/sh\n" + script + "\nexit 255\n");
    REQUIRE(chmod((dir / "ssh").c_str(), 0755) == 0);
    return dir / "ssh";
  }
};

TEST_CASE("A pull that root starts and that runs as an account does not have "
          "root's terminal",
          "[bad_input][accounts]") {
  if (!IsRoot()) return;
  const World world;
  const std::string seen = world.app + "/seen";
  const std::string ssh = world.Ssh(
      "{ ls -l /proc/self/fd /proc/$PPID/fd; cat /proc/$PPID/environ; echo; "
      "grep NoNewPrivs /proc/$PPID/status; id -u; "
      "(: </dev/tty) 2>/dev/null && echo has a terminal; } >" + seen);
  Terminal terminal(Sstferry({"pull", "db1:/srv/orders", world.app + "/orders",
                              "--ssh-command", ssh}),
                    80);
  const std::string said = terminal.End(4);
  const std::string found = BytesOf(seen);
  INFO(found);
  REQUIRE(found.find("\n65534\n") != std::string::npos);
  REQUIRE(found.find("/dev/pts") == std::string::npos);
  REQUIRE(found.find("/dev/tty") == std::string::npos);
  REQUIRE(found.find("has a terminal") == std::string::npos);
  REQUIRE(found.find("NoNewPrivs:\t1") != std::string::npos);
  REQUIRE(said.find("without a terminal it asks for no password") !=
          std::string::npos);
}

TEST_CASE("A program that runs as the account gets only the needed part of "
          "root's environment",
          "[bad_input][accounts]") {
  if (!IsRoot()) return;
  const World world;
  const std::string seen = world.app + "/seen";
  const std::string ssh =
      world.Ssh("{ env; cat /proc/$PPID/environ; } >" + seen);
  Terminal terminal(Sstferry({"pull", "db1:/srv/orders", world.app + "/orders",
                              "--ssh-command", ssh}),
                    80);
  terminal.End(4);
  const std::string found = BytesOf(seen);
  INFO(found);
  REQUIRE(found.find("PATH=") != std::string::npos);
  REQUIRE(found.find("TOKEN_OF_ROOT") == std::string::npos);
  REQUIRE(found.find("USER=nobody") != std::string::npos);
  REQUIRE(found.find("HOME=/root") == std::string::npos);
}

TEST_CASE("The memory of a process that runs as the account has no secret of "
          "root's environment",
          "[bad_input][accounts]") {
  if (!IsRoot()) return;
  const World world;
  const std::string seen = world.app + "/seen";
  // Searches private, writable memory. Skips large ranges, because sanitizers
  // map terabytes.
  const std::string ssh = world.Ssh(
      "while read -r range rights rest; do\n"
      "  [ \"$rights\" = rw-p ] || continue\n"
      "  begin=$((0x${range%-*} / 4096)); end=$((0x${range#*-} / 4096))\n"
      "  [ $((end - begin)) -lt 65536 ] || continue\n"
      "  dd if=/proc/$PPID/mem bs=4096 skip=$begin count=$((end - begin)) "
      "2>/dev/null\n"
      "done </proc/$PPID/maps | LC_ALL=C grep -a -o -e LOGNAME=nobody "
      "-e secret-of-root >>" + seen);
  Terminal terminal(Sstferry({"pull", "db1:/srv/orders", world.app + "/orders",
                              "--ssh-command", ssh}),
                    80);
  terminal.End(4);
  const std::string found = BytesOf(seen);
  if (found.find("LOGNAME=nobody") == std::string::npos) {
    WARN("not run: a process may not read the memory of its parent");
    return;
  }
  REQUIRE(found.find("secret-of-root") == std::string::npos);
}

TEST_CASE("Output of an account cannot send control sequences to root's "
          "terminal",
          "[bad_input][accounts]") {
  if (!IsRoot()) return;
  const World world;
  // A terminal would answer the first sequence as if the user had typed the
  // answer.
  const std::string ssh =
      world.Ssh("printf 'what\\033[6n \\033]0;title\\007\\302\\233c is "
                "wr\\303\\266ng\\n' >&2");
  Terminal terminal(Sstferry({"pull", "db1:/srv/orders", world.app + "/orders",
                              "--ssh-command", ssh}),
                    80);
  const std::string said = terminal.End(4);
  INFO(said);
  REQUIRE(said.find("what?[6n ?]0;title???c is wr\303\266ng") !=
          std::string::npos);
}

TEST_CASE("Progress and Ctrl-C of a pull that runs as an account work on "
          "root's terminal",
          "[bad_input][accounts]") {
  if (!IsRoot()) return;
  const World world;
  MakeSampleDatabase(world.dir / "source");
  const ServeProcess server({"--db", "db=" + (world.dir / "source")});
  Terminal terminal(
      Sstferry({"pull", server.url(), world.app + "/target", "--chunk-bytes",
                "64Ki", "--max-rate", "20k"}),
      40);
  REQUIRE(terminal.WaitFor("\033[K"));
  REQUIRE(terminal.WaitFor(" of "));
  terminal.Type("\x03");
  const std::string said = terminal.End(4);
  INFO(said);
  REQUIRE(said.find("CANCELLED") != std::string::npos);
  // Each progress line is cut to the terminal's width.
  size_t drawn = 0;
  for (size_t end = said.find("\033[K"); end != std::string::npos;
       end = said.find("\033[K", end + 1)) {
    const size_t begin = said.rfind('\r', end) + 1;
    REQUIRE(end - begin < 40);
    ++drawn;
  }
  REQUIRE(drawn > 0);
}

TEST_CASE("A result that root could not write is a failure, whichever account "
          "ran the pull",
          "[bad_input][accounts]") {
  if (!IsRoot()) return;
  const World world;
  MakeSampleDatabase(world.dir / "source");
  const ServeProcess server({"--db", "db=" + (world.dir / "source")});
  const auto plan = [&](const std::string& out) {
    std::string line = "exec";
    for (const std::string& word :
         Sstferry({"plan", server.url(), world.app + "/target"})) {
      line += " '" + word + "'";
    }
    return std::make_unique<Process>(
        Words{"/bin/sh", "-c", line + " >" + out});
  };
  REQUIRE(plan("/dev/null")->Wait() == 0);
  const std::unique_ptr<Process> full = plan("/dev/full");
  REQUIRE(full->Wait() == 1);
  INFO(full->err());
  REQUIRE(full->err().find("could not be written") != std::string::npos);
}

}  // namespace
}  // namespace sstferry::account_terminal_test
