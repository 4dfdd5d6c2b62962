// Tests that a stopped server ends before any of its timeouts, with all threads
// joined and nothing left beside its databases, whatever its sessions do. Each
// test waits until they do the thing under test.
#include <atomic>
#include <future>
#include <thread>

#include "pipeline/base/rocksdb_compat.h"
#include "rocksdb/comparator.h"
#include "rocksdb/db.h"
#include "tests/support/catch.h"
#include "tests/support/fake_peer.h"
#include "tests/support/gate.h"
#include "tests/support/sample_database.h"
#include "tests/support/scratch_dir.h"

namespace sstferry::stop_serve_test {
namespace {

using rocksdb::Slice;
using rocksdb::Status;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

const WaitLimit Soon() { return WaitLimit::Within(milliseconds(60'000)); }

// Returns options with long timeouts, so that only the stop can end a wait.
ServeOptions Patient(const std::string& directory) {
  ServeOptions options = ServeSample(directory);
  options.handshake_timeout = milliseconds(120'000);
  options.request_timeout = milliseconds(120'000);
  options.timeouts.peer = milliseconds(120'000);
  options.timeouts.stall = milliseconds(120'000);
  return options;
}

// Calls `hook` before each comparison while it is armed.
class HookedComparator : public rocksdb::Comparator {
 public:
  const char* Name() const override { return "sstferry.test.Hooked"; }
  int Compare(const Slice& a, const Slice& b) const override {
    if (armed) {
      hook();
    }
    return a.compare(b);
  }
  void FindShortestSeparator(std::string*, const Slice&) const override {}
  void FindShortSuccessor(std::string*) const override {}

  std::function<void()> hook;
  std::atomic<bool> armed{false};
};

// Makes two files that overlap, so that reading them calls the comparator; or
// only a WAL.
void MakeDatabase(const std::string& path, const rocksdb::Comparator* order,
                  bool in_wal_only) {
  rocksdb::Options options;
  options.create_if_missing = true;
  options.comparator = order;
  options.disable_auto_compactions = true;
  std::unique_ptr<rocksdb::DB> db;
  REQUIRE_OK(rocksdb::DB::Open(options, path, IntoDb(&db)));
  for (int i = 0; i < 8000; ++i) {
    REQUIRE_OK(db->Put({}, std::to_string(i * 7919 % 8000),
                       std::string(500, 'v')));
    if (!in_wal_only && i % 4000 == 3999) {
      REQUIRE_OK(db->Flush({}));
    }
  }
  REQUIRE_OK(db->Close());
}

struct Bench {
  explicit Bench(const ServeOptions& options)
      : server(std::make_unique<TestServer>(options)) {}
  // Requires that the server stops in time. Calls `then` during the stop.
  void RequireStops(const std::function<void()>& then = nullptr) {
    const auto start = steady_clock::now();
    std::future<void> stopped =
        std::async(std::launch::async, [this] { server->Stop(); });
    if (then) {
      then();
    }
    stopped.get();
    REQUIRE(steady_clock::now() - start < milliseconds(40'000));
  }
  void Open() {
    REQUIRE_OK(OpenSample(server->address(), &opened, &control, &parts));
    REQUIRE_OK(DialLane(server->address(), opened.transfer_id, 0, &lane));
  }
  void AskForAll() {
    for (uint32_t id = 0; id < parts; ++id) {
      PartRequest request;
      request.part_id = id;
      REQUIRE_OK(lane->SendMessage(FrameType::kPartRequest, request));
    }
  }
  void RequireCancelledOnBothEnds() {
    const Status told = ReceiveEnd(control.get());
    INFO(told.ToString());
    REQUIRE(EndStateOf(told) == EndState::kCancelled);
    REQUIRE(MessageOf(told).find("shutting down") != std::string::npos);
    REQUIRE(EndStateOf(server->Report(0).status) == EndState::kCancelled);
  }
  std::unique_ptr<TestServer> server;
  std::unique_ptr<Channel> control;
  std::unique_ptr<Channel> lane;
  Opened opened;
  uint32_t parts = 0;
};

TEST_CASE("A server without clients, or only with silent ones, can be stopped",
          "[bad_input][stop]") {
  ScratchDir dir;
  MakeSampleDatabase(dir / "source");
  Bench bench(Patient(dir / "source"));
  std::unique_ptr<Connection> half_open;
  SECTION("nobody") {}
  SECTION("one that sends nothing, and one that requests nothing") {
    REQUIRE_OK(MakeTcpDialer(bench.server->address())
                   ->Dial(Soon(), &half_open));
    // The server accepts this connection after the other one.
    REQUIRE_OK(DialControl(bench.server->address(), &bench.control));
  }
  SECTION("a lane of no transfer") {
    REQUIRE_OK(
        DialLane(bench.server->address(), TransferId{}, 0, &bench.lane));
  }
  SECTION("one that was told why it failed, and stays connected") {
    REQUIRE_OK(DialControl(bench.server->address(), &bench.control));
    REQUIRE_OK(bench.control->SendMessage(FrameType::kFinish, Finish()));
    REQUIRE(EndStateOf(ReceiveEnd(bench.control.get())) ==
            EndState::kCorrupt);
  }
  bench.RequireStops();
}

TEST_CASE("A server that replays a WAL for a snapshot can be stopped",
          "[bad_input][stop]") {
  ScratchDir dir;
  HookedComparator order;
  MakeDatabase(dir / "source", &order, /*in_wal_only=*/true);
  std::promise<void> replays;
  std::atomic<bool> seen{false};
  // The replay would take minutes.
  order.hook = [&] {
    if (!seen.exchange(true)) {
      replays.set_value();
    }
    std::this_thread::sleep_for(milliseconds(1));  // the slowness itself
  };
  order.armed = true;
  ServeOptions options = Patient(dir / "source");
  options.registry.comparators.push_back(&order);
  Bench bench(options);
  REQUIRE_OK(DialControl(bench.server->address(), &bench.control));
  OpenRequest request;
  request.database = "db";
  request.chunk_bytes = 256u << 10;
  REQUIRE_OK(
      bench.control->SendMessage(FrameType::kOpenRequest, request));
  REQUIRE(replays.get_future().wait_for(std::chrono::seconds(60)) ==
          std::future_status::ready);
  bench.RequireStops();
  bench.RequireCancelledOnBothEnds();
  REQUIRE(NamesOf(dir.path()) == std::vector<std::string>{"source"});
}

TEST_CASE("A server that sends to a target which is idle, reads slowly or "
          "reads nothing can be stopped",
          "[bad_input][stop]") {
  ScratchDir dir;
  SampleShape shape;
  shape.entries = 24'000;  // more than socket buffers can hold
  MakeSampleDatabase(dir / "source", shape);
  ServeOptions options = Patient(dir / "source");
  SECTION("a target that requests nothing") {
    Bench bench(options);
    bench.Open();
    bench.RequireStops();
    bench.RequireCancelledOnBothEnds();
  }
  SECTION("a low rate limit") {
    options.max_rate_bytes_per_sec = 50'000;
    Bench bench(options);
    bench.Open();
    bench.AskForAll();
    Frame frame;
    do {
      REQUIRE_OK(bench.lane->Receive(Soon(), &frame));
    } while (frame.type != FrameType::kChunkData);
    bench.RequireStops();
    bench.RequireCancelledOnBothEnds();
  }
  SECTION("a target that reads nothing more") {
    Bench bench(options);
    bench.Open();
    bench.AskForAll();
    Stats stats;
    uint64_t before = 0;
    do {
      before = stats.sst_bytes;
      Frame frame;
      do {
        REQUIRE_OK(bench.control->Receive(Soon(), &frame));
      } while (frame.type != FrameType::kStats);
      REQUIRE_OK(Decode(frame.payload, &stats));
    } while (stats.sst_bytes == 0 || stats.sst_bytes != before);
    bench.RequireStops();
    bench.RequireCancelledOnBothEnds();
  }
  REQUIRE(NamesOf(dir.path()) == std::vector<std::string>{"source"});
}

TEST_CASE("A server that reads for a chunk, a digest or a list of entries can "
          "be stopped",
          "[bad_input][stop]") {
  ScratchDir dir;
  HookedComparator order;
  MakeDatabase(dir / "source", &order, /*in_wal_only=*/false);
  Gate gate;
  order.hook = [&gate] { gate.Pass(); };
  ServeOptions options = Patient(dir / "source");
  options.registry.comparators.push_back(&order);
  const FrameType ask =
      GENERATE(FrameType::kPartRequest, FrameType::kDigestRequest,
               FrameType::kEntriesRequest);
  INFO(FrameTypeName(ask));
  Bench bench(options);
  bench.Open();
  order.armed = true;
  Status asked;
  if (ask == FrameType::kPartRequest) {
    asked = bench.lane->SendMessage(ask, PartRequest());
  } else if (ask == FrameType::kDigestRequest) {
    asked = bench.lane->SendMessage(ask, DigestRequest());
  } else {
    asked = bench.lane->SendMessage(ask, EntriesRequest());
  }
  REQUIRE_OK(asked);
  REQUIRE(gate.AwaitReached());
  bench.RequireStops([&] {
    bench.RequireCancelledOnBothEnds();  // told before the lane ends
    gate.Open();
  });
}

}  // namespace
}  // namespace sstferry::stop_serve_test
