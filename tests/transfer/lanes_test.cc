// Tests how many bytes each lane of a real pull carries, and how fast, counted
// at the target; and a pull whose lanes cannot be started.
#include <sys/syscall.h>

#include <atomic>
#include <cerrno>
#include <mutex>
#include <thread>

#include "format/end_state.h"
#include "pipeline/pull/puller.h"
#include "pipeline/pull/seed_target.h"
#include "tests/support/catch.h"
#include "tests/support/denied_calls.h"
#include "tests/support/fake_peer.h"
#include "tests/support/sample_database.h"
#include "tests/support/test_db.h"

namespace sstferry::test::lanes_test {
namespace {

using std::chrono::steady_clock;

// Counts the bytes that each connection of a pull receives: first the control
// connection, then the lanes in the order of their opening.
class Meter {
 public:
  size_t Connect() {
    std::lock_guard<std::mutex> lock(mu_);
    bytes_.push_back(0);
    if (bytes_.size() == 2) {
      begin_ = steady_clock::now();
    }
    return bytes_.size() - 1;
  }
  void Count(size_t connection, size_t bytes) {
    std::lock_guard<std::mutex> lock(mu_);
    bytes_[connection] += bytes;
    total_ += bytes;
    end_ = steady_clock::now();
  }
  const std::vector<uint64_t>& bytes() const { return bytes_; }
  // Returns the bytes per second from the first lane's connection to the last
  // byte. Does not count `ahead` bytes, which the limit may let pass early. A
  // thread that runs late can only lower the result.
  double Rate(uint64_t ahead) const {
    return static_cast<double>(total_ - ahead) /
           std::chrono::duration<double>(end_ - begin_).count();
  }

 private:
  std::mutex mu_;
  std::vector<uint64_t> bytes_;   // under mu_, and all below
  uint64_t total_ = 0;
  steady_clock::time_point begin_;
  steady_clock::time_point end_;
};

class MeteredConnection : public Connection {
 public:
  MeteredConnection(std::unique_ptr<Connection> base, Meter* meter)
      : base_(std::move(base)), meter_(meter), number_(meter->Connect()) {}
  rocksdb::Status Read(char* buffer, size_t capacity, const WaitLimit& limit,
                       size_t* bytes) override {
    const rocksdb::Status status = base_->Read(buffer, capacity, limit, bytes);
    if (status.ok()) {
      meter_->Count(number_, *bytes);
    }
    return status;
  }
  rocksdb::Status Write(const rocksdb::Slice* parts, size_t part_count,
                        const WaitLimit& limit) override {
    return base_->Write(parts, part_count, limit);
  }
  void Close() override { base_->Close(); }
  const std::string& peer() const override { return base_->peer(); }

 private:
  const std::unique_ptr<Connection> base_;
  Meter* const meter_;
  const size_t number_;
};

class MeteredDialer : public Dialer {
 public:
  MeteredDialer(const HostPort& where, Meter* meter)
      : base_(MakeTcpDialer(where)), meter_(meter) {}
  rocksdb::Status Dial(const WaitLimit& limit,
                       std::unique_ptr<Connection>* connection) override {
    const rocksdb::Status status = base_->Dial(limit, connection);
    if (status.ok()) {
      *connection =
          std::make_unique<MeteredConnection>(std::move(*connection), meter_);
    }
    return status;
  }
  void Close() override { base_->Close(); }
  const std::string& address() const override { return base_->address(); }

