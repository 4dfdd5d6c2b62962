// Chooses the next step of a foreground load: an operation, a key and a value.
#pragma once

#include <array>
#include <cstdint>
#include <random>
#include <string>

#include "rocksdb/status.h"

namespace sstferry::bench {

using Random = std::mt19937_64;

// Returns a uniform random number in [0, 1).
double NextShare(Random* random);

enum class Action : uint8_t { kRead = 0, kInsert, kRemove, kUpdate, kScan };
inline constexpr size_t kActions = 5;

// Percentages in the order of Action, "60/10/10/10/10"; omitted ones are 0.
struct Mix {
  std::array<uint32_t, kActions> percent{100, 0, 0, 0, 0};
  Action Next(Random* random) const;
};
// InvalidArgument unless the text has numbers whose sum is 100.
[[nodiscard]] rocksdb::Status ParseMix(const std::string& text, Mix* mix);

// Chooses ranks below `count`, low ranks most often: a Zipfian distribution
// with YCSB's theta of 0.99 (Gray et al., "Quickly generating billion-record
// synthetic databases"), or a uniform one. Threads: any.
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

// Maps neighbouring ranks to numbers below `count` that are far apart.
uint64_t Scramble(uint64_t rank, uint64_t count);

// Fixed, or log-normal around the median with sigma 0.5, limited to a quarter
// and to four times the median (256 to 4096 for 1024). Threads: any.
struct ValueSizes {
  uint64_t median_bytes = 400;
  bool log_normal = false;
  // Returns the same size for every call with the same number.
  uint64_t SizeOf(uint64_t number) const;
};

}  // namespace sstferry::bench
