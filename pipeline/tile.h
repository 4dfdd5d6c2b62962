// Where one chunk of a refresh ends and the next begins. Files that share a
// user key count as overlapping and are placed a level higher each, so the
// intervals that neighbouring chunks replace are closed, and share none.
#pragma once

#include <string>

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

// `key`, or the next one at which an interval may end so that the last key
// before that end is known.
inline std::string ClosedEnd(const rocksdb::Comparator* order,
                             std::string key) {
  if (order == rocksdb::BytewiseComparator() &&
      (key.empty() || key.back() != '\0')) {
    key.push_back('\0');
  }
  return key;
}

}  // namespace sstferry
