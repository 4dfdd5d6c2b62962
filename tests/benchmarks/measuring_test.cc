// Tests the code that measures the figures of benchmarks/serving.
#include <algorithm>
#include <cmath>
#include <vector>

#include "benchmarks/support/latency.h"
#include "benchmarks/support/workload.h"
#include "tests/support/catch.h"

namespace sstferry::bench {
namespace {

TEST_CASE("A histogram's percentiles are those of its values within 1/32",
          "[benchmarks]") {
  Random random(7);
  std::vector<uint64_t> values;
  LatencyHistogram histogram;
  LatencyHistogram other;
  for (int i = 0; i < 20'000; ++i) {
    // The values spread over nine decades.
    const auto nanos =
        static_cast<uint64_t>(std::pow(10.0, 9 * NextShare(&random)));
    values.push_back(nanos);
    (i % 2 == 0 ? histogram : other).Add(nanos);
  }
  histogram.Merge(other);
  std::sort(values.begin(), values.end());
  REQUIRE(histogram.count() == values.size());
  REQUIRE(histogram.max_micros() ==
          static_cast<double>(values.back()) / 1e3);
  for (const double share : {0.01, 0.5, 0.9, 0.99, 0.999, 1.0}) {
    const double exact =
        static_cast<double>(values[static_cast<size_t>(
            std::ceil(share * 20'000)) - 1]) / 1e3;
    INFO("share " << share << " exact " << exact);
    REQUIRE(histogram.Micros(share) >= exact);
    REQUIRE(histogram.Micros(share) <= exact * (1 + 1.0 / 32));
  }
}

TEST_CASE("Latencies count for the phase and second of the intended time",
          "[benchmarks]") {
  PhaseTable phases;
  phases.Begin("first");
  LatencyRecorder recorder;
  recorder.Add(OperationKind::kGet, phases, 10, 1'000);
  phases.Begin("second");
  const int64_t began = phases.begin(1);
  REQUIRE(phases.PhaseAt(began - 1) == 0);
  REQUIRE(phases.PhaseAt(began) == 1);
  // The operation was due in the first phase, so it counts there, no matter
  // when it ended.
  recorder.Add(OperationKind::kGet, phases, began - 1, 5'000'000'000);
  recorder.Add(OperationKind::kWrite, phases, began + 3'000'000'000, 1'000);
  const auto at = [](OperationKind kind) { return static_cast<size_t>(kind); };
  REQUIRE(recorder.phase(0)[at(OperationKind::kGet)].count() == 2);
  REQUIRE(recorder.phase(1)[at(OperationKind::kGet)].count() == 0);
  REQUIRE(recorder.phase(1)[at(OperationKind::kWrite)].count() == 1);
  REQUIRE(recorder.seconds().size() == 4);
  REQUIRE(recorder.seconds()[0][at(OperationKind::kGet)].count() == 2);
  REQUIRE(recorder.seconds()[3][at(OperationKind::kWrite)].count() == 1);
}

TEST_CASE("A mix must add up to 100, and its actions are drawn in these shares",
          "[benchmarks]") {
  Mix mix;
  for (const char* wrong : {"", "90", "90/20", "90/-10/20", "1/1/1/1/1/95",
                            "a/100", "100/0/0/0/0/0", "4294967396"}) {
    INFO(wrong);
    REQUIRE(ParseMix(wrong, &mix).IsInvalidArgument());
  }
  REQUIRE(ParseMix("60/10/10/10/10", &mix).ok());
  Random random(3);
  int counts[kActions] = {};
  for (int i = 0; i < 100'000; ++i) {
    ++counts[static_cast<size_t>(mix.Next(&random))];
  }
  REQUIRE(std::abs(counts[0] - 60'000) < 1'000);
  for (size_t i = 1; i < kActions; ++i) {
    REQUIRE(std::abs(counts[i] - 10'000) < 1'000);
  }
}

TEST_CASE("Zipfian ranks are drawn as often as their weights say",
          "[benchmarks]") {
  constexpr uint64_t kCount = 1'000;
  constexpr int kDrawn = 400'000;
  const RankChooser chooser(kCount, /*zipfian=*/true);
  Random random(11);
  std::vector<double> counts(kCount);
  for (int i = 0; i < kDrawn; ++i) ++counts.at(chooser.Next(&random));
  double zeta = 0;
  for (uint64_t i = 1; i <= kCount; ++i) {
    zeta += std::pow(static_cast<double>(i), -0.99);
  }
  REQUIRE(std::abs(counts[0] / kDrawn * zeta - 1) < 0.03);
  REQUIRE(std::abs(counts[1] / kDrawn * zeta - std::pow(2, -0.99)) < 0.03);
  const double tail = std::count_if(counts.begin() + 500, counts.end(),
                                    [](double n) { return n > 0; });
  REQUIRE(tail > 450);  // nearly all rare ranks are drawn
}

TEST_CASE("Log-normal sizes are around their median and within bounds",
          "[benchmarks]") {
  const ValueSizes sizes{1024, /*log_normal=*/true};
  std::vector<uint64_t> drawn;
  for (uint64_t i = 0; i < 20'000; ++i) drawn.push_back(sizes.SizeOf(i));
  REQUIRE(sizes.SizeOf(5) == drawn[5]);
  std::sort(drawn.begin(), drawn.end());
  REQUIRE(drawn.front() >= 256);
  REQUIRE(drawn.back() <= 4096);
  REQUIRE(std::abs(static_cast<double>(drawn[10'000]) - 1024) < 30);
  // One sigma above the median: exp(0.5) times the median.
  REQUIRE(std::abs(static_cast<double>(drawn[16'827]) - 1688) < 60);
}

}  // namespace
}  // namespace sstferry::bench
