#include "benchmarks/support/content.h"

#include <cstring>

namespace sstferry::bench {

namespace {

// SplitMix64: advances the state and returns the mixed word.
uint64_t NextWord(uint64_t* state) {
  uint64_t z = (*state += 0x9e3779b97f4a7c15ull);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

uint64_t StateOf(uint64_t seed, uint64_t i, uint64_t stream) {
  uint64_t state = seed * 0x2545f4914f6cdd1dull + i * 4 + stream;
  return NextWord(&state);
}

}  // namespace

void FillKey(uint64_t seed, uint64_t i, uint64_t count, std::string* key) {
  key->resize(kKeyBytes);
  const uint64_t step = ~uint64_t{0} / (count + 1);
  const uint64_t high = (i + 1) * step;
  uint64_t state = StateOf(seed, i, 0);
  const uint64_t low = NextWord(&state);
  for (size_t b = 0; b < 8; ++b) {
    (*key)[b] = static_cast<char>(high >> (56 - 8 * b));
    (*key)[8 + b] = static_cast<char>(low >> (56 - 8 * b));
  }
}

void FillValue(uint64_t seed, uint64_t i, size_t bytes, std::string* value) {
  value->resize(bytes);
  uint64_t state = StateOf(seed, i, 1);
  for (size_t at = 0; at < bytes; at += 8) {
    const uint64_t word = NextWord(&state);
    std::memcpy(value->data() + at, &word, bytes - at < 8 ? bytes - at : 8);
  }
}

void Repeat(size_t noise_bytes, std::string* value) {
  for (size_t at = noise_bytes; at < value->size(); ++at) {
    (*value)[at] = noise_bytes == 0 ? 'v' : (*value)[at - noise_bytes];
  }
}

}  // namespace sstferry::bench
