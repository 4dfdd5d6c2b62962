#include "format/wire_compression.h"

#include <zstd.h>

#include <cassert>
#include <new>
#include <string>

#include "format/coding.h"
#include "format/digest.h"
#include "format/end_state.h"
#include "format/limits.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

constexpr size_t kBodyDigestOffset = 4;
constexpr size_t kMagicBytes = 4;

Status BadBody(const std::string& what) {
  return MakeStatus(EndState::kCorrupt, "compressed chunk data: " + what);
}

Status Expected(const std::string& what, uint64_t expected, uint64_t found) {
  return BadBody(what + ": expected " + std::to_string(expected) + ", found " +
             std::to_string(found));
}

}  // namespace

struct WireCompressor::State {
  State() : context(ZSTD_createCCtx()) {}
  ~State() { ZSTD_freeCCtx(context); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ZSTD_CCtx* const context;
  std::unique_ptr<char[]> buffer;
};

WireCompressor::WireCompressor(int level) : level_(level) {
  assert(level >= 1 && level <= static_cast<int>(kMaxCompressionLevel));
}

WireCompressor::~WireCompressor() = default;

bool WireCompressor::Prepare() {
  if (state_ != nullptr) {
    return true;
  }
  auto state = std::make_unique<State>();
  state->buffer.reset(new (std::nothrow) char[kMaxPayloadBytes]);
  if (state->context == nullptr || state->buffer == nullptr ||
      ZSTD_isError(ZSTD_CCtx_setParameter(
          state->context, ZSTD_c_compressionLevel, level_)) != 0) {
    return false;
  }
  state_ = std::move(state);
  return true;
}

bool WireCompressor::Compress(const Slice& raw, size_t max_bytes,
                              Slice* payload) {
  assert(!raw.empty() && raw.size() <= kMaxPayloadBytes);
  assert(max_bytes <= kMaxPayloadBytes);
  if (max_bytes <= kCompressedHeaderBytes || !Prepare()) {
    return false;
  }
  char* const out = state_->buffer.get();
  const size_t bytes = ZSTD_compress2(
      state_->context, out + kCompressedHeaderBytes,
      max_bytes - kCompressedHeaderBytes, raw.data(), raw.size());
  if (ZSTD_isError(bytes) != 0) {
    return false;
  }
  EncodeFixed32(out, static_cast<uint32_t>(raw.size()));
  EncodeFixed64(out + kBodyDigestOffset, Digest64(raw));
  *payload = Slice(out, kCompressedHeaderBytes + bytes);
  return true;
}

size_t WireCompressor::memory_bytes() const {
  return state_ == nullptr ? 0 : ZSTD_sizeof_CCtx(state_->context);
}

Status ParseCompressedPayload(const Slice& payload, CompressedPayload* out) {
  if (payload.size() < kCompressedHeaderBytes + kMagicBytes) {
    return BadBody("expected at least " +
                   std::to_string(kCompressedHeaderBytes + kMagicBytes) +
                   " bytes, found " + std::to_string(payload.size()));
  }
  out->raw_bytes = DecodeFixed32(payload.data());
  out->digest = DecodeFixed64(payload.data() + kBodyDigestOffset);
  out->zstd = Slice(payload.data() + kCompressedHeaderBytes,
                    payload.size() - kCompressedHeaderBytes);
  if (out->raw_bytes == 0 || out->raw_bytes > kMaxPayloadBytes) {
    return BadBody("raw_bytes: expected 1 to " +
                   std::to_string(kMaxPayloadBytes) + ", found " +
                   std::to_string(out->raw_bytes));
  }
  if (DecodeFixed32(out->zstd.data()) != ZSTD_MAGICNUMBER) {
    return BadBody("zstd frame: expected magic 28b52ffd, found " +
               ToHex(Slice(out->zstd.data(), kMagicBytes)));
  }
  const uint64_t content =
      ZSTD_getFrameContentSize(out->zstd.data(), out->zstd.size());
  if (content == ZSTD_CONTENTSIZE_UNKNOWN ||
      content == ZSTD_CONTENTSIZE_ERROR) {
    return BadBody("zstd frame: expected a content size, found none");
  }
  if (content != out->raw_bytes) {
    return Expected("content size of the zstd frame", out->raw_bytes, content);
  }
  const size_t whole =
      ZSTD_findFrameCompressedSize(out->zstd.data(), out->zstd.size());
  if (ZSTD_isError(whole) != 0) {
    return BadBody(std::string("zstd frame is damaged or truncated: ") +
                   ZSTD_getErrorName(whole));
  }
  if (whole != out->zstd.size()) {
    return Expected("bytes of the only zstd frame", out->zstd.size(), whole);
  }
  return Status::OK();
}

struct WireDecompressor::State {
  State() : context(ZSTD_createDCtx()) {}
  ~State() { ZSTD_freeDCtx(context); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ZSTD_DCtx* const context;
};

WireDecompressor::WireDecompressor() = default;
WireDecompressor::~WireDecompressor() = default;

Status WireDecompressor::Decompress(const CompressedPayload& payload,
                                    char* out) {
  if (state_ == nullptr) {
    state_ = std::make_unique<State>();
  }
  if (state_->context == nullptr) {
    return MakeStatus(EndState::kInternal,
                      "no memory for a decompression context");
  }
  const size_t bytes =
      ZSTD_decompressDCtx(state_->context, out, payload.raw_bytes,
                          payload.zstd.data(), payload.zstd.size());
  if (ZSTD_isError(bytes) != 0) {
    return BadBody("zstd frame: expected " + std::to_string(payload.raw_bytes) +
                   " bytes, found a damaged frame: " +
                   ZSTD_getErrorName(bytes));
  }
  if (bytes != payload.raw_bytes) {
    return Expected("decompressed bytes", payload.raw_bytes, bytes);
  }
  if (Digest64(Slice(out, bytes)) != payload.digest) {
    return BadBody("digest of the decompressed bytes: expected the digest of "
                   "the payload, found another one");
  }
  return Status::OK();
}

}  // namespace sstferry
