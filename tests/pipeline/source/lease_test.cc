// Snapshots that are kept after their source's process has ended.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "format/lease.h"
#include "pipeline/snapshot/lease_file.h"
#include "pipeline/snapshot/private_dir.h"
#include "tests/support/catch.h"
#include "tests/support/denied_calls.h"
#include "tests/support/retained_support.h"
#include "tests/support/sample_database.h"

namespace sstferry::lease_test {
namespace {

namespace fs = std::filesystem;
using rocksdb::Status;

void RequireState(const Status& status, EndState state,
                  const std::string& sentence) {
  INFO(status.ToString());
  REQUIRE(EndStateOf(status) == state);
  REQUIRE(status.ToString().find(sentence) != std::string::npos);
}

std::string OnlySnapshot(const RetainedBench& bench) {
  const std::vector<std::string> found = SnapshotsIn(bench.parent());
  REQUIRE(found.size() == 1);
  return bench.parent() + "/" + found[0];
}

// A pull was opened and its source stopped, so its lease is left.
struct StoppedBench : RetainedBench {
  explicit StoppedBench(OpenRequest request = SampleRequest(),
                        bool connected = true) {
    std::unique_ptr<Channel> control;
    TestServer server(Options());
    REQUIRE_OK(OpenAs(server.address(), request, &control, &first));
    if (!connected) {
      control->Close();
      REQUIRE(server.Report(0).kept_for.count() == 100);
    }
  }
  OpenRequest Resume() const { return ResumeOf(first.opened.transfer_id); }
  Announced first;
};

void FinishAll(TestServer* server, Channel* control, const Announced& plan) {
  std::unique_ptr<Channel> lane;
  REQUIRE_OK(DialLane(server->address(), plan.opened.transfer_id, 0, &lane));
  Finish totals;
  REQUIRE_OK(TakeParts(lane.get(), static_cast<uint32_t>(plan.parts.size()),
                        &totals));
  REQUIRE(totals.families[0].entries == 2000);
  REQUIRE_OK(FinishWith(control, totals));
}

TEST_CASE("A restarted source continues with the same snapshot",
          "[held][lease]") {
  StoppedBench bench(SampleRequest(), GENERATE(false, true));
  const std::string path = OnlySnapshot(bench);
  // The source's own files may be removed meanwhile.
  fs::rename(bench.dir / "source/db", bench.dir / "gone");
  fs::create_directory(bench.dir / "source/db");
  bench.clock.Advance(99);
  TestServer server(bench.Options());
  REQUIRE(OnlySnapshot(bench) == path);
  OpenRequest again = bench.Resume();
  again.lanes = 16;
  std::unique_ptr<Channel> control;
  Announced second;
  REQUIRE_OK(OpenAs(server.address(), again, &control, &second));
  REQUIRE(second.opened.resumed);
  REQUIRE(second.opened.snapshot_sequence ==
          bench.first.opened.snapshot_sequence);
  REQUIRE(second.opened.source_database_id ==
          bench.first.opened.source_database_id);
  REQUIRE(second.opened.database_options ==
          bench.first.opened.database_options);
  REQUIRE(second.families == bench.first.families);
  REQUIRE(second.parts == bench.first.parts);
  REQUIRE(OnlySnapshot(bench) == path);
  FinishAll(&server, control.get(), second);
  REQUIRE_OK(server.Report(0).status);
  REQUIRE(WaitForSnapshots(bench.parent(), 0));
}

TEST_CASE("A snapshot with an expired lease is removed", "[held][lease]") {
  StoppedBench bench;
  SECTION("before the source starts again") {
    bench.clock.Advance(100);
    TestServer server(bench.Options());
    REQUIRE(SnapshotsIn(bench.parent()).empty());
    std::unique_ptr<Channel> control;
    RequireState(OpenAs(server.address(), bench.Resume(), &control,
                        &bench.first),
                 EndState::kSnapshotGone, "no snapshot of transfer");
  }
  SECTION("while the source runs") {
    TestServer server(bench.Options());
    REQUIRE(SnapshotsIn(bench.parent()).size() == 1);
    bench.clock.Advance(100);
    REQUIRE(server.WaitForLog("removed a snapshot without a valid lease"));
    REQUIRE(WaitForSnapshots(bench.parent(), 0));
  }
  SECTION("by a source that retains nothing") {
    ServeOptions options = bench.Options();
    options.snapshot_ttl = std::chrono::seconds(0);
    TestServer server(options);
    REQUIRE(SnapshotsIn(bench.parent()).empty());
  }
}

TEST_CASE("A source of another database leaves a lease alone",
          "[held][lease]") {
  StoppedBench bench;
  ServeOptions options = bench.Options();
  options.databases[0].name = "other";
  options.snapshot_ttl = std::chrono::seconds(0);
  {
    TestServer server(options);
    OpenRequest request = bench.Resume();
    request.database = "other";
    std::unique_ptr<Channel> control;
    Announced opened;
    RequireState(OpenAs(server.address(), request, &control, &opened),
                 EndState::kSnapshotGone, "no snapshot of transfer");
    REQUIRE(SnapshotsIn(bench.parent()).size() == 1);
  }
  bench.clock.Advance(100);
  TestServer server(options);
  REQUIRE(SnapshotsIn(bench.parent()).empty());
}

TEST_CASE("A clock that was set back extends a lease only once",
          "[held][lease]") {
  StoppedBench bench;
  bench.clock.Set(10);
  { TestServer server(bench.Options()); }
  Lease lease;
  REQUIRE(ReadLease(OnlySnapshot(bench), &lease) == LeaseState::kGood);
  REQUIRE(lease.renewed_seconds == 10);
  bench.clock.Advance(100);
  TestServer server(bench.Options());
  REQUIRE(SnapshotsIn(bench.parent()).empty());
}

TEST_CASE("A snapshot with a damaged lease is removed", "[held][lease]") {
  StoppedBench bench;
  const std::string lease = OnlySnapshot(bench) + "/lease";
  std::string bytes = BytesOf(lease);
  SECTION("a flipped bit") { bytes[bytes.size() / 2] ^= 1; }
  SECTION("an empty file") { bytes.clear(); }
  SECTION("far too long") { bytes.assign(4u << 20, 'x'); }
  WriteBytes(lease, bytes);
  TestServer server(bench.Options());
  REQUIRE(SnapshotsIn(bench.parent()).empty());
}

TEST_CASE("A lease that is not a regular file is not read", "[held][lease]") {
  StoppedBench bench;
  const std::string path = OnlySnapshot(bench);
  fs::rename(path + "/lease", bench.dir / "elsewhere");
  SECTION("a link") {
    fs::create_symlink(bench.dir / "elsewhere", path + "/lease");
  }
  SECTION("a pipe") {
    REQUIRE(mkfifo((path + "/lease").c_str(), 0600) == 0);
  }
  SECTION("a directory") { fs::create_directory(path + "/lease"); }
  Lease lease;
  REQUIRE(ReadLease(path, &lease) == LeaseState::kBad);
  TestServer server(bench.Options());
  REQUIRE(SnapshotsIn(bench.parent()).empty());
  REQUIRE(fs::exists(bench.dir / "elsewhere"));
}

TEST_CASE("A snapshot with a lease that cannot be read now is kept",
          "[held][lease]") {
  StoppedBench bench;
  const std::string path = OnlySnapshot(bench);
  LeaseRules rules;
  rules.wall_seconds = bench.clock.function();
  const auto clean = [&] {
    RemoveLeftoverSnapshots(bench.parent(), nullptr, rules)
        .PermitUncheckedError();
  };
  SECTION("the disk fails") {
    if (!RunWithDenied({{SYS_read, EIO}}, clean)) {
      WARN("the kernel filters no calls");
    }
  }
  SECTION("no descriptor is free") {
    rlimit all;
    REQUIRE(getrlimit(RLIMIT_NOFILE, &all) == 0);
    const int next = open("/dev/null", O_RDONLY | O_CLOEXEC);
    close(next);
    for (int more = 1; more <= 6; ++more) {
      const rlimit few{static_cast<rlim_t>(next + more), all.rlim_max};
      REQUIRE(setrlimit(RLIMIT_NOFILE, &few) == 0);
      clean();
      REQUIRE(setrlimit(RLIMIT_NOFILE, &all) == 0);
      REQUIRE(OnlySnapshot(bench) == path);
    }
  }
  REQUIRE(OnlySnapshot(bench) == path);
  bench.clock.Advance(100);
  clean();
  REQUIRE(SnapshotsIn(bench.parent()).empty());
}

TEST_CASE("A directory that others may write is left alone", "[held][lease]") {
  StoppedBench bench;
  const std::string path = OnlySnapshot(bench);
  REQUIRE(chmod(path.c_str(), 0777) == 0);
  TestServer server(bench.Options());
  std::unique_ptr<Channel> control;
  Announced opened;
  RequireState(OpenAs(server.address(), bench.Resume(), &control, &opened),
               EndState::kSnapshotGone, "no snapshot of transfer");
  REQUIRE(SnapshotsIn(bench.parent()).size() == 1);
}

TEST_CASE("A link in place of a private directory is left alone",
          "[held][lease]") {
  StoppedBench bench;
  const std::string path = OnlySnapshot(bench);
  fs::rename(path, bench.dir / "moved");
  fs::create_symlink(bench.dir / "moved", path);
  bench.clock.Advance(100);
  TestServer server(bench.Options());
  REQUIRE(fs::exists(bench.dir / "moved/lease"));
}

TEST_CASE("A snapshot with anything but files in it is not adopted",
          "[held][lease]") {
  StoppedBench bench;
  const std::string path = OnlySnapshot(bench);
  const std::string current = path + "/db/CURRENT";
  fs::rename(current, bench.dir / "CURRENT");
  fs::create_symlink(bench.dir / "CURRENT", current);
  TestServer server(bench.Options());
  std::unique_ptr<Channel> control;
  Announced opened;
  const Status status =
      OpenAs(server.address(), bench.Resume(), &control, &opened);
  INFO(status.ToString());
  REQUIRE_FALSE(status.ok());
  REQUIRE(fs::exists(bench.dir / "CURRENT"));
}

TEST_CASE("A snapshot that cannot be opened again is gone", "[held][lease]") {
  StoppedBench bench;
  const std::string path = OnlySnapshot(bench);
  std::string sentence = "cannot be opened again";
  SECTION("a table is missing") {
    for (const std::string& name : NamesOf(path + "/db")) {
      if (name.find(".sst") != std::string::npos) {
        fs::remove(path + "/db/" + name);
        break;
      }
    }
  }
  SECTION("another point in time") {
    Lease lease;
    REQUIRE(ReadLease(path, &lease) == LeaseState::kGood);
    lease.snapshot_sequence++;
    REQUIRE_OK(WriteLease(path, lease));
    sentence = "expected sequence";
  }
  SECTION("another plan") {
    Lease lease;
    REQUIRE(ReadLease(path, &lease) == LeaseState::kGood);
    lease.plan.low++;
    REQUIRE_OK(WriteLease(path, lease));
    sentence = "plan of the retained snapshot differs";
  }
  TestServer server(bench.Options());
  std::unique_ptr<Channel> control;
  Announced opened;
  RequireState(OpenAs(server.address(), bench.Resume(), &control, &opened),
               EndState::kSnapshotGone, sentence);
  control->Close();
  REQUIRE(WaitForSnapshots(bench.parent(), 0));
}

TEST_CASE("A lease that another process holds is busy", "[held][lease]") {
  StoppedBench bench;
  TestServer server(bench.Options());
  std::unique_ptr<PrivateDir> retained;
  REQUIRE_OK(PrivateDir::Adopt(OnlySnapshot(bench), &retained));
  REQUIRE(retained != nullptr);
  std::unique_ptr<Channel> control;
  Announced opened;
  RequireState(OpenAs(server.address(), bench.Resume(), &control, &opened),
               EndState::kBusy, "in use by another process");
  retained.reset();
  REQUIRE_OK(OpenAs(server.address(), bench.Resume(), &control, &opened));
}

TEST_CASE("A snapshot is adopted only in the directory that was made for it",
          "[held][lease]") {
  StoppedBench bench;
  const std::string path = OnlySnapshot(bench);
  const std::string copy =
      bench.parent() + "/db.sstferry-snapshot-1-0123456789abcdef";
  fs::copy(path, copy, fs::copy_options::recursive);
  std::unique_ptr<PrivateDir> dir;
  REQUIRE(EndStateOf(PrivateDir::Adopt(copy, &dir)) ==
          EndState::kSnapshotGone);
  REQUIRE(dir == nullptr);
  fs::remove_all(copy);
  REQUIRE_OK(PrivateDir::Adopt(path, &dir));
  REQUIRE(dir != nullptr);
}

TEST_CASE("A refused request leaves the lease for the correct request",
          "[held][lease]") {
  StoppedBench bench;
  TestServer server(bench.Options());
  std::unique_ptr<Channel> control;
  Announced opened;
  OpenRequest request = bench.Resume();
  request.chunk_bytes++;
  RequireState(OpenAs(server.address(), request, &control, &opened),
               EndState::kRefused, "with another chunk_bytes than");
  REQUIRE_OK(OpenAs(server.address(), bench.Resume(), &control, &opened));
}

TEST_CASE("A refused request does not extend a lease", "[held][lease]") {
  StoppedBench bench;
  TestServer server(bench.Options());
  bench.clock.Advance(60);
  std::unique_ptr<Channel> control;
  Announced opened;
  OpenRequest request = bench.Resume();
  request.chunk_bytes++;
  RequireState(OpenAs(server.address(), request, &control, &opened),
               EndState::kRefused, "with another chunk_bytes than");
  control->Close();
  bench.clock.Advance(40);
  REQUIRE(server.WaitForLog("removed a snapshot without a valid lease"));
  REQUIRE(SnapshotsIn(bench.parent()).empty());
}

TEST_CASE("A source that retains no snapshots still keeps disk space free",
          "[held][lease]") {
  RetainedBench bench;
  std::atomic<double> free{50};
  ServeOptions options = bench.Options();
  options.snapshot_ttl = std::chrono::seconds(0);
  options.leases.free_percent = [&](const std::string&) {
    return free.load();
  };
  TestServer server(options);
  std::unique_ptr<Channel> control;
  Announced opened;
  REQUIRE_OK(OpenAs(server.address(), SampleRequest(), &control, &opened));
  free = 4.9;
  REQUIRE(EndStateOf(server.Report(0).status) == EndState::kSnapshotGone);
  RequireState(ReceiveEnd(control.get()), EndState::kSnapshotGone,
               "% of the file system of");
}

TEST_CASE("A connected target's lease is renewed", "[held][lease]") {
  RetainedBench bench;
  TestServer server(bench.Options());
  std::unique_ptr<Channel> control;
  Announced opened;
  REQUIRE_OK(OpenAs(server.address(), SampleRequest(), &control, &opened));
  const std::string path = OnlySnapshot(bench);
  Lease lease;
  REQUIRE(ReadLease(path, &lease) == LeaseState::kGood);
  REQUIRE(lease.readers == 1);
  REQUIRE(lease.pinned_bytes > 2'000'000);
  const uint64_t first = lease.renewed_seconds;
  bench.clock.Advance(1000);
  const auto until = Clock::now() + std::chrono::seconds(60);
  while (lease.renewed_seconds != first + 1000 && Clock::now() < until) {
    REQUIRE(ReadLease(path, &lease) == LeaseState::kGood);
  }
  REQUIRE(lease.renewed_seconds == first + 1000);
  REQUIRE(lease.created_seconds == first);
}

TEST_CASE("Low disk space removes idle snapshots, oldest first, then the "
          "largest in use",
          "[held][lease]") {
  RetainedBench bench;
  std::atomic<double> free{50};
  std::atomic<bool> asked_elsewhere{false};
  ServeOptions options = bench.Options();
  options.leases.free_percent = [&](const std::string& directory) {
    if (directory != bench.parent()) {
      asked_elsewhere = true;
    }
    // Each check that finds too little space releases one snapshot.
    return free.exchange(50);
  };
  TestServer server(options);
  std::unique_ptr<Channel> controls[3];
  Announced opened[3];
  for (int i = 0; i < 3; ++i) {
    REQUIRE_OK(OpenAs(server.address(), SampleRequest(), &controls[i],
                      &opened[i]));
  }
  controls[1]->Close();
  server.Report(0);
  bench.clock.Advance(10);
  controls[0]->Close();
  server.Report(1);
  bench.clock.Advance(10);
  for (int i = 0; i < 3; ++i) {
    free = 4.9;
    const TransferReport report = server.Report(2 + i);
    REQUIRE(EndStateOf(report.status) == EndState::kSnapshotGone);
    const int expected[] = {1, 0, 2};
    REQUIRE(report.transfer_id ==
            ToHex(opened[expected[i]].opened.transfer_id));
    if (i == 2) {
      RequireState(ReceiveEnd(controls[2].get()), EndState::kSnapshotGone,
                   "% of the file system of");
    }
  }
  REQUIRE(WaitForSnapshots(bench.parent(), 0));
  REQUIRE_FALSE(asked_elsewhere);
}

}  // namespace
}  // namespace sstferry::lease_test
