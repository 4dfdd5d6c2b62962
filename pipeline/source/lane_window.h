// The bytes of a chunk under construction that its target has not
// acknowledged: what a lane that was cut is sent again.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "rocksdb/slice.h"

namespace sstferry {

// Memory: kBytes, since a caller waits for acknowledgements before it adds
//   more, and kSpareBytes that are used again while they are warm.
// Threads: one.
class LaneWindow {
 public:
  static constexpr uint64_t kBytes = 8u << 20;
  static constexpr uint64_t kSpareBytes = 4u << 20;

  bool HasRoom(size_t bytes) const { return end_ - begin_ + bytes <= kBytes; }
  void Add(const rocksdb::Slice& piece) {
    pieces_.emplace_back();
    if (!spare_.empty() && spare_.back().capacity() <= 2 * piece.size()) {
      spare_bytes_ -= spare_.back().capacity();
      pieces_.back() = std::move(spare_.back());
      spare_.pop_back();
    }
    pieces_.back().assign(piece.data(), piece.size());
    end_ += piece.size();
  }
  // Forgets the pieces that end at `bytes` of the file or before.
  void Acknowledge(uint64_t bytes) {
    while (!pieces_.empty() && begin_ + pieces_.front().size() <= bytes) {
      begin_ += pieces_.front().size();
      if (spare_bytes_ + pieces_.front().capacity() <= kSpareBytes) {
        spare_bytes_ += pieces_.front().capacity();
        spare_.push_back(std::move(pieces_.front()));
      }
      pieces_.pop_front();
    }
  }
  void Clear() {
    Acknowledge(end_);
    begin_ = 0;
    end_ = 0;
  }

  uint64_t begin() const { return begin_; }
  uint64_t end() const { return end_; }
  // The piece that begins at that byte. REQUIRES: one does.
  rocksdb::Slice At(uint64_t byte) const {
    uint64_t at = end_;
    size_t i = pieces_.size();
    while (at > byte) {
      at -= pieces_[--i].size();
    }
    return pieces_[i];
  }

 private:
  std::deque<std::string> pieces_;
  std::vector<std::string> spare_;
  uint64_t spare_bytes_ = 0;
  uint64_t begin_ = 0;
  uint64_t end_ = 0;
};

}  // namespace sstferry
