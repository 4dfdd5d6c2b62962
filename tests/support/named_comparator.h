// Comparators under names that RocksDB does not know.
#pragma once

#include <cstddef>
#include <string>

#include "rocksdb/comparator.h"

namespace sstferry::test {

// Orders as bytewise does, unless a subclass orders otherwise. Separators stay
// whole keys, which fits every order.
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

}  // namespace sstferry::test
