// Pulls through a real sshd on this machine, with new keys: in its default
// configuration, without forwarding, and with a forced command.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

#include "format/stream_frame.h"
#include "tests/support/catch.h"
#include "tests/support/process.h"
#include "tests/support/sample_database.h"
#include "tests/support/scratch_dir.h"

namespace sstferry::ssh_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Words = std::vector<std::string>;

constexpr char kSshd[] = "/usr/sbin/sshd";

bool HasSsh() {
  if (fs::exists(kSshd) && fs::exists("/usr/bin/ssh-keygen")) {
    return true;
  }
  WARN("SKIPPED: sshd is missing: install openssh-server");
  return false;
}

struct Ended {
  int code = -1;
  std::string out;
  std::string err;
};

Ended RunWords(const Words& words) {
  Process process(words);
  Ended ended;
  ended.code = process.Wait();
  ended.out = process.out();
  ended.err = process.err();
  return ended;
}

void MustRun(const Words& words) {
  const Ended ended = RunWords(words);
  INFO(words.front() << ": " << ended.err);
  REQUIRE(ended.code == 0);
}

// Returns a port that was just free, because sshd refuses port 0.
int FreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  const bool bound =
      bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
      getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  close(fd);
  REQUIRE(bound);
  return ntohs(address.sin_port);
}

// An sshd on loopback that accepts one key, and ssh configurations in which
// its host name is "src".
class Sshd {
 public:
  // `more`: lines of sshd_config; `key_options`: options of the accepted key.
  explicit Sshd(const std::string& more = "",
                const std::string& key_options = "") {
    if (geteuid() == 0) {
      mkdir("/run/sshd", 0755);  // root's sshd needs it; may exist
    }
    for (const char* const name : {"host", "user", "stranger"}) {
      MustRun({"/usr/bin/ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f",
               dir_ / name});
    }
    WriteBytes(dir_ / "authorized",
               key_options + " " + BytesOf(dir_ / "user.pub"));
    for (int tries = 0; tries < 5 && !started(); ++tries) {
      Start(FreePort(), more);
    }
    REQUIRE(started());
  }
  // Returns an ssh command that uses the configuration for `key`.
  std::string Config(const std::string& key = "user") const {
    return "ssh -F " + (dir_ / ("config_" + key));
  }
  // Returns a script that writes its process id to a file and becomes ssh.
  std::string Watched() const {
    WriteBytes(dir_ / "watched", "#!/bin/sh\necho $$ >'" + (dir_ / "pid") +
                                     "'\nexec " + Config() + " \"$@\"\n");
    fs::permissions(dir_ / "watched", fs::perms::owner_all);
    return dir_ / "watched";
  }
  pid_t WatchedPid() const { return std::stoi(BytesOf(dir_ / "pid")); }
  const ScratchDir& dir() const { return dir_; }

 private:
  bool started() const { return process_ != nullptr; }

  void Start(int port, const std::string& more) {
    const std::string number = std::to_string(port);
    WriteBytes(dir_ / "sshd_config",
               "Port " + number + "\nListenAddress 127.0.0.1\nHostKey " +
                   (dir_ / "host") + "\nAuthorizedKeysFile " +
                   (dir_ / "authorized") + "\nPidFile " + (dir_ / "sshd.pid") +
                   "\nStrictModes no\nUsePAM no\nPasswordAuthentication no\n"
                   "KbdInteractiveAuthentication no\n"
                   "PermitRootLogin prohibit-password\n" +
                   more);
    WriteBytes(dir_ / "known",
               "[127.0.0.1]:" + number + " " + BytesOf(dir_ / "host.pub"));
    WriteBytes(dir_ / "unknown", "");
    for (const std::string key : {"user", "stranger", "unknown"}) {
      const bool unknown = key == "unknown";
      WriteBytes(dir_ / ("config_" + key),
                 "Host src\n HostName 127.0.0.1\n Port " + number +
                     "\n IdentityFile " + (dir_ / (unknown ? "user" : key)) +
                     "\n IdentitiesOnly yes\n UserKnownHostsFile " +
                     (dir_ / (unknown ? "unknown" : "known")) +
                     "\n GlobalKnownHostsFile /dev/null\n");
    }
    auto process = std::make_unique<Process>(
        Words{kSshd, "-D", "-e", "-f", dir_ / "sshd_config"});
    if (process->WaitForErr("Server listening on")) {
      process_ = std::move(process);
    }
  }

