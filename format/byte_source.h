// Random access to bytes (of a file or a string), so that the parsers in
// format/ do not depend on files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace sstferry {

// Threads: as Read() of the implementation allows. The parsers call Read() from
// one thread.
class ByteSource {
 public:
  virtual ~ByteSource() = default;

  // Points *out at the n bytes at offset, which are in *scratch or in memory
  // that outlives the source. If OK is returned, out->size() == n. The parsers
  // never read past size(), and never more than their block limit at once.
  [[nodiscard]] virtual rocksdb::Status Read(uint64_t offset, size_t n,
                                             std::string* scratch,
                                             rocksdb::Slice* out) const = 0;

  virtual uint64_t size() const = 0;
};

// Reads the bytes [offset, offset + bytes) of a source that must outlive it.
class SourcePart : public ByteSource {
 public:
  SourcePart(const ByteSource& whole, uint64_t offset, uint64_t bytes)
      : whole_(whole), offset_(offset), bytes_(bytes) {}

  [[nodiscard]] rocksdb::Status Read(uint64_t offset, size_t n,
                                     std::string* scratch,
                                     rocksdb::Slice* out) const override {
    return whole_.Read(offset_ + offset, n, scratch, out);
  }

  uint64_t size() const override { return bytes_; }

 private:
  const ByteSource& whole_;
  const uint64_t offset_;
  const uint64_t bytes_;
};

// Reads from a slice whose bytes must outlive the source. Threads: any,
// concurrently.
class SliceSource : public ByteSource {
 public:
  explicit SliceSource(rocksdb::Slice bytes) : bytes_(bytes) {}

  [[nodiscard]] rocksdb::Status Read(uint64_t offset, size_t n,
                                     std::string* /*scratch*/,
                                     rocksdb::Slice* out) const override {
    if (offset > bytes_.size() || n > bytes_.size() - offset) {
      return rocksdb::Status::InvalidArgument("read beyond the end");
    }
    *out = rocksdb::Slice(bytes_.data() + offset, n);
    return rocksdb::Status::OK();
  }

  uint64_t size() const override { return bytes_.size(); }

 private:
  rocksdb::Slice bytes_;
};

}  // namespace sstferry
