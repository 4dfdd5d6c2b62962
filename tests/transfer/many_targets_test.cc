// Several targets that pull one snapshot at the same time.
#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "sstferry/target.h"
#include "tests/support/held_support.h"
#include "tests/support/catch.h"
#include "tests/support/relay.h"
#include "tests/support/sample_bytes.h"
#include "tests/support/sample_database.h"
#include "tests/support/test_db.h"

namespace sstferry::test {
namespace {

using std::chrono::milliseconds;

constexpr uint64_t kEntries = 12'000;

// Two levels, a memtable's worth in the WAL, written by nobody in order.
void WriteSome(OpenDb* db, uint64_t seed, uint64_t entries) {
  for (uint64_t i = 0; i < entries; ++i) {
    db->Put(NumberedKey((i * 7919 + seed) % entries),
            RandomBytes(500, seed * entries + i));
  }
}

struct Fleet {
  explicit Fleet(uint64_t entries = kEntries)
      : db(dir / "source", OneFamily(Quiet())) {
    WriteSome(&db, 1, entries);
    db.Flush();
    WriteSome(&db, 2, entries);
    db.Flush();
    db.Put("last", "in the WAL");
    ServeOptions serve = ServeSample(dir / "source");
    serve.snapshot_ttl = std::chrono::seconds(60);
    serve.max_transfers = max_transfers;
    server = std::make_unique<TestServer>(serve);
  }

  PullOptions Options(int target, const HostPort& where) const {
    PullOptions options =
        PullFrom(where, dir / ("target" + std::to_string(target)));
    options.latest_snapshot = true;
    options.carry = CarryMode::kNever;
    options.chunk_bytes = 512u << 10;
    options.lanes = 2;
    options.peer_timeout = milliseconds(10'000);
    options.retry_for = milliseconds(60'000);
    return options;
  }

  const TempDir dir;
  OpenDb db;
  // All of a test's: a pull that waits takes the place of one that has lost its
  // connection.
  uint32_t max_transfers = 8;
  std::unique_ptr<TestServer> server;
};

TEST_CASE("Targets that pull the latest snapshot at once get equal databases",
          "[transfer][share]") {
  Fleet fleet;
  const bool clones = GENERATE(false, true);
  CAPTURE(clones);
  constexpr int kTargets = 6;
  Relay relay(fleet.server->address());
  relay.SetRate(Relay::kToClient, 8'000'000);
  std::vector<Summary> summaries(kTargets);
  std::atomic<int> running{kTargets};
  std::vector<std::thread> pulls;
  for (int i = 0; i < kTargets; ++i) {
    pulls.emplace_back([&, i] {
      // The first is slow, and loses its connections.
      PullOptions options = fleet.Options(
          i, i == 0 ? relay.address() : fleet.server->address());
      options.method = clones ? PullMethod::kClone : PullMethod::kIngest;
      if (clones) {
        options.carry = CarryMode::kAuto;
      }
      summaries[i] = RunPull(options);
      --running;
    });
  }
  std::thread cutter([&] {
    for (uint64_t at = 1'000'000; running > 0 && at < 4'000'000;
         at += 1'000'000) {
      while (running > 0 &&
             !relay.WaitForBytes(Relay::kToClient, at, milliseconds(20))) {
      }
      relay.ResetAll();
    }
  });
  for (int i = 0; i < 20'000 && running > 0; ++i) {
    fleet.db.Put("later" + std::to_string(i), "perhaps in it");
  }
  for (std::thread& pull : pulls) {
    pull.join();
  }
  cutter.join();
  const auto entries = sstferry::EntriesOf(fleet.dir / "target1");
  for (int i = 0; i < kTargets; ++i) {
    CAPTURE(i);
    INFO(summaries[i].status.ToString());
    REQUIRE(summaries[i].status.ok());
    REQUIRE(summaries[i].snapshot_sequence == summaries[1].snapshot_sequence);
    REQUIRE(sstferry::EntriesOf(fleet.dir /
                                ("target" + std::to_string(i))) == entries);
  }
  REQUIRE(entries.size() >= kEntries + 1);
  REQUIRE(entries.at("last") == "in the WAL");
}

TEST_CASE("A pull in the queue ends at its deadline", "[transfer][share]") {
  Fleet fleet;
  ServeOptions serve = ServeSample(fleet.dir / "source");
  serve.max_transfers = 1;
  TestServer server(serve);
  std::unique_ptr<Channel> control;
  REQUIRE_OK(DialControl(server.address(), &control));
  OpenRequest request;
  request.database = "db";
  request.lanes = 1;
  request.chunk_bytes = 1u << 20;
  REQUIRE_OK(control->SendMessage(FrameType::kOpenRequest, request));
  Frame frame;
  do {
    REQUIRE_OK(control->Receive(WaitLimit::Within(milliseconds(20'000)),
                                &frame));
  } while (frame.type != FrameType::kPlanEnd);
  PullOptions options = fleet.Options(0, server.address());
  options.deadline = milliseconds(500);
  const Summary summary = RunPull(options);
  REQUIRE(EndStateOf(summary.status) == EndState::kDeadline);
}

}  // namespace
}  // namespace sstferry::test
