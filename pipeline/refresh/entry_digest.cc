#include "pipeline/refresh/entry_digest.h"

#include <algorithm>

#include "format/coding.h"

namespace sstferry {

using rocksdb::Slice;

EntryDigester::EntryDigester(const TransferId& transfer_id)
    : key_(Slice(reinterpret_cast<const char*>(transfer_id.data()),
                 transfer_id.size())) {}

Digest128 EntryDigester::DigestOfEntry(const Slice& key, const Slice& value,
                                       bool is_entity) {
  // resize() initializes only the bytes that it adds. These are few, because
  // entries have similar sizes.
  scratch_.resize(5 + key.size() + value.size());
  char* at = scratch_.data();
  *at++ = is_entity ? 1 : 0;
  EncodeFixed32(at, static_cast<uint32_t>(key.size()));
  at = std::copy_n(key.data(), key.size(), at + 4);
  std::copy_n(value.data(), value.size(), at);
  return key_.DigestOf(scratch_);
}

void AddDigest(const Digest128& digest, Digest128Stream* stream) {
  char bytes[16];
  EncodeFixed64(bytes, digest.low);
  EncodeFixed64(bytes + 8, digest.high);
  stream->Add(Slice(bytes, sizeof(bytes)));
}

}  // namespace sstferry
