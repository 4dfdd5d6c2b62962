// Moves a reader to ascending keys, whether they are close together or far
// apart.
#pragma once

#include <algorithm>

#include "pipeline/parts/interval_reader.h"
#include "rocksdb/comparator.h"
#include "rocksdb/slice.h"

namespace sstferry {

// Moves a reader from key to key. Calls Next() while the keys are close
// together. Seeks if they are far apart. REQUIRES: the keys ascend.
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

  // Calls Next() until the reader has reached `key`. Returns false if the key
  // is too far away.
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
  int seeks_ = 0;       // seeks in a row after a failed Step()
  int seeks_left_ = 0;  // seeks before the next Step()
};

}  // namespace sstferry
