#include "tests/support/sample_bytes.h"

#include <algorithm>
#include <iterator>
#include <random>

namespace sstferry::test {

std::string RandomBytes(size_t bytes, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::string out(bytes, '\0');
  for (size_t i = 0; i < bytes; i += 8) {
    const uint64_t word = random();
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
