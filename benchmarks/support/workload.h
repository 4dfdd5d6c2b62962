// What a foreground load does next: which operation, on which key, with which
// value.
#pragma once

#include <array>
#include <cstdint>
#include <random>
#include <string>

#include "rocksdb/status.h"

namespace sstferry::bench {

using Random = std::mt19937_64;

// Uniform in [0, 1).
double NextShare(Random* random);

enum class Action : uint8_t { kRead = 0, kInsert, kRemove, kUpdate, kScan };
inline constexpr size_t kActions = 5;

// Percentages in the order of Action, "60/10/10/10/10"; what is left out is 0.
struct Mix {
  std::array<uint32_t, kActions> percent{100, 0, 0, 0, 0};
  Action Next(Random* random) const;
};
// InvalidArgument unless they are numbers that make 100.
[[nodiscard]] rocksdb::Status ParseMix(const std::string& text, Mix* mix);

// Draws ranks below count, the lowest ones most often: a Zipfian distribution
// with YCSB's theta of 0.99 (Gray et al., "Quickly generating billion-record
// synthetic databases"), or a uniform one. Any thread.
class RankChooser {
 public:
  RankChooser(uint64_t count, bool zipfian);
  uint64_t Next(Random* random) const;
  uint64_t count() const { return count_; }

 private:
  const uint64_t count_;
  const bool zipfian_;
  double zeta_ = 1;
  double alpha_ = 1;
  double eta_ = 1;
};

// Takes neighbouring ranks far apart: some number below count.
uint64_t Scramble(uint64_t rank, uint64_t count);

// Fixed, or log-normal around the median with sigma 0.5, which is cut off at a
// quarter and at four times the median (256 to 4096 of 1024). Any thread.
struct ValueSizes {
  uint64_t median_bytes = 400;
  bool log_normal = false;
  // The same for every call with that number.
  uint64_t SizeOf(uint64_t number) const;
};

}  // namespace sstferry::bench
