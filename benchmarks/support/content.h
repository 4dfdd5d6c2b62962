// Deterministic benchmark content: entry i of a seed is always the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace sstferry::bench {

inline constexpr size_t kKeyBytes = 16;

// Sets key i of `count` keys: ascending in i and spread evenly over the key
// space. The low half is random, so that neighbours share few bytes.
void FillKey(uint64_t seed, uint64_t i, uint64_t count, std::string* key);

// Sets `bytes` bytes of noise that cannot be compressed.
void FillValue(uint64_t seed, uint64_t i, size_t bytes, std::string* value);

// Overwrites all but the first `noise_bytes` bytes with repetitions of them.
void Repeat(size_t noise_bytes, std::string* value);

}  // namespace sstferry::bench