  ScratchDir dir_;
  std::unique_ptr<Process> process_;
};

// Forbids all forwarding that a tunnel would need.
constexpr char kNoForwarding[] =
    "DisableForwarding yes\nAllowTcpForwarding no\n"
    "AllowStreamLocalForwarding no\nGatewayPorts no\nPermitTTY no\n";

std::string Binary() { return Sstferry({}).front(); }

struct World {
  explicit World(const std::string& more = "",
                 const std::string& key_options = "")
      : sshd(more, key_options) {
    MakeSampleDatabase(source());
  }
  std::string source() const { return dir / "source"; }
  Words Over(Words words, const std::string& ssh = "") const {
    words.insert(words.end(),
                 {"--ssh-command", ssh.empty() ? sshd.Config() : ssh,
                  "--remote-command", Binary()});
    return Sstferry(words);
  }
  Words Pull(const Words& more = {}, const std::string& ssh = "") const {
    Words words = {"pull", "src:" + source(), dir / "target", "--chunk-bytes",
                   "64Ki"};
    words.insert(words.end(), more.begin(), more.end());
    return Over(words, ssh);
  }
  void ExpectEqual() const {
    REQUIRE(EntriesOf(dir / "target") == EntriesOf(source()));
    REQUIRE_FALSE(fs::exists(dir / "target.sstferry"));
    // Once the remote serve has ended, no snapshot is left next to the source.
    const auto until =
        std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (NamesOf(dir.path()).size() > 2 &&
           std::chrono::steady_clock::now() < until) {
    }
    REQUIRE(NamesOf(dir.path()) == Words{"source", "target"});
  }
  ScratchDir dir;
  Sshd sshd;
};

// Waits until the unfinished target has at least 3 chunks.
void AwaitChunks(const std::string& target) {
  const auto until =
      std::chrono::steady_clock::now() + std::chrono::seconds(60);
  json answer;
  do {
    const Ended ended = RunWords(Sstferry({"status", target, "--json"}));
    answer = json::parse(ended.out, nullptr, false);
    REQUIRE(std::chrono::steady_clock::now() < until);
  } while (!answer.is_object() || !answer["target"].is_object() ||
           !answer["target"]["unfinished"].is_object() ||
           answer["target"]["unfinished"]["chunks"] < 3);
}

TEST_CASE("A mirror takes all databases of a directory through one ssh",
          "[tools][ssh][fleet]") {
  World world(kNoForwarding);
  const std::string top = world.dir / "top";
  for (const std::string name : {"app/0_1/counts", "users"}) {
    fs::create_directories(fs::path(top + "/" + name).parent_path());
    MakeSampleDatabase(top + "/" + name);
  }
  const Ended ended = RunWords(
      world.Over({"pull", "--all", "src:" + top, world.dir / "mirror"},
                 world.sshd.Watched()));
  INFO(ended.out << ended.err);
  REQUIRE(ended.code == 0);
  for (const std::string name : {"app/0_1/counts", "users"}) {
    REQUIRE(EntriesOf(world.dir / "mirror/" + name) ==
            EntriesOf(top + "/" + name));
  }
  const Ended one = RunWords(
      world.Over({"pull", "src:" + top, world.dir / "one"}));
  REQUIRE(one.code != 0);
  REQUIRE(one.err.find("found a directory with 2 databases; --all selects all "
                       "of them") != std::string::npos);
}

