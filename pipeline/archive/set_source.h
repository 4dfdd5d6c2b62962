// Interfaces through which a push reads the files of a database at one point in
// time.
#pragma once

#include <array>
#include <atomic>
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
#include "format/messages_lane.h"
#include "format/plan.h"
#include "pipeline/base/sha256.h"
#include "rocksdb/status.h"

namespace sstferry {

// Size of the pieces in which a file is uploaded. If a file would have more
// than kMaxPutPieces pieces of this size, PieceBytes() returns a multiple of
// kPieceBytes.
inline constexpr uint64_t kPieceBytes = 64u << 20;
uint64_t PieceBytes(uint64_t file_bytes);

// Chunk size in a request for the files of a set. The source and the archive
// both cut files into units of two chunks.
inline constexpr uint64_t kSetChunkBytes = kArchiveUnitBytes / 2;

// Progress of a push, a check or a repair. Threads: any.
struct WorkProgress {
  std::atomic<const char*> phase{"connect"};
  std::atomic<uint64_t> planned_bytes{0};
  std::atomic<uint64_t> done_bytes{0};
};

// Calls each(0) to each(count - 1) in up to `lanes` threads, one of which is
// the caller's. After a call fails, begins no further call. Returns the first
// failure.
[[nodiscard]] rocksdb::Status ForEachInLanes(
    int lanes, size_t count,
    const std::function<rocksdb::Status(size_t)>& each);

// Returns the digest of an object in pieces. For one piece, this is its
// SHA-256. For several pieces, this is the SHA-256 of their SHA-256 digests, so
// that no byte is hashed twice.
Sha256Digest Sha256OfPieces(const std::vector<Sha256Digest>& pieces);

struct FileDigests {
  std::vector<Sha256Digest> pieces;  // at least one
  std::vector<Digest128> units;
  // Appends the digests of the next piece.
  void Add(const FileDigestReply& piece);
};

// A file that a push reads. The push reads the digests of each piece before the
// bytes of the piece, because a store may require the digests first.
//
// Threads: one at a time.
class SetFile : public ByteSource {
 public:
  // Appends to *digests the SHA-256 of the next piece, and the digests of its
  // units, in order. Before the first piece, checks the whole file by the
  // file's own checksums. If `bytes` is 0 and the file is not empty, only
  // checks the file.
  //   kSourceError, kCorrupt, kCancelled; others: errors of the connection
  [[nodiscard]] virtual rocksdb::Status Digest(uint64_t offset, uint64_t bytes,
                                               FileDigests* digests) = 0;
};

// Calls each(offset, bytes) for each piece of a file of this size. An empty
// file has one piece.
[[nodiscard]] rocksdb::Status ForEachPiece(
    uint64_t file_bytes,
    const std::function<rocksdb::Status(uint64_t, uint64_t)>& each);

// Returns a record for SetSource::set() with the facts in the plan of a clone.
ArchiveSet SetOfPlan(const Plan& plan);

// The database that a push reads.
//
// Owner:   the caller of a push; the source must outlive the push and all open
//          files.
// Threads: any.
class SetSource {
 public:
  virtual ~SetSource() = default;

  // Returns the record of the set, except the set's name, and the key and the
  // digests of each file.
  virtual const ArchiveSet& set() const = 0;
  // Opens a file. The push reads each piece from its beginning to its end,
  // perhaps several times.
  [[nodiscard]] virtual rocksdb::Status Open(
      size_t file, std::unique_ptr<SetFile>* opened) = 0;
  // Releases the files that the source keeps for this push. The push calls this
  // function when every file is in the archive.
  [[nodiscard]] virtual rocksdb::Status Finish() {
    return rocksdb::Status::OK();
  }
};

// Computes the digests of an object's pieces. Add() receives the bytes in
// order.
class PieceDigester {
 public:
  explicit PieceDigester(uint64_t bytes);
  void Add(rocksdb::Slice bytes);
  // Returns the digests of all pieces. REQUIRES: Add() has received all bytes.
  const std::vector<Sha256Digest>& Finish();

 private:
  const uint64_t piece_bytes_;
  const uint64_t bytes_;
  uint64_t at_ = 0;
  std::unique_ptr<Sha256> piece_;
  std::vector<Sha256Digest> pieces_;
};

// Computes the digests of a file's units. Add() receives the bytes in order.
class UnitDigester {
 public:
  UnitDigester(const CloneFile& file, uint64_t unit_bytes);
  void Add(rocksdb::Slice bytes);
  // Returns the digests of the units that are complete so far.
  const std::vector<Digest128>& units() const { return units_; }

 private:
  std::vector<uint64_t> ends_;
  uint64_t at_ = 0;
  std::unique_ptr<Digest128Stream> unit_;
  std::vector<Digest128> units_;
};

// A file whose digests are computed from the bytes that it returns. Does not
// check the file's own checksums. Digest() reads each piece once, in order.
class DigestedFile : public SetFile {
 public:
  // Makes a file of the first file.bytes bytes of `bytes`.
  DigestedFile(std::unique_ptr<ByteSource> bytes, const CloneFile& file,
               uint64_t unit_bytes)
      : bytes_(std::move(bytes)), size_(file.bytes), units_(file, unit_bytes) {}

  uint64_t size() const override { return size_; }
  [[nodiscard]] rocksdb::Status Read(uint64_t offset, size_t n,
                                     std::string* scratch,
                                     rocksdb::Slice* out) const override {
    return bytes_->Read(offset, n, scratch, out);
  }
  [[nodiscard]] rocksdb::Status Digest(uint64_t offset, uint64_t bytes,
                                       FileDigests* digests) override;

 private:
  const std::unique_ptr<ByteSource> bytes_;
  const uint64_t size_;
  UnitDigester units_;
};

}  // namespace sstferry
