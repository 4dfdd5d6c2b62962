#include "pipeline/parts/unit_sender.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "format/end_state.h"
#include "format/limits.h"
#include "format/part.h"
#include "format/rocksdb/data_file_check.h"
#include "pipeline/base/file_source.h"
#include "pipeline/base/sha256.h"
#include "pipeline/snapshot/posix_files.h"
#include "sstferry/descriptor.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

// Small enough for a second-level cache and for a frame of the protocol.
constexpr size_t kUnitBufferBytes = 512u << 10;

// Reads one open file from front to back into the caller's memory. Uses
// pread(): with mmap(), a failing disk would kill the process instead of
// failing one transfer. Owns its descriptor. Threads: one.
class BodyReader {
 public:
  // Opens the file at `path`.
  //   kSourceError  the file cannot be opened
  [[nodiscard]] static Status Open(const std::string& path,
                                   std::unique_ptr<BodyReader>* out) {
    const int descriptor = OpenLinked(path, O_RDONLY).Release();
    if (descriptor < 0) {
      return ErrnoStatus(EndState::kSourceError, "cannot open", path, errno);
    }
    // Make the kernel double its readahead. A failure does not matter.
    posix_fadvise(descriptor, 0, 0, POSIX_FADV_SEQUENTIAL);
    out->reset(new BodyReader(path, descriptor));
    return Status::OK();
  }
  ~BodyReader() { close(descriptor_); }
  BodyReader(const BodyReader&) = delete;
  BodyReader& operator=(const BodyReader&) = delete;

  // Reads exactly `bytes` bytes.
  //   kSourceError  reading failed
  //   kCorrupt      the file is too short
  [[nodiscard]] Status Read(uint64_t offset, size_t bytes, char* buffer) {
    for (size_t done = 0; done < bytes;) {
      const ssize_t got = pread(descriptor_, buffer + done, bytes - done,
                                static_cast<off_t>(offset + done));
      if (got < 0 && errno == EINTR) {
        continue;
      }
      if (got < 0) {
        return ErrnoStatus(EndState::kSourceError,
                           "cannot read offset " +
                               std::to_string(offset + done) + " of",
                           path_, errno);
      }
      if (got == 0) {
        return MakeStatus(EndState::kCorrupt,
                          path_ + ": expected " + std::to_string(bytes) +
                              " bytes at offset " + std::to_string(offset) +
                              ", found " + std::to_string(done));
      }
      done += static_cast<size_t>(got);
    }
    return Status::OK();
  }

 private:
  BodyReader(std::string path, int descriptor)
      : path_(std::move(path)), descriptor_(descriptor) {}

  const std::string path_;
  const int descriptor_;
};

// Reads the unit's bytes from `first_byte` on, and passes them to `take`, one
// buffer at a time.
Status ReadUnit(BodyReader* reader, const Part& unit, uint64_t first_byte,
                const std::function<bool()>& cancelled,
                std::vector<char>* buffer,
                const std::function<Status(const Slice&)>& take) {
  buffer->resize(kUnitBufferBytes);
  for (uint64_t at = first_byte; at < unit.bytes;) {
    const size_t bytes = static_cast<size_t>(
        std::min<uint64_t>(buffer->size(), unit.bytes - at));
    if (cancelled()) {
      return MakeStatus(EndState::kCancelled, "clone: stopped on request");
    }
    RETURN_IF_ERROR(reader->Read(unit.offset + at, bytes, buffer->data()));
    RETURN_IF_ERROR(take(Slice(buffer->data(), bytes)));
    at += bytes;
  }
  return Status::OK();
}

// Reads the unit from `source`, and passes its bytes to `append`. Collects
// small pieces in a buffer, so that each frame has more data than header.
Status SendFrom(UnitSource* source, const Part& unit,
                const std::function<bool()>& cancelled,
                std::vector<char>* buffer,
                const std::function<Status(const Slice&)>& append) {
  buffer->resize(kUnitBufferBytes);
  size_t filled = 0;
  const auto take = [&](const Slice& piece) {
    for (size_t at = 0; at < piece.size();) {
      const size_t bytes =
          std::min(piece.size() - at, buffer->size() - filled);
      std::memcpy(buffer->data() + filled, piece.data() + at, bytes);
      at += bytes;
      filled += bytes;
      if (filled == buffer->size()) {
        filled = 0;
        RETURN_IF_ERROR(append(Slice(buffer->data(), buffer->size())));
      }
    }
    return Status::OK();
  };
  RETURN_IF_ERROR(source->Read(unit, cancelled, take));
  return filled > 0 ? append(Slice(buffer->data(), filled)) : Status::OK();
}

// Wraps a source of bytes. Calls `on_read` before each read, and fails with
// kCancelled if it returns false.
class ToldSource : public ByteSource {
 public:
  ToldSource(const ByteSource& source,
             const std::function<bool(uint64_t)>& on_read)
      : source_(source), on_read_(on_read) {}

  [[nodiscard]] Status Read(uint64_t offset, size_t n, std::string* scratch,
                            Slice* out) const override {
    return on_read_(n) ? source_.Read(offset, n, scratch, out)
                       : MakeStatus(EndState::kCancelled,
                                    "clone: stopped on request");
  }
  uint64_t size() const override { return source_.size(); }

 private:
  const ByteSource& source_;
  const std::function<bool(uint64_t)>& on_read_;
};

}  // namespace