TEST_CASE("A pull through ssh needs only ssh and the binary on the other host",
          "[cli][ssh]") {
  if (!HasSsh()) return;
  const World world(kNoForwarding);
  const std::string method = GENERATE("ingest", "clone");
  const Ended pulled = RunWords(world.Pull({"--method", method, "--verify"}));
  INFO(pulled.out << pulled.err);
  REQUIRE(pulled.code == 0);
  REQUIRE(pulled.out.find("verified: equal") != std::string::npos);
  world.ExpectEqual();
  const Ended verified = RunWords(world.Over(
      {"verify", "ssh://src" + world.source(), world.dir / "target"}));
  INFO(verified.out << verified.err);
  REQUIRE(verified.code == 0);
}

TEST_CASE("A push through ssh works without forwarding, too", "[cli][ssh]") {
  if (!HasSsh()) return;
  const World world(kNoForwarding);
  const std::string archive = world.dir / "archive";
  fs::create_directory(archive);
  MustRun(Sstferry({"archive", "init", archive}));
  const Ended pushed = RunWords(
      world.Over({"archive", "push", "src:" + world.source(), archive}));
  INFO(pushed.out << pushed.err);
  REQUIRE(pushed.code == 0);
  MustRun(Sstferry({"archive", "check", archive, "--read-data", "100%"}));
}

TEST_CASE("A key with a forced command reads only that command's directory",
          "[cli][ssh]") {
  if (!HasSsh()) return;
  const ScratchDir other;
  SampleShape shape;
  shape.entries = 10;
  MakeSampleDatabase(other / "allowed", shape);
  const World world("", "restrict,command=\"" + Binary() + " serve --stdio " +
                            (other / "allowed") + "\"");
  const Ended pulled = RunWords(world.Pull());
  INFO(pulled.out << pulled.err);
  REQUIRE(pulled.code == 0);
  REQUIRE(EntriesOf(world.dir / "target") == EntriesOf(other / "allowed"));
}

TEST_CASE("serve --stdio works as the ForceCommand of sshd", "[cli][ssh]") {
  if (!HasSsh()) return;
  const ScratchDir dir;
  MakeSampleDatabase(dir / "allowed");
  const Sshd sshd("ForceCommand " + Binary() + " serve --stdio " +
                  (dir / "allowed") + "\n");
  const Ended pulled =
      RunWords(Sstferry({"pull", "src:/any/name", dir / "target",
                         "--ssh-command", sshd.Config()}));
  INFO(pulled.out << pulled.err);
  REQUIRE(pulled.code == 0);
  REQUIRE(EntriesOf(dir / "target") == EntriesOf(dir / "allowed"));
}

TEST_CASE("A pull whose ssh is killed starts another one and resumes",
          "[cli][ssh]") {
  if (!HasSsh()) return;
  const World world;
  Process pull(
      world.Pull({"--max-rate", "400K", "--verify"}, world.sshd.Watched()));
  AwaitChunks(world.dir / "target");
  const pid_t killed = world.sshd.WatchedPid();
  REQUIRE(kill(killed, SIGKILL) == 0);
  const int code = pull.Wait(std::chrono::seconds(120));
  INFO(pull.out() << pull.err());
  REQUIRE(code == 0);
  REQUIRE(world.sshd.WatchedPid() != killed);
  REQUIRE(pull.err().find("was ended by signal 9") != std::string::npos);
  world.ExpectEqual();
}

TEST_CASE("The next pull resumes a killed pull through ssh", "[cli][ssh]") {
  if (!HasSsh()) return;
  const World world;
  {
    Process pull(world.Pull({"--max-rate", "200K"}));
    AwaitChunks(world.dir / "target");
    pull.Signal(SIGKILL);
    REQUIRE(pull.Wait() == 128 + SIGKILL);
  }
  // The source retains the snapshot, and status through ssh shows it.
  const Ended asked =
      RunWords(world.Over({"status", "src:" + world.source(), "--json"}));
  INFO(asked.out << asked.err);
  REQUIRE(asked.code == 0);
  REQUIRE(json::parse(asked.out)["source"]["snapshots"].size() == 1);

  const Ended pulled = RunWords(world.Pull({"--verify"}));
  INFO(pulled.out << pulled.err);
  REQUIRE(pulled.code == 0);
  REQUIRE(pulled.out.find(" received by earlier runs") != std::string::npos);
  world.ExpectEqual();
}

