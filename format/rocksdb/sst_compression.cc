#include "format/rocksdb/sst_compression.h"

#include <bzlib.h>
#include <lz4.h>
#include <snappy.h>
#include <zlib.h>
#include <zstd.h>

#include <climits>
#include <new>
#include <string>

#include "format/end_state.h"
#include "format/rocksdb/sst_coding.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

// Maximum number of output bytes for each input byte. If a payload announces a
// larger size, it is rejected before memory is reserved. (zstd and bzip2 have
// no useful maximum.)
constexpr uint64_t kLz4MaxRatio = 255;
constexpr uint64_t kZlibMaxRatio = 1032;
constexpr uint64_t kSnappyMaxRatio = 64;

Status BadCompressed(SstCompression type, const std::string& what) {
  return MakeStatus(EndState::kCorrupt,
                    std::string(SstCompressionName(type)) + " block: " + what);
}

Status Allocate(SstCompression type, uint64_t size, uint64_t max_bytes,
                SstBuffer* out) {
  if (size > max_bytes) {
    return BadCompressed(type, "decompressed size: expected at most " +
                         std::to_string(max_bytes) + ", found " +
                         std::to_string(size));
  }
  out->data.reset(new (std::nothrow) char[size == 0 ? 1 : size]);
  if (out->data == nullptr) {
    return MakeStatus(EndState::kInternal,
                      "no memory for a block of " + std::to_string(size));
  }
  out->size = size;
  return Status::OK();
}

bool InflateRaw(const Slice& input, const Slice& dict, SstBuffer* out) {
  z_stream stream = {};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) {
    return false;
  }
  bool good = true;
  if (!dict.empty()) {
    good = inflateSetDictionary(
               &stream, reinterpret_cast<const Bytef*>(dict.data()),
               static_cast<uInt>(dict.size())) == Z_OK;
  }
  if (good) {
    stream.next_in =
        reinterpret_cast<Bytef*>(const_cast<char*>(input.data()));
    stream.avail_in = static_cast<uInt>(input.size());
    stream.next_out = reinterpret_cast<Bytef*>(out->data.get());
    stream.avail_out = static_cast<uInt>(out->size);
    good = inflate(&stream, Z_FINISH) == Z_STREAM_END &&
           stream.avail_in == 0 && stream.avail_out == 0;
  }
  inflateEnd(&stream);
  return good;
}

bool Bunzip(const Slice& input, SstBuffer* out) {
  bz_stream stream = {};
  if (BZ2_bzDecompressInit(&stream, 0, 0) != BZ_OK) {
    return false;
  }
  stream.next_in = const_cast<char*>(input.data());
  stream.avail_in = static_cast<unsigned>(input.size());
  stream.next_out = out->data.get();
  stream.avail_out = static_cast<unsigned>(out->size);
  const bool good = BZ2_bzDecompress(&stream) == BZ_STREAM_END &&
                    stream.avail_in == 0 && stream.avail_out == 0;
  BZ2_bzDecompressEnd(&stream);
  return good;
}

bool Unlz4(const Slice& input, const Slice& dict, SstBuffer* out) {
  if (out->size > LZ4_MAX_INPUT_SIZE) {
    return false;
  }
  const int n = LZ4_decompress_safe_usingDict(
      input.data(), out->data.get(), static_cast<int>(input.size()),
      static_cast<int>(out->size), dict.data(), static_cast<int>(dict.size()));
  return n >= 0 && static_cast<size_t>(n) == out->size;
}

bool Unzstd(const Slice& input, const Slice& dict, SstBuffer* out) {
  ZSTD_DCtx* context = ZSTD_createDCtx();
  if (context == nullptr) {
    return false;
  }
  const size_t n =
      ZSTD_decompress_usingDict(context, out->data.get(), out->size,
                                input.data(), input.size(), dict.data(),
                                dict.size());
  ZSTD_freeDCtx(context);
  return ZSTD_isError(n) == 0 && n == out->size;
}

