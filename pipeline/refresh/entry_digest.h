// Digests with which the source and the target compare entries, and sums of
// these digests (FORMAT.md, "Groups").
#pragma once

#include <cstdint>
#include <string>

#include "format/digest.h"
#include "format/digest_key.h"
#include "format/types.h"
#include "rocksdb/slice.h"

namespace sstferry {

// Computes digests of entries. The digests depend on the transfer's random id,
// so nobody can prepare different entries with equal digests or sums. Threads:
// one.
class EntryDigester {
 public:
  explicit EntryDigester(const TransferId& transfer_id);

  Digest128 DigestOfEntry(const rocksdb::Slice& key,
                          const rocksdb::Slice& value, bool is_entity);

 private:
  const DigestKey key_;
  std::string scratch_;  // an encoded entry
};

// Adds the encoded digest to the stream.
void AddDigest(const Digest128& digest, Digest128Stream* stream);

// Identifies a set of entries in any order, by their number and the sum of
// their digests modulo 2^128. Remove() may be called before Add() for the same
// entry: both numbers wrap around.
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
