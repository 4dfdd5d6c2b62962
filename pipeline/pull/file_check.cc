#include "pipeline/pull/file_check.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <utility>

#include "format/coding.h"
#include "format/crc32c.h"
#include "format/rocksdb/data_file_check.h"
#include "format/rocksdb/log_follower.h"
#include "pipeline/base/file_source.h"

namespace sstferry {
namespace {

using rocksdb::Slice;
using rocksdb::Status;

constexpr size_t kCheckedPieceBytes = 1u << 20;

Status CheckData(const ByteSource& source, CloneFileKind kind,
                 std::vector<ByteSpan> checked, bool* unchecked) {
  SstFileFacts facts;
  const Status status =
      CheckDataFile(source, kind, std::move(checked), &facts);
  *unchecked = facts.unchecked;
  return status;
}

Status CheckLog(const ByteSource& source, const CloneFile& file) {
  const bool is_wal = file.kind == CloneFileKind::kWal;
  LogFollower follower(is_wal ? LogKind::kWal : LogKind::kManifest,
                       is_wal ? file.number : 0);
  Status status = follower.Follow(
      source, [](const Slice&, uint64_t) { return Status::OK(); });
  if (status.IsNotSupported()) {
    return MakeStatus(EndState::kIncompatible, MessageOf(status));
  }
  // Check the end of a WAL only. The end of a MANIFEST is checked later, when
  // its atomic groups are known.
  if (status.ok() && is_wal && follower.end() != file.records_end) {
    return MakeStatus(EndState::kCorrupt,
                      "expected complete records up to byte " +
                          std::to_string(file.records_end) + ", found " +
                          std::to_string(follower.end()));
  }
  return status;
}

}  // namespace

Status CheckClonedFile(rocksdb::FileSystem* file_system,
                       const std::string& path, const CloneFile& file,
                       std::vector<ByteSpan> checked, bool* unchecked) {
  *unchecked = false;
  std::unique_ptr<FileSource> source;
  RETURN_IF_ERROR(FileSource::Open(file_system, path, &source));
  Status status;
  switch (file.kind) {
    case CloneFileKind::kTable:
    case CloneFileKind::kBlob:
      status = CheckData(*source, file.kind, std::move(checked), unchecked);
      break;
    case CloneFileKind::kWal:
    case CloneFileKind::kManifest:
      status = CheckLog(*source, file);
      break;
    case CloneFileKind::kOptions:
    case CloneFileKind::kIdentity:
      break;  // a text without a checksum
  }
  return WithContext(status, EndState::kCorrupt,
                     CloneFileName(file) + " of the source");
}

namespace {

// Reads `bytes` bytes at `offset` and calls add(piece) for them, in order.
// kCorrupt: the file is too short.
template <typename Add>
Status ReadPieces(const FileSource& source, const std::string& path,
                  uint64_t offset, uint64_t bytes, Add add) {
  if (source.size() < offset || source.size() - offset < bytes) {
    return MakeStatus(EndState::kCorrupt,
                      path + ": expected " + std::to_string(bytes) +
                          " bytes at offset " + std::to_string(offset) +
                          ", found a file of " +
                          std::to_string(source.size()) + " bytes");
  }
  std::string scratch;
  for (uint64_t at = 0; at < bytes;) {
    const size_t n =
        static_cast<size_t>(std::min<uint64_t>(kCheckedPieceBytes, bytes - at));
    Slice piece;
    RETURN_IF_ERROR(source.Read(offset + at, n, &scratch, &piece));
    add(piece);
    at += n;
  }
  return Status::OK();
}

Status DigestPieces(const FileSource& source, const std::string& path,
                    uint64_t offset, uint64_t bytes, Digest128* digest) {
  Digest128Stream stream;
  const Status status =
      ReadPieces(source, path, offset, bytes,
                 [&stream](const Slice& piece) { stream.Add(piece); });
  *digest = stream.Finish();
  return status;
}

}  // namespace

Status CompareWithManifest(rocksdb::FileSystem* file_system,
                           const std::string& path,
                           const std::string& function,
                           const std::string& checksum, bool* compared) {
  *compared = function == "FileChecksumCrc32c" && checksum.size() == 4;
  if (!*compared) {
    return Status::OK();
  }
  std::unique_ptr<FileSource> source;
  RETURN_IF_ERROR(FileSource::Open(file_system, path, &source));
  uint32_t crc = 0;
  RETURN_IF_ERROR(ReadPieces(
      *source, path, 0, source->size(), [&crc](const Slice& piece) {
        crc = Crc32cExtend(crc, piece.data(), piece.size());
      }));
  std::string found;  // big-endian
  for (int shift = 24; shift >= 0; shift -= 8) {
    found.push_back(static_cast<char>(crc >> shift));
  }
  return found == checksum
             ? Status::OK()
             : MakeStatus(EndState::kCorrupt,
                          path + ": expected the file checksum " +
                              ToHex(checksum) +
                              " as the MANIFEST says, found " + ToHex(found));
}

Status DigestOfPart(rocksdb::FileSystem* file_system, const std::string& path,
                    uint64_t offset, uint64_t bytes, Digest128* digest) {
  std::unique_ptr<FileSource> source;
  RETURN_IF_ERROR(FileSource::Open(file_system, path, &source));
  return DigestPieces(*source, path, offset, bytes, digest);
}

namespace {

struct FreeMemory {
  void operator()(char* data) const { std::free(data); }
};

// Computes the digest with direct reads. Returns false if direct reads are not
// supported, if a read fails, or if the file is too short.
bool DigestDirectly(rocksdb::FileSystem* file_system, const std::string& path,
                    uint64_t offset, uint64_t bytes, Digest128* digest) {
  rocksdb::FileOptions direct;
  direct.use_direct_reads = true;
  std::unique_ptr<rocksdb::FSRandomAccessFile> file;
  if (!file_system->NewRandomAccessFile(path, direct, &file, nullptr).ok() ||
      !file->use_direct_io()) {
    return false;
  }
  const uint64_t unit = file->GetRequiredBufferAlignment();
  const std::unique_ptr<char, FreeMemory> buffer(
      static_cast<char*>(std::aligned_alloc(unit, kCheckedPieceBytes)));
  if (buffer == nullptr || kCheckedPieceBytes % unit != 0) {
    return false;
  }
  Digest128Stream stream;
  const uint64_t end = offset + bytes;
  for (uint64_t at = offset / unit * unit; at < end; at += kCheckedPieceBytes) {
    Slice piece;
    if (!file->Read(at, kCheckedPieceBytes, rocksdb::IOOptions(), &piece,
                    buffer.get(), nullptr)
             .ok()) {
      return false;
    }
    // Direct reads are aligned, so the first piece may begin before the part,
    // and the last piece may end after it.
    const uint64_t skipped = at < offset ? offset - at : 0;
    const uint64_t wanted =
        std::min<uint64_t>(end - at, kCheckedPieceBytes) - skipped;
    if (piece.size() < skipped + wanted) {
      return false;
    }
    stream.Add(Slice(piece.data() + skipped, wanted));
  }
  *digest = stream.Finish();
  return true;
}

}  // namespace

Status DigestFromDisk(rocksdb::FileSystem* file_system,
                      const std::string& path, uint64_t offset, uint64_t bytes,
                      Digest128* digest) {
  if (DigestDirectly(file_system, path, offset, bytes, digest)) {
    return Status::OK();
  }
  std::unique_ptr<FileSource> source;
  RETURN_IF_ERROR(FileSource::OpenFromDisk(file_system, path, &source));
  return DigestPieces(*source, path, offset, bytes, digest);
}

}  // namespace sstferry
