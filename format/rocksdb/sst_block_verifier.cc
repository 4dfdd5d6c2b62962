#include "format/rocksdb/sst_block_verifier.h"

#include <algorithm>

#include "format/crc32c.h"
#include "format/rocksdb/sst_block.h"
#include "format/xxh.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

struct SstBlockVerifier::State {
  uint32_t crc = 0;
  XXH32_state_t xxh32;
  XXH64_state_t xxh64;
  XXH3_state_t xxh3;
};

SstBlockVerifier::SstBlockVerifier(const SstFooter& footer,
                                   const SstBlockHandle& handle)
    : checksum_(footer.checksum),
      modifier_(footer.ContextModifier(handle.offset)),
      handle_(handle),
      state_(std::make_unique<State>()) {
  XXH32_reset(&state_->xxh32, 0);
  XXH64_reset(&state_->xxh64, 0);
  XXH3_64bits_reset(&state_->xxh3);
}

SstBlockVerifier::~SstBlockVerifier() = default;

void SstBlockVerifier::Add(const Slice& bytes) {
  Slice rest = bytes;
  if (added_ < handle_.size) {
    const size_t payload = static_cast<size_t>(
        std::min<uint64_t>(rest.size(), handle_.size - added_));
    AddPayload(Slice(rest.data(), payload));
    rest.remove_prefix(payload);
    added_ += payload;
  }
  for (size_t i = 0; i < rest.size(); ++i, ++added_) {
    if (added_ - handle_.size < kSstBlockTrailerBytes) {
      trailer_[added_ - handle_.size] = rest[i];
    }
  }
}

void SstBlockVerifier::AddPayload(const Slice& bytes) {
  switch (checksum_) {
    case SstChecksum::kNone:
      break;
    case SstChecksum::kCrc32c:
      state_->crc = Crc32cExtend(state_->crc, bytes.data(), bytes.size());
      break;
    case SstChecksum::kXxh32:
      XXH32_update(&state_->xxh32, bytes.data(), bytes.size());
      break;
    case SstChecksum::kXxh64:
      XXH64_update(&state_->xxh64, bytes.data(), bytes.size());
      break;
    case SstChecksum::kXxh3:
      XXH3_64bits_update(&state_->xxh3, bytes.data(), bytes.size());
      break;
  }
}

// Returns the checksum of the payload and the compression type after it.
uint32_t SstBlockVerifier::Computed() const {
  switch (checksum_) {
    case SstChecksum::kNone:
      return 0;
    case SstChecksum::kCrc32c:
      return MaskCrc32c(Crc32cExtend(state_->crc, trailer_, 1));
    case SstChecksum::kXxh32:
      XXH32_update(&state_->xxh32, trailer_, 1);
      return XXH32_digest(&state_->xxh32);
    case SstChecksum::kXxh64:
      XXH64_update(&state_->xxh64, trailer_, 1);
      return static_cast<uint32_t>(XXH64_digest(&state_->xxh64));
    case SstChecksum::kXxh3:
      return MixLastByte(XXH3_64bits_digest(&state_->xxh3), trailer_[0]);
  }
  return 0;
}

Status SstBlockVerifier::Finish() const {
  if (added_ != handle_.size + kSstBlockTrailerBytes) {
    return WrongSstBlockLength(handle_, added_);
  }
  return CompareSstChecksums(checksum_, handle_, Computed() + modifier_,
                             trailer_);
}

}  // namespace sstferry
