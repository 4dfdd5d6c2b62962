// Decompresses table blocks with a limit on the size of the result.
//
// Payload by type (format versions 2-7), with `dict` if the file has one:
//   1 snappy           snappy's own format, no dictionary
//   2 zlib             varint32 size, raw deflate stream
//   3 bzip2            varint32 size, bzip2 stream, no dictionary
//   4 lz4, 5 lz4hc     varint32 size, one LZ4 block
//   7 zstd, 0x40 too   varint32 size, zstd frame(s)
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace sstferry {

enum class SstCompression : uint8_t {
  kNone = 0,
  kSnappy = 1,
  kZlib = 2,
  kBzip2 = 3,
  kLz4 = 4,
  kLz4hc = 5,
  kXpress = 6,
  kZstd = 7,
  kZstdNotFinal = 0x40,
};

const char* SstCompressionName(SstCompression type);

// A buffer whose memory is not initialized. So a large announced size costs
// nothing until bytes are written.
struct SstBuffer {
  std::unique_ptr<char[]> data;
  size_t size = 0;
};

// Decompresses `payload`.
// Corruption   the payload is damaged, its size differs from the announced
//              size, or the announced size is above max_bytes.
// NotSupported the type is unknown, or it is one of 2 to 5 in a file of format
//              version 0 or 1.
// REQUIRES: type != kNone.
[[nodiscard]] rocksdb::Status DecompressSstBlock(
    SstCompression type, uint32_t format_version, const rocksdb::Slice& payload,
    const rocksdb::Slice& dict, size_t max_bytes, SstBuffer* out);

}  // namespace sstferry
