// The data frames in which a chunk was sent. The chunk's digest can continue
// from any of them.
#pragma once

#include <cstdint>
#include <vector>

#include "format/digest.h"

namespace sstferry {

// Memory: 16 bytes a frame.
class FrameList {
 public:
  // Adds a frame with so many bytes of the file.
  void Add(uint64_t digest, uint64_t bytes) {
    frames_.push_back({digest, this->bytes() + bytes});
  }
  // Returns true if the first `frames` frames hold exactly `bytes`.
  bool EndsAt(uint64_t frames, uint64_t bytes) const {
    return frames <= frames_.size() &&
           bytes == (frames == 0 ? 0 : frames_[frames - 1].end);
  }
  // REQUIRES: there are at least so many.
  void Truncate(uint64_t frames) { frames_.resize(frames); }
  void Clear() { frames_.clear(); }

  uint64_t bytes() const { return frames_.empty() ? 0 : frames_.back().end; }
  Digest128 Digest() const {
    ChunkDigest digest;
    for (const Entry& frame : frames_) {
      digest.AddFrame(frame.digest);
    }
    return digest.Finish();
  }

 private:
  struct Entry {
    uint64_t digest = 0;
    uint64_t end = 0;  // bytes of the file up to the end of this frame
  };
  std::vector<Entry> frames_;
};

}  // namespace sstferry
