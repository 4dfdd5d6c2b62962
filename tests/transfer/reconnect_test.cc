// Pulls over a network that loses connections, bytes and time.
#include <atomic>
#include <mutex>
#include <random>
#include <thread>

#include "pipeline/target.h"
#include "tests/support/catch.h"
#include "tests/support/fake_peer.h"
#include "tests/support/relay.h"
#include "tests/support/sample_bytes.h"
#include "tests/support/sample_database.h"
#include "tests/support/test_db.h"

namespace sstferry::test {
namespace {

using std::chrono::milliseconds;

rocksdb::ColumnFamilyOptions SourceOptions() {
  rocksdb::ColumnFamilyOptions options = Quiet();
  options.compression = rocksdb::kNoCompression;
  return options;
}

// The first half of the keys is rebuilt, the second carried in one file.
void MakeSource(const std::string& directory, uint64_t entries) {
  OpenDb db(directory, OneFamily(SourceOptions()));
  for (uint64_t i = entries / 2; i < entries; ++i) {
    db.Put(NumberedKey(i), RandomBytes(1000, i));
  }
  db.Flush();
  db.Compact();
  for (uint64_t part = 0; part < 2; ++part) {
    for (uint64_t i = part; i < entries / 2; i += 2) {
      db.Put(NumberedKey(i), RandomBytes(1000, entries + i));
    }
    db.Flush();
  }
}

ServeOptions ServeKept(const std::string& directory) {
  ServeOptions serve = ServeSample(directory);
  serve.snapshot_ttl = std::chrono::seconds(60);
  return serve;
}

PullOptions PullOver(const Relay& relay, const std::string& target) {
  PullOptions options = PullFrom(relay.address(), target);
  options.lanes = 3;
  options.chunk_bytes = 2u << 20;
  options.compression = WireCompression::kNone;
  options.peer_timeout = milliseconds(2000);
  options.retry_for = milliseconds(60'000);
  return options;
}

// What both sides log, for a test that fails.
class Lines {
 public:
  LogFunction log(const std::string& side) {
    return [this, side](LogLevel, const std::string& line) {
      std::lock_guard<std::mutex> lock(mu_);
      text_ += side + ": " + line + "\n";
    };
  }
  std::string text() {
    std::lock_guard<std::mutex> lock(mu_);
    return text_;
  }

 private:
  std::mutex mu_;
  std::string text_;  // under mu_
};

void RequireEqual(const TempDir& dir) {
  Expectation expected;
  expected.families = OneFamily(SourceOptions());
  ExpectEqual(dir / "source", dir / "target", expected);
}

TEST_CASE("A pull whose connections are all cut goes on by itself",
          "[transfer][reconnect]") {
  const TempDir dir;
  MakeSource(dir / "source", 24'000);
  const CarryMode carry = GENERATE(CarryMode::kAuto, CarryMode::kNever);
  TestServer server(ServeKept(dir / "source"));
  Relay relay(server.address());
  relay.SetRate(Relay::kToClient, 40'000'000);
  PullOptions options = PullOver(relay, dir / "target");
  options.carry = carry;
  options.verify = true;
  std::atomic<bool> done{false};
  std::thread cutter([&relay, &done] {
    for (uint64_t at = 3'000'000; at < 22'000'000; at += 3'000'000) {
      while (!done &&
             !relay.WaitForBytes(Relay::kToClient, at, milliseconds(50))) {
      }
      if (!done) {
        relay.ResetAll();
      }
    }
  });
  const Summary summary = RunPull(options);
  done = true;
  cutter.join();
  INFO(summary.status.ToString());
  REQUIRE(summary.status.ok());
  REQUIRE(summary.verified);
  REQUIRE(summary.retries >= 6);
  // What was sent again is what lay in sockets and less than a chunk a lane.
  UNSCOPED_INFO(relay.bytes(Relay::kToClient));
  RequireEqual(dir);
}

// What a bad night does to all connections of a relay, by chance.
class BadNight {
 public:
  BadNight(Relay* relay, uint64_t seed) : relay_(relay), random_(seed) {
    thread_ = std::thread([this] { Run(); });
  }
  ~BadNight() {
    done_ = true;
    thread_.join();
  }
  int cuts() const { return cuts_; }
  int flips() const { return flips_; }

 private:
  void Run() {
    uint64_t at = 0;
    while (!done_) {
      at += Between(2'000'000, 8'000'000);
      const uint64_t flip_at = relay_->bytes(Relay::kToClient) +
                               Between(1'000'000, 6'000'000);
      relay_->FlipAt(Relay::kToClient, flip_at, 1u << Between(0, 7));
      while (!done_ && !relay_->WaitForBytes(Relay::kToClient, at,
                                             milliseconds(50))) {
      }
      flips_ += relay_->bytes(Relay::kToClient) > flip_at ? 1 : 0;
      if (Between(0, 3) == 0) {
        relay_->SetStall(Relay::kToClient, true);
        relay_->WaitForBytes(Relay::kToClient, Relay::kNever,
                             milliseconds(Between(10, 300)));
        relay_->SetStall(Relay::kToClient, false);
      }
      relay_->ResetAll();
      cuts_++;
      at = std::max(at, relay_->bytes(Relay::kToClient));
    }
    relay_->FlipAt(Relay::kToClient, Relay::kNever);
  }
  uint64_t Between(uint64_t least, uint64_t most) {
    return std::uniform_int_distribution<uint64_t>(least, most)(random_);
  }

  Relay* const relay_;
  std::mt19937_64 random_;
  std::thread thread_;
  std::atomic<bool> done_{false};
  std::atomic<int> cuts_{0};
  std::atomic<int> flips_{0};
};

TEST_CASE("A pull over a network that cuts, flips and stalls ends by itself",
          "[.slow][transfer][reconnect]") {
  const TempDir dir;
  MakeSource(dir / "source", 24'000);
  TestServer server(ServeKept(dir / "source"));
  Relay relay(server.address());
  relay.SetRate(Relay::kToClient, 40'000'000);
  const uint64_t seed = GENERATE(1u, 2u);
  CAPTURE(seed);
  Lines lines;
  PullOptions options = PullOver(relay, dir / "target");
  options.log = lines.log("target");
  options.compression =
      seed == 1 ? WireCompression::kNone : WireCompression::kZstd;
  Summary summary;
  {
    BadNight night(&relay, seed);
    summary = RunPull(options);
    UNSCOPED_INFO(night.cuts() << " cuts, " << night.flips() << " flips");
    CHECK(night.cuts() >= 2);
    CHECK(night.flips() >= 1);
  }
  INFO(summary.status.ToString() << "\n" << lines.text());
  REQUIRE(summary.status.ok());
  REQUIRE(summary.retries > 0);
  RequireEqual(dir);
}

TEST_CASE("A pull whose source is gone for good gives up in time, or at once "
          "when it is cancelled",
          "[transfer][reconnect]") {
  const TempDir dir;
  MakeSource(dir / "source", 12'000);
  TestServer server(ServeKept(dir / "source"));
  Relay relay(server.address());
  relay.SetRate(Relay::kToClient, 4'000'000);
  PullOptions options = PullOver(relay, dir / "target");
  const bool cancelled = GENERATE(false, true);
  options.retry_for = milliseconds(cancelled ? 60'000 : 1500);
  const std::unique_ptr<Operation> pull = MakePull(options);
  Summary summary;
  std::thread running([&] {
    pull->Run(&summary).PermitUncheckedError();
  });
  const bool begun = relay.WaitForBytes(Relay::kToClient, 1'000'000);
  relay.SetRefuse(true);
  relay.ResetAll();
  const auto gone = std::chrono::steady_clock::now();
  if (cancelled) {
    pull->Cancel();
  }
  running.join();
  const auto took = std::chrono::steady_clock::now() - gone;
  REQUIRE(begun);
  INFO(summary.status.ToString());
  REQUIRE(EndStateOf(summary.status) ==
          (cancelled ? EndState::kCancelled : EndState::kDeadPeer));
  REQUIRE(took < milliseconds(cancelled ? 5000 : 1500 + 5000));
  REQUIRE((cancelled || took >= milliseconds(1400)));
}

}  // namespace
}  // namespace sstferry::test
