// Tests the real binary as an operator or a script uses it: exit codes, JSON,
// signals.
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "pipeline/base/rocksdb_compat.h"
#include "rocksdb/db.h"
#include "tests/support/catch.h"
#include "tests/support/process.h"
#include "tests/support/sample_database.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/serve_process.h"

namespace sstferry::cli_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::string Db(const ScratchDir& dir) {
  return std::string("db=").append(dir / "source");
}

struct Ended {
  int code = -1;
  json object;
};

// Runs the tool with --json. Requires that it prints one object and nothing
// else.
Ended RunJson(std::vector<std::string> arguments) {
  arguments.push_back("--json");
  Process process(Sstferry(arguments));
  Ended ended;
  ended.code = process.Wait();
  INFO(process.out() << process.err());
  ended.object = json::parse(process.out(), nullptr, false);
  REQUIRE(ended.object.is_object());
  REQUIRE(ended.object["exit_code"] == ended.code);
  return ended;
}

void RequireEnd(const Ended& ended, const char* status, int code,
                const std::string& sentence = "") {
  INFO(ended.object.dump(1));
  REQUIRE(ended.object["status"] == status);
  REQUIRE(ended.code == code);
  if (code != 0) {
    const std::string message = ended.object["error"]["message"];
    REQUIRE_FALSE(message.empty());
    REQUIRE(message.find(sentence) != std::string::npos);
    REQUIRE(ended.object["error"]["code"] == status);
    REQUIRE(message.find("next: ") == std::string::npos);
  }
}

TEST_CASE("pull --json prints one object with the keys of the README",
          "[bad_input][cli]") {
  ScratchDir dir;
  MakeSampleDatabase(dir / "source");
  const Ended ended = RunJson({"pull", dir / "source", dir / "target",
                               "--verify", "--lanes", "2"});
  RequireEnd(ended, "OK", 0);
  for (const char* key :
       {"schema", "status", "exit_code", "started_at", "finished_at",
        "versions", "mode", "source", "target", "transfer_id",
        "snapshot_sequence", "snapshot_taken_at",
        "snapshot_taken_seconds", "column_families", "parts", "chunks",
        "chunks_built", "chunks_resumed", "chunks_unchecked", "entries",
        "key_value_bytes", "sst_bytes", "wire_bytes", "ingest_calls", "levels",
        "seconds", "sst_bytes_per_second", "key_value_bytes_per_second",
        "stage_seconds", "peak_rss_bytes", "lanes", "retries"}) {
    INFO(key);
    REQUIRE(ended.object.contains(key));
  }
  const double seconds = ended.object["seconds"];
  for (const char* side : {"source", "target"}) {
    double sum = 0;
    for (const auto& stage : ended.object["stage_seconds"][side]) {
      sum += stage.get<double>();
    }
    INFO(side << ": " << sum << " of " << seconds);
    REQUIRE(sum > 0.95 * seconds);
    REQUIRE(sum < 1.05 * seconds);
  }
  REQUIRE(fs::exists(dir / "target/last_transfer.json"));
}

TEST_CASE("Every bad address ends with its status and exit code",
          "[bad_input][cli]") {
  ScratchDir dir;
  RequireEnd(RunJson({"pull", "sst://no-such-host.invalid/db",
                      dir / "target"}),
             "DEAD_PEER", 4, "resolve no-such-host.invalid");
  const auto silent = std::chrono::steady_clock::now();
  RequireEnd(RunJson({"pull", "sst://127.0.0.1:1/db", dir / "target",
                      "--timeout", "2s"}),
             "DEAD_PEER", 4, "is `sstferry serve` running there?");
  const auto waited = std::chrono::steady_clock::now() - silent;
  REQUIRE(waited >= std::chrono::seconds(2));
  RequireEnd(RunJson({"plan", "sst://127.0.0.1:1"}), "DEAD_PEER", 4);
  REQUIRE(NamesOf(dir.path()).size() <= 1);  // at most the workspace
  MakeSampleDatabase(dir / "source");
  RequireEnd(RunJson({"verify", dir / "source", "sst://127.0.0.1:1/db"}),
             "DEAD_PEER", 4);
}

TEST_CASE("A source in this process that fails is reported once",
          "[bad_input][cli]") {
  ScratchDir dir;
  MakeSampleDatabase(dir / "source");
  Process verify(Sstferry(
      {"verify", dir / "source", dir / "missing", "--progress", "never"}));
  REQUIRE(verify.Wait() == 1);
  INFO(verify.err());
  REQUIRE(verify.err().find("in-process") == std::string::npos);
  const std::string err = verify.err();
  REQUIRE(std::count(err.begin(), err.end(), '\n') == 1);
}

