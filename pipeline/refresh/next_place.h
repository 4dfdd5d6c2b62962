// Finds places in a part that lie near to each other or far apart.
#pragma once

#include <algorithm>

#include "pipeline/parts/interval_reader.h"
#include "rocksdb/comparator.h"
#include "rocksdb/slice.h"

namespace sstferry {

// Moves a reader to ascending keys: by steps where they are close to each
// other, else by seeks.
class NextPlace {
 public:
  NextPlace(const rocksdb::Comparator* order, IntervalReader* reader)
      : order_(order), reader_(reader) {}

  // To the first entry at or behind `key`.
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
  // A seek costs about as much as so many steps.
  static constexpr int kMostSteps = 12;
  // Seeks after which steps are tried again, at most.
  static constexpr int kMostSeeks = 64;

  // False: the key is too far away.
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
  int seeks_ = 0;       // after the last steps that led nowhere
  int seeks_left_ = 0;  // of these
};

}  // namespace sstferry
