// Digests of one part's entries, by groups. Both sides of a refresh begin
// groups at the same keys, without communicating (FORMAT.md, "Groups").
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

// An index of entries. It either contains every entry that was passed to Add(),
// or Add() has returned false.
//
// Memory:  at most kMaxIndexKeyBytes and 20 bytes per entry.
// Threads: one.
class GroupIndex {
 public:
  // Selects what an index keeps of each group besides the group's digest.
  enum class Keep { kFirstKeys, kEntries };
  // `salt` is the transfer's id. `group_entries` is the desired mean number of
  // entries per group, at least 1.
  GroupIndex(const TransferId& salt, uint32_t group_entries, Keep keep,
             const IndexLimits& limits = TuningOfComparisons().index);

  // Adds an entry. Returns false, and adds nothing, if the entry does not fit.
  // REQUIRES: keys are added in order; Finish() was not called.
  [[nodiscard]] bool Add(const rocksdb::Slice& key, const Digest128& digest);
  void Finish();

  // Returns the digests of the groups. REQUIRES: Finish() was called.
  const std::vector<Digest128>& groups() const { return groups_; }

  // Returns the number of kept items: first keys of groups, or all entries.
  size_t kept() const { return key_ends_.size(); }
  rocksdb::Slice key(size_t kept) const;
  // Return the digest of an entry, and the first and end entry of a group.
  // REQUIRES: kEntries.
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
  const uint32_t least_entries_;  // per group, except the last group
  const uint32_t most_entries_;
  const uint64_t divisor_;
  const Keep keep_;
  std::string group_;  // digests of the entries of the open group
  std::vector<Digest128> groups_;
  std::vector<uint32_t> group_begins_;  // including the open group
  std::string keys_;
  std::vector<uint32_t> key_ends_;
  std::vector<Digest128> digests_;
};

// Reads all remaining entries of the reader: adds them to *sums, and to *index
// while they fit. If an entry does not fit, resets *index, so that no index is
// incomplete. Polls `cancelled`. Returns read errors and kCancelled.
[[nodiscard]] rocksdb::Status IndexAll(EntryReader* reader,
                                       EntryDigester* digester,
                                       const std::function<bool()>& cancelled,
                                       EntrySums* sums,
                                       uint64_t* key_value_bytes,
                                       std::optional<GroupIndex>* index);

// Adds entries to the index and to *sums while they fit, and leaves the reader
// at the first entry that does not fit.
//   kRefused  an entry does not fit even alone: its key is too long
[[nodiscard]] rocksdb::Status IndexFitting(
    EntryReader* reader, EntryDigester* digester,
    const std::function<bool()>& cancelled, EntrySums* sums,
    GroupIndex* index);

}  // namespace sstferry
