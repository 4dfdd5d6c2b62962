#include "tests/support/sample_bytes.h"

#include <algorithm>
#include <iterator>

namespace sstferry::test {

std::string RandomBytes(size_t bytes, uint64_t seed) {
  std::string out(bytes, '\0');
  for (size_t i = 0; i < bytes; i += 8) {
    // SplitMix64: cheap to seed, while mt19937_64 would fill 312 words first.
    uint64_t word = seed += 0x9e3779b97f4a7c15;
    word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9;
    word = (word ^ (word >> 27)) * 0x94d049bb133111eb;
    word ^= word >> 31;
    for (size_t j = i; j < std::min(bytes, i + 8); ++j) {
      out[j] = static_cast<char>(word >> (8 * (j - i)));
    }
  }
  return out;
}

std::string ShrinkingBytes(size_t bytes) {
  std::string text = RandomBytes(bytes, bytes);
  for (size_t i = 0; i < bytes; ++i) {
    if (i % 64 >= 16) {
      text[i] = static_cast<char>('a' + i % 4);
    }
  }
  return text;
}

std::string BytesIn(std::istream& in) {
  return std::string(std::istreambuf_iterator<char>(in), {});
}

}  // namespace sstferry::test
