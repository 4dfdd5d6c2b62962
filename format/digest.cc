#include "format/digest.h"

#include <algorithm>
#include <string>

#include "format/coding.h"
#include "format/end_state.h"
#include "format/xxh.h"

namespace sstferry {

using rocksdb::Slice;

namespace {

// Size of the gathering buffer. It is large enough that the cost of calls to
// the hash does not matter, and small enough to stay in the first-level cache.
constexpr size_t kGatherBytes = 4096;

Digest128 FromHash(const XXH128_hash_t& hash) {
  return Digest128{hash.high64, hash.low64};
}

}  // namespace

std::string ToHex(const Digest128& digest) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical,
                           XXH128_hash_t{digest.low, digest.high});
  return ToHex(Slice(reinterpret_cast<const char*>(canonical.digest),
                     sizeof(canonical.digest)));
}

uint64_t Digest64(const Slice& data, uint64_t seed) {
  return XXH3_64bits_withSeed(data.data(), data.size(), seed);
}

Digest128 DigestOf(const Slice& data) {
  return FromHash(XXH3_128bits(data.data(), data.size()));
}

struct Digest64Stream::State {
  XXH3_state_t hash;
};

Digest64Stream::Digest64Stream(uint64_t seed)
    : state_(std::make_unique<State>()) {
  XXH3_64bits_reset_withSeed(&state_->hash, seed);
}
Digest64Stream::~Digest64Stream() = default;

void Digest64Stream::Add(const Slice& data) {
  XXH3_64bits_update(&state_->hash, data.data(), data.size());
}
uint64_t Digest64Stream::Finish() const {
  return XXH3_64bits_digest(&state_->hash);
}

struct ChunkDigest::State {
  XXH3_state_t hash;
};

ChunkDigest::ChunkDigest() : state_(std::make_unique<State>()) {
  XXH3_128bits_reset(&state_->hash);
}
ChunkDigest::~ChunkDigest() = default;
ChunkDigest::ChunkDigest(ChunkDigest&&) noexcept = default;
ChunkDigest& ChunkDigest::operator=(ChunkDigest&&) noexcept = default;

void ChunkDigest::AddFrame(uint64_t frame_digest) {
  char bytes[8];
  EncodeFixed64(bytes, frame_digest);
  XXH3_128bits_update(&state_->hash, bytes, sizeof(bytes));
}

Digest128 ChunkDigest::Finish() const {
  return FromHash(XXH3_128bits_digest(&state_->hash));
}

void PartDigest::AddChunk(const Digest128& chunk) {
  chain_.AddFrame(chunk.low);
  chain_.AddFrame(chunk.high);
}

struct Digest128Stream::State {
  XXH3_state_t hash;
};

Digest128Stream::Digest128Stream() : state_(new State) {
  XXH3_128bits_reset(&state_->hash);
}
Digest128Stream::~Digest128Stream() = default;
void Digest128Stream::Add(const Slice& data) {
  XXH3_128bits_update(&state_->hash, data.data(), data.size());
}
Digest128 Digest128Stream::Finish() const {
  return FromHash(XXH3_128bits_digest(&state_->hash));
}
std::unique_ptr<Digest128Stream> Digest128Stream::Copy() const {
  auto copy = std::make_unique<Digest128Stream>();
  XXH3_copyState(&copy->state_->hash, &state_->hash);
  return copy;
}

struct ContentDigest::State {
  XXH3_state_t hash;
  size_t gathered = 0;
  char gather[kGatherBytes];

  void Flush() {
    XXH3_128bits_update(&hash, gather, gathered);
    gathered = 0;
  }
};

// Does not use make_unique, which would clear the gathering buffer.
ContentDigest::ContentDigest() : state_(new State) {
  XXH3_128bits_reset(&state_->hash);
}
ContentDigest::~ContentDigest() = default;
ContentDigest::ContentDigest(ContentDigest&&) noexcept = default;
ContentDigest& ContentDigest::operator=(ContentDigest&&) noexcept = default;

void ContentDigest::Append(const Slice& data) {
  State& state = *state_;
  if (data.size() > kGatherBytes - state.gathered) {
    state.Flush();
    if (data.size() >= kGatherBytes) {
      XXH3_128bits_update(&state.hash, data.data(), data.size());
      return;
    }
  }
  memcpy(state.gather + state.gathered, data.data(), data.size());
  state.gathered += data.size();
}

void ContentDigest::Add(const Slice& key, const Slice& value, bool is_entity) {
  char lengths[8];
  EncodeFixed32(lengths, static_cast<uint32_t>(key.size()));
  EncodeFixed32(lengths + 4, static_cast<uint32_t>(value.size()) |
                                 (is_entity ? kEntityMark : 0));
  Append(Slice(lengths, sizeof(lengths)));
  Append(key);
  Append(value);
  ++entries_;
  key_value_bytes_ += key.size() + value.size();
}

Digest128 ContentDigest::Finish() const {
  // Passing the gathered bytes to the hash early does not change the result.
  state_->Flush();
  return FromHash(XXH3_128bits_digest(&state_->hash));
}

rocksdb::Status AddToDigest(const ByteSource& source, uint64_t begin,
                            uint64_t end, Digest128Stream* digest) {
  constexpr uint64_t kPieceBytes = 1u << 20;
  std::string scratch;
  rocksdb::Slice piece;
  for (uint64_t at = begin; at < end; at += piece.size()) {
    RETURN_IF_ERROR(source.Read(
        at, static_cast<size_t>(std::min(kPieceBytes, end - at)), &scratch,
        &piece));
    digest->Add(piece);
  }
  return rocksdb::Status::OK();
}

}  // namespace sstferry