TEST_CASE("verify of a source that has changed since reports it and ends with 3",
          "[bad_input][cli][end_state]") {
  ScratchDir dir;
  MakeSampleDatabase(dir / "source");
  RequireEnd(RunJson({"pull", dir / "source", dir / "target"}), "OK", 0);
  {
    std::unique_ptr<rocksdb::DB> db;
    REQUIRE_OK(rocksdb::DB::Open({}, dir / "source", IntoDb(&db)));
    REQUIRE_OK(db->Put({}, "new", "value"));
  }
  const std::vector<std::string> verify{"verify", dir / "source",
                                        dir / "target", "--show", "1"};
  const Ended ended = RunJson(verify);
  RequireEnd(ended, "CHANGED_SINCE", 3, "right was pulled from left");
  REQUIRE(ended.object["first_differences"].size() == 1);
  REQUIRE(ended.object["error"]["next"] == "sstferry refresh " +
                                               (dir / "source") + " " +
                                               (dir / "target") + " --verify");
  Process process(Sstferry(verify));
  REQUIRE(process.Wait() == 3);
  REQUIRE(process.out().find("changed since: 1 difference in 2001 left") == 0);
  REQUIRE(process.out().find("  \"default\": \"new\": only left\n") !=
          std::string::npos);
  REQUIRE(process.out().find("\nnext: sstferry refresh ") != std::string::npos);
  REQUIRE(process.err().find("sstferry verify: CHANGED_SINCE: ") !=
          std::string::npos);
  REQUIRE(process.err().find("info comparing left " + (dir / "source") +
                             " at sequence 2001 with right ") !=
          std::string::npos);
}

TEST_CASE("serve refuses a port in use and ends with 0 on a signal",
          "[bad_input][cli]") {
  ScratchDir dir;
  MakeSampleDatabase(dir / "source");
  ServeProcess server({"--db", Db(dir)});
  RequireEnd(RunJson({"serve", "--db", Db(dir), "--listen",
                      server.address()}),
             "REFUSED", 1, "is another `sstferry serve` running there?");
  Process plan(Sstferry({"plan", server.list_url()}));
  REQUIRE(plan.Wait() == 0);
  REQUIRE(plan.out().find("db") != std::string::npos);
  RequireEnd(RunJson({"pull", server.url() + "x", dir / "target"}), "REFUSED",
             1);
  server.process().Signal(GENERATE(SIGINT, SIGTERM));
  REQUIRE(server.process().Wait(std::chrono::seconds(60)) == 0);
  REQUIRE(server.process().err().find("REFUSED: no database named 'dbx'") !=
          std::string::npos);
}

TEST_CASE("serve --once ends with the first transfer's code",
          "[bad_input][cli][end_state]") {
  ScratchDir dir;
  MakeSampleDatabase(dir / "source");
  ServeProcess server({"--db", Db(dir), "--once"});
  RequireEnd(RunJson({"pull", server.url(), dir / "target"}), "OK", 0);
  REQUIRE(server.process().Wait() == 0);
  REQUIRE(server.process().err().find(": OK, ") != std::string::npos);
  REQUIRE(NamesOf(dir.path()) == std::vector<std::string>{"source", "target"});
}

TEST_CASE("serve --once ends with the code of the transfer that failed",
          "[bad_input][cli][end_state]") {
  struct Case {
    const char* status;
    std::vector<std::string> options;
    bool damaged;
  };
  const Case one = GENERATE(Case{"REFUSED", {"--cf", "nobody"}, false},
                            Case{"CORRUPT", {}, true});
  INFO(one.status);
  ScratchDir dir;
  MakeSampleDatabase(dir / "source");
  for (const std::string& name : NamesOf(dir / "source")) {
    if (one.damaged && name.ends_with(".sst")) {
      const std::string path = dir / ("source/" + name);
      std::string bytes = BytesOf(path);
      bytes[bytes.size() / 2] ^= 1;
      WriteBytes(path, bytes);
    }
  }
  ServeProcess server({"--db", Db(dir), "--once"});
  std::vector<std::string> arguments{"pull", server.url(), dir / "target"};
  arguments.insert(arguments.end(), one.options.begin(), one.options.end());
  const Ended ended = RunJson(arguments);
  RequireEnd(ended, one.status, 1);
  REQUIRE(server.process().Wait() == ended.code);
  REQUIRE(server.process().err().find(std::string(": ").append(one.status) +
                                      ", ") != std::string::npos);
}

// Starts a slow pull, and returns once it has a transfer.
std::unique_ptr<Process> SlowPull(const std::string& url, const ScratchDir& dir,
                                  const std::string& rate = "200K",
                                  const std::string& limit = "--timeout") {
  auto pull = std::make_unique<Process>(Sstferry(
      {"pull", url, dir / "target", "--max-rate", rate, "--json", "--progress",
       "json", "--progress-interval", "100ms", limit, "10s"}));
  REQUIRE(pull->WaitForErr("\"transfer\""));
  return pull;
}

