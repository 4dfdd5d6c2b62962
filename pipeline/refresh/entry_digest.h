// The digests by which both sides of a refresh know entries, and their sums
// (FORMAT.md, "Groups").
#pragma once

#include <cstdint>
#include <string>

#include "format/digest.h"
#include "format/digest_key.h"
#include "format/types.h"
#include "rocksdb/slice.h"

namespace sstferry {

// Computes digests of entries. Their secret is made of the transfer's id, so
// that nobody can prepare entries whose digests or sums are alike. Threads: one.
class EntryDigester {
 public:
  explicit EntryDigester(const TransferId& transfer_id);

  Digest128 DigestOfEntry(const rocksdb::Slice& key,
                          const rocksdb::Slice& value, bool is_entity);

 private:
  const DigestKey key_;
  std::string scratch_;  // an entry
};

// Adds a digest to the stream as it is encoded.
void AddDigest(const Digest128& digest, Digest128Stream* stream);

// Says which entries a part has, whatever their order: how many, and the sum of
// their digests modulo 2^128. Taking away what was never added counts below 0,
// and is undone by adding it.
struct EntrySums {
  uint64_t entries = 0;
  Digest128 sum;

  void Add(const Digest128& digest) {
    ++entries;
    sum = SumOf(sum, digest);
  }
  void Add(const EntrySums& others) {
    entries += others.entries;
    sum = SumOf(sum, others.sum);
  }
  void Remove(const Digest128& digest) {
    --entries;
    sum = DifferenceOf(sum, digest);
  }
  friend bool operator==(const EntrySums&, const EntrySums&) = default;
};

}  // namespace sstferry
