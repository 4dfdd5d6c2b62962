#include "pipeline/snapshot/wal_check.h"

#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>

#include "format/crc32c.h"
#include "format/end_state.h"
#include "format/rocksdb/log_follower.h"
#include "pipeline/snapshot/posix_files.h"

namespace sstferry {
namespace {

using rocksdb::Status;

constexpr size_t kPlainHeaderBytes = 7;
constexpr size_t kRecyclableHeaderBytes = 11;

uint32_t Load32(const char* data) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(data);
  return bytes[0] | bytes[1] << 8 | bytes[2] << 16 |
         static_cast<uint32_t>(bytes[3]) << 24;
}

// One block of the WAL. The functions below take the offset of a record in the
// block.
struct Block {
  char data[kLogBlockBytes];
  size_t size = 0;
  uint32_t log = 0;
  bool recyclable_log = false;  // the WAL's first data record is recyclable

  uint32_t Length(size_t at) const {
    return static_cast<unsigned char>(data[at + 4]) |
           static_cast<unsigned char>(data[at + 5]) << 8;
  }
  uint8_t Type(size_t at) const { return static_cast<uint8_t>(data[at + 6]); }
  uint32_t Crc(size_t at) const {
    return UnmaskCrc32c(Load32(data + at));
  }
};

bool IsRecyclable(uint8_t type) {
  return (type >= 5 && type <= 8) || type == 11 || type == 131;
}

bool IsKnown(uint8_t type) {
  return (type >= 1 && type <= 11) || type == 130 || type == 131;
}

size_t HeaderBytes(uint8_t type) {
  return IsRecyclable(type) ? kRecyclableHeaderBytes : kPlainHeaderBytes;
}

// Returns true if the checksum of the record at offset `at` is right for a
// record of type `type` whose payload has exactly `length` bytes.
bool ChecksumFits(const Block& block, size_t at, uint8_t type,
                  size_t length) {
  const size_t header = HeaderBytes(type);
  if (at + header + length > block.size) {
    return false;
  }
  uint32_t crc = Crc32c(reinterpret_cast<const char*>(&type), 1);
  crc = Crc32cExtend(crc, block.data + at + kPlainHeaderBytes,
                     header - kPlainHeaderBytes + length);
  return crc == block.Crc(at);
}

// Returns true if there is a complete record of this WAL at offset `at`.
// Records of an older WAL in the same file do not count.
bool IsValid(const Block& block, size_t at) {
  if (at + kPlainHeaderBytes > block.size) {
    return false;
  }
  const uint8_t type = block.Type(at);
  if (!IsKnown(type) || at + HeaderBytes(type) > block.size) {
    return false;
  }
  if (IsRecyclable(type)
          ? Load32(block.data + at + kPlainHeaderBytes) != block.log
          : block.recyclable_log && type <= 4) {
    return false;
  }
  return ChecksumFits(block, at, type, block.Length(at));
}

// Returns true if the invalid record at offset `at` was once a complete record
// of this WAL: only one of its fields is damaged, and the other bytes show
// this.
bool WasWhole(const Block& block, size_t at) {
  if (at + kPlainHeaderBytes > block.size) {
    return false;
  }
  const uint8_t type = block.Type(at);
  const size_t length = block.Length(at);
  if (type == 0 && length == 0) {
    return false;  // space that was allocated, but not written
  }
  // If a valid record follows, this record was complete.
  for (const size_t header : {kPlainHeaderBytes, kRecyclableHeaderBytes}) {
    if (IsValid(block, at + header + length)) {
      return true;
    }
  }
  // If the checksum is right for another type, only the type is damaged.
  for (uint8_t other = 1; other <= 8; other++) {
    const bool ours =
        IsRecyclable(other)
            ? block.recyclable_log && at + kRecyclableHeaderBytes <=
                                          block.size &&
                  Load32(block.data + at + kPlainHeaderBytes) == block.log
            : !block.recyclable_log;
    if (ours && other != type && ChecksumFits(block, at, other, length)) {
      return true;
    }
  }
  // If the checksum is right for another length, only the length is damaged.
  if (!IsKnown(type) || IsRecyclable(type) != block.recyclable_log) {
    return false;
  }
  const size_t header = HeaderBytes(type);
  if (at + header > block.size ||
      (block.recyclable_log &&
       Load32(block.data + at + kPlainHeaderBytes) != block.log)) {
    return false;
  }
  uint32_t crc = Crc32c(reinterpret_cast<const char*>(&type), 1);
  crc = Crc32cExtend(crc, block.data + at + kPlainHeaderBytes,
                     header - kPlainHeaderBytes);
  for (size_t end = at + header; end < block.size; end++) {
    crc = Crc32cExtend(crc, block.data + end, 1);
    if (crc == block.Crc(at)) {
      return true;
    }
  }
  return false;
}

Status ReadBlock(int fd, const std::string& name, uint64_t offset,
                 Block* block) {
  block->size = 0;
  while (block->size < kLogBlockBytes) {
    const ssize_t done =
        pread(fd, block->data + block->size, kLogBlockBytes - block->size,
              static_cast<off_t>(offset + block->size));
    if (done < 0) {
      if (errno == EINTR) continue;
      return ErrnoStatus(EndState::kSourceError, "cannot read", name, errno);
    }
    if (done == 0) break;
    block->size += static_cast<size_t>(done);
  }
  return Status::OK();
}

Status Damaged(const std::string& name, uint64_t offset) {
  return MakeStatus(EndState::kCorrupt,
                    name + ": expected a good record, found a damaged one, at "
                    "offset " + std::to_string(offset));
}

// Walks over the records of a block. Sets *end to the offset of the first
// invalid record, or to block.size if all are valid.
void Walk(Block* block, size_t* end) {
  // If no header fits into the end of a block, RocksDB leaves these bytes
  // empty.
  const size_t header =
      block->recyclable_log ? kRecyclableHeaderBytes : kPlainHeaderBytes;
  size_t at = 0;
  while (at + (block->size == kLogBlockBytes ? header : 1) <= block->size) {
    if (!IsValid(*block, at)) {
      *end = at;
      return;
    }
    at += HeaderBytes(block->Type(at)) + block->Length(at);
  }
  *end = block->size;
}

// Finds out from the first record if the records of this WAL are recyclable. If
// this record is invalid, searches for a kind of record and one damaged field
// that together explain its bytes. If there are none, returns false: the file
// is not a WAL, or it is truncated inside its first record.
bool FindKind(Block* block, bool* damaged) {
  *damaged = false;
  for (const bool recyclable : {false, true}) {
    block->recyclable_log = recyclable;
    if (IsValid(*block, 0)) {
      // The first record may describe the WAL itself. Such a record has a plain
      // header.
      const size_t next = HeaderBytes(block->Type(0)) + block->Length(0);
      const bool settled =
          block->Type(0) <= 8
              ? IsRecyclable(block->Type(0)) == recyclable
              : IsValid(*block, next) &&
                    IsRecyclable(block->Type(next)) == recyclable;
      if (settled || recyclable) {
        return true;
      }
    }
  }
  for (const bool recyclable : {false, true}) {
    block->recyclable_log = recyclable;
    *damaged = *damaged || WasWhole(*block, 0);
  }
  return false;
}

}  // namespace

