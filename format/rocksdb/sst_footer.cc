#include "format/rocksdb/sst_footer.h"

#include <cstring>

#include "format/coding.h"
#include "format/crc32c.h"
#include "format/end_state.h"
#include "format/rocksdb/sst_coding.h"
#include "format/xxh.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

constexpr uint64_t kBlockBasedMagic = 0x88e241b785f4cff7ull;
constexpr uint64_t kLevelDbMagic = 0xdb4775248b80fb57ull;
constexpr uint32_t kExtendedMagic = 0x007a003eu;
constexpr size_t kMagicBytes = 8;
constexpr size_t kHandlesOffset = 1;
constexpr size_t kFooterChecksumOffset = 5;
constexpr size_t kBaseContextOffset = 9;
constexpr size_t kMetaindexSizeOffset = 13;
constexpr size_t kReservedOffset = 17;
constexpr size_t kVersionOffset = 41;

Status BadFooter(const std::string& what, uint64_t offset) {
  return MakeStatus(EndState::kCorrupt,
                    "footer: " + what + ", offset " + std::to_string(offset));
}

std::string Hex(uint64_t value) {
  static const char kDigits[] = "0123456789abcdef";
  std::string text = "0x";
  for (int shift = 60; shift >= 0; shift -= 4) {
    text += kDigits[(value >> shift) & 0xf];
  }
  return text;
}

Status CheckMagic(uint64_t magic, uint64_t offset) {
  switch (magic) {
    case kBlockBasedMagic:
      return Status::OK();
    case kLevelDbMagic:
      return MakeStatus(EndState::kRefused,
                        "footer: expected format version 1 to 7, found a "
                        "version 0 (LevelDB's) block-based table");
    case 0x8242229663bf9564ull:
    case 0x4f3418eb7a8f13b8ull:
      return MakeStatus(
          EndState::kRefused,
          "footer: expected a block-based table, found a plain table");
    case 0x926789d0c5f17873ull:
      return MakeStatus(
          EndState::kRefused,
          "footer: expected a block-based table, found a cuckoo table");
    default:
      return BadFooter("magic: expected " + Hex(kBlockBasedMagic) + ", found " +
                     Hex(magic),
                 offset);
  }
}

Status DecodeHandles(const Slice& bytes, SstFooter* footer) {
  Slice input(bytes.data() + kHandlesOffset, kVersionOffset - kHandlesOffset);
  if (!GetSstBlockHandle(&input, &footer->metaindex) ||
      !GetSstBlockHandle(&input, &footer->index)) {
    return BadFooter("handles: expected two pairs of varints, found others",
               footer->footer_offset + kHandlesOffset);
  }
  if (!AllZero(input)) {
    return BadFooter("padding: expected zeros, found 0x" + input.ToString(true),
               footer->footer_offset + kVersionOffset - input.size());
  }
  footer->has_index_handle = true;
  if (!HandleFits(footer->index, footer->footer_offset)) {
    return BadFooter(
        "index handle: expected a block inside the file, found offset " +
            std::to_string(footer->index.offset) + " size " +
            std::to_string(footer->index.size),
        footer->footer_offset + kHandlesOffset);
  }
  return Status::OK();
}

Status DecodeExtended(const Slice& bytes, SstFooter* footer) {
  const uint64_t at = footer->footer_offset;
  const uint32_t extended = sst::DecodeLittle32(bytes.data() + kHandlesOffset);
  if (extended != kExtendedMagic) {
    return BadFooter("extended magic: expected 3e007a00, found 0x" +
                   Slice(bytes.data() + kHandlesOffset, 4).ToString(true),
               at + kHandlesOffset);
  }
  footer->base_context_checksum =
      sst::DecodeLittle32(bytes.data() + kBaseContextOffset);
  if (footer->base_context_checksum == 0) {
    return BadFooter("base context checksum: expected not 0, found 0",
               at + kBaseContextOffset);
  }
  std::string zeroed = bytes.ToString();
  memset(&zeroed[kFooterChecksumOffset], 0, sizeof(uint32_t));
  const uint32_t computed =
      ComputeSstChecksum(footer->checksum, zeroed) +
      footer->ContextModifier(at);
  const uint32_t stored =
      sst::DecodeLittle32(bytes.data() + kFooterChecksumOffset);
  if (computed != stored) {
    return BadFooter(
        "checksum: expected " + Hex(computed) + ", found " + Hex(stored),
        at + kFooterChecksumOffset);
  }
  const Slice reserved(bytes.data() + kReservedOffset,
                       kVersionOffset - kReservedOffset);
  if (!AllZero(reserved)) {
    return MakeStatus(EndState::kRefused,
                      "footer: reserved bytes: expected zeros, found 0x" +
                          reserved.ToString(true) +
                          "; a newer sstferry may read this table");
  }
  const uint64_t size =
      sst::DecodeLittle32(bytes.data() + kMetaindexSizeOffset);
  if (size + kSstBlockTrailerBytes > at) {
    return BadFooter(
        "metaindex size: expected at most what precedes the footer, "
        "found " +
            std::to_string(size),
        at + kMetaindexSizeOffset);
  }
  footer->metaindex = {at - kSstBlockTrailerBytes - size, size};
  return Status::OK();
}

}  // namespace