Status SendUnit(const UnitPlace& place, const Part& unit, uint64_t first_byte,
                const std::function<bool()>& cancelled, ChunkSink* sink,
                std::vector<char>* buffer) {
  std::unique_ptr<BodyReader> reader;
  if (place.source == nullptr) {
    RETURN_IF_ERROR(BodyReader::Open(place.path, &reader));
  }
  ChunkBegin begin;
  begin.part_id = unit.id;
  begin.kind = PartKind::kUnit;
  begin.file_bytes = unit.bytes;
  // A UnitSource always sends a whole unit, because it can check only a whole
  // unit.
  begin.first_byte = place.source != nullptr ? 0 : first_byte;
  RETURN_IF_ERROR(sink->Begin(begin));
  const auto append = [sink](const Slice& piece) {
    return sink->Append(piece);
  };
  RETURN_IF_ERROR(
      place.source != nullptr
          ? SendFrom(place.source, unit, cancelled, buffer, append)
          : ReadUnit(reader.get(), unit, first_byte, cancelled, buffer,
                     append));
  ChunkEnd end;
  end.part_id = unit.id;
  end.file_bytes = unit.bytes;
  return sink->End(end);
}

Status DigestUnit(const UnitPlace& place, const Part& unit,
                  UnitSource::DigestFrom from,
                  const std::function<bool()>& cancelled,
                  std::vector<char>* buffer, Digest128* digest) {
  if (place.source != nullptr) {
    return place.source->DigestOf(unit, from, cancelled, digest);
  }
  std::unique_ptr<BodyReader> reader;
  RETURN_IF_ERROR(BodyReader::Open(place.path, &reader));
  Digest128Stream stream;
  RETURN_IF_ERROR(ReadUnit(reader.get(), unit, 0, cancelled, buffer,
                           [&stream](const Slice& piece) {
                             stream.Add(piece);
                             return Status::OK();
                           }));
  *digest = stream.Finish();
  return Status::OK();
}

Status DigestPiece(const std::string& path, const CloneFile& file,
                   uint64_t unit_bytes, const FileDigestRequest& piece,
                   const std::function<bool(uint64_t)>& on_read,
                   std::vector<char>* buffer, FileDigestReply* reply) {
  *reply = FileDigestReply();
  if (piece.bytes > file.bytes || piece.offset > file.bytes - piece.bytes) {
    return MakeStatus(EndState::kCorrupt,
                      CloneFileName(file) + ": expected a piece within its " +
                          std::to_string(file.bytes) + " bytes, found " +
                          std::to_string(piece.bytes) + " bytes at offset " +
                          std::to_string(piece.offset));
  }
  if (piece.offset == 0) {
    RETURN_IF_ERROR(CheckUnitFile(path, file, on_read));
  }
  const uint64_t piece_end = piece.offset + piece.bytes;
  std::vector<Part> units;
  RETURN_IF_ERROR(CutIntoUnits({file}, unit_bytes, &units));
  std::erase_if(units, [&](const Part& unit) {
    return unit.offset < piece.offset || unit.offset >= piece_end;
  });
  if (units.size() > kMaxFilePieceUnits) {
    return MakeStatus(EndState::kRefused,
                      CloneFileName(file) + ": expected a piece of at most " +
                          std::to_string(kMaxFilePieceUnits) + " units, found " +
                          std::to_string(units.size()));
  }
  std::unique_ptr<BodyReader> reader;
  RETURN_IF_ERROR(BodyReader::Open(path, &reader));
  buffer->resize(kUnitBufferBytes);
  Sha256 sha256;
  std::unique_ptr<Digest128Stream> open;  // digest of units[next] so far
  size_t next = 0;
  // Read on after the piece to the end of the last unit, which may be later.
  const uint64_t end =
      units.empty() ? piece_end
                    : std::max(piece_end,
                               units.back().offset + units.back().bytes);
  for (uint64_t at = piece.offset; at < end;) {
    // Stop each read where a unit begins or ends, or where the piece ends.
    uint64_t stop = std::min<uint64_t>(end, at + kUnitBufferBytes);
    if (at < piece_end) stop = std::min(stop, piece_end);
    if (next < units.size()) {
      const Part& current = units[next];
      stop = std::min(stop, at < current.offset
                                ? current.offset
                                : current.offset + current.bytes);
    }
    const auto bytes = static_cast<size_t>(stop - at);
    if (!on_read(bytes)) {
      return MakeStatus(EndState::kCancelled, "clone: stopped on request");
    }
    RETURN_IF_ERROR(reader->Read(at, bytes, buffer->data()));
    const Slice read(buffer->data(), bytes);
    if (at < piece_end) sha256.Update(read);
    if (next < units.size() && at >= units[next].offset) {
      if (open == nullptr) open = std::make_unique<Digest128Stream>();
      open->Add(read);
      if (stop == units[next].offset + units[next].bytes) {
        reply->units.push_back(open->Finish());
        open.reset();
        next++;
      }
    }
    at = stop;
  }
  reply->sha256 = sha256.Finish();
  return Status::OK();
}

Status CheckUnitFile(const std::string& path, const CloneFile& file,
                     const std::function<bool(uint64_t)>& on_read) {
  if (!IsDataFile(file)) {
    return Status::OK();
  }
  std::unique_ptr<FileSource> source;
  Status status = FileSource::Open(rocksdb::FileSystem::Default().get(), path,
                                   &source, EndState::kSourceError);
  SstFileFacts facts;
  if (status.ok()) {
    status = CheckDataFile(ToldSource(*source, on_read), file.kind, {}, &facts);
  }
  return WithContext(status, EndState::kCorrupt, CloneFileName(file));
}

}  // namespace sstferry
