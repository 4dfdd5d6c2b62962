// Digests of the entries of one part, in groups that both sides of a refresh
// cut at the same keys without asking each other (FORMAT.md, "Groups").
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "format/digest.h"
#include "format/types.h"
#include "pipeline/parts/entry_reader.h"
#include "rocksdb/slice.h"

namespace sstferry {

// Entries of a part of which an index keeps keys.
inline constexpr uint64_t kMaxIndexEntries = 1u << 20;
inline constexpr uint64_t kMaxIndexKeyBytes = 32u << 20;

// Memory: at most kMaxIndexKeyBytes and 20 bytes an entry. Threads: one.
class GroupIndex {
 public:
  // Says what of each group stays known besides its digest.
  enum class Keep { kFirstKeys, kEntries };
  // `salt` is the transfer's id, so that nobody can prepare two entries with
  // one digest. `group_entries` is the desired mean, at least 1.
  GroupIndex(const TransferId& salt, uint32_t group_entries, Keep keep);

  // REQUIRES: in key order.
  void Add(const rocksdb::Slice& key, const rocksdb::Slice& value,
           bool is_entity);
  void Finish();

  uint64_t entries() const { return entries_; }
  uint64_t key_value_bytes() const { return key_value_bytes_; }
  Digest128 content() const { return content_; }
  // False: more entries than Fits() allows were added. Then the index has
  // nothing but the above.
  bool has_groups() const { return !overflown_; }
  // True if an entry with that key can be added and kept.
  bool Fits(const rocksdb::Slice& key) const;
  const std::vector<Digest128>& groups() const { return groups_; }
  // The digest of an entry as Add() computes it.
  Digest128 DigestOfEntry(const rocksdb::Slice& key,
                          const rocksdb::Slice& value, bool is_entity);

  // The kept items: first keys of groups, or all entries.
  size_t kept() const { return key_ends_.size(); }
  rocksdb::Slice key(size_t kept) const;
  // Return the digest of an entry, and the entries of a group. REQUIRES:
  // kEntries.
  const Digest128& digest(size_t entry) const { return digests_[entry]; }
  size_t GroupBegin(size_t group) const { return group_begins_[group]; }
  size_t GroupEnd(size_t group) const {
    return group + 1 < groups_.size() ? group_begins_[group + 1] : kept();
  }

 private:
  bool BeginsGroup(const rocksdb::Slice& key) const;
  void EndGroup();
  void KeepKey(const rocksdb::Slice& key);
  void Overflow();

  const size_t salt_bytes_;
  const uint64_t seed_;
  const uint32_t least_entries_;  // of a group, but for the last one
  const uint32_t most_entries_;
  const uint64_t divisor_;
  const Keep keep_;
  std::string scratch_;  // the salt, and an entry behind it
  uint64_t entries_ = 0;
  uint64_t key_value_bytes_ = 0;
  Digest128Stream all_;
  Digest128 content_;
  std::string group_;  // digests of the entries of the open group
  std::vector<Digest128> groups_;
  std::vector<uint32_t> group_begins_;
  std::string keys_;
  std::vector<uint32_t> key_ends_;
  std::vector<Digest128> digests_;
  bool overflown_ = false;
};

// Adds a digest to the stream as it is encoded.
void AddDigest(const Digest128& digest, Digest128Stream* stream);

// Adds all entries from the reader's on and finishes the index. Polls
// `cancelled`. `only_fitting`: leaves the reader at the first entry that does
// not fit.
//   kRefused  it does not fit even alone: its key is too long
[[nodiscard]] rocksdb::Status IndexEntries(
    EntryReader* reader, bool only_fitting,
    const std::function<bool()>& cancelled, GroupIndex* index);

}  // namespace sstferry
