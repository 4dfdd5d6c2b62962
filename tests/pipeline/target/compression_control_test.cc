// The decisions of --compress auto, for invented measurements.
#include "pipeline/pull/compression_control.h"

#include <vector>

#include "tests/support/catch.h"

namespace sstferry::compression_control_test {
namespace {

constexpr uint64_t kSecond = 1'000'000;
constexpr int kLanes = 4;

// A transfer whose lanes wait for given shares of their time.
class Fed {
 public:
  // Adds a second of the transfer. Returns true if compression is on then.
  bool Second(double source_blocked, double target_blocked,
              double megabytes = 10, uint64_t micros = kSecond) {
    const uint64_t lane_micros = kLanes * micros;
    now_.wall_micros += micros;
    now_.source_active_micros += lane_micros;
    now_.target_active_micros += lane_micros;
    now_.source_blocked_micros +=
        static_cast<uint64_t>(source_blocked * lane_micros);
    now_.target_blocked_micros +=
        static_cast<uint64_t>(target_blocked * lane_micros);
    now_.sst_bytes += static_cast<uint64_t>(megabytes * 1e6);
    return control_.Decide(now_);
  }
  bool Seconds(int count, double source_blocked, double target_blocked,
               double megabytes = 10) {
    for (int i = 0; i < count; ++i) {
      Second(source_blocked, target_blocked, megabytes);
    }
    return control_.on();
  }
  // Returns how many seconds pass until compression is `on`, at most 300.
  int Until(bool on, double source_blocked, double target_blocked,
            double megabytes = 10) {
    int seconds = 0;
    while (control_.on() != on && seconds < 300) {
      Second(source_blocked, target_blocked, megabytes);
      ++seconds;
    }
    return seconds;
  }
  CompressionSample* sample() { return &now_; }
  CompressionControl* control() { return &control_; }

 private:
  CompressionSample now_;
  CompressionControl control_;
};

TEST_CASE("Compression begins within seconds if both sides wait",
          "[target][compression]") {
  Fed fed;
  REQUIRE_FALSE(fed.Second(0.95, 0.95));
  REQUIRE(fed.Second(0.95, 0.95));
}

TEST_CASE("Compression stays off if one side is busy",
          "[target][compression]") {
  const std::vector<std::pair<double, double>> shares = {
      {0.2, 0.7},    // loopback: building takes the time
      {0.95, 0.3},   // the target's disk is slow
      {0.95, 0.74},  // just below the limit
      {0.05, 0.99},  // the source is slow
      {0.0, 0.0},
      // pull --max-rate: both wait, but the target does not wait for the link
      {0.98, 0.0}};
  for (const auto& [source, target] : shares) {
    INFO(source << " " << target);
    Fed fed;
    REQUIRE_FALSE(fed.Seconds(200, source, target));
  }
}

TEST_CASE("One window is not enough to begin", "[target][compression]") {
  Fed fed;
  for (int i = 0; i < 50; ++i) {
    REQUIRE_FALSE(fed.Second(0.99, 0.99));
    REQUIRE_FALSE(fed.Second(0.5, 0.99));
  }
}

TEST_CASE("Compression stays on while the link is the bottleneck",
          "[target][compression]") {
  Fed fed;
  REQUIRE(fed.Seconds(3, 0.95, 0.95));
  // This also holds for data that does not shrink: trying costs nothing then.
  REQUIRE(fed.Seconds(300, 0.9, 0.9, 10));
}

TEST_CASE("Compression that is limited by the CPU but faster stays on",
          "[target][compression]") {
  Fed fed;
  REQUIRE(fed.Seconds(2, 0.95, 0.95, 10));
  REQUIRE(fed.Seconds(20, 0.1, 0.9, 30));
}

TEST_CASE(
    "Compression that is limited by the CPU and not faster ends for a while",
    "[target][compression]") {
  Fed fed;
  REQUIRE(fed.Seconds(2, 0.8, 0.8, 100));
  for (int i = 0; i < 3; ++i) {
    REQUIRE(fed.Until(false, 0.1, 0.8, 105) ==
            CompressionControl::kWindowsToEnd);
    // A pause of a minute, and a second window to be sure.
    REQUIRE(fed.Until(true, 0.8, 0.8, 100) == 61);
  }
}

TEST_CASE("One useful window lets compression continue",
          "[target][compression]") {
  Fed fed;
  REQUIRE(fed.Seconds(2, 0.8, 0.8, 100));
  for (int i = 0; i < 50; ++i) {
    REQUIRE(fed.Seconds(CompressionControl::kWindowsToEnd - 1, 0.1, 0.8, 105));
    REQUIRE(fed.Seconds(1, 0.1, 0.8, 150));
  }
}

TEST_CASE("A window ends only when lanes have recorded their time",
          "[target][compression]") {
  Fed fed;
  // A lane records its time when a frame is sent. That takes long on a slow
  // link.
  for (int i = 0; i < 20; ++i) {
    fed.sample()->wall_micros += kSecond;
    REQUIRE_FALSE(fed.control()->Decide(*fed.sample()));
  }
  REQUIRE_FALSE(fed.Second(0.99, 0.99));
  for (int i = 0; i < 20; ++i) {
    fed.sample()->wall_micros += kSecond;
    REQUIRE_FALSE(fed.control()->Decide(*fed.sample()));
  }
  REQUIRE(fed.Second(0.99, 0.99));
  // Samples that follow each other too quickly are combined.
  Fed quick;
  for (int i = 0; i < 13; ++i) {
    REQUIRE_FALSE(quick.Second(0.99, 0.99, 1, 100'000));
  }
  REQUIRE(quick.Second(0.99, 0.99, 1, 100'000));
}

TEST_CASE("Measurements of a peer that go backwards do no harm",
          "[target][compression]") {
  Fed fed;
  REQUIRE_FALSE(fed.Second(0.99, 0.99));
  fed.sample()->source_blocked_micros = ~uint64_t{0};
  REQUIRE(fed.Second(0, 0.99));
  fed.sample()->source_blocked_micros = 0;
  fed.sample()->source_active_micros = 0;
  REQUIRE(fed.Seconds(10, 0.9, 0.9));
}

}  // namespace
}  // namespace sstferry::compression_control_test
