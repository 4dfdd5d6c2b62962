#include "benchmarks/support/workload.h"

#include <algorithm>
#include <cmath>
#include <sstream>

namespace sstferry::bench {

namespace {

constexpr double kTheta = 0.99;
constexpr double kSigma = 0.5;
// From here on, the sum of the harmonic series is approximated by an integral.
constexpr uint64_t kSummed = 1'000'000;

double Zeta(uint64_t count) {
  double sum = 0;
  const uint64_t summed = std::min(count, kSummed);
  for (uint64_t i = 1; i <= summed; ++i) {
    sum += std::pow(static_cast<double>(i), -kTheta);
  }
  const double power = 1 - kTheta;
  return sum + (std::pow(static_cast<double>(count) + 0.5, power) -
                std::pow(static_cast<double>(summed) + 0.5, power)) /
                   power;
}

uint64_t MixBits(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

double ShareOf(uint64_t bits) {
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

}  // namespace

double NextShare(Random* random) { return ShareOf((*random)()); }

rocksdb::Status ParseMix(const std::string& text, Mix* mix) {
  mix->percent.fill(0);
  std::istringstream words(text);
  uint32_t sum = 0;
  size_t at = 0;
  for (std::string word; std::getline(words, word, '/'); ++at) {
    const bool number =
        !word.empty() && word.size() <= 3 &&
        word.find_first_not_of("0123456789") == std::string::npos;
    if (!number || at >= kActions) {
      return rocksdb::Status::InvalidArgument(
          "expected at most five percentages, found " + text);
    }
    mix->percent[at] = static_cast<uint32_t>(std::stoul(word));
    sum += mix->percent[at];
  }
  if (sum != 100) {
    return rocksdb::Status::InvalidArgument(
        "expected percentages that make 100, found " + text);
  }
  return rocksdb::Status::OK();
}

Action Mix::Next(Random* random) const {
  auto drawn = static_cast<uint32_t>(NextShare(random) * 100);
  for (size_t i = 0; i < kActions; ++i) {
    if (drawn < percent[i]) return static_cast<Action>(i);
    drawn -= percent[i];
  }
  return Action::kRead;
}

RankChooser::RankChooser(uint64_t count, bool zipfian)
    : count_(std::max<uint64_t>(1, count)), zipfian_(zipfian) {
  if (!zipfian_) return;
  zeta_ = Zeta(count_);
  alpha_ = 1 / (1 - kTheta);
  eta_ = (1 - std::pow(2.0 / static_cast<double>(count_), 1 - kTheta)) /
         (1 - Zeta(2) / zeta_);
}

uint64_t RankChooser::Next(Random* random) const {
  const double u = NextShare(random);
  const auto count = static_cast<double>(count_);
  if (!zipfian_) return static_cast<uint64_t>(u * count);
  const double uz = u * zeta_;
  if (uz < 1) return 0;
  if (uz < 1 + std::pow(0.5, kTheta)) return std::min<uint64_t>(1, count_ - 1);
  const auto rank =
      static_cast<uint64_t>(count * std::pow(eta_ * u - eta_ + 1, alpha_));
  return std::min(rank, count_ - 1);
}

uint64_t Scramble(uint64_t rank, uint64_t count) {
  return MixBits(rank + 0x9e3779b97f4a7c15ull) % count;
}

uint64_t ValueSizes::SizeOf(uint64_t number) const {
  if (!log_normal) return median_bytes;
  const uint64_t bits = MixBits(number * 2 + 0x632be59bd9b4e019ull);
  const double u = std::max(ShareOf(bits), 1e-12);
  const double v = ShareOf(MixBits(bits));
  const double normal = std::sqrt(-2 * std::log(u)) * std::cos(6.2831853 * v);
  const auto median = static_cast<double>(median_bytes);
  return static_cast<uint64_t>(std::clamp(
      median * std::exp(kSigma * normal), median / 4, median * 4));
}

}  // namespace sstferry::bench
