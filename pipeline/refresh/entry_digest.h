// The digests by which both sides of a refresh know entries (FORMAT.md,
// "Groups").
#pragma once

#include <cstdint>
#include <string>

#include "format/digest.h"
#include "format/types.h"
#include "rocksdb/slice.h"

namespace sstferry {

// Computes digests of entries. `salt` is the transfer's id, so that nobody can
// prepare two entries with one digest. Threads: one.
class EntryDigester {
 public:
  explicit EntryDigester(const TransferId& salt);

  Digest128 DigestOfEntry(const rocksdb::Slice& key,
                          const rocksdb::Slice& value, bool is_entity);

 private:
  const size_t salt_bytes_;
  std::string scratch_;  // the salt, and an entry after it
};

// Adds a digest to the stream as it is encoded.
void AddDigest(const Digest128& digest, Digest128Stream* stream);

// Sums up entries that were read, however many. Threads: one.
class EntrySums {
 public:
  // REQUIRES: in key order.
  void Add(const Digest128& digest, uint64_t key_value_bytes) {
    ++entries_;
    key_value_bytes_ += key_value_bytes;
    AddDigest(digest, &all_);
  }
  uint64_t entries() const { return entries_; }
  uint64_t key_value_bytes() const { return key_value_bytes_; }
  // Returns a digest over all of them.
  Digest128 content() const { return all_.Finish(); }

 private:
  uint64_t entries_ = 0;
  uint64_t key_value_bytes_ = 0;
  Digest128Stream all_;
};

}  // namespace sstferry
