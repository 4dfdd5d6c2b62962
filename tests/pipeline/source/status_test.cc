// The snapshots that a source reports as retained, and how they are released.
#include <atomic>
#include <thread>

#include "pipeline/snapshot/retained_snapshots.h"
#include "sstferry/status.h"
#include "tests/support/catch.h"
#include "tests/support/certificates.h"
#include "tests/support/retained_support.h"
#include "tests/support/sample_database.h"

namespace sstferry::status_test {
namespace {

using rocksdb::Status;
using std::chrono::seconds;

Status AskStatus(const HostPort& where, const std::string& name,
                 std::vector<RetainedSnapshot>* retained,
                 const TlsFiles& tls = {}) {
  StatusOptions options;
  options.where = AddressAt(where, name);
  options.tls = tls;
  StatusReport report;
  const Status status = MakeStatusQuery(options)->Run(&report);
  *retained = report.snapshots;
  return status;
}

std::vector<RetainedSnapshot> RetainedAt(const HostPort& where,
                                 const std::string& name = "db",
                                 const TlsFiles& tls = {}) {
  std::vector<RetainedSnapshot> retained;
  REQUIRE_OK(AskStatus(where, name, &retained, tls));
  return retained;
}

std::string Cut(const TransferId& id) {
  return ToHex(id).substr(0, 8) + std::string(24, '0');
}

void RequireState(const Status& status, EndState state,
                  const std::string& sentence) {
  INFO(status.ToString());
  REQUIRE(EndStateOf(status) == state);
  REQUIRE(status.ToString().find(sentence) != std::string::npos);
}

Status ReleaseIn(RetainedBench* bench, const std::string& id,
                 seconds deadline = seconds(60)) {
  RetainedSnapshot released;
  return ReleaseSnapshotOf(bench->dir / "source/db", "", id, deadline,
                           &released);
}

// A running server with an opened pull, which a test can disconnect.
struct RunningBench : RetainedBench {
  RunningBench() {
    server = std::make_unique<TestServer>(Options());
    REQUIRE_OK(OpenAs(server->address(), SampleRequest(), &control, &opened));
    id = opened.opened.transfer_id;
  }
  void Lose() {
    control->Close();
    server->Report(0);
  }
  std::unique_ptr<TestServer> server;
  std::unique_ptr<Channel> control;
  Announced opened;
  TransferId id;
};

TEST_CASE("A source reports which snapshots it retains, for whom and how long",
          "[held][status]") {
  RunningBench bench;
  bench.clock.Advance(7);
  std::vector<RetainedSnapshot> retained = RetainedAt(bench.server->address());
  REQUIRE(retained.size() == 1);
  REQUIRE(ToHex(retained[0].transfer_id) == Cut(bench.id));
  REQUIRE(retained[0].database == "db");
  REQUIRE(retained[0].snapshot_sequence ==
          bench.opened.opened.snapshot_sequence);
  REQUIRE(retained[0].age_seconds == 7);
  REQUIRE(retained[0].readers == 1);
  REQUIRE(retained[0].ttl_left_seconds == 100);
  REQUIRE(retained[0].pinned_bytes > 2'000'000);
  bench.Lose();
  bench.clock.Advance(30);
  retained = RetainedAt(bench.server->address(), "");
  REQUIRE(retained.size() == 1);
  REQUIRE(retained[0].readers == 0);
  REQUIRE(retained[0].ttl_left_seconds == 70);
  REQUIRE(retained[0].age_seconds == 37);
  RequireState(AskStatus(bench.server->address(), "other", &retained),
               EndState::kRefused, "no database named 'other'");
}

TEST_CASE("A verify that shares a snapshot counts as a reader",
          "[held][status]") {
  RunningBench bench;
  bench.Lose();
  OpenRequest share = SampleRequest();
  share.purpose = Purpose::kVerify;
  share.snapshot_use = SnapshotUse::kShare;
  share.named_transfer = bench.id;
  Announced shared;
  REQUIRE_OK(
      OpenAs(bench.server->address(), share, &bench.control, &shared));
  const std::vector<RetainedSnapshot> retained =
      RetainedAt(bench.server->address());
  REQUIRE(retained.size() == 1);
  REQUIRE(retained[0].readers == 1);
  RequireState(ReleaseIn(&bench, ToHex(bench.id)), EndState::kBusy,
               "a target is connected");
}

TEST_CASE("A restarted source reports the snapshots on its disk",
          "[held][status]") {
  RunningBench bench;
  bench.Lose();
  bench.server.reset();
  bench.clock.Advance(40);
  TestServer server(bench.Options());
  const std::vector<RetainedSnapshot> retained = RetainedAt(server.address());
  REQUIRE(retained.size() == 1);
  REQUIRE(ToHex(retained[0].transfer_id) == Cut(bench.id));
  REQUIRE(retained[0].readers == 0);
  REQUIRE(retained[0].ttl_left_seconds == 60);
  REQUIRE(retained[0].pinned_bytes > 2'000'000);
}

TEST_CASE("Only the peer that opened a transfer gets its complete id",
          "[held][status][tls]") {
  const TestPki& pki = GoodPki();
  const TlsFiles other = pki.ca.Issue(
      {"other", {"DNS:other.example"}, -3600, 30 * 86400, "clientAuth"});
  RetainedBench bench;
  ServeOptions options = bench.Options();
  const bool allowed = GENERATE(true, false);
  options.databases[0].allowed = {"target.example"};
  if (allowed) {
    options.databases[0].allowed.push_back("other.example");
  }
  TestServer server(options, pki.server);
  std::unique_ptr<Channel> control;
  Announced opened;
  REQUIRE_OK(OpenAs(server.address(), SampleRequest(), &control, &opened,
                    nullptr, pki.client));
  std::vector<RetainedSnapshot> retained =
      RetainedAt(server.address(), "db", pki.client);
  REQUIRE(retained.size() == 1);
  REQUIRE(retained[0].transfer_id == opened.opened.transfer_id);
  if (allowed) {
    retained = RetainedAt(server.address(), "", other);
    REQUIRE(retained.size() == 1);
    REQUIRE(ToHex(retained[0].transfer_id) == Cut(opened.opened.transfer_id));
  } else {
    RequireState(AskStatus(server.address(), "db", &retained, other),
                 EndState::kDenied, "serve --allow");
    REQUIRE(RetainedAt(server.address(), "", other).empty());
  }
}

TEST_CASE("The snapshots of a directory are found without a server",
          "[held][status]") {
  RunningBench bench;
  StatusOptions options;
  options.where.directory = bench.dir / "source/db";
  const auto look = [&options] {
    StatusReport report;
    REQUIRE_OK(MakeStatusQuery(options)->Run(&report));
    REQUIRE(report.is_source);
    REQUIRE_FALSE(report.is_target);
    return report.snapshots;
  };
  std::vector<RetainedSnapshot> retained = look();
  REQUIRE(retained.size() == 1);
  REQUIRE(retained[0].transfer_id == bench.id);
  REQUIRE(retained[0].readers == 1);
  bench.Lose();
  REQUIRE(look().at(0).readers == 0);
  OpenRequest again = ResumeOf(bench.id);
  REQUIRE_OK(OpenAs(bench.server->address(), again, &bench.control,
                    &bench.opened));
  REQUIRE(look().at(0).readers == 1);
  bench.server.reset();  // its target was connected, but is not now
  REQUIRE(look().at(0).readers == 0);
  options.where.directory = bench.dir / "source";
  StatusReport report;
  RequireState(MakeStatusQuery(options)->Run(&report), EndState::kRefused,
               "found neither");
}

TEST_CASE("A running source releases a snapshot without readers on request",
          "[held][release]") {
  RunningBench bench;
  const std::string id = ToHex(bench.id);
  RequireState(ReleaseIn(&bench, id), EndState::kBusy,
               "a target is connected");
  REQUIRE(SnapshotsIn(bench.parent()).size() == 1);
  REQUIRE_FALSE(IsReleaseAsked(bench.parent() + "/" +
                               SnapshotsIn(bench.parent())[0]));
  bench.Lose();
  REQUIRE_OK(ReleaseIn(&bench, id));
  const TransferReport report = bench.server->Report(1);
  RequireState(report.status, EndState::kSnapshotGone, "release was requested");
  REQUIRE(WaitForSnapshots(bench.parent(), 0));
  RequireState(OpenAs(bench.server->address(), ResumeOf(bench.id),
                      &bench.control, &bench.opened),
               EndState::kSnapshotGone, "no snapshot of transfer");
}

TEST_CASE("A snapshot that no process uses is released at once",
          "[held][release]") {
  RunningBench bench;
  bench.Lose();
  bench.server.reset();
  const std::string id = ToHex(bench.id);
  const std::string wrong = (id[0] == '0' ? "1" : "0") + id.substr(1);
  RequireState(ReleaseIn(&bench, wrong), EndState::kRefused, "retained: " + id);
  SECTION("by its id") { REQUIRE_OK(ReleaseIn(&bench, id)); }
  SECTION("by the first digits") {
    REQUIRE_OK(ReleaseIn(&bench, id.substr(0, 8)));
  }
  REQUIRE(SnapshotsIn(bench.parent()).empty());
  RequireState(ReleaseIn(&bench, id), EndState::kRefused, "none is");
}

TEST_CASE(
    "If a snapshot's owner does not answer, a release fails and is withdrawn",
    "[held][release]") {
  RunningBench bench;
  bench.Lose();
  bench.server.reset();
  const std::string path =
      bench.parent() + "/" + SnapshotsIn(bench.parent())[0];
  std::unique_ptr<PrivateDir> owner;
  REQUIRE_OK(PrivateDir::Adopt(path, &owner));
  RequireState(ReleaseIn(&bench, ToHex(bench.id), seconds(0)),
               EndState::kBusy, "does not answer");
  REQUIRE_FALSE(IsReleaseAsked(path));
  REQUIRE(SnapshotsIn(bench.parent()).size() == 1);
}

TEST_CASE("Listing a private directory does not make it look used",
          "[held][status]") {
  RunningBench bench;
  bench.Lose();
  bench.server.reset();
  std::atomic<bool> stop{false};
  std::thread looker([&] {
    while (!stop) {
      ListSnapshotsOf(bench.dir / "source/db", "");
    }
  });
  const std::string path =
      bench.parent() + "/" + SnapshotsIn(bench.parent())[0];
  int adopted = 0;
  for (int i = 0; i < 200; ++i) {
    std::unique_ptr<PrivateDir> dir;
    const Status status = PrivateDir::Adopt(path, &dir);
    adopted += status.ok() && dir != nullptr ? 1 : 0;
  }
  stop = true;
  looker.join();
  REQUIRE(adopted == 200);
}

TEST_CASE("A pull that starts over releases its earlier snapshot",
          "[held][release]") {
  RunningBench bench;
  OpenRequest instead = SampleRequest();
  instead.snapshot_use = SnapshotUse::kInstead;
  instead.named_transfer = bench.id;
  instead.chunk_bytes *= 2;  // its options may differ
  std::unique_ptr<Channel> control;
  Announced anew;
  const auto begin = [&](const HostPort& where) {
    REQUIRE_OK(OpenAs(where, instead, &control, &anew));
    REQUIRE(anew.opened.transfer_id != bench.id);
    REQUIRE_FALSE(anew.opened.resumed);
    REQUIRE_FALSE(anew.opened.notes.empty());
    return anew.opened.notes.back();
  };
  SECTION("at a source that retains it") {
    bench.Lose();
    REQUIRE(begin(bench.server->address()).ends_with(" was released"));
    REQUIRE(WaitForSnapshots(bench.parent(), 1));
    // The release is not reported as a transfer's end: serve --once would take
    // it for the end of the pull.
    control->Close();
    REQUIRE(bench.server->Report(1).transfer_id ==
            ToHex(anew.opened.transfer_id));
  }
  SECTION("at a restarted source") {
    bench.Lose();
    bench.server.reset();
    TestServer server(bench.Options());
    REQUIRE(begin(server.address()).ends_with(" was released"));
    REQUIRE(SnapshotsIn(bench.parent()).size() == 1);
  }
  SECTION("at a source that still takes the pull for connected") {
    REQUIRE(begin(bench.server->address()).ends_with(" was released"));
    // The earlier session and its snapshot end, without a report.
    REQUIRE(WaitForSnapshots(bench.parent(), 1));
    control->Close();
    REQUIRE(bench.server->Report(0).transfer_id ==
            ToHex(anew.opened.transfer_id));
  }
  SECTION("if it is already released") {
    instead.named_transfer[0] ^= 1;
    REQUIRE(begin(bench.server->address()).find(" was not found here; ") !=
            std::string::npos);
  }
}

TEST_CASE("Starting over does not release another peer's snapshot",
          "[held][release][tls]") {
  const TestPki& pki = GoodPki();
  const TlsFiles other = pki.ca.Issue(
      {"other", {"DNS:other.example"}, -3600, 30 * 86400, "clientAuth"});
  RetainedBench bench;
  ServeOptions options = bench.Options();
  // A new snapshot checks the leases next to it with the system's clock.
  options.leases.wall_seconds = nullptr;
  OpenRequest instead = SampleRequest();
  instead.snapshot_use = SnapshotUse::kInstead;
  std::unique_ptr<Channel> control;
  Announced opened;
  auto server = std::make_unique<TestServer>(options, pki.server);
  REQUIRE_OK(OpenAs(server->address(), SampleRequest(), &control, &opened,
                    nullptr, pki.client));
  control->Close();
  server->Report(0);
  instead.named_transfer = opened.opened.transfer_id;
  if (GENERATE(false, true)) {
    server.reset();
    server = std::make_unique<TestServer>(options, pki.server);
  }
  REQUIRE_OK(OpenAs(server->address(), instead, &control, &opened, nullptr,
                    other));
  REQUIRE_FALSE(opened.opened.notes.empty());
  REQUIRE(opened.opened.notes.back().ends_with("it belongs to another target"));
  REQUIRE(SnapshotsIn(bench.parent()).size() == 2);
}

TEST_CASE("Only a pull can start over instead of another", "[held][release]") {
  RunningBench bench;
  bench.Lose();
  OpenRequest instead = SampleRequest();
  instead.purpose = Purpose::kPlan;
  instead.snapshot_use = SnapshotUse::kInstead;
  instead.named_transfer = bench.id;
  RequireState(OpenAs(bench.server->address(), instead, &bench.control,
                      &bench.opened),
               EndState::kRefused,
               "expected a pull in a request that releases the snapshot of an "
               "earlier transfer");
  REQUIRE(SnapshotsIn(bench.parent()).size() == 1);
}

}  // namespace
}  // namespace sstferry::status_test
