// A pull whose target disconnected: its snapshot is retained, resumed and
// released.
#include <ctime>

#include "format/end_state.h"
#include "tests/support/catch.h"
#include "tests/support/certificates.h"
#include "tests/support/retained_support.h"
#include "tests/support/sample_database.h"

namespace sstferry::retained_transfer_test {
namespace {

using rocksdb::Status;

void RequireState(const Status& status, EndState state,
                  const std::string& sentence) {
  INFO(status.ToString());
  REQUIRE(EndStateOf(status) == state);
  REQUIRE(status.ToString().find(sentence) != std::string::npos);
}

TEST_CASE("A pull that lost its target is retained and resumed",
          "[held][resume]") {
  RetainedBench bench;
  TestServer server(bench.Options());
  std::unique_ptr<Channel> control;
  Announced first;
  REQUIRE_OK(OpenAs(server.address(), SampleRequest(), &control, &first));
  REQUIRE(first.opened.lease_seconds == 100);
  REQUIRE_FALSE(first.opened.resumed);
  REQUIRE(first.parts.size() > 2);
  control->Close();
  const TransferReport lost = server.Report(0);
  REQUIRE(lost.kept_for == std::chrono::seconds(100));
  REQUIRE(EndStateOf(lost.status) == EndState::kDeadPeer);
  REQUIRE(SnapshotsIn(bench.parent()).size() == 1);

  Announced second;
  OpenRequest again = ResumeOf(first.opened.transfer_id);
  again.lanes = 1;  // these fields may differ
  again.max_rate_bytes_per_sec = 1'000'000'000;
  again.compression = WireCompression::kZstd;
  REQUIRE_OK(OpenAs(server.address(), again, &control, &second));
  REQUIRE(second.opened.resumed);
  REQUIRE(second.opened.lanes == 1);
  REQUIRE(second.opened.transfer_id == first.opened.transfer_id);
  REQUIRE(second.opened.snapshot_sequence == first.opened.snapshot_sequence);
  REQUIRE(second.families == first.families);
  REQUIRE(second.parts == first.parts);

  std::unique_ptr<Channel> lane;
  REQUIRE_OK(DialLane(server.address(), first.opened.transfer_id, 0, &lane));
  Finish totals;
  REQUIRE_OK(TakeParts(lane.get(), static_cast<uint32_t>(first.parts.size()),
                        &totals));
  REQUIRE_OK(FinishWith(control.get(), totals));
  const TransferReport done = server.Report(1);
  REQUIRE_OK(done.status);
  REQUIRE(done.kept_for.count() == 0);
  REQUIRE(WaitForSnapshots(bench.parent(), 0));
}

TEST_CASE("The target's end state decides whether its snapshot is retained",
          "[held][resume]") {
  RetainedBench bench;
  TestServer server(bench.Options());
  size_t reports = 0;
  // Without sent data, there is nothing to resume.
  const bool data_was_sent = GENERATE(true, false);
  CAPTURE(data_was_sent);
  for (uint8_t number = 1; number <= kMaxEndState; ++number) {
    const EndState state = static_cast<EndState>(number);
    const bool kept =
        data_was_sent &&
        (state == EndState::kCancelled || state == EndState::kDeadline ||
         state == EndState::kDeadPeer || state == EndState::kNoSpace ||
         state == EndState::kTooSlow);
    INFO(EndStateName(state));
    std::unique_ptr<Channel> control;
    Announced opened;
    REQUIRE_OK(OpenAs(server.address(), SampleRequest(), &control, &opened));
    if (data_was_sent) {
      std::unique_ptr<Channel> lane;
      REQUIRE_OK(
          DialLane(server.address(), opened.opened.transfer_id, 0, &lane));
      PartEnd end;
      std::vector<ChunkEnd> chunks;
      REQUIRE_OK(TakePart(lane.get(), PartRequest(), &end, &chunks));
      REQUIRE_FALSE(chunks.empty());
    }
    SendEndState(control.get(), state);
    const TransferReport report = server.Report(reports++);
    REQUIRE(EndStateOf(report.status) == state);
    REQUIRE((report.kept_for.count() > 0) == kept);
    REQUIRE(WaitForSnapshots(bench.parent(), kept ? 1 : 0));
    const Status again =
        OpenAs(server.address(), ResumeOf(opened.opened.transfer_id), &control,
               &opened);
    if (!kept) {
      RequireState(again, EndState::kSnapshotGone, "no snapshot of transfer");
      continue;
    }
    REQUIRE_OK(again);
    SendEndState(control.get(), EndState::kRefused);
    REQUIRE(server.Report(reports++).kept_for.count() == 0);
    REQUIRE(WaitForSnapshots(bench.parent(), 0));
  }
}

TEST_CASE("A server that stops names the snapshots that it retains",
          "[held][resume]") {
  RetainedBench bench;
  ServeOptions options = bench.Options();
  const bool leaves = GENERATE(true, false);
  if (!leaves) {
    options.snapshot_ttl = std::chrono::seconds(0);
  }
  TestServer server(options);
  std::unique_ptr<Channel> control;
  Announced opened;
  REQUIRE_OK(OpenAs(server.address(), SampleRequest(), &control, &opened));
  control->Close();
  server.Stop();
  const std::vector<std::string> left = SnapshotsIn(bench.parent());
  REQUIRE(left.size() == (leaves ? 1 : 0));
  REQUIRE(server.LogHolds("is retained in ") == leaves);
  if (leaves) {
    REQUIRE(server.LogHolds(ToHex(opened.opened.transfer_id)));
    REQUIRE(server.LogHolds(left[0] + " for 100 s"));
  }
}

TEST_CASE("Nothing is retained without a time to live, or for a verify",
          "[held][resume]") {
  RetainedBench bench;
  ServeOptions options = bench.Options();
  OpenRequest request = SampleRequest();
  SECTION("no time to live") { options.snapshot_ttl = std::chrono::seconds(0); }
  SECTION("a verify") { request.purpose = Purpose::kVerify; }
  TestServer server(options);
  std::unique_ptr<Channel> control;
  Announced opened;
  REQUIRE_OK(OpenAs(server.address(), request, &control, &opened));
  REQUIRE(opened.opened.lease_seconds == 0);
  REQUIRE(SnapshotsIn(bench.parent()).size() == 1);
  control->Close();
  REQUIRE(WaitForSnapshots(bench.parent(), 0));
}

TEST_CASE("A lease runs only while no target is connected", "[held][resume]") {
  RetainedBench bench;
  TestServer server(bench.Options());
  std::unique_ptr<Channel> control;
  Announced opened;
  REQUIRE_OK(OpenAs(server.address(), SampleRequest(), &control, &opened));
  bench.clock.Advance(1000);  // still connected
  std::unique_ptr<Channel> second;
  for (int i = 0; i < 3; ++i) {
    (i == 0 ? control : second)->Close();
    REQUIRE(server.Report(i).kept_for.count() == 100);
    bench.clock.Advance(99);
    REQUIRE_OK(OpenAs(server.address(), ResumeOf(opened.opened.transfer_id),
                      &second, &opened));
    bench.clock.Advance(1000);
  }
  second->Close();
  REQUIRE(server.Report(3).kept_for.count() == 100);
  bench.clock.Advance(100);
  REQUIRE(EndStateOf(server.Report(4).status) == EndState::kSnapshotGone);
  REQUIRE(server.WaitForLog("no target was connected for 100 s"));
  REQUIRE(SnapshotsIn(bench.parent()).empty());
  RequireState(OpenAs(server.address(), ResumeOf(opened.opened.transfer_id),
                      &control, &opened),
               EndState::kSnapshotGone, "no snapshot of transfer");
}

TEST_CASE("A resuming connection replaces the previous one", "[held][resume]") {
  RetainedBench bench;
  TestServer server(bench.Options());
  std::unique_ptr<Channel> first;
  std::unique_ptr<Channel> second;
  Announced opened;
  REQUIRE_OK(OpenAs(server.address(), SampleRequest(), &first, &opened));
  const TransferId id = opened.opened.transfer_id;
  REQUIRE_OK(OpenAs(server.address(), ResumeOf(id), &second, &opened));
  RequireState(ReceiveEnd(first.get()), EndState::kDeadPeer, "");
  // A lane with the same number also replaces the older one, which is closed.
  std::unique_ptr<Channel> old_lane;
  std::unique_ptr<Channel> lane;
  REQUIRE_OK(DialLane(server.address(), id, 0, &old_lane));
  PartRequest request;
  PartEnd end;
  REQUIRE_OK(TakePart(old_lane.get(), request, &end, nullptr));
  REQUIRE_OK(DialLane(server.address(), id, 0, &lane));
  PartEnd same;
  REQUIRE_OK(TakePart(lane.get(), request, &same, nullptr));
  REQUIRE(same.totals.entries == end.totals.entries);
  RequireState(ReceiveEnd(old_lane.get()), EndState::kDeadPeer, "");
  Finish totals;
  REQUIRE_OK(TakeParts(lane.get(),
                        static_cast<uint32_t>(opened.parts.size()), &totals));
  REQUIRE_OK(FinishWith(second.get(), totals));
  const TransferReport done = server.Report(0);
  REQUIRE_OK(done.status);
  REQUIRE(done.kept_for.count() == 0);
}

TEST_CASE("A resume with another request is refused, and names the field",
          "[held][resume]") {
  RetainedBench bench;
  TestServer server(bench.Options());
  std::unique_ptr<Channel> control;
  Announced opened;
  REQUIRE_OK(OpenAs(server.address(), SampleRequest(), &control, &opened));
  const TransferId id = opened.opened.transfer_id;
  control->Close();
  server.Report(0);
  const auto refuse = [&](const std::string& field, auto change) {
    OpenRequest request = ResumeOf(id);
    Hello hello = MakeHello();
    change(&request, &hello);
    INFO(field);
    RequireState(OpenAs(server.address(), request, &control, &opened, &hello),
                 EndState::kRefused, "with another " + field + " than");
  };
  refuse("purpose", [](OpenRequest* request, Hello*) {
    request->purpose = Purpose::kVerify;
  });
  refuse("families", [](OpenRequest* request, Hello*) {
    request->families = {"default"};
  });
  refuse("interval", [](OpenRequest* request, Hello*) {
    request->interval.begin = "";
  });
  refuse("chunk_bytes", [](OpenRequest* request, Hello*) {
    request->chunk_bytes++;
  });
  refuse("application", [](OpenRequest* request, Hello*) {
    request->application = "8.11.4";
  });
  refuse("features", [](OpenRequest*, Hello* hello) {
    hello->features ^= kFeatureMarkedBlocks;
  });
  refuse("max_format_version", [](OpenRequest*, Hello* hello) {
    hello->max_format_version++;
  });
  // The refused requests did not damage the transfer.
  REQUIRE_OK(OpenAs(server.address(), ResumeOf(id), &control, &opened));
}

TEST_CASE("Parts that the target has count as sent, and must agree",
          "[held][resume]") {
  RetainedBench bench;
  TestServer server(bench.Options());
  std::unique_ptr<Channel> control;
  std::unique_ptr<Channel> lane;
  Announced opened;
  REQUIRE_OK(OpenAs(server.address(), SampleRequest(), &control, &opened));
  const TransferId id = opened.opened.transfer_id;
  REQUIRE_OK(DialLane(server.address(), id, 0, &lane));
  PartEnd sent;
  REQUIRE_OK(TakePart(lane.get(), PartRequest(), &sent, nullptr));
  Received retained;
  retained.parts.push_back({0, sent.totals});
  SECTION("the message is not allowed without a resume") {
    REQUIRE_OK(control->SendMessage(FrameType::kReceived, retained));
    RequireState(ReceiveEnd(control.get()), EndState::kCorrupt,
                 "unexpected frame Received");
    return;
  }
  REQUIRE_OK(OpenAs(server.address(), ResumeOf(id), &control, &opened));
  SECTION("a part that is not planned") {
    retained.parts[0].part_id = static_cast<uint32_t>(opened.parts.size());
    REQUIRE_OK(control->SendMessage(FrameType::kReceived, retained));
    RequireState(ReceiveEnd(control.get()), EndState::kCorrupt,
                 "received: expected a part number below");
    REQUIRE(server.Report(0).kept_for.count() == 0);
  }
  SECTION("other totals than this process sent") {
    retained.parts[0].totals.entries++;
    REQUIRE_OK(control->SendMessage(FrameType::kReceived, retained));
    RequireState(ReceiveEnd(control.get()), EndState::kCorrupt,
                 "received: part 0: the source sent");
  }
  SECTION("parts that were not requested from this process") {
    Finish totals;
    totals.families.resize(1);
    retained.parts.clear();
    for (const Part& part : opened.parts) {
      Totals some;
      some.entries = 10 + part.id;
      some.chunks = 1;
      retained.parts.push_back({part.id, part.id == 0 ? sent.totals : some});
      totals.families[0] += retained.parts.back().totals;
    }
    REQUIRE_OK(control->SendMessage(FrameType::kReceived, retained));
    REQUIRE_OK(FinishWith(control.get(), totals));
    REQUIRE_OK(server.Report(0).status);
  }
}

TEST_CASE("A resumed part counts together with what was received before",
          "[held][resume]") {
  RetainedBench bench;
  const std::map<std::string, std::string> entries =
      EntriesOf(bench.dir / "source/db");
  TestServer server(bench.Options());
  std::unique_ptr<Channel> control;
  std::unique_ptr<Channel> lane;
  Announced opened;
  REQUIRE_OK(OpenAs(server.address(), SampleRequest(), &control, &opened));
  REQUIRE_OK(DialLane(server.address(), opened.opened.transfer_id, 0, &lane));
  Finish totals;
  totals.families.resize(1);
  for (const Part& part : opened.parts) {
    PartRequest rest;
    rest.part_id = part.id;
    auto it = entries.lower_bound(part.interval.begin.value_or(""));
    for (int i = 0; i < 10; ++i, ++it) {
      rest.after = it->first;
      rest.received.entries++;
      rest.received.key_value_bytes += it->first.size() + it->second.size();
    }
    rest.received.chunks = 1;
    rest.received.sst_bytes = 777;
    PartEnd end;
    REQUIRE_OK(TakePart(lane.get(), rest, &end, nullptr));
    totals.families[0] += rest.received;
    totals.families[0] += end.totals;
  }
  REQUIRE(totals.families[0].entries == entries.size());
  REQUIRE_OK(FinishWith(control.get(), totals));
  REQUIRE_OK(server.Report(0).status);
}

TEST_CASE("Only the peer that opened a transfer can resume it",
          "[held][resume][tls]") {
  RetainedBench bench;
  const TestPki& pki = GoodPki();
  TestServer server(bench.Options(), pki.server);
  const TlsFiles other = pki.ca.Issue(
      {"other", {"DNS:other.example"}, -3600, 30 * 86400, "clientAuth"});
  std::unique_ptr<Channel> control;
  Announced opened;
  REQUIRE_OK(OpenAs(server.address(), SampleRequest(), &control, &opened,
                    nullptr, pki.client));
  const OpenRequest again = ResumeOf(opened.opened.transfer_id);
  control->Close();
  REQUIRE(server.Report(0).kept_for.count() > 0);
  RequireState(OpenAs(server.address(), again, &control, &opened, nullptr,
                      other),
               EndState::kDenied, "was opened with another certificate");
  REQUIRE_OK(OpenAs(server.address(), again, &control, &opened, nullptr,
                    pki.client));
}

TEST_CASE("A transfer without a target does not occupy a slot",
          "[held][resume]") {
  RetainedBench bench;
  // A new snapshot checks the leases next to it with the system's clock.
  bench.clock.Set(static_cast<uint64_t>(std::time(nullptr)));
  ServeOptions options = bench.Options();
  options.max_transfers = 2;
  TestServer server(options);
  std::unique_ptr<Channel> controls[3];
  Announced opened[3];
  REQUIRE_OK(OpenAs(server.address(), SampleRequest(), &controls[0],
                    &opened[0]));
  REQUIRE_OK(OpenAs(server.address(), SampleRequest(), &controls[1],
                    &opened[1]));
  RequireState(OpenAs(server.address(), SampleRequest(), &controls[2],
                      &opened[2]),
               EndState::kBusy, "all 2 transfer slots are in use");
  REQUIRE(opened[2].busy.has_value());
  controls[1]->Close();
  REQUIRE(server.Report(0).kept_for.count() > 0);
  REQUIRE_OK(OpenAs(server.address(), SampleRequest(), &controls[2],
                    &opened[2]));
  // The idle transfer keeps its snapshot.
  REQUIRE(WaitForSnapshots(bench.parent(), 3));
  SendEndState(controls[0].get(), EndState::kRefused);
  server.Report(1);
  Announced again;
  REQUIRE_OK(OpenAs(server.address(), ResumeOf(opened[1].opened.transfer_id),
                    &controls[1], &again));
  REQUIRE(again.opened.resumed);
  REQUIRE(again.opened.snapshot_sequence ==
          opened[1].opened.snapshot_sequence);
}

TEST_CASE("At most as many snapshots are retained without a slot as with one",
          "[held][resume]") {
  RetainedBench bench;
  // A new snapshot checks the leases next to it with the system's clock.
  bench.clock.Set(static_cast<uint64_t>(std::time(nullptr)));
  ServeOptions options = bench.Options();
  options.max_transfers = 2;
  TestServer server(options);
  std::vector<Announced> opened(6);
  for (size_t i = 0; i < opened.size(); ++i) {
    std::unique_ptr<Channel> control;
    REQUIRE_OK(OpenAs(server.address(), SampleRequest(), &control, &opened[i]));
    control->Close();
    REQUIRE(server.Report(i).kept_for.count() > 0);
    bench.clock.Advance(1);
  }
  REQUIRE(WaitForSnapshots(bench.parent(), 4));
  std::unique_ptr<Channel> control;
  Announced again;
  RequireState(OpenAs(server.address(), ResumeOf(opened[1].opened.transfer_id),
                      &control, &again),
               EndState::kSnapshotGone, "is retained here");
  REQUIRE_OK(OpenAs(server.address(), ResumeOf(opened[2].opened.transfer_id),
                    &control, &again));
}

TEST_CASE("A target that only pings loses its slot to one that asks",
          "[held][resume]") {
  RetainedBench bench;
  // A new snapshot checks the leases next to it with the system's clock.
  bench.clock.Set(static_cast<uint64_t>(std::time(nullptr)));
  HandClock clock;
  ServeOptions options = bench.Options();
  options.max_transfers = 1;
  options.leases.steady_seconds = clock.function();
  TestServer server(options);
  std::unique_ptr<Channel> pings;
  std::unique_ptr<Channel> waits;
  Announced opened;
  REQUIRE_OK(OpenAs(server.address(), SampleRequest(), &pings, &opened));
  const TransferId stalled = opened.opened.transfer_id;
  clock.Advance(60);
  RequireState(OpenAs(server.address(), SampleRequest(), &waits, &opened),
               EndState::kBusy, "all 1 transfer slots are in use");
  clock.Advance(200);
  REQUIRE_OK(OpenAs(server.address(), SampleRequest(), &waits, &opened));
  RequireState(ReceiveEnd(pings.get()), EndState::kTooSlow,
               "another transfer needed its slot");
  const TransferReport report = server.Report(0);
  REQUIRE(report.transfer_id == ToHex(stalled));
  REQUIRE(EndStateOf(report.status) == EndState::kTooSlow);
  REQUIRE(report.kept_for.count() > 0);
  SendEndState(waits.get(), EndState::kRefused);
  server.Report(1);
  REQUIRE_OK(OpenAs(server.address(), ResumeOf(stalled), &waits, &opened));
  REQUIRE(opened.opened.resumed);
}

TEST_CASE("A target that receives files keeps its slot", "[held][resume]") {
  RetainedBench bench;
  HandClock clock;
  ServeOptions options = bench.Options();
  options.max_transfers = 1;
  options.leases.steady_seconds = clock.function();
  TestServer server(options);
  OpenRequest request = SampleRequest();
  request.mode = TransferMode::kClone;
  std::unique_ptr<Channel> control;
  std::unique_ptr<Channel> lane;
  std::unique_ptr<Channel> waits;
  Announced opened;
  Announced other;
  REQUIRE_OK(OpenAs(server.address(), request, &control, &opened));
  REQUIRE(opened.parts.size() > 1);
  REQUIRE_OK(DialLane(server.address(), opened.opened.transfer_id, 0, &lane));
  for (const Part& part : opened.parts) {
    PartRequest unit;
    unit.part_id = part.id;
    PartEnd end;
    clock.Advance(100);
    REQUIRE_OK(TakePart(lane.get(), unit, &end, nullptr));
    clock.Advance(100);
    RequireState(OpenAs(server.address(), request, &waits, &other),
                 EndState::kBusy, "all 1 transfer slots are in use");
  }
  clock.Advance(200);
  REQUIRE_OK(OpenAs(server.address(), request, &waits, &other));
}

TEST_CASE("A target that has just reconnected keeps its slot",
          "[held][resume]") {
  RetainedBench bench;
  HandClock clock;
  ServeOptions options = bench.Options();
  options.max_transfers = 1;
  options.leases.steady_seconds = clock.function();
  TestServer server(options);
  std::unique_ptr<Channel> control;
  std::unique_ptr<Channel> waits;
  Announced opened;
  Announced other;
  REQUIRE_OK(OpenAs(server.address(), SampleRequest(), &control, &opened));
  clock.Advance(60);
  control->Close();
  REQUIRE(server.Report(0).kept_for.count() > 0);
  clock.Advance(70);
  const OpenRequest again = ResumeOf(opened.opened.transfer_id);
  REQUIRE_OK(OpenAs(server.address(), again, &control, &opened));
  RequireState(OpenAs(server.address(), SampleRequest(), &waits, &other),
               EndState::kBusy, "all 1 transfer slots are in use");
}

TEST_CASE("A peer with many transfers takes no slot from one with few",
          "[held][resume][tls]") {
  RetainedBench bench;
  const TestPki& pki = GoodPki();
  const TlsFiles few = pki.ca.Issue(
      {"few", {"DNS:few.example"}, -3600, 30 * 86400, "clientAuth"});
  ServeOptions options = bench.Options();
  options.max_transfers = 2;
  TestServer server(options, pki.server);
  const auto open = [&](const TlsFiles& as, std::unique_ptr<Channel>* control,
                        Announced* opened) {
    return OpenAs(server.address(), SampleRequest(), control, opened, nullptr,
                  as);
  };
  std::unique_ptr<Channel> controls[3];
  Announced opened[3];
  REQUIRE_OK(open(few, &controls[0], &opened[0]));
  controls[0]->Close();
  REQUIRE(server.Report(0).kept_for.count() > 0);
  REQUIRE_OK(open(pki.client, &controls[1], &opened[1]));
  RequireState(open(pki.client, &controls[2], &opened[2]), EndState::kBusy,
               "all 2 transfer slots are in use");
  REQUIRE_OK(OpenAs(server.address(), ResumeOf(opened[0].opened.transfer_id),
                    &controls[0], &opened[0], nullptr, few));
}

}  // namespace
}  // namespace sstferry::retained_transfer_test