TEST_CASE("A snapshot is released through ssh", "[cli][ssh]") {
  if (!HasSsh()) return;
  const World world;
  {
    Process pull(world.Pull({"--max-rate", "200K"}));
    AwaitChunks(world.dir / "target");
    pull.Signal(SIGTERM);
    REQUIRE(pull.Wait() != 0);
  }
  const json there = json::parse(
      RunWords(world.Over({"status", "src:" + world.source(), "--json"})).out);
  REQUIRE(there["source"]["snapshots"].size() == 1);
  const std::string id = there["source"]["snapshots"][0]["id"];
  const Ended released = RunWords(
      world.Over({"release", "src:" + world.source(), id.substr(0, 8)}));
  INFO(released.out << released.err);
  REQUIRE(released.code == 0);
  REQUIRE(released.out.find("released: ") == 0);
  for (const std::string& name : NamesOf(world.dir.path())) {
    REQUIRE(name.find("snapshot") == std::string::npos);
  }
  // The exit code of the remote command is returned as well.
  const Ended again = RunWords(
      world.Over({"release", "src:" + world.source(), id.substr(0, 8)}));
  REQUIRE(again.code == 1);
}

TEST_CASE("plan and ls ask through ssh", "[cli][ssh]") {
  if (!HasSsh()) return;
  const World world;
  const Ended planned = RunWords(world.Over(
      {"plan", "src:" + world.source(), world.dir / "target", "--summary"}));
  INFO(planned.out << planned.err);
  REQUIRE(planned.code == 0);
  REQUIRE(planned.out.find("plan: ssh://src/") == 0);
  const Ended listed = RunWords(world.Over({"ls", "src:" + world.source()}));
  INFO(listed.out << listed.err);
  REQUIRE(listed.code == 0);
  REQUIRE(listed.out.find("serves 1 database") != std::string::npos);
  REQUIRE(listed.out.find("\nsource ") != std::string::npos);
  REQUIRE(NamesOf(world.dir.path()) == Words{"source"});
}

TEST_CASE("A directory's name reaches the other side unchanged", "[cli][ssh]") {
  if (!HasSsh()) return;
  const World world;
  const std::string name = GENERATE(
      as<std::string>(), "a b", "it's", "$(touch made)", "`touch made`",
      "a\"b\\c", "x;touch made;y", "*", "-n", "&& false", "#a", "~", "!!");
  INFO(name);
  const std::string place = world.dir / name;
  fs::rename(world.source(), place);
  const Ended pulled =
      RunWords(world.Over({"pull", "ssh://src" + place, world.dir / "target"}));
  INFO(pulled.out << pulled.err);
  REQUIRE(pulled.code == 0);
  REQUIRE(EntriesOf(world.dir / "target") == EntriesOf(place));
  REQUIRE_FALSE(fs::exists("made"));
}

