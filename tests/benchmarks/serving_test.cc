// Tests with a small database that the figures of bench_serving are consistent.
#include <cmath>
#include <fstream>

#include <nlohmann/json.hpp>

#include "tests/support/catch.h"
#include "tests/support/process.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/serve_process.h"

namespace sstferry {
namespace {

using nlohmann::json;

constexpr const char* kKinds[] = {"get", "scan", "write"};

void RequireEndsWell(const std::vector<std::string>& words) {
  Process process(words);
  const int code = process.Wait(std::chrono::seconds(120));
  INFO(process.out() << process.err());
  REQUIRE(code == 0);
}

std::string Program(const std::string& name) {
  return std::string(SSTFERRY_BENCHMARKS) + "/bench_" + name;
}

// A replica of 20,000 keys, served for a second or two.
class Served {
 public:
  Served() {
    RequireEndsWell({Program("make_database"), "--dir", source_, "--bytes",
                     "2320000", "--value-bytes", "100"});
    RequireEndsWell(Sstferry({"pull", source_, target_}));
  }

  json Run(std::vector<std::string> more) {
    const std::string out = dir_ / "out.json";
    std::vector<std::string> words{
        Program("serving"), "--db", target_, "--out", out, "--keys", "20000",
        "--mix", "60/10/10/10/10", "--rate", "1000", "--local-keys", "1000",
        "--warm", "0.2", "--before", "0.5", "--after", "0.3"};
    words.insert(words.end(), more.begin(), more.end());
    RequireEndsWell(words);
    std::ifstream file(out);
    return json::parse(file);
  }

  // Overwrites a fifth of the source's keys.
  void Change() {
    RequireEndsWell({Program("change_database"), "--dir", source_, "--keys",
                     "20000", "--value-bytes", "100", "--generation", "2",
                     "--overwrite-permille", "200"});
  }

  const std::string& source() const { return source_; }

 private:
  ScratchDir dir_;
  const std::string source_ = dir_ / "source";
  const std::string target_ = dir_ / "target";
};

const json& PhaseOf(const json& run, const std::string& name) {
  for (const json& phase : run.at("phases")) {
    if (phase.at("name") == name) return phase;
  }
  FAIL("no phase " << name);
  return run;
}

// Requires that each operation was counted in one phase and in one second.
void RequireAddsUp(const json& run) {
  for (const char* kind : {"get", "scan", "write", "heartbeat"}) {
    INFO(kind);
    auto in_phases = run.at("after_the_end").at(kind).get<uint64_t>();
    uint64_t in_seconds = 0;
    for (const json& phase : run.at("phases")) {
      if (phase.at("name") == "during") continue;  // the sum of its parts
      in_phases += phase.at(kind).at("count").get<uint64_t>();
    }
    for (const json& second : run.at("windows").at(kind)) {
      in_seconds += second.at(0).get<uint64_t>();
    }
    REQUIRE(in_seconds == in_phases);
    REQUIRE(in_phases > 0);
  }
  uint64_t parts = 0;
  for (const json& phase : run.at("phases")) {
    const json& get = phase.at("get");
    REQUIRE(get.at("p50_us") <= get.at("p99_us"));
    REQUIRE(get.at("p99_us") <= get.at("p999_us"));
    REQUIRE(get.at("p999_us") <= get.at("max_us"));
    if (phase.at("name").get<std::string>().rfind("during/", 0) == 0) {
      parts += phase.at("operations").get<uint64_t>();
    }
  }
  REQUIRE(PhaseOf(run, "during").at("operations") == parts);
}

TEST_CASE("A served replica reports a refresh and what it cost",
          "[benchmarks]") {
  Served served;
  served.Change();
  ServeProcess source({"--db", "db=" + served.source()});
  const json run = served.Run(
      {"--source", source.url(), "--chunk-bytes", "64Ki", "--source-pid",
       std::to_string(source.process().pid())});
  RequireAddsUp(run);
  REQUIRE(run.at("status") == "OK");
  REQUIRE(run.at("missing_reads") == 0);
  const json& refresh = run.at("refresh");
  REQUIRE(refresh.at("status") == "OK");
  REQUIRE(refresh.at("entries") > 2'000);
  uint64_t files = 0;
  for (const json& call : run.at("ingest_calls")) {
    REQUIRE(call.at("at_seconds") >=
            PhaseOf(run, "during").at("begin_seconds"));
    files += call.at("files").get<uint64_t>();
  }
  REQUIRE(files == refresh.at("chunks"));
  REQUIRE(files > 20);
  REQUIRE(run.at("tables").at("after").at("entries") >= 20'000);
  const json& cpu = PhaseOf(run, "during").at("cpu_seconds");
  REQUIRE(cpu.at("process") > cpu.at("load"));
}

TEST_CASE("A served replica gets operations at the requested rate",
          "[benchmarks]") {
  Served served;
  const json open = served.Run({"--idle", "--during", "0.5", "--before", "2"});
  RequireAddsUp(open);
  const double sent =
      PhaseOf(open, "before").at("operations_per_second").get<double>();
  REQUIRE(std::abs(sent - 1000) < 200);
  for (const char* kind : kKinds) {
    const json& before = PhaseOf(open, "before");
    const double share = before.at(kind).at("count").get<double>() /
                         before.at("operations").get<double>();
    const double wanted = kind == std::string("get") ? 0.6
                          : kind == std::string("scan") ? 0.1 : 0.3;
    INFO(kind);
    REQUIRE(std::abs(share - wanted) < 0.1);
  }
  const json closed =
      served.Run({"--closed-loop", "--spinner", "0.5", "--during", "0.5"});
  RequireAddsUp(closed);
  REQUIRE(PhaseOf(closed, "before").at("operations_per_second") > 2 * sent);
  const json& beside = PhaseOf(closed, "during/spinner");
  const json& cpu = beside.at("cpu_seconds");
  const double cores =
      (cpu.at("process").get<double>() - cpu.at("load").get<double>()) /
      beside.at("seconds").get<double>();
  REQUIRE(cores > 0.2);
}

TEST_CASE("A load is served beside a process that uses idle CPU or writes",
          "[benchmarks]") {
  Served served;
  const json spun = served.Run(
      {"--spinner", "0.5", "--spinner-idle", "--during", "0.5"});
  RequireAddsUp(spun);
  REQUIRE(PhaseOf(spun, "during/spinner").at("operations") > 0);
  const json written =
      served.Run({"--writer", "200000000", "--during", "0.5"});
  RequireAddsUp(written);
  REQUIRE(PhaseOf(written, "during/writer").at("written_bytes") >= 64 << 20);
}

}  // namespace
}  // namespace sstferry