TEST_CASE("A signal ends a throttled pull on both sides",
          "[bad_input][cli][end_state]") {
  ScratchDir dir;
  MakeSampleDatabase(dir / "source");
  ServeProcess server(
      {"--db", Db(dir), "--once", "--snapshot-ttl", "0"});
  const std::unique_ptr<Process> pull = SlowPull(server.url(), dir);
  pull->Signal(GENERATE(SIGINT, SIGTERM));
  REQUIRE(pull->Wait(std::chrono::seconds(60)) == 4);
  const json object = json::parse(pull->out(), nullptr, false);
  REQUIRE(object["status"] == "CANCELLED");
  REQUIRE(server.process().Wait(std::chrono::seconds(60)) == 4);
  REQUIRE(server.process().err().find(": CANCELLED, ") != std::string::npos);
  // The workspace stays. The source's private directory is removed.
  REQUIRE(NamesOf(dir.path()) ==
          std::vector<std::string>{"source", "target.sstferry"});
  RequireEnd(RunJson({"pull", dir / "source", dir / "target"}), "OK", 0);
  REQUIRE(NamesOf(dir.path()) == std::vector<std::string>{"source", "target"});
}

TEST_CASE("A signal ends serve during a transfer",
          "[bad_input][cli][end_state]") {
  ScratchDir dir;
  MakeSampleDatabase(dir / "source");
  ServeProcess server({"--db", Db(dir), "--snapshot-ttl", "0"});
  const std::unique_ptr<Process> pull = SlowPull(server.url(), dir);
  server.process().Signal(GENERATE(SIGINT, SIGTERM));
  REQUIRE(server.process().Wait(std::chrono::seconds(60)) == 0);
  REQUIRE(server.process().err().find(
              ": CANCELLED, ") != std::string::npos);
  // The pull waits ten seconds without progress for the server's return. Before
  // that, it writes the bytes in the connections' buffers at its rate limit.
  REQUIRE(pull->Wait(std::chrono::seconds(60)) == 4);
  const json object = json::parse(pull->out(), nullptr, false);
  REQUIRE(object["status"] == "DEAD_PEER");
  REQUIRE(NamesOf(dir.path()) ==
          std::vector<std::string>{"source", "target.sstferry"});
}

TEST_CASE("A pull that takes longer than --deadline ends with DEADLINE",
          "[bad_input][cli][end_state]") {
  ScratchDir dir;
  MakeSampleDatabase(dir / "source");
  ServeProcess server({"--db", Db(dir)});
  const std::unique_ptr<Process> pull =
      SlowPull(server.url(), dir, "50K", "--deadline");
  REQUIRE(pull->Wait(std::chrono::seconds(60)) == 4);
  const json object = json::parse(pull->out(), nullptr, false);
  REQUIRE(object["status"] == "DEADLINE");
  REQUIRE(server.process().WaitForErr(": DEADLINE, "));
  REQUIRE_FALSE(fs::exists(dir / "target"));
}

TEST_CASE("If a source is killed during a pull, the pull ends with DEAD_PEER, "
          "and the next one works",
          "[bad_input][cli][crash]") {
  ScratchDir dir;
  MakeSampleDatabase(dir / "source");
  {
    ServeProcess server({"--db", Db(dir), "--snapshot-ttl", "0"});
    const std::unique_ptr<Process> pull = SlowPull(server.url(), dir);
    server.process().Signal(SIGKILL);
    REQUIRE(pull->Wait(std::chrono::seconds(60)) == 4);
    const json object = json::parse(pull->out(), nullptr, false);
    REQUIRE(object["status"] == "DEAD_PEER");
  }
  REQUIRE_FALSE(fs::exists(dir / "target"));
  // This also removes the files that the killed source left.
  RequireEnd(RunJson({"pull", dir / "source", dir / "target"}), "OK", 0);
  REQUIRE(NamesOf(dir.path()) == std::vector<std::string>{"source", "target"});
}

TEST_CASE("If a target is killed during a pull, the source keeps only the "
          "snapshot",
          "[bad_input][cli][crash]") {
  ScratchDir dir;
  MakeSampleDatabase(dir / "source");
  ServeProcess server({"--db", Db(dir)});
  {
    const std::unique_ptr<Process> pull = SlowPull(server.url(), dir);
    pull->Signal(SIGKILL);
    REQUIRE(pull->Wait() == 128 + SIGKILL);
  }
  REQUIRE(server.process().WaitForErr(": DEAD_PEER, "));
  RequireEnd(RunJson({"pull", server.url(), dir / "target"}), "OK", 0);
  server.process().Signal(SIGTERM);
  REQUIRE(server.process().Wait(std::chrono::seconds(60)) == 0);
  REQUIRE(NamesOf(dir.path()) == std::vector<std::string>{"source", "target"});
}

TEST_CASE("Pull --max-rate is not exceeded by ten percent",
          "[bad_input][cli]") {
  ScratchDir dir;
  SampleShape shape;
  shape.entries = 4000;
  MakeSampleDatabase(dir / "source", shape);
  const Ended ended =
      RunJson({"pull", dir / "source", dir / "target", "--max-rate", "2M"});
  RequireEnd(ended, "OK", 0);
  const double rate = ended.object["sst_bytes"].get<double>() /
                      ended.object["seconds"].get<double>();
  INFO(rate);
  REQUIRE(rate < 2.2e6);
}

}  // namespace
}  // namespace sstferry::cli_test
