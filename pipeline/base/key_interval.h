// Compares keys with a key interval, in a comparator's order.
#pragma once

#include "format/messages.h"
#include "rocksdb/comparator.h"
#include "rocksdb/slice.h"

namespace sstferry {

inline bool BeginsAtOrBefore(const KeyInterval& interval,
                             const rocksdb::Comparator* order,
                             const rocksdb::Slice& key) {
  return !interval.begin.has_value() ||
         order->Compare(key, *interval.begin) >= 0;
}

inline bool EndsAfter(const KeyInterval& interval,
                      const rocksdb::Comparator* order,
                      const rocksdb::Slice& key) {
  return !interval.end.has_value() || order->Compare(key, *interval.end) < 0;
}

inline bool Holds(const KeyInterval& interval,
                  const rocksdb::Comparator* order, const rocksdb::Slice& key) {
  return BeginsAtOrBefore(interval, order, key) &&
         EndsAfter(interval, order, key);
}

// Returns true if all keys of `piece` are in `whole`.
inline bool IsInside(const KeyInterval& piece, const KeyInterval& whole,
                     const rocksdb::Comparator* order) {
  return (!whole.begin ||
          (piece.begin && order->Compare(*whole.begin, *piece.begin) <= 0)) &&
         (!whole.end ||
          (piece.end && order->Compare(*piece.end, *whole.end) <= 0));
}

// Returns true if the interval contains every key from `smallest` to `largest`.
// REQUIRES, also in MeetsSpan(): smallest <= largest.
inline bool HoldsSpan(const KeyInterval& interval,
                      const rocksdb::Comparator* order,
                      const rocksdb::Slice& smallest,
                      const rocksdb::Slice& largest) {
  return BeginsAtOrBefore(interval, order, smallest) &&
         EndsAfter(interval, order, largest);
}

// Returns true if the interval contains a part of the span from `smallest` to
// `largest`.
inline bool MeetsSpan(const KeyInterval& interval,
                      const rocksdb::Comparator* order,
                      const rocksdb::Slice& smallest,
                      const rocksdb::Slice& largest) {
  return BeginsAtOrBefore(interval, order, largest) &&
         EndsAfter(interval, order, smallest);
}

}  // namespace sstferry