Status CheckWal(int fd, uint64_t number, const std::string& name) {
  const auto block = std::make_unique<Block>();
  block->log = static_cast<uint32_t>(number);
  bool ended = false;
  uint64_t end_offset = 0;
  for (uint64_t offset = 0;; offset += kLogBlockBytes) {
    const Status status = ReadBlock(fd, name, offset, block.get());
    if (!status.ok() || block->size == 0) {
      return status;
    }
    if (ended) {
      if (IsValid(*block, 0)) {
        return Damaged(name, end_offset);
      }
      continue;
    }
    size_t end = 0;
    bool damaged = false;
    if (offset > 0 || FindKind(block.get(), &damaged)) {
      Walk(block.get(), &end);
      damaged = end < block->size && WasWhole(*block, end);
    }
    if (end < block->size) {
      ended = true;
      end_offset = offset + end;
      if (damaged) {
        return Damaged(name, end_offset);
      }
    }
  }
}

Status CheckWal(const std::string& path, uint64_t number,
                const std::string& name) {
  Descriptor file;
  const Status status = OpenForeign(path, &file);
  if (status.ok() && !file.is_open()) {
    return ErrnoStatus(EndState::kSourceError, "cannot open", path, ENOENT);
  }
  return status.ok() ? CheckWal(file.get(), number, name) : status;
}

}  // namespace sstferry
