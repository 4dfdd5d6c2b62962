#include "format/digest_key.h"

#include <string>

#include "format/coding.h"
#include "format/xxh.h"

namespace sstferry {

using rocksdb::Slice;

DigestKey::DigestKey(const Slice& origin) {
  std::string text = origin.ToString();
  text.push_back(0);
  for (size_t at = 0; at < secret_.size(); at += 16, ++text.back()) {
    const Digest128 piece = sstferry::DigestOf(text);
    EncodeFixed64(secret_.data() + at, piece.low);
    EncodeFixed64(secret_.data() + at + 8, piece.high);
  }
}

Digest128 DigestKey::DigestOf(const Slice& data) const {
  const XXH128_hash_t hash = XXH3_128bits_withSecret(
      data.data(), data.size(), secret_.data(), secret_.size());
  return {hash.high64, hash.low64};
}

}  // namespace sstferry
