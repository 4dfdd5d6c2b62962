// Interfaces through which a push reads the files of one point in time of a
// database.
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

// Size of the pieces in which a larger file is uploaded. If a file would have
// more than kMaxPutPieces pieces, PieceBytes() returns a multiple of it.
inline constexpr uint64_t kPieceBytes = 64u << 20;
uint64_t PieceBytes(uint64_t file_bytes);

// Chunk size in a request for the files of a set. Both sides cut files into
// units of two chunks.
inline constexpr uint64_t kSetChunkBytes = kArchiveUnitBytes / 2;

// Progress of a push, a check or a repair. Threads: any.
struct WorkProgress {
  std::atomic<const char*> phase{"connect"};
  std::atomic<uint64_t> planned_bytes{0};
  std::atomic<uint64_t> done_bytes{0};
};

// Calls each(0) to each(count - 1) in `lanes` threads, of which this is one.
// After a call fails, begins no other. Returns the first failure.
[[nodiscard]] rocksdb::Status ForEachInLanes(
    int lanes, size_t count,
    const std::function<rocksdb::Status(size_t)>& each);

// Returns the SHA-256 of an object of one piece; for more pieces, the SHA-256
// of their concatenated digests, so that no byte is hashed twice.
Sha256Digest Sha256OfPieces(const std::vector<Sha256Digest>& pieces);

struct FileDigests {
  std::vector<Sha256Digest> pieces;  // at least one
  std::vector<Digest128> units;
  // Adds the digests of a piece.
  void Add(const FileDigestReply& piece);
};

// A file that a push reads. For each piece, the push reads the digests before
// the bytes, because a store may require the digests first.
//
// Threads: one at a time.
class SetFile : public ByteSource {
 public:
  // Adds the digests of the next piece: the SHA-256 of its bytes, and the
  // digests of its units, in order. Before the first piece, the whole file is
  // checked by its own checksums. `bytes` 0 requests only this check, except
  // for an empty file.
  //   kSourceError, kCorrupt, kCancelled; others: errors of the connection
  [[nodiscard]] virtual rocksdb::Status Digest(uint64_t offset, uint64_t bytes,
                                               FileDigests* digests) = 0;
};

// Calls each(offset, bytes) for the pieces in which a file of this size is
// uploaded. An empty file has one piece.
[[nodiscard]] rocksdb::Status ForEachPiece(
    uint64_t file_bytes,
    const std::function<rocksdb::Status(uint64_t, uint64_t)>& each);

// Returns the facts for SetSource::set() that the plan of a clone has.
ArchiveSet SetOfPlan(const Plan& plan);

// The source of a push.
//
// Owner:   the caller of a push; the source must outlive the push and all open
//          files.
// Threads: any.
class SetSource {
 public:
  virtual ~SetSource() = default;

  // Returns everything that a record says about the database and its files,
  // except the set's name, and each file's key and digests.
  virtual const ArchiveSet& set() const = 0;
  // Opens a file. Each piece is read from its beginning to its end, perhaps
  // repeatedly.
  [[nodiscard]] virtual rocksdb::Status Open(
      size_t file, std::unique_ptr<SetFile>* opened) = 0;
  // Called when every file is in the archive: lets the source release the files
  // that it keeps for this push.
  [[nodiscard]] virtual rocksdb::Status Finish() {
    return rocksdb::Status::OK();
  }
};

// Computes the digests of an object's pieces from its bytes, in order.
class PieceDigester {
 public:
  explicit PieceDigester(uint64_t bytes);
  void Add(rocksdb::Slice bytes);
  // REQUIRES: all bytes were added.
  const std::vector<Sha256Digest>& Finish();

 private:
  const uint64_t piece_bytes_;
  const uint64_t bytes_;
  uint64_t at_ = 0;
  std::unique_ptr<Sha256> piece_;
  std::vector<Sha256Digest> pieces_;
};

// Computes the digests of a file's units from its bytes, in order.
class UnitDigester {
 public:
  UnitDigester(const CloneFile& file, uint64_t unit_bytes);
  void Add(rocksdb::Slice bytes);
  // Returns the digests of the units that are complete.
  const std::vector<Digest128>& units() const { return units_; }

 private:
  std::vector<uint64_t> ends_;
  uint64_t at_ = 0;
  std::unique_ptr<Digest128Stream> unit_;
  std::vector<Digest128> units_;
};

// A file whose digests are computed from the bytes that it returns, without a
// check of its own checksums. Digest() reads each piece once, in order.
class DigestedFile : public SetFile {
 public:
  // The file is the first file.bytes of `bytes`.
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
