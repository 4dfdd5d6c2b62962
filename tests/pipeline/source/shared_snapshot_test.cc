// Several targets of one source: those that share a snapshot, and those that
// wait for their turn.
#include <atomic>
#include <ctime>

#include "pipeline/source/directory/lease_file.h"
#include "rocksdb/db.h"

#include "tests/support/held_support.h"
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

// A target that asked and perhaps waits for its turn.
struct Waiter {
  Waiter(const HostPort& where, const OpenRequest& request) {
    REQUIRE_OK(DialControl(where, &control));
    REQUIRE_OK(control->SendMessage(FrameType::kOpenRequest, request));
  }
  // The next frame that is no sign of life.
  FrameType Next(Frame* frame) {
    do {
      REQUIRE_OK(control->Receive(WaitLimit::Within(std::chrono::seconds(20)),
                                  frame));
    } while (frame->type == FrameType::kStats ||
             frame->type == FrameType::kPing);
    return frame->type;
  }
  // How many it waits for, itself included.
  uint32_t AwaitQueued() {
    Frame frame;
    Queued queued;
    REQUIRE(Next(&frame) == FrameType::kQueued);
    REQUIRE_OK(queued.DecodeFrom(frame.payload));
    return queued.ahead;
  }
  // The sequence that it gets.
  uint64_t AwaitOpened() {
    Frame frame;
    while (Next(&frame) == FrameType::kQueued) {
    }
    REQUIRE_OK(control->ExpectType(frame, FrameType::kOpened));
    REQUIRE_OK(opened.DecodeFrom(frame.payload));
    return opened.snapshot_sequence;
  }
  std::unique_ptr<Channel> control;
  Opened opened;
};

// True once each lease beside the source was written at this time.
bool LeaseIsRenewed(const SharingBench& bench) {
  const auto until = Clock::now() + std::chrono::seconds(20);
  bool renewed = false;
  while (!renewed && Clock::now() < until) {
    renewed = true;
    for (const std::string& name : SnapshotsIn(bench.parent())) {
      Lease lease;
      renewed = renewed &&
                (ReadLease(bench.parent() + "/" + name, &lease) !=
                     LeaseState::kGood ||
                 lease.renewed_seconds == bench.clock.now());
    }
  }
  return renewed;
}

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
  Waiter next(server.address(), SampleRequest());
  REQUIRE(next.AwaitQueued() == 1);
  Waiter last(server.address(), SampleRequest());
  REQUIRE(last.AwaitQueued() == 2);
  // One that leaves the queue makes those behind it move up.
  next.control->Close();
  REQUIRE(last.AwaitQueued() == 1);
  SendEndState(first->control.get(), EndState::kRefused);
  REQUIRE(last.AwaitOpened() > 0);
}

TEST_CASE("A target that lost its place while it was away resumes in its turn",
          "[held][share][queue][resume]") {
  SharingBench bench;
  // What a new snapshot finds beside it is looked at by the system's clock.
  bench.clock.Set(static_cast<uint64_t>(std::time(nullptr)));
  // The other may read the same snapshot: nobody else can adopt that one then.
  const bool shares = GENERATE(false, true);
  CAPTURE(shares);
  ServeOptions options = bench.Options();
  options.max_transfers = 1;
  options.peer_timeout = std::chrono::seconds(120);  // nobody pings here
  TestServer server(options);
  Reader cut(server.address(), Latest());
  bench.Write("later");
  Waiter other(server.address(), shares ? Latest() : SampleRequest());
  REQUIRE(other.AwaitQueued() == 1);
  cut.control->Close();
  const uint64_t sequence = other.AwaitOpened();
  REQUIRE((sequence == cut.sequence()) == shares);
  Waiter again(server.address(), ResumeOf(cut.id()));
  REQUIRE(again.AwaitQueued() == 1);
  SendEndState(other.control.get(), EndState::kRefused);
  REQUIRE(again.AwaitOpened() == cut.sequence());
  REQUIRE(again.opened.resumed);
}

