// Several targets of one source: some share a snapshot, some get no slot.
#include <atomic>
#include <ctime>

#include "rocksdb/db.h"

#include "format/limits.h"
#include "pipeline/base/rocksdb_compat.h"
#include "pipeline/serve/shared_snapshot.h"
#include "tests/support/catch.h"
#include "tests/support/retained_support.h"
#include "tests/support/sample_database.h"

namespace sstferry::shared_snapshot_test {
namespace {

using rocksdb::Status;

struct SharingBench : RetainedBench {
  // Changes the source, so that a later snapshot differs.
  void Write(const std::string& key) {
    std::unique_ptr<rocksdb::DB> opened;
    std::vector<std::string> names;
    REQUIRE_OK(rocksdb::DB::ListColumnFamilies(rocksdb::DBOptions(),
                                               dir / "source/db", &names));
    std::vector<rocksdb::ColumnFamilyDescriptor> families;
    for (const std::string& name : names) {
      families.emplace_back(name, rocksdb::ColumnFamilyOptions());
    }
    std::vector<rocksdb::ColumnFamilyHandle*> handles;
    REQUIRE_OK(rocksdb::DB::Open(rocksdb::DBOptions(), dir / "source/db",
                                 families, &handles, IntoDb(&opened)));
    REQUIRE_OK(opened->Put(rocksdb::WriteOptions(), key, key));
    for (rocksdb::ColumnFamilyHandle* handle : handles) {
      REQUIRE_OK(opened->DestroyColumnFamilyHandle(handle));
    }
  }
};

// A target that has received its plan.
struct Reader {
  Reader(const HostPort& where, const OpenRequest& request) {
    REQUIRE_OK(OpenAs(where, request, &control, &announced));
  }
  TransferId id() const { return announced.opened.transfer_id; }
  uint64_t sequence() const { return announced.opened.snapshot_sequence; }
  std::unique_ptr<Channel> control;
  Announced announced;
};

// Requires that the request gets BUSY, because no slot is free.
void RequireBusy(const HostPort& where, const OpenRequest& request) {
  std::unique_ptr<Channel> control;
  Announced announced;
  const Status status = OpenAs(where, request, &control, &announced);
  INFO(status.ToString());
  REQUIRE(EndStateOf(status) == EndState::kBusy);
  REQUIRE(announced.busy.has_value());  // its decoder has checked the bounds
}

OpenRequest Latest() {
  OpenRequest request = SampleRequest();
  request.snapshot_use = SnapshotUse::kLatest;
  return request;
}

OpenRequest SnapshotOf(const TransferId& id) {
  OpenRequest request = SampleRequest();
  request.snapshot_use = SnapshotUse::kShare;
  request.named_transfer = id;
  return request;
}

TEST_CASE("Targets that request the latest snapshot get the same one",
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
  REQUIRE(second.announced.parts == first.announced.parts);
  bench.clock.Advance(2);
  const Reader late(server.address(), Latest());
  REQUIRE(late.sequence() == own.sequence());
}

// Receives all chunks of a plan over one lane.
std::vector<std::string> ChunksOf(const TestServer& server,
                                  const Reader& reader) {
  std::unique_ptr<Channel> lane;
  REQUIRE_OK(DialLane(server.address(), reader.id(), 0, &lane));
  Finish totals;
  std::vector<std::string> chunks;
  REQUIRE_OK(TakeParts(lane.get(),
                       static_cast<uint32_t>(reader.announced.parts.size()),
                       &totals, &chunks));
  return chunks;
}

TEST_CASE("For four targets in four directories, chunks are built once",
          "[held][share]") {
  SharingBench bench;
  TestServer server(bench.Options());
  std::vector<std::unique_ptr<Reader>> readers;
  for (int i = 0; i < 4; ++i) {
    OpenRequest request = Latest();
    request.target = "host" + std::to_string(i) + ":/srv/app";
    request.max_rate_bytes_per_sec = static_cast<uint64_t>(i) << 30;
    request.full_rate = i % 2 == 0;
    readers.push_back(std::make_unique<Reader>(server.address(), request));
  }
  const std::vector<std::string> first = ChunksOf(server, *readers[0]);
  REQUIRE_FALSE(first.empty());
  for (int i = 1; i < 4; ++i) {
    REQUIRE((ChunksOf(server, *readers[i]) == first));
  }
  REQUIRE(server.state().chunks_built == first.size());
  REQUIRE(server.state().chunks_from_store == 4 * first.size());
}

TEST_CASE("A single target of the latest snapshot spools nothing",
          "[held][share]") {
  SharingBench bench;
  TestServer server(bench.Options());
  const Reader reader(server.address(), Latest());
  const std::vector<std::string> chunks = ChunksOf(server, reader);
  REQUIRE_FALSE(chunks.empty());
  REQUIRE(server.state().chunks_built == chunks.size());
  REQUIRE(server.state().chunks_from_store == 0);
}

TEST_CASE("A plan is freed with the last target that has it", "[held][share]") {
  SharingBench bench;
  const ServeOptions serve = bench.Options();
  ServedDatabase database;
  database.directory = bench.parent() + "/db";
  SharedSnapshot shared(database, serve, SampleRequest());
  shared.Join();
  REQUIRE_OK(shared.Take());
  int made = 0;
  const auto make = [&made](TransferPlan*) {
    ++made;
    return Status::OK();
  };
  const auto budget = std::make_shared<SpoolBudget>(1u << 20, 10);
  std::shared_ptr<const SharedPlan> first;
  std::shared_ptr<const SharedPlan> second;
  REQUIRE_OK(shared.Plan("key", make, 1000, budget, &first));
  REQUIRE_OK(shared.Plan("key", make, 1000, budget, &second));
  REQUIRE(made == 1);
  REQUIRE(second == first);
  const std::weak_ptr<const SharedPlan> left = first;
  first.reset();
  second.reset();
  REQUIRE(left.expired());
  REQUIRE_OK(shared.Plan("key", make, 1000, budget, &first));
  REQUIRE(made == 2);
}

TEST_CASE("A source that may not share takes a snapshot for each target",
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
  // The second transfer continues after the first has ended.
  Finish totals;
  SendEndState(first->control.get(), EndState::kRefused);
  REQUIRE(EndStateOf(server.Report(0).status) == EndState::kRefused);
  std::unique_ptr<Channel> lane;
  REQUIRE_OK(DialLane(server.address(), second.id(), 0, &lane));
  PartEnd end;
  REQUIRE_OK(TakePart(lane.get(), PartRequest(), &end, nullptr));
  REQUIRE(end.totals.entries > 0);
  OpenRequest other = SnapshotOf(second.id());
  other.families = {"default"};
  std::unique_ptr<Channel> control;
  Announced announced;
  const Status refused =
      OpenAs(server.address(), other, &control, &announced);
  REQUIRE(EndStateOf(refused) == EndState::kRefused);
}

TEST_CASE("The status shows a shared snapshot once, with all its readers",
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
  REQUIRE_OK(control->Receive(WaitLimit::Within(std::chrono::seconds(60)),
                              &frame));
  StatusReply reply;
  REQUIRE_OK(Decode(frame.payload, &reply));
  REQUIRE(reply.snapshots.size() == 1);
  REQUIRE(reply.snapshots[0].readers == 2);
}

TEST_CASE("Each reader of a shared snapshot resumes after its source restarts",
          "[held][share][resume]") {
  SharingBench bench;
  auto server = std::make_unique<TestServer>(bench.Options());
  auto first = std::make_unique<Reader>(server->address(), Latest());
  auto second = std::make_unique<Reader>(server->address(), Latest());
  auto third = std::make_unique<Reader>(server->address(), Latest());
  // The first reader, whose directory all read, ends.
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

TEST_CASE("A snapshot is released when the time to share it ends",
          "[held][share]") {
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

TEST_CASE("A target above the limit is told when to ask again",
          "[held][share][busy]") {
  SharingBench bench;
  ServeOptions options = bench.Options();
  options.max_transfers = 1;
  TestServer server(options);
  const Reader first(server.address(), SampleRequest());
  RequireBusy(server.address(), SampleRequest());
  RequireBusy(server.address(), SampleRequest());
  SendEndState(first.control.get(), EndState::kRefused);
  // The first report is of the first transfer: requests that got BUSY were not
  // transfers.
  REQUIRE(server.Report(0).transfer_id == ToHex(first.id()));
  const Reader next(server.address(), SampleRequest());
  REQUIRE(next.sequence() == first.sequence());
}

TEST_CASE("A target that lost its slot while it was disconnected resumes later",
          "[held][share][busy][resume]") {
  SharingBench bench;
  // A new snapshot checks the leases next to it with the system's clock.
  bench.clock.Set(static_cast<uint64_t>(std::time(nullptr)));
  // The other target may read the same snapshot, which then cannot be adopted.
  const bool shares = GENERATE(false, true);
  CAPTURE(shares);
  ServeOptions options = bench.Options();
  options.max_transfers = 1;
  options.timeouts.peer = std::chrono::minutes(10);  // readers send no pings
  TestServer server(options);
  Reader cut(server.address(), Latest());
  bench.Write("later");
  const OpenRequest request = shares ? Latest() : SampleRequest();
  RequireBusy(server.address(), request);
  cut.control->Close();
  server.Report(0);
  const Reader other(server.address(), request);
  REQUIRE((other.sequence() == cut.sequence()) == shares);
  RequireBusy(server.address(), ResumeOf(cut.id()));
  SendEndState(other.control.get(), EndState::kRefused);
  server.Report(1);
  const Reader again(server.address(), ResumeOf(cut.id()));
  REQUIRE(again.sequence() == cut.sequence());
  REQUIRE(again.announced.opened.resumed);
}

TEST_CASE("A lease does not expire while its target asks for a slot",
          "[held][share][busy][resume]") {
  SharingBench bench;
  // A new snapshot checks the leases next to it with the system's clock.
  bench.clock.Set(static_cast<uint64_t>(std::time(nullptr)));
  ServeOptions options = bench.Options();
  options.max_transfers = 1;
  options.timeouts.peer = std::chrono::minutes(10);     // readers send no pings
  options.timeouts.stall = std::chrono::seconds(1000);  // or receives a byte
  auto server = std::make_unique<TestServer>(options);
  auto lost = std::make_unique<Reader>(server->address(), SampleRequest());
  server.reset();
  bench.Write("later");
  server = std::make_unique<TestServer>(options);
  auto first = std::make_unique<Reader>(server->address(), SampleRequest());
  for (int i = 0; i < 3; ++i) {
    RequireBusy(server->address(), ResumeOf(lost->id()));
    bench.clock.Advance(99);  // the lease is 100 seconds
  }
  SECTION("the target resumes") {
    SendEndState(first->control.get(), EndState::kRefused);
    server->Report(0);
  }
  SECTION("the target resumes after another restart") {
    server.reset();
    server = std::make_unique<TestServer>(options);
  }
  const Reader again(server->address(), ResumeOf(lost->id()));
  REQUIRE(again.sequence() == lost->sequence());
  REQUIRE(again.announced.opened.resumed);
}

TEST_CASE("A target that waited gets the snapshot that was recent when it "
          "first asked",
          "[held][share][busy]") {
  SharingBench bench;
  ServeOptions options = bench.Options();
  options.max_transfers = 1;
  options.timeouts.peer = std::chrono::minutes(10);  // readers send no pings
  TestServer server(options);
  const Reader first(server.address(), Latest());
  RequireBusy(server.address(), Latest());
  bench.Write("later");
  bench.clock.Advance(100);  // the snapshot is recent for 60 seconds
  OpenRequest waited = Latest();
  waited.waited_seconds = 100;
  RequireBusy(server.address(), waited);
  SendEndState(first.control.get(), EndState::kRefused);
  server.Report(0);
  SECTION("although it had no reader meanwhile") {
    bench.clock.Advance(5);
    waited.waited_seconds = 105;
    const Reader late(server.address(), waited);
    REQUIRE(late.sequence() == first.sequence());
  }
  SECTION("but other targets do not get it") {
    const Reader newcomer(server.address(), Latest());
    REQUIRE(newcomer.sequence() > first.sequence());
  }
  SECTION("it is not retained for a target that does not return") {
    bench.clock.Advance(71);
    REQUIRE(WaitForSnapshots(bench.parent(), 0));
  }
}

TEST_CASE("A pull of the latest snapshot releases the one that it drops",
          "[held][share][release]") {
  SharingBench bench;
  TestServer server(bench.Options());
  Reader dropped(server.address(), SampleRequest());
  dropped.control->Close();
  server.Report(0);
  REQUIRE(SnapshotsIn(bench.parent()).size() == 1);
  bench.Write("later");
  bench.clock.Advance(61);
  OpenRequest request = Latest();
  request.named_transfer = dropped.id();
  const Reader reader(server.address(), request);
  REQUIRE(reader.sequence() > dropped.sequence());
  REQUIRE_FALSE(reader.announced.opened.resumed);
  REQUIRE(reader.announced.opened.notes.back().ends_with(" was released"));
  REQUIRE(WaitForSnapshots(bench.parent(), 1));
  // Other targets share the new snapshot as usual.
  const Reader other(server.address(), Latest());
  REQUIRE(other.sequence() == reader.sequence());
}

TEST_CASE("Low disk space ends all readers of a shared snapshot at once",
          "[held][share][lease]") {
  SharingBench bench;
  std::atomic<double> free{50};
  ServeOptions options = bench.Options();
  options.leases.free_percent = [&free](const std::string&) {
    return free.exchange(50);  // each check that finds too little releases one
  };
  TestServer server(options);
  const Reader readers[] = {Reader(server.address(), Latest()),
                            Reader(server.address(), Latest()),
                            Reader(server.address(), Latest())};
  SECTION("connected ones") {
    free = 4.9;
    for (const Reader& reader : readers) {
      REQUIRE(EndStateOf(ReceiveEnd(reader.control.get())) ==
              EndState::kSnapshotGone);
    }
  }
  SECTION("disconnected ones") {
    for (size_t i = 0; i < 3; ++i) {
      readers[i].control->Close();
      server.Report(i);
    }
    free = 4.9;
    for (size_t i = 3; i < 6; ++i) {
      REQUIRE(EndStateOf(server.Report(i).status) == EndState::kSnapshotGone);
    }
  }
  SECTION("connected ones, but not a disconnected one") {
    readers[0].control->Close();
    server.Report(0);
    free = 4.9;
    REQUIRE(EndStateOf(ReceiveEnd(readers[1].control.get())) ==
            EndState::kSnapshotGone);
    REQUIRE(EndStateOf(ReceiveEnd(readers[2].control.get())) ==
            EndState::kSnapshotGone);
  }
  REQUIRE(WaitForSnapshots(bench.parent(), 0));
}

}  // namespace
}  // namespace sstferry::shared_snapshot_test
