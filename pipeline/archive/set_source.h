// The files of one point in time of a database, as a push reads them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "format/archive_set.h"
#include "format/byte_source.h"
#include "format/digest.h"
#include "pipeline/archive/sha256.h"
#include "rocksdb/status.h"

namespace sstferry {

// A file that is larger is uploaded in parts of this size, or of a multiple of
// it where there would be more than kMaxUploadParts.
inline constexpr uint64_t kUploadPartBytes = 64u << 20;
uint64_t UploadPartBytes(uint64_t file_bytes);

// A part of a file, as bytes of their own.
class SourcePiece : public ByteSource {
 public:
  SourcePiece(std::shared_ptr<const ByteSource> file, uint64_t offset,
              uint64_t bytes)
      : file_(std::move(file)), offset_(offset), bytes_(bytes) {}
  [[nodiscard]] rocksdb::Status Read(uint64_t offset, size_t n,
                                     std::string* scratch,
                                     rocksdb::Slice* out) const override {
    return file_->Read(offset_ + offset, n, scratch, out);
  }
  uint64_t size() const override { return bytes_; }

 private:
  const std::shared_ptr<const ByteSource> file_;
  const uint64_t offset_;
  const uint64_t bytes_;
};

// Runs `work` in so many threads, this one among them, and waits for all.
void RunInLanes(int lanes, const std::function<void()>& work);

struct FileDigests {
  Sha256Digest sha256{};             // of all of it
  std::vector<Digest128> units;      // of its units
  std::vector<Sha256Digest> parts;   // of the parts in which it is uploaded
};

// Owner:   the caller of a push; it outlives it.
// Threads: Digest() and Open() from any.
class SetSource {
 public:
  virtual ~SetSource() = default;

  // All that a record says of the database and of its files; not its name, and
  // of a file neither its place nor its digests.
  virtual const ArchiveSet& set() const = 0;
  // Reads a file once and checks it by its own checksums.
  //   kSourceError, kCorrupt, kCancelled
  [[nodiscard]] virtual rocksdb::Status Digest(size_t file,
                                               FileDigests* digests) = 0;
  // Opens a file to be read from its beginning to its end, or from there again.
  [[nodiscard]] virtual rocksdb::Status Open(
      size_t file, std::unique_ptr<ByteSource>* bytes) = 0;
};

// Computes the digests of a file whose bytes come in order.
class FileDigester {
 public:
  FileDigester(const CloneFile& file, uint64_t unit_bytes);
  void Add(rocksdb::Slice bytes);
  // REQUIRES: all bytes were added.
  FileDigests Finish();

 private:

  const uint64_t part_bytes_;
  std::vector<uint64_t> unit_ends_;
  uint64_t at_ = 0;
  uint64_t file_bytes_ = 0;
  Sha256 whole_;
  std::unique_ptr<Sha256> part_;
  std::unique_ptr<Digest128Stream> unit_;
  FileDigests digests_;
};

}  // namespace sstferry