TEST_CASE("A target that resumes from disk waits in the queue like others",
          "[held][share][queue][resume]") {
  SharingBench bench;
  // What a new snapshot finds beside it is looked at by the system's clock.
  bench.clock.Set(static_cast<uint64_t>(std::time(nullptr)));
  ServeOptions options = bench.Options();
  options.max_transfers = 1;
  options.peer_timeout = std::chrono::seconds(120);  // nobody pings here
  auto server = std::make_unique<TestServer>(options);
  auto lost = std::make_unique<Reader>(server->address(), SampleRequest());
  server.reset();
  bench.Write("later");
  server = std::make_unique<TestServer>(options);
  auto first = std::make_unique<Reader>(server->address(), SampleRequest());
  Waiter before(server->address(), SampleRequest());
  REQUIRE(before.AwaitQueued() == 1);
  Waiter resumes(server->address(), ResumeOf(lost->id()));
  REQUIRE(resumes.AwaitQueued() == 2);
  // Its lease does not run out meanwhile.
  bench.clock.Advance(99);
  REQUIRE(LeaseIsRenewed(bench));
  SECTION("and gets its turn") {
    SendEndState(first->control.get(), EndState::kRefused);
    REQUIRE(before.AwaitOpened() > lost->sequence());
    SendEndState(before.control.get(), EndState::kRefused);
    REQUIRE(resumes.AwaitOpened() == lost->sequence());
    REQUIRE(resumes.opened.resumed);
  }
  SECTION("and keeps it if it connects again") {
    Waiter later(server->address(), SampleRequest());
    REQUIRE(later.AwaitQueued() == 3);
    Waiter again(server->address(), ResumeOf(lost->id()));
    REQUIRE(again.AwaitQueued() == 2);
    REQUIRE(EndStateOf(ReceiveEnd(resumes.control.get())) ==
            EndState::kDeadPeer);
    SendEndState(first->control.get(), EndState::kRefused);
    REQUIRE(before.AwaitOpened() > lost->sequence());
    SendEndState(before.control.get(), EndState::kRefused);
    REQUIRE(again.AwaitOpened() == lost->sequence());
  }
  SECTION("and finds its snapshot still there if it leaves the queue") {
    resumes.control->Close();
    REQUIRE(server->Report(0).kept_for.count() == 100);
    SendEndState(first->control.get(), EndState::kRefused);
    REQUIRE(before.AwaitOpened() > lost->sequence());
    SendEndState(before.control.get(), EndState::kRefused);
    const Reader again(server->address(), ResumeOf(lost->id()));
    REQUIRE(again.sequence() == lost->sequence());
  }
  SECTION("and finds it after another restart") {
    server.reset();
    server = std::make_unique<TestServer>(options);
    const Reader again(server->address(), ResumeOf(lost->id()));
    REQUIRE(again.sequence() == lost->sequence());
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
  request.held_transfer = dropped.id();
  const Reader reader(server.address(), request);
  REQUIRE(reader.sequence() > dropped.sequence());
  REQUIRE_FALSE(reader.announced.opened.resumed);
  REQUIRE(reader.announced.opened.notes.back().ends_with(" was released"));
  REQUIRE(WaitForSnapshots(bench.parent(), 1));
  // Others share it as if nothing had been dropped.
  const Reader other(server.address(), Latest());
  REQUIRE(other.sequence() == reader.sequence());
}

TEST_CASE("Too little free space ends all readers of a shared snapshot at once",
          "[held][share][lease]") {
  SharingBench bench;
  std::atomic<double> free{50};
  ServeOptions options = bench.Options();
  options.leases.free_percent = [&free](const std::string&) {
    return free.exchange(50);  // each look that finds too little asks for one
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
  SECTION("those whose targets are gone") {
    for (size_t i = 0; i < 3; ++i) {
      readers[i].control->Close();
      server.Report(i);
    }
    free = 4.9;
    for (size_t i = 3; i < 6; ++i) {
      REQUIRE(EndStateOf(server.Report(i).status) == EndState::kSnapshotGone);
    }
  }
  SECTION("but none whose target is gone while another one reads it") {
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
}  // namespace sstferry