Status Unsnappy(const Slice& payload, size_t max_bytes, SstBuffer* out) {
  size_t size = 0;
  if (!snappy::GetUncompressedLength(payload.data(), payload.size(), &size) ||
      size / kSnappyMaxRatio > payload.size()) {
    return BadCompressed(SstCompression::kSnappy,
                         "size: expected a varint32, found none");
  }
  RETURN_IF_ERROR(Allocate(SstCompression::kSnappy, size, max_bytes, out));
  if (!snappy::RawUncompress(payload.data(), payload.size(),
                             out->data.get())) {
    return BadCompressed(SstCompression::kSnappy,
                         "stream: expected a complete stream, found damage");
  }
  return Status::OK();
}

uint64_t MaxRatio(SstCompression type) {
  switch (type) {
    case SstCompression::kZlib:
      return kZlibMaxRatio;
    case SstCompression::kLz4:
    case SstCompression::kLz4hc:
      return kLz4MaxRatio;
    default:
      return UINT32_MAX;
  }
}

// Decompresses types whose payload begins with the decompressed size.
Status DecompressSized(SstCompression type, Slice payload, const Slice& dict,
                       size_t max_bytes, SstBuffer* out) {
  uint32_t size = 0;
  if (!sst::GetVarint32(&payload, &size)) {
    return BadCompressed(type, "size: expected a varint32, found none");
  }
  if (size / MaxRatio(type) > payload.size()) {
    return BadCompressed(type, "decompressed size: expected a size that " +
                         std::to_string(payload.size()) +
                         " compressed bytes can have, found " +
                         std::to_string(size));
  }
  RETURN_IF_ERROR(Allocate(type, size, max_bytes, out));
  bool good = false;
  switch (type) {
    case SstCompression::kZlib:
      good = InflateRaw(payload, dict, out);
      break;
    case SstCompression::kBzip2:
      good = Bunzip(payload, out);
      break;
    case SstCompression::kLz4:
    case SstCompression::kLz4hc:
      good = Unlz4(payload, dict, out);
      break;
    default:
      good = Unzstd(payload, dict, out);
      break;
  }
  if (!good) {
    return BadCompressed(type, "stream: expected " + std::to_string(size) +
                         " bytes, found damage");
  }
  return Status::OK();
}

}  // namespace

const char* SstCompressionName(SstCompression type) {
  switch (type) {
    case SstCompression::kNone:
      return "none";
    case SstCompression::kSnappy:
      return "snappy";
    case SstCompression::kZlib:
      return "zlib";
    case SstCompression::kBzip2:
      return "bzip2";
    case SstCompression::kLz4:
      return "lz4";
    case SstCompression::kLz4hc:
      return "lz4hc";
    case SstCompression::kXpress:
      return "xpress";
    case SstCompression::kZstd:
    case SstCompression::kZstdNotFinal:
      return "zstd";
  }
  return "unknown";
}

Status DecompressSstBlock(SstCompression type, uint32_t format_version,
                          const Slice& payload, const Slice& dict,
                          size_t max_bytes, SstBuffer* out) {
  if (payload.size() > INT_MAX || dict.size() > INT_MAX) {
    return BadCompressed(type, "compressed size: expected below 2 GiB, found " +
                         std::to_string(payload.size()));
  }
  switch (type) {
    case SstCompression::kSnappy:
      return Unsnappy(payload, max_bytes, out);
    case SstCompression::kZlib:
    case SstCompression::kBzip2:
    case SstCompression::kLz4:
    case SstCompression::kLz4hc:
      if (format_version < 2) {
        return MakeStatus(EndState::kRefused,
                          std::string(SstCompressionName(type)) +
                              " block: expected format version 2 or later, "
                              "found " + std::to_string(format_version));
      }
      return DecompressSized(type, payload, dict, max_bytes, out);
    case SstCompression::kZstd:
    case SstCompression::kZstdNotFinal:
      return DecompressSized(type, payload, dict, max_bytes, out);
    default:
      return MakeStatus(
          EndState::kRefused,
          "block compression: expected none, snappy, zlib, bzip2, lz4, lz4hc "
          "or zstd, found type " +
              std::to_string(static_cast<unsigned>(type)));
  }
}

}  // namespace sstferry