TEST_CASE("A pull that ssh refuses tries once and shows the error of ssh",
          "[cli][ssh]") {
  if (!HasSsh()) return;
  const World world;
  const auto count = [](const std::string& text, const std::string& part) {
    size_t found = 0;
    for (size_t at = text.find(part); at != std::string::npos;
         at = text.find(part, at + 1)) {
      ++found;
    }
    return found;
  };
  SECTION("another key") {
    const Ended ended = RunWords(world.Pull({}, world.sshd.Config("stranger")));
    INFO(ended.err);
    REQUIRE(ended.code == 4);
    REQUIRE(count(ended.err, "Permission denied") == 1);
    REQUIRE(count(ended.err, "ended with exit code 255") == 1);
  }
  SECTION("an unknown host key") {
    const Ended ended = RunWords(world.Pull({}, world.sshd.Config("unknown")));
    INFO(ended.err);
    REQUIRE(ended.code == 4);
    REQUIRE(count(ended.err, "Host key verification failed") == 1);
    // ssh adds nothing to its list of known hosts.
    REQUIRE(BytesOf(world.sshd.dir() / "unknown").empty());
  }
  SECTION("no sstferry on the other host") {
    const Ended ended = RunWords(Sstferry(
        {"pull", "src:" + world.source(), world.dir / "target", "--ssh-command",
         world.sshd.Config(), "--remote-command", "/no/sstferry"}));
    INFO(ended.err);
    REQUIRE(ended.code == 1);
    REQUIRE(count(ended.err, "/no/sstferry cannot be run there") == 1);
    REQUIRE(count(ended.err, "--remote-command") == 1);
  }
  SECTION("a start-up file that prints") {
    const Ended ended = RunWords(
        Sstferry({"pull", "src:" + world.source(), world.dir / "target",
                  "--ssh-command", world.sshd.Config(), "--remote-command",
                  "echo Welcome; " + Binary()}));
    INFO(ended.err);
    REQUIRE(ended.code == 1);
    REQUIRE(count(ended.err, "found \"Welcome") == 1);
  }
  REQUIRE(NamesOf(world.dir.path()) == Words{"source"});
}

// --- serve --stdio, without ssh ----------------------------------------------

TEST_CASE(
    "serve --stdio writes only its stream and ends at the end of its input",
    "[cli][ssh]") {
  const ScratchDir dir;
  MakeSampleDatabase(dir / "db");
  const Ended ended =
      RunWords({"/bin/sh", "-c", "exec \"$0\" \"$@\" </dev/null", Binary(),
                "serve", "--stdio", dir / "db", "--log-level", "debug"});
  INFO(ended.err);
  REQUIRE(ended.code == 0);
  StreamHello hello;
  REQUIRE_OK(DecodeStreamHello(ended.out, &hello));
  REQUIRE(ended.out.size() == kStreamHelloBytes);
}

TEST_CASE("serve --stdio refuses the options of a server that listens",
          "[cli][ssh]") {
  for (const Words& more : std::vector<Words>{
           {"--db", "/data/users"},
           {"--listen", "127.0.0.1:0"},
           {"--once"},
           {"--json"},
           {"--insecure"},
           {"--allow-uid", "0"},
           {"--tls-cert", "a", "--tls-key", "b", "--tls-ca", "c"}}) {
    Words words = {"serve", "--stdio", "/data/orders"};
    words.insert(words.end(), more.begin(), more.end());
    const Ended ended = RunWords(Sstferry(words));
    INFO(more.front() << ": " << ended.err);
    REQUIRE(ended.code == 2);
    REQUIRE(ended.err.find("--stdio") != std::string::npos);
  }
}

TEST_CASE("An address that ssh would take as an option is refused",
          "[cli][ssh]") {
  for (const std::string address :
       {"-oProxyCommand=touch:/x", "ssh://-oProxyCommand=touch/x",
        "ssh://-l@db1/x", "a b@db1:/x", "$(id)@db1:/x", "ssh://db1/",
        "ssh://db1", "ssh://@db1/x", "ssh://db1:0/x", "ssh://db1:99999/x",
        "sst:/x", "ssh:/x"}) {
    const Ended ended =
        RunWords(Sstferry({"pull", "--ssh-command", "touch /nowhere/made", "--",
                           address, "/nowhere/target"}));
    const Ended alone = RunWords(Sstferry(
        {"plan", "--ssh-command", "touch /nowhere/made", "--", address}));
    INFO(address << ": " << alone.err);
    REQUIRE(ended.code == 2);
    REQUIRE(alone.code == 2);
  }
}

}  // namespace
}  // namespace sstferry::ssh_test
