// Several targets that pull one snapshot at the same time.
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "sstferry/target.h"
#include "tests/support/catch.h"
#include "tests/support/fake_peer.h"
#include "tests/support/retained_support.h"
#include "tests/support/relay.h"
#include "tests/support/sample_bytes.h"
#include "tests/support/sample_database.h"
#include "tests/support/test_db.h"

namespace sstferry::test::many_targets_test {
namespace {

using std::chrono::milliseconds;

constexpr uint64_t kEntries = 12'000;

// Writes keys in a mixed order.
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
    options.chunk_bytes = 512u << 10;
    options.lanes = 2;
    options.timeouts.peer = milliseconds(10'000);
    options.timeouts.retry = milliseconds(60'000);
    return options;
  }

  const ScratchDir dir;
  OpenDb db;
  // Fewer than the targets of a test, so that pulls must wait for slots.
  uint32_t max_transfers = 4;
  std::unique_ptr<TestServer> server;
};

TEST_CASE("The latest snapshot is never older than the target's data",
          "[transfer][share]") {
  Fleet fleet;
  const auto night = [&](int target, TestServer* server, bool latest) {
    PullOptions options = fleet.Options(target, server->address());
    const bool exists = std::filesystem::exists(options.target_dir);
    options.mode = exists ? PullMode::kRefresh : PullMode::kPull;
    options.adopt = exists && !std::filesystem::exists(options.target_dir +
                                                       "/last_transfer.json");
    options.latest_snapshot = latest;
    const Summary summary = RunPull(options);
    INFO(summary.status.ToString());
    REQUIRE(summary.status.ok());
    return summary.snapshot_sequence;
  };
  TestServer* const server = fleet.server.get();
  const uint64_t first = night(0, server, true);
  REQUIRE(night(1, server, true) == first);
  fleet.db.Put("seen", "by readers");
  SECTION("the target has a newer snapshot from this server") {
    const uint64_t second = night(1, server, false);
    REQUIRE(second > first);
    REQUIRE(night(2, server, true) >= second);
    REQUIRE(night(1, server, true) >= second);
    REQUIRE(night(0, server, true) >= second);
  }
  SECTION("the target has a newer snapshot from another server") {
    ServeOptions serve = ServeSample(fleet.dir / "source");
    TestServer other(serve);
    const uint64_t second = night(1, &other, true);
    REQUIRE(second > first);
    REQUIRE(night(1, server, true) >= second);
  }
  SECTION("the target does not know its snapshot") {
    night(1, server, false);
    std::filesystem::remove(fleet.dir / "target1/last_transfer.json");
    REQUIRE(night(1, server, true) > first);
  }
  REQUIRE(sstferry::EntriesOf(fleet.dir / "target1") ==
          sstferry::EntriesOf(fleet.dir / "source"));
}

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
      // The first target is slow and loses its connections.
      PullOptions options = fleet.Options(
          i, i == 0 ? relay.address() : fleet.server->address());
      options.method = clones ? PullMethod::kClone : PullMethod::kIngest;
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

// A target that reads nothing from its lane and never closes a connection.
struct StalledTarget {
  StalledTarget(const HostPort& where, const OpenRequest& request,
                bool wants_little) {
    REQUIRE_OK(OpenAs(where, request, &control, &announced));
    REQUIRE_OK(DialLane(where, announced.opened.transfer_id, 0, &lane));
    std::vector<Part> parts = announced.parts;
    std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) {
      return a.bytes > b.bytes;
    });
    if (wants_little) {
      parts = {parts.back()};  // fits into the sockets' buffers
    }
    for (size_t i = 0; i < std::min<size_t>(3, parts.size()); ++i) {
      PartRequest part;
      part.part_id = parts[i].id;
      REQUIRE_OK(lane->SendMessage(FrameType::kPartRequest, part));
    }
  }
  std::unique_ptr<Channel> control;
  std::unique_ptr<Channel> lane;
  Announced announced;
};

TransferReport ReportOf(TestServer* server, const TransferId& id) {
  for (size_t n = 0;; ++n) {
    const TransferReport one = server->Report(n);
    if (one.transfer_id == ToHex(id)) {
      return one;
    }
  }
}

