// Tests floods of connections, and peers that request too much, during a good
// transfer.
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <functional>
#include <future>
#include <mutex>
#include <thread>

#include "format/limits.h"
#include "sstferry/target.h"
#include "tests/support/catch.h"
#include "tests/support/certificates.h"
#include "tests/support/fake_peer.h"
#include "tests/support/process.h"
#include "tests/support/raw_tls.h"
#include "tests/support/sample_database.h"
#include "tests/support/sanitizer.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/serve_process.h"
#include "tests/support/test_db.h"

namespace sstferry::limits_test {
namespace {

using rocksdb::Status;
using std::chrono::milliseconds;

WaitLimit Soon() { return WaitLimit::Within(milliseconds(60'000)); }

struct Bench {
  explicit Bench(const std::function<void(ServeOptions*)>& tweak,
                 const TlsFiles& server_tls = {},
                 const TlsFiles& client_tls = {})
      : tls(client_tls) {
    MakeSampleDatabase(dir / "source");
    ServeOptions options = ServeSample(dir / "source");
    tweak(&options);
    server = std::make_unique<TestServer>(options, server_tls);
  }
  PullOptions Pull(const std::string& name) const {
    PullOptions options = PullFrom(server->address(), dir / name);
    options.timeouts.peer = milliseconds(60'000);
    options.tls = tls;
    return options;
  }
  const TlsFiles tls;
  ScratchDir dir;
  std::unique_ptr<TestServer> server;
};

// Opens connections that send nothing, or one byte of TLS.
class Flood {
 public:
  ~Flood() {
    for (const int fd : fds_) {
      close(fd);
    }
  }
  void Add(const HostPort& where, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      fds_.push_back(ConnectRaw(where));
      if (i % 2 == 0) {
        send(fds_.back(), "\x16", 1, MSG_NOSIGNAL);
      }
    }
  }
  size_t size() const { return fds_.size(); }
  // Waits until the server has closed the oldest `count` connections.
  void AwaitClosed(size_t count) {
    for (size_t i = 0; i < count; ++i) {
      char byte = 0;
      const ssize_t got = recv(fds_[i], &byte, 1, 0);
      REQUIRE((got == 0 || (got < 0 && errno == ECONNRESET)));
    }
  }

 private:
  std::vector<int> fds_;
};

size_t DescriptorsOf(pid_t pid) {
  return NamesOf("/proc/" + std::to_string(pid) + "/fd").size();
}

TEST_CASE("A pull waits while others use up the source's descriptors",
          "[bad_input][peer][limits]") {
  if (test::kChecksVptr) {
    return;
  }
  constexpr size_t kMost = 64;
  // Each number makes another step of the pull run out of descriptors: with
  // none free, the connection waits in the kernel; with 15, the agreement on
  // the totals fails. The test tries all numbers, because the steps change with
  // the code.
  const size_t free = GENERATE(range<size_t>(0, 18));
  INFO(free << " descriptors are free");
  ScratchDir dir;
  MakeSampleDatabase(dir / "source");
  ServeProcess server({"--db", "db=" + (dir / "source")}, "127.0.0.1:0",
                      kMost);
  const pid_t pid = server.process().pid();
  HostPort where;
  REQUIRE_OK(ParseHostPort(server.address(), &where));
  auto flood = std::make_unique<Flood>();
  while (DescriptorsOf(pid) + free < kMost) {
    const size_t before = DescriptorsOf(pid);
    flood->Add(where, 1);
    while (DescriptorsOf(pid) == before) {
      std::this_thread::yield();
    }
  }
  Process pull(Sstferry(
      {"pull", server.url(), dir / "target", "--method", "ingest"}));
  // Enough time for every step of this small pull. Now it waits for
  // descriptors, or it is done because it needed fewer.
  const int early = pull.Wait(milliseconds(300));
  CHECK((early == -1 || early == 0));
  flood.reset();
  CHECK(pull.Wait() == 0);
  INFO(pull.err());
  CHECK(EntriesOf(dir / "target") == EntriesOf(dir / "source"));
}

TEST_CASE("A transfer continues during a flood of half-open connections, and "
          "memory stays bounded",
          "[bad_input][peer][limits]") {
  const bool with_tls = GENERATE(false, true);
  INFO("TLS " << with_tls);
  constexpr uint32_t kHalfOpen = 16;
  Bench bench(
      [](ServeOptions* options) {
        options->handshake_timeout = milliseconds(60'000);
        options->max_half_open = 4 * kHalfOpen;
        options->max_half_open_per_address = kHalfOpen;
      },
      with_tls ? GoodPki().server : TlsFiles(),
      with_tls ? GoodPki().client : TlsFiles());
  // The flood may displace a lane that is still in its handshake. Then the lane
  // reconnects.
  PullOptions slow = bench.Pull("slow");
  slow.timeouts.retry = milliseconds(60'000);
  slow.max_rate_bytes_per_sec = 100'000;  // outlasts the flood
  const std::unique_ptr<Operation> pull = MakePull(slow);
  Summary summary;
  auto running = std::async(std::launch::async, [&] {
    return pull->Run(&summary);
  });
  while (pull->progress().done_bytes == 0 &&
         running.wait_for(milliseconds(5)) == std::future_status::timeout) {
  }
  const uint64_t before = PeakRssBytes();
  Flood flood;
  flood.Add(bench.server->address(), 300);
  REQUIRE(pull->progress().finished == false);
  // None of them has to time out: newer connections displace the oldest ones.
  flood.AwaitClosed(flood.size() - kHalfOpen);
  REQUIRE(bench.server->WaitForLog("too many newer connections"));
  REQUIRE(PeakRssBytes() < before + (64u << 20));
  // New pulls still succeed during the flood.
  PullOptions second = bench.Pull("second");
  second.timeouts.retry = slow.timeouts.retry;
  REQUIRE_OK(RunPull(second).status);
  pull->SetMaxRate(0);
  const Status status = running.get();
  REQUIRE_OK(status);
  REQUIRE(summary.entries == 2000);
}

TEST_CASE("Connections from one address have a limit of their own",
          "[bad_input][peer][limits]") {
  Bench bench([](ServeOptions* options) {
    options->max_connections_per_address = 2;
  });
  PullOptions slow = bench.Pull("slow");
  slow.max_rate_bytes_per_sec = 200'000;
  slow.lanes = 1;  // two connections with the control connection
  const std::unique_ptr<Operation> pull = MakePull(slow);
  Summary summary;
  auto running =
      std::async(std::launch::async, [&] { return pull->Run(&summary); });
  while (pull->progress().done_bytes == 0) {
    REQUIRE(running.wait_for(milliseconds(1)) == std::future_status::timeout);
  }
  std::unique_ptr<Channel> third;
  REQUIRE_FALSE(DialControl(bench.server->address(), &third).ok());
  REQUIRE(bench.server->WaitForLog("2 connections from 127.0.0.1 are open"));
  pull->Cancel();
  running.get().PermitUncheckedError();
}

TEST_CASE("Idle connections keep no other client out",
          "[bad_input][peer][limits]") {
  constexpr uint32_t kPlaces = 8;
  Bench bench([](ServeOptions* options) {
    options->max_connections = kPlaces;
    options->max_half_open = kPlaces;
  });
  std::vector<std::unique_ptr<Channel>> idle(kPlaces);
  for (std::unique_ptr<Channel>& channel : idle) {
    REQUIRE_OK(DialControl(bench.server->address(), &channel));
  }
  PullOptions options = bench.Pull("target");
  options.lanes = 2;
  REQUIRE_OK(RunPull(options).status);
  // The oldest idle connection was closed for the pull.
  REQUIRE(EndStateOf(ReceiveEnd(idle.front().get())) == EndState::kDeadPeer);
}

TEST_CASE("A control connection without requests is closed",
          "[bad_input][peer][limits]") {
  Bench bench([](ServeOptions* options) {
    options->request_timeout = milliseconds(300);
  });
  std::unique_ptr<Channel> channel;
  REQUIRE_OK(DialControl(bench.server->address(), &channel));
  // Pings alone do not keep the connection open.
  std::atomic<bool> ended{false};
  auto pinging = std::async(std::launch::async, [&] {
    while (!ended) {
      channel->SendMessage(FrameType::kPing, Ping()).PermitUncheckedError();
      std::this_thread::sleep_for(milliseconds(20));  // the pinging itself
    }
  });
  const Status status = ReceiveEnd(channel.get());
  ended = true;
  pinging.get();
  INFO(status.ToString());
  REQUIRE(EndStateOf(status) == EndState::kDeadPeer);
  REQUIRE(MessageOf(status).find("not done in the time allowed") !=
          std::string::npos);
}

TEST_CASE("A peer that asks more often than needed is denied",
          "[bad_input][peer][limits]") {
  Bench bench([](ServeOptions*) {});
  const HostPort where = bench.server->address();
  std::unique_ptr<Channel> control;
  REQUIRE_OK(DialControl(where, &control));
  auto asking = std::async(std::launch::async, [&] {
    Status status;
    for (int i = 0; i < 20'000 && status.ok(); ++i) {
      status = control->SendMessage(FrameType::kPing, Ping());
    }
  });
  Status status = ReceiveEnd(control.get());
  INFO(status.ToString());
  REQUIRE(EndStateOf(status) == EndState::kDenied);
  control->Close();
  asking.get();

  Opened opened;
  REQUIRE_OK(OpenSample(where, &opened, &control));
  std::unique_ptr<Channel> lane;
  REQUIRE_OK(DialLane(where, opened.transfer_id, 0, &lane));
  DigestRequest nothing;
  nothing.interval.begin = "x";
  nothing.interval.end = "x";
  DigestReply reply;
  int answers = 0;
  for (status = Status::OK(); status.ok() && answers < 100'000; ++answers) {
    // Without pings, a busy source might take this target for dead.
    if (answers % 64 == 0) {
      REQUIRE_OK(control->SendMessage(FrameType::kPing, Ping()));
    }
    status = lane->SendMessage(FrameType::kDigestRequest, nothing);
    if (status.ok()) {
      status = lane->ReceiveMessage(FrameType::kDigestReply, Soon(), &reply);
    }
  }
  INFO(status.ToString());
  REQUIRE(answers > 1024);
  REQUIRE(EndStateOf(status) == EndState::kDenied);
}

TEST_CASE("A lane gets groups and deltas only of parts that are being compared",
          "[bad_input][peer][limits]") {
  const int asked = GENERATE(0, 1, 2);
  const uint32_t part_id = GENERATE(0u, kMaxParts - 1);
  Bench bench([](ServeOptions*) {});
  Opened opened;
  std::unique_ptr<Channel> control;
  REQUIRE_OK(OpenSample(bench.server->address(), &opened, &control));
  std::unique_ptr<Channel> lane;
  REQUIRE_OK(DialLane(bench.server->address(), opened.transfer_id, 0, &lane));
  if (asked == 0) {
    REQUIRE_OK(lane->SendMessage(FrameType::kGroupRequest,
                                 GroupRequest{part_id, 6}));
  } else if (asked == 1) {
    REQUIRE_OK(lane->SendMessage(FrameType::kSiftRequest,
                                 SiftRequest{part_id, {7}, "abc"}));
  } else {
    DeltaRequest request;
    request.part_id = part_id;
    request.groups = {7};
    request.complete = true;
    REQUIRE_OK(lane->SendMessage(FrameType::kDeltaRequest, request));
  }
  const Status status = ReceiveEnd(lane.get());
  INFO(status.ToString());
  REQUIRE(EndStateOf(status) == EndState::kCorrupt);
}

TEST_CASE("A lane must use the certificate of its control connection",
          "[bad_input][peer][limits][tls]") {
  const TestPki& pki = GoodPki();
  const TlsFiles stranger = pki.ca.Issue({"other", {"DNS:other.example"}});
  const TlsFiles renewed =
      pki.ca.Issue({"target", {"DNS:target.example"}});
  Bench bench([](ServeOptions*) {}, pki.server, pki.client);
  const HostPort where = bench.server->address();
  Opened opened;
  std::unique_ptr<Channel> control;
  REQUIRE_OK(OpenSample(where, &opened, &control, nullptr, nullptr,
                        pki.client));
  std::unique_ptr<Channel> lane;
  REQUIRE_OK(DialLane(where, opened.transfer_id, 0, &lane, stranger));
  const Status status = ReceiveEnd(lane.get());
  INFO(status.ToString());
  REQUIRE(EndStateOf(status) == EndState::kDenied);
  REQUIRE(bench.server->WaitForLog("was opened with another certificate"));
  // A new certificate with the same subject is the same peer.
  for (const TlsFiles& files : {pki.client, renewed}) {
    REQUIRE_OK(DialLane(where, opened.transfer_id, 1, &lane, files));
    DigestRequest nothing;
    nothing.interval.begin = "x";
    nothing.interval.end = "x";
    DigestReply reply;
    REQUIRE_OK(lane->SendMessage(FrameType::kDigestRequest, nothing));
    REQUIRE_OK(lane->ReceiveMessage(FrameType::kDigestReply, Soon(), &reply));
    REQUIRE_OK(lane->SendMessage(FrameType::kEnd, End()));
    Frame frame;
    const Status closed = lane->Receive(Soon(), &frame);
    REQUIRE_FALSE((closed.ok() || closed.IsTimedOut()));
  }
}

// Waits until the process has at least, or at most, `count` descriptors.
bool AwaitDescriptors(pid_t pid, bool or_more, size_t count) {
  const auto until = std::chrono::steady_clock::now() + milliseconds(60'000);
  while (std::chrono::steady_clock::now() < until) {
    const size_t now = DescriptorsOf(pid);
    if (or_more ? now >= count : now <= count) {
      return true;
    }
    std::this_thread::yield();
  }
  return false;
}

TEST_CASE("After it ran out of descriptors, serve continues to work",
          "[bad_input][peer][limits]") {
  if (test::kChecksVptr) {
    return;
  }
  ScratchDir dir;
  MakeSampleDatabase(dir / "source");
  constexpr size_t kFew = 128;
  ServeProcess server({"--db", "db=" + (dir / "source")}, "127.0.0.1:0", kFew);
  HostPort where;
  REQUIRE_OK(ParseHostPort(server.address(), &where));
  const pid_t pid = server.process().pid();
  const size_t before = DescriptorsOf(pid);
  {
    Flood flood;
    flood.Add(where, 200);
    REQUIRE(AwaitDescriptors(pid, /*or_more=*/true, kFew));
  }
  // While the server still closes these connections, it has too few descriptors
  // for a snapshot.
  REQUIRE(AwaitDescriptors(pid, /*or_more=*/false, before + 2));
  PullOptions options = PullFrom(where, dir / "target");
  REQUIRE_OK(RunPull(options).status);
}

TEST_CASE("Every lane reads a level 0 with nearly as many files as the server "
          "has descriptors",
          "[bad_input][limits]") {
  if (test::kChecksVptr) {
    return;
  }
  ScratchDir dir;
  constexpr int kFiles = 200;
  const test::Families families = test::OneFamily(test::Quiet());
  {
    test::OpenDb db(dir / "source", families);
    for (int file = 0; file < kFiles; ++file) {
      for (int i = 0; i < 60; ++i) {
        db.Put(test::NumberedKey(i), test::RandomBytes(500, file + i));
      }
      db.Flush();
    }
  }
  ServeProcess server({"--db", "db=" + (dir / "source")}, "127.0.0.1:0",
                      kFiles + 100);
  HostPort where;
  REQUIRE_OK(ParseHostPort(server.address(), &where));
  PullOptions options = PullFrom(where, dir / "target");
  options.lanes = 4;
  options.method = PullMethod::kIngest;
  // A pull waits for descriptors, so only the target's log shows a shortage.
  std::mutex mu;
  std::string lines;
  options.log = [&](LogLevel, const std::string& line) {
    std::lock_guard<std::mutex> lock(mu);
    lines += line + "\n";
  };
  REQUIRE_OK(RunPull(options).status);
  INFO(lines);
  REQUIRE(lines.find("Too many open files") == std::string::npos);
  REQUIRE(test::EntriesOf(dir / "target", families) ==
          test::EntriesOf(dir / "source", families));
}

}  // namespace
}  // namespace sstferry::limits_test
