// Moves a reader to keys that may be close together or far apart.
#pragma once

#include <algorithm>

#include "pipeline/parts/interval_reader.h"
#include "rocksdb/comparator.h"
#include "rocksdb/slice.h"

namespace sstferry {

// Moves a reader to ascending keys: by Next() if they are close together,
// otherwise by seeks.
class NextPlace {
 public:
  NextPlace(const rocksdb::Comparator* order, IntervalReader* reader)
      : order_(order), reader_(reader) {}

  // Moves to the first entry at or after `key`.
  void MoveTo(const rocksdb::Slice& key) {
    if (seeks_left_ > 0) {
      --seeks_left_;
    } else if (Step(key)) {
      seeks_ = 0;
      return;
    } else {
      seeks_ = std::min(2 * seeks_ + 1, kMostSeeks);
      seeks_left_ = seeks_;
    }
    reader_->SeekFrom(key);
    sought_ = true;
  }

 private:
  // Number of Next() calls that cost about as much as a seek.
  static constexpr int kMostSteps = 12;
  // Maximum number of seeks before Next() is tried again.
  static constexpr int kMostSeeks = 64;

  // Returns false if the key is too far away.
  bool Step(const rocksdb::Slice& key) {
    for (int n = 0; sought_ && n < kMostSteps && reader_->Valid(); ++n) {
      if (order_->Compare(reader_->key(), key) >= 0) {
        return true;
      }
      reader_->Next();
    }
    return false;
  }

  const rocksdb::Comparator* const order_;
  IntervalReader* const reader_;
  bool sought_ = false;
  int seeks_ = 0;       // seeks to make after Next() did not reach a key
  int seeks_left_ = 0;  // seeks that were not made yet
};

}  // namespace sstferry