TEST_CASE("A stalled and a slow reader of a snapshot delay no other target",
          "[transfer][share][stall]") {
  constexpr uint64_t kMany = 40'000;
  Fleet fleet(kMany);
  const bool clones = GENERATE(false, true);
  const bool wants_little = GENERATE(false, true);
  CAPTURE(clones, wants_little);
  ServeOptions serve = ServeSample(fleet.dir / "source");
  serve.snapshot_ttl = std::chrono::seconds(300);
  serve.timeouts.stall = milliseconds(6'000);
  // The stalled target never pings, so only its stall can end it.
  serve.timeouts.peer = std::chrono::hours(1);
  TestServer server(serve);
  const auto options = [&](int target, const HostPort& where) {
    PullOptions pull = fleet.Options(target, where);
    pull.method = clones ? PullMethod::kClone : PullMethod::kIngest;
    return pull;
  };
  Relay relay(server.address());
  relay.SetRate(Relay::kToClient, 400'000);  // about 50 seconds for all bytes
  Summary slow_summary;
  std::atomic<bool> slow_is_done{false};
  std::thread slow([&] {
    slow_summary = RunPull(options(1, relay.address()));
    slow_is_done = true;
  });
  relay.WaitForBytes(Relay::kToClient, 100'000);
  OpenRequest request;
  request.database = "db";
  request.lanes = 1;
  request.chunk_bytes = 512u << 10;
  request.mode = clones ? TransferMode::kClone : TransferMode::kSeed;
  request.snapshot_use = SnapshotUse::kLatest;
  StalledTarget stalled(server.address(), request, wants_little);

  const Summary fast = RunPull(options(2, server.address()));
  const bool slow_was_done = slow_is_done;
  const TransferReport report =
      ReportOf(&server, stalled.announced.opened.transfer_id);
  relay.SetRate(Relay::kToClient, 0);
  slow.join();
  const rocksdb::Status told = ReceiveEnd(stalled.control.get());

  INFO(fast.status.ToString() << slow_summary.status.ToString()
                              << told.ToString());
  REQUIRE(fast.status.ok());
  REQUIRE_FALSE(slow_was_done);
  REQUIRE(EndStateOf(told) == EndState::kTooSlow);
  REQUIRE(told.ToString().find(" for 6 s") != std::string::npos);
  REQUIRE(EndStateOf(report.status) == EndState::kTooSlow);
  REQUIRE(report.kept_for.count() == 300);
  REQUIRE(slow_summary.status.ok());
  REQUIRE(slow_summary.snapshot_sequence == fast.snapshot_sequence);

  request.snapshot_use = SnapshotUse::kResume;
  request.named_transfer = stalled.announced.opened.transfer_id;
  Announced again;
  std::unique_ptr<Channel> control;
  std::unique_ptr<Channel> lane;
  REQUIRE_OK(OpenAs(server.address(), request, &control, &again));
  REQUIRE(again.opened.resumed);
  REQUIRE(again.opened.snapshot_sequence == fast.snapshot_sequence);
  REQUIRE_OK(DialLane(server.address(), request.named_transfer, 0, &lane));
  Finish totals;
  REQUIRE_OK(TakeParts(lane.get(),
                        static_cast<uint32_t>(again.parts.size()), &totals));
  REQUIRE_OK(FinishWith(control.get(), totals));
  if (!clones) {
    REQUIRE(totals.families[0].entries == kMany + 1);
  }
}

// Blocks transfers that have a slot until Open().
class PlaceGate {
 public:
  // Notes that `target` was told that no slot is free.
  void Told(int target) {
    std::lock_guard<std::mutex> lock(mu_);
    told_.insert(target);
    changed_.notify_all();
  }
  // Notes that a target has a slot, and so a snapshot. Blocks until Open().
  void Pass() {
    std::unique_lock<std::mutex> lock(mu_);
    ++held_;
    changed_.notify_all();
    changed_.wait_for(lock, kLimit, [this] { return open_; });
  }
  // Blocks until `told` targets were told to wait and `held` have a slot.
  // Returns false if that takes too long.
  bool Await(size_t told, size_t held) {
    std::unique_lock<std::mutex> lock(mu_);
    return changed_.wait_for(lock, kLimit, [&] {
      return told_.size() == told && held_ == held;
    });
  }
  void Open() {
    std::lock_guard<std::mutex> lock(mu_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  static constexpr std::chrono::seconds kLimit{60};
  std::mutex mu_;
  std::condition_variable changed_;
  std::set<int> told_;  // under mu_
  size_t held_ = 0;     // under mu_
  bool open_ = false;   // under mu_
};

TEST_CASE("Many targets with few slots all end with one snapshot",
          "[transfer][share][busy]") {
  Fleet fleet(1'000);
  constexpr int kTargets = 24;
  constexpr int kPlaces = 3;
  HandClock clock;
  ServeOptions serve = ServeSample(fleet.dir / "source");
  serve.max_transfers = kPlaces + 1;
  serve.leases.steady_seconds = clock.function();
  serve.timeouts.peer = std::chrono::hours(1);
  TestServer server(serve);
  // This reader stays connected for the whole test and never pings. It keeps
  // the snapshot alive while the clock advances beyond the time for which a
  // snapshot without readers waits for targets that were told to ask again.
  OpenRequest request;
  request.database = "db";
  request.lanes = 1;
  request.chunk_bytes = 64u << 10;
  request.snapshot_use = SnapshotUse::kLatest;
  std::unique_ptr<Channel> reader;
  Announced announced;
  REQUIRE_OK(OpenAs(server.address(), request, &reader, &announced));
  PlaceGate gate;
  std::vector<Summary> summaries(kTargets);
  const auto options = [&](int i) {
    PullOptions pull = fleet.Options(i, server.address());
    pull.chunk_bytes = 64u << 10;
    pull.log = [&gate, i](LogLevel, const std::string& line) {
      if (line.find("; asking again in ") != std::string::npos) gate.Told(i);
    };
    pull.on_transfer = [&gate](const std::string&) { gate.Pass(); };
    return pull;
  };
  std::vector<std::thread> pulls;
  for (int i = 0; i < kTargets; ++i) {
    pulls.emplace_back([&, i] { summaries[i] = RunPull(options(i)); });
  }
  // A slot is given before the snapshot is pinned. The gate shows that both
  // happened before the next write.
  const bool all_wait = gate.Await(kTargets - kPlaces, kPlaces);
  fleet.db.Put("later", "than all of them");
  clock.Advance(60);  // now the snapshot is too old for new targets
  gate.Open();
  for (std::thread& pull : pulls) {
    pull.join();
  }
  REQUIRE(all_wait);
  const auto entries = sstferry::EntriesOf(fleet.dir / "target0");
  REQUIRE(entries.size() == 1'001);
  for (int i = 0; i < kTargets; ++i) {
    CAPTURE(i);
    INFO(summaries[i].status.ToString());
    REQUIRE(summaries[i].status.ok());
    REQUIRE(summaries[i].retries == 0);  // waiting for a slot is no retry
    REQUIRE(summaries[i].snapshot_sequence ==
            announced.opened.snapshot_sequence);
    REQUIRE(sstferry::EntriesOf(fleet.dir / ("target" + std::to_string(i))) ==
            entries);
  }
  // A target that did not have to wait gets a new snapshot.
  const Summary newcomer = RunPull(options(kTargets));
  REQUIRE(newcomer.status.ok());
  REQUIRE(newcomer.snapshot_sequence > summaries[0].snapshot_sequence);
}

// A server whose only slot is taken.
struct FullServer {
  FullServer() : server(Serve(fleet)) {
    OpenRequest request;
    request.database = "db";
    request.lanes = 1;
    request.chunk_bytes = 1u << 20;
    Announced announced;
    REQUIRE_OK(OpenAs(server.address(), request, &control, &announced));
  }
  static ServeOptions Serve(const Fleet& fleet) {
    ServeOptions serve = ServeSample(fleet.dir / "source");
    serve.max_transfers = 1;
    serve.timeouts.peer = std::chrono::hours(1);  // no test here pings
    return serve;
  }
  Fleet fleet{100};
  TestServer server;
  std::unique_ptr<Channel> control;
};

TEST_CASE("A pull that gets no slot ends at its deadline, and not before",
          "[transfer][share][busy]") {
  FullServer full;
  PullOptions options = full.fleet.Options(0, full.server.address());
  options.deadline = milliseconds(2'000);
  options.timeouts.retry = milliseconds(GENERATE(0, 100));
  // Without this, a short `retry` would also limit the first handshake.
  options.timeouts.first_answer = milliseconds(60'000);
  const Summary summary = RunPull(options);
  INFO(summary.status.ToString());
  REQUIRE(EndStateOf(summary.status) == EndState::kDeadline);
  REQUIRE(summary.seconds >= 2);
}

TEST_CASE("A pull that gets no slot says how long it waits, and can be "
          "cancelled",
          "[transfer][share][busy]") {
  FullServer full;
  PullOptions options = full.fleet.Options(0, full.server.address());
  Operation* cancels = nullptr;
  Progress progress;
  options.log = [&](LogLevel, const std::string& line) {
    if (line.find("; asking again in ") != std::string::npos) {
      progress = cancels->progress();
      cancels->Cancel();
    }
  };
  const std::unique_ptr<Operation> pull = MakePull(options);
  cancels = pull.get();
  Summary summary;
  REQUIRE(EndStateOf(pull->Run(&summary)) == EndState::kCancelled);
  REQUIRE(progress.waiting_for.find("asking again in ") != std::string::npos);
}

TEST_CASE("A waiting pull takes a slot that becomes free",
          "[transfer][share][busy]") {
  FullServer full;
  PullOptions options = full.fleet.Options(0, full.server.address());
  options.log = [&](LogLevel, const std::string& line) {
    if (line.find("; asking again in ") != std::string::npos) {
      full.control->Close();
    }
  };
  const Summary summary = RunPull(options);
  INFO(summary.status.ToString());
  REQUIRE(summary.status.ok());
}

}  // namespace
}  // namespace sstferry::test::many_targets_test