 private:
  const std::unique_ptr<Dialer> base_;
  Meter* const meter_;
};

// Pulls dir/"source" into dir/`target` with four lanes over TCP.
Summary PullMetered(const ScratchDir& dir, const std::string& target,
                    uint64_t pull_rate, uint64_t serve_rate, Meter* meter) {
  ServeOptions serve = ServeSample(dir / "source");
  serve.max_rate_bytes_per_sec = serve_rate;
  TestServer server(serve);
  PullOptions options;
  options.source = AddressAt(server.address());
  options.target_dir = dir / target;
  options.chunk_bytes = 256u << 10;
  options.max_rate_bytes_per_sec = pull_rate;
  options.method = PullMethod::kIngest;
  MeteredDialer dialer(server.address(), meter);
  Summary summary;
  Puller puller(options, &dialer, [](const TargetInputs& inputs) {
    return std::make_unique<SeedTarget>(inputs);
  });
  REQUIRE_OK(puller.Run(&summary));
  return summary;
}

TEST_CASE("Lanes carry the same payload whatever the shape of the source",
          "[transfer][lanes]") {
  const ScratchDir dir;
  rocksdb::ColumnFamilyOptions options = Quiet();
  options.compression = rocksdb::kNoCompression;
  {
    OpenDb db(dir / "source", OneFamily(options));
    SECTION("values of very different sizes, with the large ones together") {
      for (uint64_t i = 0; i < 10'000; ++i) {
        const size_t bytes = i < 7000 ? 60 : i < 9700 ? 700 : 20'000;
        db.Put(NumberedKey(i), RandomBytes(bytes, i));
      }
      db.Flush();
    }
    SECTION("one huge file") {
      for (uint64_t i = 0; i < 8000; ++i) {
        db.Put(NumberedKey(i), RandomBytes(1000, i));
      }
      db.Flush();
      db.Compact();
      REQUIRE(FileCount(dir / "source", ".sst") == 1);
    }
    SECTION("all in level 0, each file over all keys") {
      for (uint64_t file = 0; file < 6; ++file) {
        for (uint64_t i = file; i < 8000; i += 6) {
          db.Put(NumberedKey(i), RandomBytes(1000, i));
        }
        db.Flush();
      }
      REQUIRE(FileCount(dir / "source", ".sst") == 6);
    }
  }
  Meter meter;
  // The rate limit imitates a slow network, so that the wire delays the lanes,
  // not the scheduler of a small machine.
  const Summary summary =
      PullMetered(dir, "target", 3'000'000, 0, &meter);
  REQUIRE(summary.lanes == 4);
  REQUIRE(meter.bytes().size() == 5);
  uint64_t sum = 0;
  uint64_t most = 0;
  for (size_t lane = 1; lane <= 4; ++lane) {
    UNSCOPED_INFO("lane " << lane << ": " << meter.bytes()[lane]);
    sum += meter.bytes()[lane];
    most = std::max(most, meter.bytes()[lane]);
  }
  REQUIRE(sum > 7'000'000);
  REQUIRE(static_cast<double>(most) <= 1.5 * static_cast<double>(sum) / 4);
}

// Does not check a lower bound, because a busy machine sends less than the
// limit. The tests of TokenBucket check that.
TEST_CASE("A pull is never faster than the rate limit of pull or of serve",
          "[transfer][lanes]") {
  const ScratchDir dir;
  rocksdb::ColumnFamilyOptions options = Quiet();
  options.compression = rocksdb::kNoCompression;
  {
    OpenDb db(dir / "source", OneFamily(options));
    for (uint64_t i = 0; i < 20'000; ++i) {
      db.Put(NumberedKey(i), RandomBytes(1000, i));
    }
    db.Flush();
  }
  constexpr uint64_t kRate = 4'000'000;
  const bool at_pull = GENERATE(true, false);
  Meter meter;
  PullMetered(dir, "target", at_pull ? kRate : 0, at_pull ? 0 : kRate, &meter);
  // The limit lets the bucket's burst and a chunk of each lane pass early,
  // because a lane reads a frame before it waits.
  constexpr uint64_t kAhead = kRate / 10 + 4 * 300'000;
  REQUIRE(meter.Rate(kAhead) > 0);
  REQUIRE(meter.Rate(kAhead) < 1.05 * kRate);
}

TEST_CASE("A pull that cannot start a thread fails, and the next one succeeds",
          "[transfer][lanes]") {
  const ScratchDir dir;
  MakeSampleDatabase(dir / "source");
  TestServer server(ServeSample(dir / "source"));
  PullOptions options = PullFrom(server.address(), dir / "target");
  options.method = PullMethod::kClone;
  bool is_denied = false;
  const auto deny = [&is_denied] {
    is_denied = DenyInThisThread({{SYS_clone, EAGAIN}, {SYS_clone3, EAGAIN}});
  };
  const bool at_lanes = GENERATE(true, false);
  if (at_lanes) {
    options.on_transfer = [&deny](const std::string&) { deny(); };
  } else {
    options.deadline = std::chrono::minutes(1);
  }
  Summary failed;
  std::thread([&] {
    if (!at_lanes) deny();
    failed = RunPull(options);
  }).join();
  if (!is_denied) {
    WARN("SKIPPED: the kernel filters no calls");
    return;
  }
  INFO(failed.status.ToString());
  REQUIRE(EndStateOf(failed.status) == EndState::kInternal);
  REQUIRE(failed.status.ToString().find("cannot start a thread") !=
          std::string::npos);
  options.on_transfer = nullptr;
  REQUIRE_OK(RunPull(options).status);
}

}  // namespace
}  // namespace sstferry::test::lanes_test
