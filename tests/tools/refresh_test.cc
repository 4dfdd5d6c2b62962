// The real binary as a nightly job: a refresh or swap with hook commands, and
// a server under a service manager.
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/support/catch.h"
#include "tests/support/process.h"
#include "tests/support/refreshed.h"
#include "tests/support/replica_world.h"
#include "tests/support/sample_database.h"
#include "tests/support/serve_process.h"
#include "tests/support/test_db.h"
#include "tools/sstferry/command_arguments.h"
#include "tools/sstferry/commands.h"
#include "tools/sstferry/help.h"
#include "tools/sstferry/left_process.h"

namespace sstferry::refresh_test {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

// Returns a shell command that appends a line to the file "calls".
std::string Noting(const ReplicaWorld& world, const std::string& line) {
  return "echo " + line + " >> " + world.root() + "/calls";
}

// Returns a line of a config file that quotes any text.
std::string Line(const std::string& name, const std::string& text) {
  return name + " = '''" + text + "'''\n";
}

// A nightly job with a config file, as the systemd units start it.
struct Night {
  explicit Night(const ReplicaWorld& world, const std::string& more = "",
                 const std::string& job_name = "swap")
      : job(job_name) {
    WriteBytes(world.root() + "/shard.toml", "source = '" + world.source() +
                                                 "'\ntarget = '" +
                                                 world.target() + "'\n" + more);
    conf = world.root() + "/shard.toml";
  }
  int Run() {
    Process process(Sstferry({job, "--config", conf, "--json"}));
    const int code = process.Wait();
    err = process.err();
    json = nlohmann::json::parse(process.out());
    return code;
  }
  std::string job;
  std::string conf;
  std::string err;
  nlohmann::json json;
};

std::string Refusal(PullMode mode, const Words& more) {
  Words words = {"s", "t"};
  words.insert(words.end(), more.begin(), more.end());
  PullArguments out;
  const rocksdb::Status status = ParsePull(mode, words, &out);
  REQUIRE(status.IsInvalidArgument());
  return status.getState();
}

TEST_CASE("The command that verify recommends makes the copy equal",
          "[tools]") {
  ReplicaWorld world;
  Process pull(Sstferry(
      {"pull", world.source(), world.target(), "--method", "ingest"}));
  REQUIRE(pull.Wait() == 0);
  const auto before = EntriesOf(world.target());
  {
    test::OpenDb db(world.target(), test::OneFamily(test::Quiet()));
    db.Delete(before.begin()->first);
    db.Put(before.rbegin()->first, "altered");
  }
  test::PassWrites(world.source());
  Process verify(
      Sstferry({"verify", world.source(), world.target(), "--json"}));
  REQUIRE(verify.Wait() == 3);
  const std::string advised =
      nlohmann::json::parse(verify.out())["error"]["next"];
  const std::string command = "sstferry refresh " + world.source() + " " +
                              world.target() + " --verify";
  REQUIRE(advised == command);
  Process repair(Sstferry(
      {"refresh", world.source(), world.target(), "--verify"}));
  const int code = repair.Wait();
  INFO(repair.err() << repair.out());
  REQUIRE(code == 0);
  REQUIRE(EntriesOf(world.target()) == before);
}

TEST_CASE("Each job takes only its own options", "[tools]") {
  PullArguments pull;
  REQUIRE_OK(ParsePull(PullMode::kPull, {"s", "t"}, &pull));
  REQUIRE(pull.options.mode == PullMode::kPull);
  REQUIRE_OK(
      ParsePull(PullMode::kSwap,
                {"s", "t", "--adopt", "--source-id", "shard 7", "--before-swap",
                 "stop it", "--after-swap", "start it", "--delete-rate", "10M"},
                &pull));
  REQUIRE(pull.options.mode == PullMode::kSwap);
  REQUIRE(pull.options.adopt);
  REQUIRE(pull.options.source_id == "shard 7");
  REQUIRE(pull.options.delete_rate_bytes_per_sec == 10'000'000);
  REQUIRE(pull.keep_old == 1);
  REQUIRE(pull.before_swap == "stop it");
  REQUIRE(pull.after_swap == "start it");
  REQUIRE_OK(ParsePull(PullMode::kSwap, {"s", "t"}, &pull));
  REQUIRE(pull.options.delete_rate_bytes_per_sec == 50'000'000);
  REQUIRE_OK(ParsePull(PullMode::kRefresh, {"s", "t"}, &pull));
  REQUIRE(pull.options.mode == PullMode::kRefresh);
  REQUIRE(pull.options.compact);
  REQUIRE(pull.options.min_free_percent == 5);
  REQUIRE_OK(ParsePull(PullMode::kRefresh,
                       {"s", "t", "--drop-missing", "--compact", "none",
                        "--min-free", "7%", "--method", "clone",
                        "--delete-rate", "1M"},
                       &pull));
  REQUIRE(pull.options.method == PullMethod::kClone);
  REQUIRE(pull.options.delete_rate_bytes_per_sec == 1'000'000);
  REQUIRE(pull.options.drop_missing);
  REQUIRE_FALSE(pull.options.compact);
  REQUIRE(pull.options.min_free_percent == 7);
  struct Row {
    PullMode mode;
    Words words;
    const char* expected;
  };
  const std::vector<Row> rows = {
      {PullMode::kRefresh, {"--compact", "fast"}, "auto or none"},
      {PullMode::kRefresh, {"--min-free", "5"}, "0% to 99%"},
      {PullMode::kRefresh, {"--drop-missing", "--cf", "a"},
       "not possible together with --cf"},
      {PullMode::kRefresh, {"--before-swap", "a"}, "needs sstferry swap"},
      {PullMode::kRefresh, {"--keep-old=1"}, "needs sstferry swap"},
      {PullMode::kSwap, {"--before-swap", " "}, "a command"},
      {PullMode::kSwap, {"--source-id", ""}, "1 to "},
      {PullMode::kSwap, {"--compact", "none"}, "needs sstferry refresh"},
      {PullMode::kSwap, {"--drop-missing"}, "needs sstferry refresh"},
      {PullMode::kPull, {"--before-swap", "a"}, "needs sstferry swap"},
      {PullMode::kPull, {"--after-swap", "a"}, "needs sstferry swap"},
      {PullMode::kPull, {"--drop-missing"}, "needs sstferry refresh"},
      {PullMode::kPull,
       {"--min-free", "1%"},
       "needs sstferry refresh or sstferry swap"},
      {PullMode::kPull, {"--adopt"}, "sstferry refresh or sstferry swap"},
      {PullMode::kPull,
       {"--delete-rate=1M"},
       "needs sstferry refresh or sstferry swap"},
  };
  for (const Row& row : rows) {
    const std::string said = Refusal(row.mode, row.words);
    INFO(said);
    REQUIRE(said.find(row.words[0].substr(0, row.words[0].find('='))) == 0);
    REQUIRE(said.find(row.expected) != std::string::npos);
  }
}

TEST_CASE("The first help of a job shows at most twelve options", "[tools]") {
  for (const char* name : {"pull", "refresh", "swap", "plan"}) {
    INFO(name);
    REQUIRE(OptionsIn(*FindCommand(name), OptionGroup::kCommon).size() <= 12);
  }
}

TEST_CASE(
    "Nightly swaps with a config file: the first pulls, the next refreshes",
    "[tools]") {
  ReplicaWorld world;
  Night night(world, Line("before-swap", Noting(world, "stop")) +
                         Line("after-swap", Noting(world, "start")));
  REQUIRE(night.Run() == 0);
  world.ChangeSource();
  REQUIRE(night.Run() == 0);
  INFO(night.json.dump(2));
  REQUIRE(night.json["mode"] == "swap");
  REQUIRE(night.json["state"] == "complete");
  REQUIRE(night.json["outage_seconds"] > 0);
  REQUIRE(night.json["sequence_old"] < night.json["sequence_new"]);
  REQUIRE(BytesOf(world.root() + "/calls") == "stop\nstart\nstop\nstart\n");
  REQUIRE(EntriesOf(world.target()) == EntriesOf(world.source()));
}

TEST_CASE("A swap keeps as many replaced databases as keep-old says",
          "[tools]") {
  ReplicaWorld world;
  Night night(world);
  REQUIRE(night.Run() == 0);
  const auto olds = [&] {
    std::vector<std::string> names;
    for (const std::string& name : NamesOf(world.root())) {
      if (name.find(".old-") != std::string::npos) {
        names.push_back(world.root() + "/" + name);
      }
    }
    return names;
  };
  REQUIRE(olds().empty());
  const auto first = EntriesOf(world.target());
  world.ChangeSource();
  REQUIRE(night.Run() == 0);
  INFO(night.err);
  REQUIRE(olds().size() == 1);
  REQUIRE(EntriesOf(olds().front()) == first);
  Process status(Sstferry({"status", world.target(), "--json"}));
  REQUIRE(status.Wait() == 0);
  const auto target = nlohmann::json::parse(status.out())["target"];
  REQUIRE(target["old"].size() == 1);
  REQUIRE(target["old"][0]["path"] == olds().front());
  Process text(Sstferry({"status", world.target()}));
  REQUIRE(text.Wait() == 0);
  REQUIRE(text.out().find("old: " + olds().front() + ", replaced at 20") !=
          std::string::npos);
  const auto second = EntriesOf(world.target());
  world.ChangeSource();
  REQUIRE(night.Run() == 0);
  REQUIRE(olds().size() == 1);
  REQUIRE(EntriesOf(olds().front()) == second);
  REQUIRE(night.err.find("deleted ") != std::string::npos);
  Night none(world, "keep-old = 0\n");
  world.ChangeSource();
  REQUIRE(none.Run() == 0);
  REQUIRE(olds().empty());
  REQUIRE(EntriesOf(world.target()) == EntriesOf(world.source()));
}

TEST_CASE("Nightly refreshes in place: first pull, busy, refresh, no change",
          "[tools]") {
  ReplicaWorld world;
  Night night(world, "method = \"ingest\"\n", "refresh");
  REQUIRE(night.Run() == 0);
  REQUIRE(night.json["mode"] == "pull");
  world.ChangeSource();
  {
    ServingApplication application(world.target());
    REQUIRE(night.Run() == 5);
    REQUIRE(night.json["status"] == "BUSY");
    REQUIRE(night.err.find("library") != std::string::npos);
    REQUIRE(night.err.find("swap") != std::string::npos);
  }
  REQUIRE(night.Run() == 0);
  INFO(night.json.dump(2));
  REQUIRE(night.json["mode"] == "refresh");
  REQUIRE(night.json["state"] == "complete");
  REQUIRE(night.json["parts_sent"] > 0);
  REQUIRE(night.json["sequence_old"] < night.json["sequence_new"]);
  REQUIRE(EntriesOf(world.target()) == EntriesOf(world.source()));
  REQUIRE_FALSE(fs::exists(world.target() + ".sstferry"));
  Process plan(
      Sstferry({"plan", "refresh", world.source(), world.target(), "--json"}));
  REQUIRE(plan.Wait() == 0);
  const auto planned = nlohmann::json::parse(plan.out());
  INFO(planned.dump(2));
  REQUIRE(planned["mode"] == "refresh");
  REQUIRE_FALSE(planned["items"].empty());
  for (const auto& item : planned["items"]) {
    REQUIRE(item["action"] == "delta");
  }
  REQUIRE(night.Run() == 0);
  INFO(night.json.dump(2));
  REQUIRE(night.json["parts_sent"] == 0);
  REQUIRE(night.json["sst_bytes"] == 0);
}

TEST_CASE("Nightly refreshes by files: first pull, busy, refresh, no change",
          "[tools]") {
  ReplicaWorld world;
  Night night(world, "", "refresh");
  REQUIRE(night.Run() == 0);
  REQUIRE(night.json["mode"] == "pull");
  REQUIRE(night.json["exchanged"].is_null());
  {
    test::OpenDb db(world.source(), test::OneFamily(test::Quiet()));
    db.Put("changed", "and flushed");
    db.Flush();
  }
  {
    ServingApplication application(world.target());
    REQUIRE(night.Run() == 5);
    REQUIRE(night.json["status"] == "BUSY");
    REQUIRE(night.err.find("swap") != std::string::npos);
  }
  Process plan(Sstferry({"plan", "refresh", world.source(), world.target()}));
  REQUIRE(plan.Wait() == 0);
  REQUIRE(plan.out().find("\nmethod: clone (auto: ") != std::string::npos);
  REQUIRE(plan.out().find("\nreused: ") != std::string::npos);
  REQUIRE(night.Run() == 0);
  INFO(night.json.dump(2));
  REQUIRE(night.json["mode"] == "refresh");
  REQUIRE(night.json["method"] == "clone");
  REQUIRE(night.json["state"] == "complete");
  REQUIRE(night.json["exchanged"] == true);
  REQUIRE(night.json["outage_seconds"].is_null());
  REQUIRE(night.json["files_reused"] > 0);
  REQUIRE(night.json["sequence_old"] < night.json["sequence_new"]);
  REQUIRE(EntriesOf(world.target()) == EntriesOf(world.source()));
  REQUIRE(NamesOf(world.root()) ==
          std::vector<std::string>{"shard.toml", "source", "target"});
  REQUIRE(night.Run() == 0);
  REQUIRE(night.json["exchanged"] == false);
  REQUIRE(night.json["chunks"] == 0);
}

TEST_CASE("Each outcome of a nightly job has its exit code", "[tools]") {
  ReplicaWorld world;
  REQUIRE(Night(world).Run() == 0);
  world.ChangeSource();
  const std::string after = Line("after-swap", Noting(world, "start"));
  Night vetoed(world, Line("before-swap", "exit 3") + after);
  REQUIRE(vetoed.Run() == 1);
  REQUIRE(vetoed.err.find("--before-swap \"exit 3\" ended with code 3") !=
          std::string::npos);
  REQUIRE(BytesOf(world.root() + "/calls") == "start\n");
  {
    ServingApplication application(world.target());
    Night busy(world, after);
    REQUIRE(busy.Run() == 5);
    REQUIRE(busy.json["status"] == "BUSY");
    REQUIRE(busy.json["state"].is_null());
  }
  Night late(world, Line("before-swap", "sleep 600") +
                        Line("deadline", "15s") + after);
  REQUIRE(late.Run() == 4);
  REQUIRE(late.json["status"] == "DEADLINE");
  REQUIRE(BytesOf(world.root() + "/calls") == "start\nstart\nstart\n");
  Night broken(world, Line("after-swap", "exit 9"));
  REQUIRE(broken.Run() == 1);
  REQUIRE(broken.json["state"] == "complete");
  REQUIRE(broken.err.find("ended with code 9") != std::string::npos);
  REQUIRE(EntriesOf(world.target()) == EntriesOf(world.source()));
}

TEST_CASE("status reports that the command after a swap failed", "[tools]") {
  ReplicaWorld world;
  REQUIRE(Night(world).Run() == 0);
  world.ChangeSource();
  const auto state = [&world] {
    return nlohmann::json::parse(OutputOf({"status", world.target(),
                                           "--json"}),
                                 nullptr, false)["target"];
  };
  REQUIRE(Night(world, Line("before-swap", "exit 3")).Run() == 1);
  REQUIRE(state()["awaits_after_swap"] == false);  // nothing was exchanged
  REQUIRE(Night(world, Line("after-swap", "exit 9")).Run() == 1);
  REQUIRE(state()["awaits_after_swap"] == true);
  const std::string text = OutputOf({"status", world.target()});
  INFO(text);
  REQUIRE(text.find("\nswap: the databases were exchanged, but --after-swap "
                    "failed or has not run") != std::string::npos);
  REQUIRE(text.find("leftover:") == std::string::npos);
  REQUIRE(Night(world, Line("after-swap", "true")).Run() == 0);
  REQUIRE(state()["awaits_after_swap"] == false);
}

TEST_CASE("The run after one that was killed in a hook ends that hook",
          "[tools]") {
  const std::string which = GENERATE("before-swap", "after-swap");
  ReplicaWorld world;
  REQUIRE(Night(world).Run() == 0);
  world.ChangeSource();
  const std::string id = world.root() + "/id";
  // The hook has a child process that would act on the application later.
  Night killed(world,
               Line(which, "echo $$ > " + id +
                               "; echo hook runs >&2; exec 2> /dev/null >&2; "
                               "(sleep 600; echo late >> " + world.root() +
                               "/calls); true"));
  Process process(Sstferry({"swap", "--config", killed.conf, "--json"}));
  REQUIRE(process.WaitForErr("hook runs"));
  process.Signal(SIGKILL);
  REQUIRE(process.Wait() == 128 + SIGKILL);
  const pid_t left = std::stoi(BytesOf(id));
  REQUIRE_FALSE(NameOfProcess(left).empty());
  const std::string alive = "if grep -q . /proc/" + std::to_string(left) +
                            "/cmdline; then echo alive >> " + world.root() +
                            "/calls; fi; ";
  Night next(world, Line("before-swap", alive + Noting(world, "stop")) +
                        Line("after-swap", alive + Noting(world, "start")));
  REQUIRE(next.Run() == 0);
  INFO(next.err);
  REQUIRE(next.err.find("process " + std::to_string(left)) !=
          std::string::npos);
  const std::string calls = BytesOf(world.root() + "/calls");
  // After the exchange only after-swap has to run: the source is unchanged.
  REQUIRE(calls == (which == "before-swap" ? "stop\nstart\n" : "start\n"));
  REQUIRE(EntriesOf(world.target()) == EntriesOf(world.source()));
}

TEST_CASE("SIGTERM during before-swap still runs after-swap", "[tools]") {
  ReplicaWorld world;
  REQUIRE(Night(world).Run() == 0);
  const auto before = EntriesOf(world.target());
  world.ChangeSource();
  Night night(world,
              Line("before-swap", "echo hook runs >&2; sleep 600") +
                  Line("after-swap", Noting(world, "start")));
  Process process(Sstferry({"swap", "--config", night.conf, "--json"}));
  REQUIRE(process.WaitForErr("hook runs"));
  process.Signal(SIGTERM);
  REQUIRE(process.Wait() == 4);
  REQUIRE(BytesOf(world.root() + "/calls") == "start\n");
  REQUIRE(EntriesOf(world.target()) == before);
}

TEST_CASE("SIGHUP makes serve reload its config file without a restart",
          "[tools]") {
  ReplicaWorld world;
  const std::string conf = world.root() + "/serve.toml";
  WriteBytes(conf, "max-rate = '1M'\n");
  ServeProcess serve({"--db", "db=" + world.source(), "--config", conf});
  serve.process().Signal(SIGHUP);
  REQUIRE(serve.process().WaitForErr("max-rate 1.0 MB/s"));
  WriteBytes(conf, "max-rate = '2M'\n");
  serve.process().Signal(SIGHUP);
  REQUIRE(serve.process().WaitForErr("max-rate 2.0 MB/s"));
  WriteBytes(conf, "max-rate = 'many'\n");
  serve.process().Signal(SIGHUP);
  REQUIRE(serve.process().WaitForErr("nothing was changed"));
  WriteBytes(conf, "log-level = 'error'\n");
  serve.process().Signal(SIGHUP);
  Process pull(Sstferry({"pull", serve.url(), world.target()}));
  REQUIRE(pull.Wait() == 0);
  serve.process().Signal(SIGTERM);
  REQUIRE(serve.process().Wait() == 0);
  // The new level hides the info line about that pull.
  REQUIRE(serve.process().err().find("transfer ") == std::string::npos);
}

TEST_CASE(
    "serve notifies its service manager when it is ready and when it ends",
    "[tools]") {
  ReplicaWorld world;
  const std::string path = world.root() + "/notify";
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  REQUIRE(fd >= 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  REQUIRE(path.size() < sizeof(address.sun_path));
  std::memcpy(address.sun_path, path.data(), path.size());
  REQUIRE(bind(fd, reinterpret_cast<const sockaddr*>(&address),
               static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) +
                                      path.size() + 1)) == 0);
  const auto receive = [fd] {
    char text[256];
    const ssize_t bytes = recv(fd, text, sizeof(text), 0);
    REQUIRE(bytes > 0);
    return std::string(text, static_cast<size_t>(bytes));
  };
  Process serve(Sstferry({"serve", "--db", world.source(), "--listen",
                          "127.0.0.1:0"}),
                {{"NOTIFY_SOCKET", path}});
  const std::string ready = receive();
  INFO(ready);
  REQUIRE(ready.starts_with("READY=1\nSTATUS=serves source on 127.0.0.1:"));
  serve.Signal(SIGTERM);
  REQUIRE(receive() == "STOPPING=1");
  REQUIRE(serve.Wait() == 0);
  close(fd);
}

}  // namespace
}  // namespace sstferry::refresh_test
