// Latencies by kind of operation, phase and second. Latency counts from the
// intended send time.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace sstferry::bench {

using Clock = std::chrono::steady_clock;

// Buckets whose bounds differ by 1/32, from 1 ns to 18 minutes; longer
// latencies count as 18 minutes. Allocates memory for its first value.
class LatencyHistogram {
 public:
  void Add(uint64_t nanos);
  void Merge(const LatencyHistogram& other);

  uint64_t count() const { return count_; }
  double mean_micros() const;
  double max_micros() const { return static_cast<double>(max_) / 1e3; }
  // Returns the upper bound of the bucket that contains this share of the
  // values, at most the maximum; 0 if there are no values.
  double Micros(double share) const;

 private:
  std::vector<uint32_t> buckets_;
  uint64_t count_ = 0;
  uint64_t sum_ = 0;
  uint64_t max_ = 0;
};

enum class OperationKind : uint8_t { kGet = 0, kScan, kWrite, kHeartbeat };
inline constexpr size_t kOperationKinds = 4;
inline constexpr const char* kOperationNames[kOperationKinds] = {
    "get", "scan", "write", "heartbeat"};

// Maps times to phases. Call Begin() from one thread, all other functions from
// any.
class PhaseTable {
 public:
  static constexpr size_t kMaxPhases = 32;

  // Ends the current phase. The first phase begins at time 0, whenever it is
  // begun; phases beyond kMaxPhases are part of the last one.
  void Begin(const std::string& name);

  Clock::time_point start() const { return start_; }
  // Returns nanoseconds since start().
  int64_t Nanos(Clock::time_point moment) const {
    return std::chrono::nanoseconds(moment - start_).count();
  }
  size_t PhaseAt(int64_t nanos) const;
  size_t size() const { return size_.load(std::memory_order_acquire); }
  // Return facts about a phase. REQUIRES: it is below size().
  const std::string& name(size_t phase) const { return names_[phase]; }
  int64_t begin(size_t phase) const { return begins_[phase]; }

 private:
  const Clock::time_point start_ = Clock::now();
  std::array<int64_t, kMaxPhases> begins_{};
  std::array<std::string, kMaxPhases> names_;
  std::atomic<size_t> size_{0};
};

// The histograms of one thread, or the sum of several.
class LatencyRecorder {
 public:
  using Kinds = std::array<LatencyHistogram, kOperationKinds>;

  // `intended`: time since the start of `phases`; determines phase and second.
  void Add(OperationKind kind, const PhaseTable& phases, int64_t intended,
           int64_t nanos);
  void Merge(const LatencyRecorder& other);

  const Kinds& phase(size_t phase) const { return phases_[phase]; }
  const std::vector<Kinds>& seconds() const { return seconds_; }

 private:
  std::array<Kinds, PhaseTable::kMaxPhases> phases_;
  std::vector<Kinds> seconds_;
};

}  // namespace sstferry::bench
