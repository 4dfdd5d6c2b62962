// Random access to the bytes of a file or a string. The parsers in format/ read
// through this interface, so they do not depend on files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace sstferry {

// Provides random access to bytes. The parsers call Read() from one thread. An
// implementation decides if several threads may call it.
class ByteSource {
 public:
  virtual ~ByteSource() = default;

  // Sets *out to the n bytes at `offset`. These bytes are in *scratch, or in
  // memory that outlives the source. If Read() returns OK, out->size() is n. A
  // parser never reads past size(), and never more bytes at once than its limit
  // for a block.
  [[nodiscard]] virtual rocksdb::Status Read(uint64_t offset, size_t n,
                                             std::string* scratch,
                                             rocksdb::Slice* out) const = 0;

  virtual uint64_t size() const = 0;
};

// A source that has the bytes [offset, offset + bytes) of another source.
// `whole` must outlive this object.
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

// A source that has the bytes of a slice. The slice's bytes must outlive this
// object. Threads: any, concurrently.
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