bool GetSstBlockHandle(Slice* input, SstBlockHandle* handle) {
  Slice rest = *input;
  SstBlockHandle decoded;
  if (!sst::GetVarint64(&rest, &decoded.offset) ||
      !sst::GetVarint64(&rest, &decoded.size)) {
    return false;
  }
  *input = rest;
  *handle = decoded;
  return true;
}

bool HandleFits(const SstBlockHandle& handle, uint64_t limit) {
  return limit >= kSstBlockTrailerBytes &&
         handle.offset <= limit - kSstBlockTrailerBytes &&
         handle.size <= limit - kSstBlockTrailerBytes - handle.offset;
}

const char* SstChecksumName(SstChecksum type) {
  switch (type) {
    case SstChecksum::kNone:
      return "none";
    case SstChecksum::kCrc32c:
      return "crc32c";
    case SstChecksum::kXxh32:
      return "xxHash";
    case SstChecksum::kXxh64:
      return "xxHash64";
    case SstChecksum::kXxh3:
      return "XXH3";
  }
  return "unknown";
}

uint32_t ComputeSstChecksum(SstChecksum type, const Slice& bytes) {
  switch (type) {
    case SstChecksum::kNone:
      return 0;
    case SstChecksum::kCrc32c:
      return MaskCrc32c(Crc32c(bytes.data(), bytes.size()));
    case SstChecksum::kXxh32:
      return XXH32(bytes.data(), bytes.size(), 0);
    case SstChecksum::kXxh64:
      return static_cast<uint32_t>(XXH64(bytes.data(), bytes.size(), 0));
    case SstChecksum::kXxh3:
      return MixLastByte(XXH3_64bits(bytes.data(), bytes.size() - 1),
                         bytes[bytes.size() - 1]);
  }
  return 0;
}

uint32_t MixLastByte(uint64_t xxh3, char last) {
  constexpr uint32_t kLastByteFactor = 0x6b9083d9u;
  return static_cast<uint32_t>(xxh3) ^
         (static_cast<unsigned char>(last) * kLastByteFactor);
}

uint32_t SstFooter::ContextModifier(uint64_t offset) const {
  if (base_context_checksum == 0) {
    return 0;
  }
  return base_context_checksum ^ (static_cast<uint32_t>(offset) +
                                  static_cast<uint32_t>(offset >> 32));
}

Status ReadSstFooter(const ByteSource& source, SstFooter* footer) {
  const uint64_t file_bytes = source.size();
  // Checks the magic before the size, so that the error also shows the kind of
  // a short file.
  if (file_bytes < kMagicBytes) {
    return BadFooter("file size: expected at least " +
                   std::to_string(kSstFooterBytes) + ", found " +
                   std::to_string(file_bytes),
               0);
  }
  const size_t have =
      file_bytes < kSstFooterBytes ? kMagicBytes : kSstFooterBytes;
  std::string scratch;
  Slice bytes;
  RETURN_IF_ERROR(source.Read(file_bytes - have, have, &scratch, &bytes));
  if (bytes.size() != have) {
    return BadFooter("read: expected " + std::to_string(have) +
                         " bytes, found " + std::to_string(bytes.size()),
                     file_bytes - have);
  }
  const uint64_t magic =
      sst::DecodeLittle64(bytes.data() + have - kMagicBytes);
  SstFooter decoded;
  decoded.is_block_based = magic == kBlockBasedMagic || magic == kLevelDbMagic;
  *footer = decoded;
  RETURN_IF_ERROR(CheckMagic(magic, file_bytes - kMagicBytes));
  if (have < kSstFooterBytes) {
    return BadFooter("file size: expected at least " +
                   std::to_string(kSstFooterBytes) + ", found " +
                   std::to_string(file_bytes),
               0);
  }
  decoded.footer_offset = file_bytes - kSstFooterBytes;
  decoded.format_version = sst::DecodeLittle32(bytes.data() + kVersionOffset);
  if (decoded.format_version == 0) {
    return BadFooter("format version: expected 1 to 7, found 0",
               decoded.footer_offset + kVersionOffset);
  }
  if (decoded.format_version > kMaxSstFormatVersion) {
    // Sets the version for callers that report it.
    footer->format_version = decoded.format_version;
    return MakeStatus(EndState::kRefused,
                      "footer: format version: expected 1 to 7, found " +
                          std::to_string(decoded.format_version));
  }
  const auto type = static_cast<unsigned char>(bytes[0]);
  if (type > static_cast<unsigned char>(SstChecksum::kXxh3)) {
    return BadFooter(
        "checksum type: expected 0 to 4, found " + std::to_string(type),
        decoded.footer_offset);
  }
  decoded.checksum = static_cast<SstChecksum>(type);
  RETURN_IF_ERROR(decoded.format_version >= 6
                      ? DecodeExtended(bytes, &decoded)
                      : DecodeHandles(bytes, &decoded));
  if (!HandleFits(decoded.metaindex, decoded.footer_offset)) {
    return BadFooter(
        "metaindex handle: expected a block inside the file, found "
        "offset " +
            std::to_string(decoded.metaindex.offset) + " size " +
            std::to_string(decoded.metaindex.size),
        decoded.footer_offset + kHandlesOffset);
  }
  *footer = decoded;
  return Status::OK();
}

}  // namespace sstferry
