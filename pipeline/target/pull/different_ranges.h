// Key intervals in which two sides differ: few, and together all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "rocksdb/comparator.h"
#include "sstferry/options.h"

namespace sstferry {

// Above kMaxDifferentRanges intervals, or kMaxDifferentRangeBytes of keys, it
// joins neighbours with all keys between them. Threads: one at a time.
class DifferentRanges {
 public:
  static constexpr size_t kMaxDifferentRangeBytes = 8u << 20;

  // In any order; intervals that meet become one. Long bounds are cut, so that
  // the interval grows, in bytewise order.
  void Add(const std::string& family, const rocksdb::Comparator* order,
           const KeyInterval& interval);
  // By family, then in key order.
  std::vector<FamilyRange> List() const;

 private:
  using Bound = std::optional<std::string>;
  // An absent begin is before all keys.
  struct BeginsBefore {
    const rocksdb::Comparator* order = nullptr;
    bool operator()(const Bound& a, const Bound& b) const {
      return b && (!a || order->Compare(*a, *b) < 0);
    }
  };
  using Intervals = std::map<Bound, Bound, BeginsBefore>;  // begin -> end

  void Insert(Intervals* intervals, Bound begin, Bound end);
  void Halve();

  std::map<std::string, Intervals> families_;
  size_t count_ = 0;
  size_t bytes_ = 0;
};

}  // namespace sstferry
