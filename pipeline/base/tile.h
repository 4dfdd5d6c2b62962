// Where one chunk of a refresh ends and the next begins. A chunk replaces
// [smallest, largest) by a range deletion, and every entry lies in there: a
// value outside would stand above an older one that nothing deletes. Files
// that share a user key count as overlapping and are placed a level higher
// each, so most chunks also hold a deletion of `largest`, a key that is no
// entry, and the next chunk begins right behind it.
#pragma once

#include <string>

#include "format/limits.h"
#include "format/message/messages.h"
#include "rocksdb/comparator.h"
#include "rocksdb/slice.h"

namespace sstferry {

// The last key that can stand before `end` in this order: bytewise for ends in
// a NUL byte, reverse bytewise for all. False: there is none, or nobody knows.
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

// The first key that can stand behind `key`: bytewise for all, reverse
// bytewise for keys that end in a NUL byte. False as above.
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

// Any key behind `key`, no longer than keys may be. False: there is none
// (behind the empty key in reverse order), or the order tells of none.
inline bool KeyBehind(const rocksdb::Comparator* order, const std::string& key,
                      std::string* behind) {
  *behind = key;
  if (order == rocksdb::ReverseBytewiseComparator()) {
    // Any shorter one.
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

// An end of an interval behind `key` and nothing else, such that the last key
// before it is known and hardly ever an entry.
inline std::string ClosedEnd(const rocksdb::Comparator* order,
                             std::string key) {
  if (order == rocksdb::BytewiseComparator()) {
    key.append(2, '\0');
  }
  return key;
}

// How a chunk ends: behind `key`, or right before it.
struct TileEnd {
  std::string key;
  bool exclusive = false;
};

inline TileEnd EndOf(const ChunkEnd& chunk) {
  return {chunk.largest, chunk.clears && !chunk.deletes_last};
}

// Where the next chunk begins. (At the key itself where nobody knows what
// stands behind it: then this one was the family's last.)
inline std::string NextBegin(const rocksdb::Comparator* order,
                             const TileEnd& end) {
  std::string next;
  return !end.exclusive && FirstKeyAfter(order, end.key, &next) ? next
                                                                : end.key;
}

}  // namespace sstferry
