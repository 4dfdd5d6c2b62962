#include "tests/pipeline/target/resume_support.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "pipeline/disk/durable.h"
#include "tests/support/catch.h"
#include "tests/support/process.h"

namespace sstferry {
namespace {

constexpr int kKilled = 99;

std::string Setting(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

TEST_CASE("child: a pull that dies the nth time it comes to a fault point",
          "[.child]") {
  const std::string point = Setting("SSTFERRY_TEST_POINT");
  if (point.empty()) {
    return;
  }
  std::atomic<int> left{std::stoi(Setting("SSTFERRY_TEST_NTH"))};
  TEST_SetFaultHook([&point, &left](const std::string& name) {
    if (name == point && --left == 0) {
      _exit(kKilled);
    }
  });
  PullOptions options;
  options.method = PullMethod::kIngest;
  REQUIRE_OK(ParseSourceAddress(Setting("SSTFERRY_TEST_SOURCE"),
                                &options.source));
  options.target_dir = Setting("SSTFERRY_TEST_TARGET");
  options.lanes =
      static_cast<uint32_t>(std::stoul(Setting("SSTFERRY_TEST_LANES")));
  options.chunk_bytes = std::stoull(Setting("SSTFERRY_TEST_CHUNK_BYTES"));
  const std::string mode = Setting("SSTFERRY_TEST_MODE");
  options.mode = mode == "pull"   ? PullMode::kPull
                 : mode == "swap" ? PullMode::kSwap
                                  : PullMode::kRefresh;
  options.command_line = Setting("SSTFERRY_TEST_COMMAND");
  options.verify = Setting("SSTFERRY_TEST_VERIFY") == "yes";
  options.durability = Setting("SSTFERRY_TEST_DURABLE") == "yes"
                           ? Durability::kChunk
                           : Durability::kNone;
  REQUIRE_OK(RunPull(options).status);
}

}  // namespace

ServeOptions ServeAndHold(const std::string& directory) {
  ServeOptions options = ServeSample(directory);
  options.snapshot_ttl = std::chrono::hours(1);
  return options;
}

Summary PullAndCancel(const PullOptions& options, const std::string& point,
                      int nth) {
  const std::unique_ptr<Operation> pull = MakePull(options);
  std::atomic<int> left{nth};
  TEST_SetFaultHook([&](const std::string& name) {
    if (name == point && --left == 0) {
      pull->Cancel();
    }
  });
  Summary summary;
  const rocksdb::Status status = pull->Run(&summary);
  TEST_SetFaultHook(nullptr);
  INFO(status.ToString());
  REQUIRE(EndStateOf(status) == EndState::kCancelled);
  return summary;
}

void PullAndDie(const HostPort& source, const PullOptions& options,
                const std::string& point, int nth) {
  const auto text = [](bool yes) { return yes ? "yes" : "no"; };
  Process child(
      CaseOfThisProgram(
          "child: a pull that dies the nth time it comes to a fault point"),
      {{"SSTFERRY_TEST_POINT", point},
       {"SSTFERRY_TEST_NTH", std::to_string(nth)},
       {"SSTFERRY_TEST_SOURCE", AddressAt(source).ToString()},
       {"SSTFERRY_TEST_TARGET", options.target_dir},
       {"SSTFERRY_TEST_LANES", std::to_string(options.lanes)},
       {"SSTFERRY_TEST_CHUNK_BYTES", std::to_string(options.chunk_bytes)},
       {"SSTFERRY_TEST_MODE", PullModeName(options.mode)},
       {"SSTFERRY_TEST_COMMAND", options.command_line},
       {"SSTFERRY_TEST_VERIFY", text(options.verify)},
       {"SSTFERRY_TEST_DURABLE",
        text(options.durability == Durability::kChunk)}});
  const int code = child.Wait();
  INFO(point << " " << nth << ": " << child.out() << child.err());
  REQUIRE(code == kKilled);
}

Summary PullToTheEnd(const ScratchDir& dir, const PullOptions& options) {
  const Summary summary = RunPull(options);
  REQUIRE_OK(summary.status);
  REQUIRE(EntriesOf(options.target_dir) == EntriesOf(dir / "source"));
  uint64_t tables = 0;
  for (const std::string& name : NamesOf(options.target_dir)) {
    tables += name.ends_with(".sst") ? 1 : 0;
  }
  REQUIRE(tables == summary.chunks);
  REQUIRE_FALSE(std::filesystem::exists(options.target_dir + ".sstferry"));
  return summary;
}

bool NotesMention(const Summary& summary, const std::string& text) {
  for (const std::string& note : summary.notes) {
    if (note.find(text) != std::string::npos) {
      return true;
    }
  }
  return false;
}

}  // namespace sstferry
