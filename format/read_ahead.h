// Reads a ByteSource in large pieces, for a parser that reads small pieces from
// front to back.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "format/byte_source.h"

namespace sstferry {

// A ByteSource that buffers another one, which it borrows. Threads: one.
class ReadAhead : public ByteSource {
 public:
  static constexpr size_t kBytes = 512u << 10;

  // Prepares a buffer of `bytes` bytes, which the first Read() allocates.
  explicit ReadAhead(const ByteSource& source, size_t bytes = kBytes)
      : source_(source), bytes_(bytes) {}

  [[nodiscard]] rocksdb::Status Read(uint64_t offset, size_t n,
                                     std::string* scratch,
                                     rocksdb::Slice* out) const override {
    if (n > bytes_) {
      return source_.Read(offset, n, scratch, out);
    }
    const bool there =
        offset >= begin_ && offset - begin_ <= window_.size() &&
        n <= window_.size() - static_cast<size_t>(offset - begin_);
    if (!there) {
      const uint64_t rest = size() - std::min(offset, size());
      const size_t bytes =
          std::max(n, static_cast<size_t>(std::min<uint64_t>(bytes_, rest)));
      window_ = rocksdb::Slice();
      const rocksdb::Status status =
          source_.Read(offset, bytes, &buffer_, &window_);
      if (!status.ok()) {
        window_ = rocksdb::Slice();
        return status;
      }
      begin_ = offset;
    }
    const char* const bytes = window_.data() + (offset - begin_);
    if (window_.data() != buffer_.data()) {
      *out = rocksdb::Slice(bytes, n);  // in memory that outlives the source
      return rocksdb::Status::OK();
    }
    // Copies the bytes, because a later Read() may move the window while the
    // parser still uses them. For example, a parser uses a block that lists
    // partitions while it reads these partitions.
    scratch->assign(bytes, n);
    *out = *scratch;
    return rocksdb::Status::OK();
  }

  uint64_t size() const override { return source_.size(); }

 private:
  const ByteSource& source_;
  const size_t bytes_;
  mutable std::string buffer_;
  mutable rocksdb::Slice window_;  // the bytes at begin_
  mutable uint64_t begin_ = 0;
};

}  // namespace sstferry
