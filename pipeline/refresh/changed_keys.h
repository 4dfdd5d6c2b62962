// Collects the keys of a family that may have changed since a target's last
// refresh: all keys of the files added since then, and other added keys.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "format/types.h"
#include "pipeline/parts/file_plan.h"
#include "rocksdb/comparator.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace sstferry {

// Maximum bytes of memory for the keys of all families of one plan.
inline constexpr uint64_t kMaxChangedKeyBytes = 64u << 20;

// A sorted set of keys.
//
// Threads: one; after Sort() also Find() and key() from any.
class ChangedKeys {
 public:
  // Uses at most `most_bytes` of memory.
  explicit ChangedKeys(uint64_t most_bytes = kMaxChangedKeyBytes)
      : most_bytes_(most_bytes) {}

  // Adds a key. Returns false if there is no room, or if the key is too long
  // for a chunk.
  [[nodiscard]] bool Add(const rocksdb::Slice& key);

  // Adds the keys of all entries of a file, of any type; *fits is false if a
  // key could not be added. Sets *single_deletes if an entry is a SingleDelete;
  // never clears it. Returns errors of ForEachTableKey().
  [[nodiscard]] rocksdb::Status AddFile(const FilePlan& file,
                                        const std::function<bool()>& cancelled,
                                        bool* fits, bool* single_deletes);

  // Sorts the keys and removes duplicates. The keys of each file are already in
  // order.
  void Sort(const rocksdb::Comparator* order);

  size_t size() const { return places_.size(); }
  uint64_t bytes() const {
    return bytes_.size() + places_.size() * sizeof(places_[0]);
  }
  rocksdb::Slice key(size_t index) const {
    return rocksdb::Slice(bytes_.data() + places_[index].first,
                          places_[index].second);
  }
  // Returns the indexes [first, last) of the keys in the interval. REQUIRES:
  // sorted.
  std::pair<size_t, size_t> Find(const rocksdb::Comparator* order,
                                 const KeyInterval& interval) const;

 private:
  const uint64_t most_bytes_;
  std::string bytes_;
  std::vector<std::pair<uint32_t, uint32_t>> places_;  // offset, length
  std::vector<size_t> runs_;  // where the keys of each file begin
};

}  // namespace sstferry
