// Several targets of one source: those that share a snapshot, and those that
// wait for their turn.
#include "rocksdb/db.h"

#include "tests/pipeline/source/held_support.h"
#include "tests/support/catch.h"
#include "tests/support/sample_database.h"

namespace sstferry {
namespace {

using rocksdb::Status;

struct SharingBench : HeldBench {
  // Changes the source, so that another point in time is seen.
  void Write(const std::string& key) {
    rocksdb::DB* opened = nullptr;
    std::vector<std::string> names;
    REQUIRE_OK(rocksdb::DB::ListColumnFamilies(rocksdb::DBOptions(),
                                               dir / "source/db", &names));
    std::vector<rocksdb::ColumnFamilyDescriptor> families;
    for (const std::string& name : names) {
      families.emplace_back(name, rocksdb::ColumnFamilyOptions());
    }
    std::vector<rocksdb::ColumnFamilyHandle*> handles;
    REQUIRE_OK(rocksdb::DB::Open(rocksdb::DBOptions(), dir / "source/db",
                                 families, &handles, &opened));
    REQUIRE_OK(opened->Put(rocksdb::WriteOptions(), key, key));
    for (rocksdb::ColumnFamilyHandle* handle : handles) {
      REQUIRE_OK(opened->DestroyColumnFamilyHandle(handle));
    }
    delete opened;
  }
};

// A target that asked and got its plan.
struct Reader {
  Reader(const HostPort& where, const OpenRequest& request) {
    REQUIRE_OK(OpenAs(where, request, &control, &announced));
  }
  TransferId id() const { return announced.opened.transfer_id; }
  uint64_t sequence() const { return announced.opened.snapshot_sequence; }
  std::unique_ptr<Channel> control;
  Announced announced;
};

OpenRequest Latest() {
  OpenRequest request = SampleRequest();
  request.snapshot_use = SnapshotUse::kLatest;
  return request;
}

OpenRequest SnapshotOf(const TransferId& id) {
  OpenRequest request = SampleRequest();
  request.snapshot_use = SnapshotUse::kShare;
  request.held_transfer = id;
  return request;
}

TEST_CASE("Targets that ask for the latest snapshot get the same one",
          "[held][share]") {
  SharingBench bench;
  TestServer server(bench.Options());
  const Reader first(server.address(), Latest());
  bench.Write("later");
  bench.clock.Advance(59);
  const Reader second(server.address(), Latest());
  const Reader own(server.address(), SampleRequest());
  REQUIRE(second.sequence() == first.sequence());
  REQUIRE(second.id() != first.id());
  REQUIRE(own.sequence() > first.sequence());
  REQUIRE(second.announced.ranges == first.announced.ranges);
  bench.clock.Advance(2);
  const Reader late(server.address(), Latest());
  REQUIRE(late.sequence() == own.sequence());
}

TEST_CASE("A source that is told to share nothing takes a snapshot for each",
          "[held][share]") {
  SharingBench bench;
  ServeOptions options = bench.Options();
  options.share_snapshots = std::chrono::seconds(0);
  TestServer server(options);
  const Reader first(server.address(), Latest());
  bench.Write("later");
  const Reader second(server.address(), Latest());
  REQUIRE(second.sequence() > first.sequence());
}

TEST_CASE("A target joins the snapshot of a transfer that it names",
          "[held][share]") {
  SharingBench bench;
  TestServer server(bench.Options());
  auto first = std::make_unique<Reader>(server.address(), SampleRequest());
  bench.Write("later");
  const Reader second(server.address(), SnapshotOf(first->id()));
  REQUIRE(second.sequence() == first->sequence());
  // It needs the other's transfer no longer.
  Finish totals;
  SendEndState(first->control.get(), EndState::kRefused);
  REQUIRE(EndStateOf(server.Report(0).status) == EndState::kRefused);
  std::unique_ptr<Channel> lane;
  REQUIRE_OK(DialLane(server.address(), second.id(), 0, &lane));
  RangeEnd end;
  REQUIRE_OK(TakeRange(lane.get(), RangeRequest(), &end, nullptr));
  REQUIRE(end.totals.entries > 0);
  OpenRequest other = SnapshotOf(second.id());
  other.families = {"default"};
  std::unique_ptr<Channel> control;
  Announced announced;
  const Status refused =
      OpenAs(server.address(), other, &control, &announced);
  REQUIRE(EndStateOf(refused) == EndState::kRefused);
}

TEST_CASE("A shared snapshot is shown once with all its readers",
          "[held][share][status]") {
  SharingBench bench;
  TestServer server(bench.Options());
  const Reader first(server.address(), Latest());
  const Reader second(server.address(), Latest());
  std::unique_ptr<Channel> control;
  REQUIRE_OK(DialControl(server.address(), &control));
  REQUIRE_OK(control->SendMessage(FrameType::kStatusRequest,
                                  StatusRequest{"db"}));
  Frame frame;
  REQUIRE_OK(control->Receive(WaitLimit::Within(std::chrono::seconds(20)),
                              &frame));
  StatusReply reply;
  REQUIRE_OK(reply.DecodeFrom(frame.payload));
  REQUIRE(reply.snapshots.size() == 1);
  REQUIRE(reply.snapshots[0].readers == 2);
}

TEST_CASE("Each reader of a shared snapshot resumes after its source restarted",
          "[held][share][resume]") {
  SharingBench bench;
  auto server = std::make_unique<TestServer>(bench.Options());
  auto first = std::make_unique<Reader>(server->address(), Latest());
  auto second = std::make_unique<Reader>(server->address(), Latest());
  auto third = std::make_unique<Reader>(server->address(), Latest());
  // The first one, whose directory all read, ends.
  SendEndState(first->control.get(), EndState::kRefused);
  server->Report(0);
  server.reset();
  REQUIRE(SnapshotsIn(bench.parent()).size() == 2);
  bench.Write("later");
  server = std::make_unique<TestServer>(bench.Options());
  for (const auto* reader : {&second, &third}) {
    const Reader again(server->address(), ResumeOf((*reader)->id()));
    REQUIRE(again.sequence() == (*reader)->sequence());
    REQUIRE(again.announced.opened.resumed);
    SendEndState(again.control.get(), EndState::kRefused);
  }
  REQUIRE(WaitForSnapshots(bench.parent(), 0));
}

TEST_CASE("A window that ends lets its snapshot go", "[held][share]") {
  SharingBench bench;
  TestServer server(bench.Options());
  {
    Reader only(server.address(), Latest());
    SendEndState(only.control.get(), EndState::kRefused);
    server.Report(0);
  }
  REQUIRE(SnapshotsIn(bench.parent()).size() == 1);
  bench.clock.Advance(61);
  REQUIRE(WaitForSnapshots(bench.parent(), 0));
}

TEST_CASE("Targets above the limit wait in order and begin by themselves",
          "[held][share][queue]") {
  SharingBench bench;
  ServeOptions options = bench.Options();
  options.max_transfers = 1;
  TestServer server(options);
  auto first = std::make_unique<Reader>(server.address(), SampleRequest());
  std::unique_ptr<Channel> waiting[2];
  for (uint32_t i = 0; i < 2; ++i) {
    REQUIRE_OK(DialControl(server.address(), &waiting[i]));
    REQUIRE_OK(waiting[i]->SendMessage(FrameType::kOpenRequest,
                                       SampleRequest()));
    Frame frame;
    Queued queued;
    const WaitLimit limit = WaitLimit::Within(std::chrono::seconds(20));
    REQUIRE_OK(waiting[i]->Receive(limit, &frame));
    REQUIRE_OK(waiting[i]->ExpectType(frame, FrameType::kQueued));
    REQUIRE_OK(queued.DecodeFrom(frame.payload));
    REQUIRE(queued.ahead == i + 1);
  }
  const auto next_but_stats = [&](uint32_t i, Frame* frame) {
    do {
      REQUIRE_OK(waiting[i]->Receive(
          WaitLimit::Within(std::chrono::seconds(20)), frame));
    } while (frame->type == FrameType::kStats ||
             frame->type == FrameType::kPing);
  };
  // One that leaves the queue makes those behind it move up.
  waiting[0]->Close();
  Frame frame;
  next_but_stats(1, &frame);
  REQUIRE(frame.type == FrameType::kQueued);
  Queued queued;
  REQUIRE_OK(queued.DecodeFrom(frame.payload));
  REQUIRE(queued.ahead == 1);
  SendEndState(first->control.get(), EndState::kRefused);
  next_but_stats(1, &frame);
  REQUIRE(frame.type == FrameType::kOpened);
}

}  // namespace
}  // namespace sstferry
