#include "benchmarks/support/latency.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace sstferry::bench {

namespace {

constexpr unsigned kPartBits = 5;  // 32 buckets for each power of two
constexpr uint64_t kParts = 1u << kPartBits;
constexpr unsigned kMaxBits = 40;
constexpr size_t kBuckets = (kMaxBits - kPartBits + 1) << kPartBits;

// Values below kParts have their own buckets.
size_t BucketOf(uint64_t nanos) {
  nanos = std::min(nanos, (uint64_t{1} << kMaxBits) - 1);
  if (nanos < kParts) return nanos;
  const unsigned shift =
      static_cast<unsigned>(std::bit_width(nanos)) - kPartBits - 1;
  return (shift << kPartBits) + (nanos >> shift);
}

uint64_t UpperBound(size_t bucket) {
  if (bucket < kParts) return bucket;
  const size_t shift = (bucket >> kPartBits) - 1;
  return (((bucket & (kParts - 1)) + kParts + 1) << shift) - 1;
}

}  // namespace

void LatencyHistogram::Add(uint64_t nanos) {
  if (buckets_.empty()) buckets_.resize(kBuckets);
  ++buckets_[BucketOf(nanos)];
  ++count_;
  sum_ += nanos;
  max_ = std::max(max_, nanos);
}

void LatencyHistogram::Merge(const LatencyHistogram& other) {
  if (other.count_ == 0) return;
  if (buckets_.empty()) buckets_.resize(kBuckets);
  for (size_t i = 0; i < kBuckets; ++i) buckets_[i] += other.buckets_[i];
  count_ += other.count_;
  sum_ += other.sum_;
  max_ = std::max(max_, other.max_);
}

double LatencyHistogram::mean_micros() const {
  return count_ == 0 ? 0
                     : static_cast<double>(sum_) /
                           static_cast<double>(count_) / 1e3;
}

double LatencyHistogram::Micros(double share) const {
  const auto wanted = static_cast<uint64_t>(
      std::ceil(share * static_cast<double>(count_)));
  uint64_t passed = 0;
  for (size_t i = 0; i < buckets_.size(); ++i) {
    passed += buckets_[i];
    if (passed >= wanted && passed > 0) {
      return static_cast<double>(std::min(UpperBound(i), max_)) / 1e3;
    }
  }
  return 0;
}

void PhaseTable::Begin(const std::string& name) {
  const size_t size = size_.load(std::memory_order_relaxed);
  if (size == kMaxPhases) return;
  begins_[size] = size == 0 ? 0 : Nanos(Clock::now());
  names_[size] = name;
  size_.store(size + 1, std::memory_order_release);
}

size_t PhaseTable::PhaseAt(int64_t nanos) const {
  size_t phase = size();
  while (phase > 1 && begins_[phase - 1] > nanos) --phase;
  return phase == 0 ? 0 : phase - 1;
}

void LatencyRecorder::Add(OperationKind kind, const PhaseTable& phases,
                          int64_t intended, int64_t nanos) {
  const auto at = static_cast<size_t>(kind);
  const auto second =
      static_cast<size_t>(std::max<int64_t>(0, intended) / 1'000'000'000);
  if (seconds_.size() <= second) seconds_.resize(second + 1);
  const auto value = static_cast<uint64_t>(std::max<int64_t>(0, nanos));
  phases_[phases.PhaseAt(intended)][at].Add(value);
  seconds_[second][at].Add(value);
}

void LatencyRecorder::Merge(const LatencyRecorder& other) {
  if (seconds_.size() < other.seconds_.size()) {
    seconds_.resize(other.seconds_.size());
  }
  for (size_t kind = 0; kind < kOperationKinds; ++kind) {
    for (size_t i = 0; i < phases_.size(); ++i) {
      phases_[i][kind].Merge(other.phases_[i][kind]);
    }
    for (size_t i = 0; i < other.seconds_.size(); ++i) {
      seconds_[i][kind].Merge(other.seconds_[i][kind]);
    }
  }
}

}  // namespace sstferry::bench
