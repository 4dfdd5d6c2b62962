// Deterministic benchmark content: entry i of a seed is always the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace sstferry::bench {

inline constexpr size_t kKeyBytes = 16;

// Key i of count: ascending in i, spread evenly over the key space, the low
// half random, so that neighbours share few bytes.
void FillKey(uint64_t seed, uint64_t i, uint64_t count, std::string* key);

// bytes of noise that no compressor shrinks.
void FillValue(uint64_t seed, uint64_t i, size_t bytes, std::string* value);

// Overwrites all but the first `noise_bytes` with repetitions of them.
void Repeat(size_t noise_bytes, std::string* value);

}  // namespace sstferry::bench
