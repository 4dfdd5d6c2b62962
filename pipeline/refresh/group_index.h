// Divides the entries of a part into groups, and computes a digest of each
// group. Source and target begin their groups at the same keys, because only
// the keys determine where a group begins (FORMAT.md, "Groups").
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "format/digest.h"
#include "format/types.h"
#include "pipeline/parts/entry_reader.h"
#include "pipeline/refresh/compare_tuning.h"
#include "pipeline/refresh/entry_digest.h"
#include "rocksdb/slice.h"

namespace sstferry {

// An index of entries. It has every entry that was passed to Add(), unless
// Add() has returned false.
//
// Memory:  at most kMaxIndexKeyBytes, plus 20 bytes for each entry.
// Threads: one.
class GroupIndex {
 public:
  // Tells what an index keeps in addition to the digests of groups: the first
  // key of each group, or all keys and digests of entries.
  enum class Keep { kFirstKeys, kEntries };
  // `salt` is the transfer's id. `group_entries` is the mean number of entries
  // that a group should have, at least 1.
  GroupIndex(const TransferId& salt, uint32_t group_entries, Keep keep,
             const IndexLimits& limits = TuningOfComparisons().index);

  // Adds an entry. If the entry does not fit, adds nothing and returns false.
  // REQUIRES: the keys of all calls ascend, and Finish() was not called.
  [[nodiscard]] bool Add(const rocksdb::Slice& key, const Digest128& digest);
  void Finish();

  // Returns the digests of the groups. REQUIRES: Finish() was called.
  const std::vector<Digest128>& groups() const { return groups_; }

  // Returns the number of kept items: first keys of groups, or all entries.
  size_t kept() const { return key_ends_.size(); }
  rocksdb::Slice key(size_t kept) const;
  // Return an entry's digest, a group's first entry, and the entry after a
  // group's last one. REQUIRES: the index was made with Keep::kEntries.
  const Digest128& digest(size_t entry) const { return digests_[entry]; }
  size_t GroupBegin(size_t group) const { return group_begins_[group]; }
  size_t GroupEnd(size_t group) const {
    return group + 1 < groups_.size() ? group_begins_[group + 1] : kept();
  }

 private:
  bool BeginsGroup(const rocksdb::Slice& key) const;
  void EndGroup();

  const IndexLimits limits_;
  const uint64_t seed_;
  const uint32_t least_entries_;  // in each group but the last
  const uint32_t most_entries_;
  const uint64_t divisor_;
  const Keep keep_;
  std::string group_;  // digests of the entries of the open group
  std::vector<Digest128> groups_;
  std::vector<uint32_t> group_begins_;  // index of each group's first key
  std::string keys_;
  std::vector<uint32_t> key_ends_;
  std::vector<Digest128> digests_;
};

// Reads all remaining entries of the reader, and adds them to *sums and to
// *index. If an entry does not fit into the index, resets *index, and continues
// only with *sums. Calls `cancelled` from time to time. Returns read errors and
// kCancelled.
[[nodiscard]] rocksdb::Status IndexAll(EntryReader* reader,
                                       EntryDigester* digester,
                                       const std::function<bool()>& cancelled,
                                       EntrySums* sums,
                                       uint64_t* key_value_bytes,
                                       std::optional<GroupIndex>* index);

// Adds entries to the index and to *sums until one does not fit. The reader
// then stays at that entry.
//   kRefused  an entry does not fit into an empty index, because its key is too
//             long
[[nodiscard]] rocksdb::Status IndexFitting(
    EntryReader* reader, EntryDigester* digester,
    const std::function<bool()>& cancelled, EntrySums* sums,
    GroupIndex* index);

}  // namespace sstferry
