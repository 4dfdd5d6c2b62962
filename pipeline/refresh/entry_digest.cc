#include "pipeline/refresh/entry_digest.h"

#include <algorithm>

#include "format/coding.h"

namespace sstferry {

using rocksdb::Slice;

EntryDigester::EntryDigester(const TransferId& salt)
    : salt_bytes_(salt.size()),
      scratch_(reinterpret_cast<const char*>(salt.data()), salt.size()) {}

Digest128 EntryDigester::DigestOfEntry(const Slice& key, const Slice& value,
                                       bool is_entity) {
  // After the salt, which stays. Sizes are alike from entry to entry, so that
  // this rarely fills anything.
  scratch_.resize(salt_bytes_ + 5 + key.size() + value.size());
  char* at = scratch_.data() + salt_bytes_;
  *at++ = is_entity ? 1 : 0;
  EncodeFixed32(at, static_cast<uint32_t>(key.size()));
  at = std::copy_n(key.data(), key.size(), at + 4);
  std::copy_n(value.data(), value.size(), at);
  return DigestOf(scratch_);
}

void AddDigest(const Digest128& digest, Digest128Stream* stream) {
  char bytes[16];
  EncodeFixed64(bytes, digest.low);
  EncodeFixed64(bytes + 8, digest.high);
  stream->Add(Slice(bytes, sizeof(bytes)));
}

}  // namespace sstferry
