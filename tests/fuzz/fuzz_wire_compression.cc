// Input: the payload of a compressed ChunkData frame. Accepted payloads must
// have the announced length. Bytes that the compressor has compressed must
// decompress to the same bytes.
#include <cstdlib>
#include <string>

#include "format/coding.h"
#include "format/digest.h"
#include "format/limits.h"
#include "format/wire_compression.h"

namespace {

using rocksdb::Slice;

void Receive(sstferry::WireDecompressor* decompressor, const Slice& payload) {
  sstferry::CompressedPayload parsed;
  if (!ParseCompressedPayload(payload, &parsed).ok()) {
    return;
  }
  if (parsed.raw_bytes == 0 || parsed.raw_bytes > sstferry::kMaxPayloadBytes) {
    abort();
  }
  // The buffer is exactly as large as announced, so that ASan finds a byte
  // more.
  const std::unique_ptr<char[]> out(new char[parsed.raw_bytes]);
  if (decompressor->Decompress(parsed, out.get()).ok() &&
      sstferry::Digest64(Slice(out.get(), parsed.raw_bytes)) !=
          parsed.digest) {
    abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static sstferry::WireDecompressor decompressor;
  static sstferry::WireCompressor compressor(1);
  const Slice input(reinterpret_cast<const char*>(data), size);
  Receive(&decompressor, input);
  if (size == 0 || size > (64u << 10)) {
    return 0;
  }
  // Uses the same bytes as damaged output of a compressor, after a valid
  // header.
  std::string payload;
  sstferry::PutFixed32(&payload, 1 + data[0] % 200);
  sstferry::PutFixed64(&payload, 0);
  payload.append(input.data(), input.size());
  Receive(&decompressor, payload);
  Slice compressed;
  if (compressor.Compress(input, sstferry::kMaxPayloadBytes, &compressed)) {
    sstferry::CompressedPayload parsed;
    std::string out(size, '\0');
    if (!ParseCompressedPayload(compressed, &parsed).ok() ||
        parsed.raw_bytes != size ||
        !decompressor.Decompress(parsed, out.data()).ok() ||
        Slice(out) != input) {
      abort();
    }
  }
  return 0;
}
