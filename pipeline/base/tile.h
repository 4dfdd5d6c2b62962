// Computes the boundaries of replacement intervals (tiles): where one chunk of
// a refresh ends and the next begins.
//
// A chunk replaces [smallest, largest) by a range deletion, and all its entries
// are inside: a value outside would hide an older one that nothing deletes.
// RocksDB treats files that share a user key as overlapping and places each a
// level higher. So most chunks also hold a deletion of `largest`, a key without
// an entry, and the next chunk begins directly behind it.
#pragma once

#include <string>

#include "format/limits.h"
#include "format/message/messages.h"
#include "rocksdb/comparator.h"
#include "rocksdb/slice.h"

namespace sstferry {

// Sets *last to the last possible key before `end` in this order. Known in
// bytewise order for ends with a final NUL byte, in reverse bytewise order for
// all ends. Returns false if there is no such key or it is not known.
inline bool LastKeyBefore(const rocksdb::Comparator* order,
                          const rocksdb::Slice& end, std::string* last) {
  if (order == rocksdb::BytewiseComparator() && !end.empty() &&
      end[end.size() - 1] == '\0') {
    last->assign(end.data(), end.size() - 1);
    return true;
  }
  if (order == rocksdb::ReverseBytewiseComparator()) {
    last->assign(end.data(), end.size());
    last->push_back('\0');
    return true;
  }
  return false;
}

// Sets *first to the first possible key behind `key`. Known in bytewise order
// for all keys, in reverse bytewise order for keys with a final NUL byte.
// Returns false if there is no such key or it is not known.
inline bool FirstKeyAfter(const rocksdb::Comparator* order,
                          const rocksdb::Slice& key, std::string* first) {
  if (order == rocksdb::BytewiseComparator()) {
    first->assign(key.data(), key.size());
    first->push_back('\0');
    return true;
  }
  if (order == rocksdb::ReverseBytewiseComparator() && !key.empty() &&
      key[key.size() - 1] == '\0') {
    first->assign(key.data(), key.size() - 1);
    return true;
  }
  return false;
}

// Sets *behind to some key behind `key`, at most kMaxKeyBytes long. Returns
// false if there is none (behind the empty key in reverse order) or if the
// comparator does not offer one.
inline bool KeyBehind(const rocksdb::Comparator* order, const std::string& key,
                      std::string* behind) {
  *behind = key;
  if (order == rocksdb::ReverseBytewiseComparator()) {
    // Every prefix sorts behind the key.
    if (key.empty()) {
      return false;
    }
    behind->pop_back();
    return true;
  }
  if (order == rocksdb::BytewiseComparator() && key.size() < kMaxKeyBytes) {
    behind->push_back('\0');
    return true;
  }
  order->FindShortSuccessor(behind);
  return order->Compare(key, *behind) < 0 && behind->size() <= kMaxKeyBytes;
}

// Returns an end of an interval directly behind `key` such that the last
// possible key before that end is known and is hardly ever an entry.
inline std::string ClosedEnd(const rocksdb::Comparator* order,
                             std::string key) {
  if (order == rocksdb::BytewiseComparator()) {
    key.append(2, '\0');
  }
  return key;
}

// End of a chunk: behind `key`, or directly before it if `exclusive`.
struct TileEnd {
  std::string key;
  bool exclusive = false;
};

inline TileEnd EndOf(const ChunkEnd& chunk) {
  return {chunk.largest, chunk.clears && !chunk.deletes_last};
}

// Returns the begin of the next chunk. (If the key behind end.key is not known,
// returns end.key itself: the chunk was then the family's last.)
inline std::string NextBegin(const rocksdb::Comparator* order,
                             const TileEnd& end) {
  std::string next;
  return !end.exclusive && FirstKeyAfter(order, end.key, &next) ? next
                                                                : end.key;
}

}  // namespace sstferry
