// The files of one point in time of a database, as a push reads them.
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
#include "pipeline/base/sha256.h"
#include "rocksdb/status.h"

namespace sstferry {

// A file that is larger is uploaded in pieces of this size, or of a multiple of
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

// Tells how far a push, a check or a repair has come. Threads: any.
struct WorkProgress {
  std::atomic<const char*> phase{"connect"};
  std::atomic<uint64_t> planned_bytes{0};
  std::atomic<uint64_t> done_bytes{0};
};

// Runs `work` in so many threads, this one among them, and waits for all.
void RunInLanes(int lanes, const std::function<void()>& work);

// The SHA-256 of an object of one piece; of more, that of theirs, one behind the
// other. So no byte is hashed twice.
Sha256Digest Sha256OfPieces(const std::vector<Sha256Digest>& pieces);

struct FileDigests {
  std::vector<Sha256Digest> pieces;  // at least one
  std::vector<Digest128> units;
  // Adds those of a piece.
  void Add(const FileDigestReply& piece);
};

// A file that a push reads: each piece for its digests, and then its bytes for
// a store that wants these digests first.
//
// Threads: one at a time.
class SetFile : public ByteSource {
 public:
  // Adds the digests of the piece that follows those that were asked for: the
  // SHA-256 of its bytes, and those of units, in order. Before the first piece
  // all of the file is checked by its own checksums; `bytes` 0 asks for no
  // more than that, but of an empty file.
  //   kSourceError, kCorrupt, kCancelled; others: of the way to the source
  [[nodiscard]] virtual rocksdb::Status Digest(uint64_t offset, uint64_t bytes,
                                               FileDigests* digests) = 0;
};

// Calls each(offset, bytes) for the pieces in which a file of so many bytes is
// uploaded, of which an empty one has one.
[[nodiscard]] rocksdb::Status ForEachPiece(
    uint64_t file_bytes,
    const std::function<rocksdb::Status(uint64_t, uint64_t)>& each);

// Owner:   the caller of a push; it outlives it, and all files that are open.
// Threads: any.
class SetSource {
 public:
  virtual ~SetSource() = default;

  // All that a record says of the database and of its files; not its name, and
  // of a file neither its place nor its digests.
  virtual const ArchiveSet& set() const = 0;
  // Opens a file. Its bytes are read from the beginning of a piece to its end,
  // or from there again.
  [[nodiscard]] virtual rocksdb::Status Open(
      size_t file, std::unique_ptr<SetFile>* opened) = 0;
  // Every file is in the archive: says so to who keeps them for this push.
  [[nodiscard]] virtual rocksdb::Status Finish() {
    return rocksdb::Status::OK();
  }
};

// Computes the digests of an object's pieces, whose bytes come in order.
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

// Computes the digests of a file's units, whose bytes come in order.
class UnitDigester {
 public:
  UnitDigester(const CloneFile& file, uint64_t unit_bytes);
  void Add(rocksdb::Slice bytes);
  // Returns those of units of which all has come.
  const std::vector<Digest128>& units() const { return units_; }

 private:
  std::vector<uint64_t> ends_;
  uint64_t at_ = 0;
  std::unique_ptr<Digest128Stream> unit_;
  std::vector<Digest128> units_;
};

}  // namespace sstferry
