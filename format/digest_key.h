// Digests with a secret, and sums and differences of digests.
#pragma once

#include <array>
#include <cstdint>

#include "format/digest.h"
#include "rocksdb/slice.h"

namespace sstferry {

// Computes XXH3-128 with a secret. Without the secret, nobody can construct
// data whose digests or sums collide (FORMAT.md, "Groups").
class DigestKey {
 public:
  // Derives the secret from the bytes in `origin`.
  explicit DigestKey(const rocksdb::Slice& origin);
  Digest128 DigestOf(const rocksdb::Slice& data) const;

 private:
  std::array<char, 192> secret_;
};

// Return the sum and the difference modulo 2^128.
inline Digest128 SumOf(const Digest128& a, const Digest128& b) {
  const uint64_t low = a.low + b.low;
  return {a.high + b.high + (low < b.low ? 1 : 0), low};
}
inline Digest128 DifferenceOf(const Digest128& a, const Digest128& b) {
  return {a.high - b.high - (a.low < b.low ? 1 : 0), a.low - b.low};
}

}  // namespace sstferry
