// Tests pulls over a network that loses connections, damages bytes and stalls.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <thread>

#include "sstferry/target.h"
#include "tests/support/catch.h"
#include "tests/support/certificates.h"
#include "tests/support/fake_peer.h"
#include "tests/support/relay.h"
#include "tests/support/sample_bytes.h"
#include "tests/support/sample_database.h"
#include "tests/support/test_db.h"

namespace sstferry::test::reconnect_test {
namespace {

using std::chrono::milliseconds;

rocksdb::ColumnFamilyOptions SourceOptions() {
  rocksdb::ColumnFamilyOptions options = Quiet();
  options.compression = rocksdb::kNoCompression;
  return options;
}

// Returns 1000 bytes. Every fourth value is compressible.
std::string Value(uint64_t seed) {
  return seed % 4 == 0 ? std::string(1000, static_cast<char>(seed))
                       : RandomBytes(1000, seed);
}

// Makes a source: the first half of the keys is in two files, the second half
// is compacted.
void MakeSource(const std::string& directory, uint64_t entries) {
  OpenDb db(directory, OneFamily(SourceOptions()));
  for (uint64_t i = entries / 2; i < entries; ++i) {
    db.Put(NumberedKey(i), Value(i));
  }
  db.Flush();
  db.Compact();
  for (uint64_t part = 0; part < 2; ++part) {
    for (uint64_t i = part; i < entries / 2; i += 2) {
      db.Put(NumberedKey(i), Value(entries + i));
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
  options.timeouts.peer = milliseconds(2000);
  options.timeouts.retry = milliseconds(60'000);
  return options;
}

// Collects the log lines of both sides, for the message of a failing test.
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

void RequireEqual(const ScratchDir& dir) {
  Expectation expected;
  expected.families = OneFamily(SourceOptions());
  ExpectEqual(dir / "source", dir / "target", expected);
}

TEST_CASE("A pull whose connections are all cut continues by itself",
          "[transfer][reconnect]") {
  const ScratchDir dir;
  MakeSource(dir / "source", 24'000);
  TestServer server(ServeKept(dir / "source"));
  Relay relay(server.address());
  relay.SetRate(Relay::kToClient, 40'000'000);
  PullOptions options = PullOver(relay, dir / "target");
  options.verify = true;
  std::atomic<bool> done{false};
  relay.CutAfter(Relay::kToClient, 3'000'000);
  std::thread cutter([&relay, &done] {
    for (uint64_t at = 3'000'000; at < 22'000'000; at += 3'000'000) {
      relay.CutAfter(Relay::kToClient, at);
      while (!done &&
             !relay.WaitForBytes(Relay::kToClient, at, milliseconds(50))) {
      }
    }
    relay.CutAfter(Relay::kToClient, Relay::kNever);
  });
  const Summary summary = RunPull(options);
  done = true;
  cutter.join();
  INFO(summary.status.ToString());
  REQUIRE(summary.status.ok());
  REQUIRE(summary.verified);
  REQUIRE(summary.retries >= 6);
  // Only bytes in socket buffers, and less than a chunk per lane, are sent
  // twice.
  UNSCOPED_INFO(relay.bytes(Relay::kToClient));
  RequireEqual(dir);
}

// Parts that a lane requested ahead go to other lanes after the resume. Near
// the end, no lane requests ahead.
TEST_CASE("A pull that was cut is resumed with more lanes",
          "[transfer][reconnect]") {
  const ScratchDir dir;
  MakeSource(dir / "source", 6'000);
  struct Lanes {
    uint32_t before;
    uint32_t after;
  };
  const Lanes lanes = GENERATE(Lanes{1, 4}, Lanes{1, 8}, Lanes{2, 4});
  CAPTURE(lanes.before, lanes.after);
  TestServer server(ServeKept(dir / "source"));
  for (uint64_t cut_at = 3'600'000; cut_at < 6'000'000; cut_at += 600'000) {
    CAPTURE(cut_at);
    Relay relay(server.address());
    relay.SetRate(Relay::kToClient, 40'000'000);
    PullOptions options = PullOver(relay, dir / "target");
    options.chunk_bytes = 512u << 10;
    options.lanes = lanes.before;
    options.timeouts.retry = milliseconds(0);
    options.timeouts.peer = milliseconds(60'000);  // a lost peer is not retried
    relay.CutAfter(Relay::kToClient, cut_at);
    const Summary cut = RunPull(options);
    CAPTURE(cut.status.ToString());
    REQUIRE(EndStateOf(cut.status) == EndState::kDeadPeer);
    relay.CutAfter(Relay::kToClient, Relay::kNever);
    options.lanes = lanes.after;
    options.timeouts.stall = milliseconds(60'000);
    const Summary resumed = RunPull(options);
    INFO(resumed.status.ToString());
    REQUIRE(resumed.status.ok());
    REQUIRE(resumed.chunks_resumed > 0);
    RequireEqual(dir);
    std::filesystem::remove_all(dir / "target");
  }
}

struct Night {
  uint64_t entries = 0;
  Relay::Weather weather;
  uint64_t chunk_bytes = 2u << 20;
};

// Pulls with or without compression, and over plain TCP or TLS, chosen by the
// seed.
void PullThroughNight(const ScratchDir& dir, Night night, uint64_t seed) {
  CAPTURE(seed);
  const bool compressed = seed / 2 % 2 == 0;
  const bool tls = seed % 3 == 0;
  TestServer server(ServeKept(dir / "source"),
                    tls ? GoodPki().server : TlsFiles());
  Relay relay(server.address());
  relay.SetRate(Relay::kToClient, 100'000'000);
  night.weather.seed = seed;
  relay.SetWeather(night.weather);
  Lines lines;
  PullOptions options = PullOver(relay, dir / "target");
  options.tls = tls ? GoodPki().client : TlsFiles();
  options.lanes = 4;
  options.chunk_bytes = night.chunk_bytes;
  options.log = lines.log("target");
  options.compression =
      compressed ? WireCompression::kZstd : WireCompression::kNone;
  options.verify = true;
  const auto start = std::chrono::steady_clock::now();
  const Summary summary = RunPull(options);
  const std::chrono::duration<double> took =
      std::chrono::steady_clock::now() - start;
  relay.EndWeather();
  const Relay::Damage damage = relay.damage();
  const uint64_t passed = relay.bytes(Relay::kToClient);
  if (std::getenv("SSTFERRY_NIGHT_SEED") != nullptr) {
    printf("seed %llu%s%s: %.1f s, %llu cuts, %llu flips, %llu stalls, %llu "
           "retries, %llu MB of %llu MB\n",
           static_cast<unsigned long long>(seed),
           compressed ? ", zstd" : "", tls ? ", TLS" : "", took.count(),
           static_cast<unsigned long long>(damage.cuts),
           static_cast<unsigned long long>(damage.flips),
           static_cast<unsigned long long>(damage.stalls),
           static_cast<unsigned long long>(summary.retries),
           static_cast<unsigned long long>(passed / 1'000'000),
           static_cast<unsigned long long>(summary.sst_bytes / 1'000'000));
    fflush(stdout);
  }
  INFO(summary.status.ToString() << "\n" << lines.text());
  REQUIRE(summary.status.ok());
  REQUIRE(summary.verified);
  CHECK(damage.cuts >= 2);
  CHECK(damage.flips >= 1);
  CHECK(damage.stalls >= 1);
  CHECK(summary.retries > 0);
  RequireEqual(dir);
}

TEST_CASE("A pull over a network that cuts, flips and stalls ends by itself",
          "[transfer][reconnect]") {
  const ScratchDir dir;
  MakeSource(dir / "source", 12'000);
  const uint64_t seed = GENERATE(1u, 2u, 3u, 4u);
  Night night;
  night.weather.least_cut_bytes = 200'000;
  night.weather.most_cut_bytes = 6'000'000;
  night.weather.flip_every_bytes = 4'000'000;
  night.weather.stall_every_bytes = 4'000'000;
  night.weather.longest_stall = milliseconds(40);
  PullThroughNight(dir, night, seed);
}

uint64_t Setting(const char* name, uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : std::strtoull(value, nullptr, 10);
}

// SSTFERRY_NIGHT_SEED=N sets the first seed, SSTFERRY_NIGHTS=20 the number of
// seeds.
TEST_CASE("A pull of 220 MB through whole nights ends by itself",
          "[.slow][transfer][reconnect]") {
  const ScratchDir dir;
  MakeSource(dir / "source", 220'000);
  const uint64_t first = Setting("SSTFERRY_NIGHT_SEED", 1);
  const uint64_t nights = Setting("SSTFERRY_NIGHTS", 4);
  for (uint64_t seed = first; seed < first + nights; ++seed) {
    Night night;
    night.weather.least_cut_bytes = 1'000'000;
    night.weather.most_cut_bytes = 50'000'000;
    night.weather.flip_every_bytes = 10'000'000;
    night.weather.stall_every_bytes = 20'000'000;
    night.weather.longest_stall = milliseconds(1000);
    night.chunk_bytes = (uint64_t{1} << (seed / 4 % 4)) << 21;
    PullThroughNight(dir, night, seed);
    std::filesystem::remove_all(dir / "target");
  }
}

TEST_CASE("A pull whose source is gone gives up after its retry time, or at "
          "once when it is cancelled",
          "[transfer][reconnect]") {
  const ScratchDir dir;
  MakeSource(dir / "source", 12'000);
  TestServer server(ServeKept(dir / "source"));
  Relay relay(server.address());
  relay.SetRate(Relay::kToClient, 1'000'000);
  PullOptions options = PullOver(relay, dir / "target");
  const bool cancelled = GENERATE(false, true);
  options.timeouts.retry = milliseconds(cancelled ? 60'000 : 1500);
  // Without this, a short `retry` would also limit the first handshake.
  options.timeouts.first_answer = milliseconds(60'000);
  const std::unique_ptr<Operation> pull = MakePull(options);
  Summary summary;
  std::thread running([&] {
    pull->Run(&summary).PermitUncheckedError();
  });
  const bool begun = relay.WaitForBytes(Relay::kToClient, 300'000);
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
  REQUIRE(took < milliseconds(60'000));  // `retry` if cancelled
  REQUIRE((cancelled || took >= milliseconds(1400)));
}

}  // namespace
}  // namespace sstferry::test::reconnect_test
