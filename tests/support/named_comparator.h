// Comparators under names that RocksDB does not know.
#pragma once

#include <strings.h>

#include <algorithm>
#include <cstddef>
#include <string>

#include "rocksdb/comparator.h"

namespace sstferry::test {

// Orders bytewise, unless a subclass orders otherwise. Does not shorten
// separators, which is correct for every order.
class NamedComparator : public rocksdb::Comparator {
 public:
  explicit NamedComparator(const char* name, size_t timestamp_bytes = 0)
      : Comparator(timestamp_bytes), name_(name) {}
  const char* Name() const override { return name_; }
  int Compare(const rocksdb::Slice& a, const rocksdb::Slice& b) const override {
    return a.compare(b);
  }
  void FindShortestSeparator(std::string*,
                             const rocksdb::Slice&) const override {}
  void FindShortSuccessor(std::string*) const override {}

 private:
  const char* const name_;
};

// Ignores the case of letters.
class CaselessComparator : public NamedComparator {
 public:
  CaselessComparator() : NamedComparator("an order without case") {}
  int Compare(const rocksdb::Slice& a, const rocksdb::Slice& b) const override {
    const int order =
        strncasecmp(a.data(), b.data(), std::min(a.size(), b.size()));
    return order != 0 ? order
                      : static_cast<int>(a.size()) - static_cast<int>(b.size());
  }
  bool Equal(const rocksdb::Slice& a, const rocksdb::Slice& b) const override {
    return Compare(a, b) == 0;
  }
};

}  // namespace sstferry::test
