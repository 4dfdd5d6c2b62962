#include "format/rocksdb/sst_block.h"

#include <algorithm>

#include "format/end_state.h"
#include "format/rocksdb/sst_block_verifier.h"
#include "format/rocksdb/sst_coding.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

constexpr size_t kMaxHashedBlockBytes = 64u << 10;
constexpr uint32_t kHashBit = 1u << 31;
constexpr uint32_t kReservedBit = 1u << 30;
constexpr uint32_t kUniformBit = 1u << 29;
constexpr uint32_t kSeparatedBit = 1u << 28;
constexpr unsigned char kFirstSpecialBucket = 254;
// Blocks larger than this are verified in pieces of this size.
constexpr uint64_t kVerifiedAtOnce = 256u << 10;

Status BadBlock(const SstBlockHandle& handle, const std::string& what) {
  return MakeStatus(EndState::kCorrupt, "block: " + what + ", offset " +
                                            std::to_string(handle.offset));
}

Status CheckHandle(const SstFooter& footer, const SstBlockHandle& handle,
                   uint64_t max_bytes) {
  if (!HandleFits(handle, footer.footer_offset)) {
    return BadBlock(handle, "handle: expected a block before the footer, "
                            "found size " + std::to_string(handle.size));
  }
  if (handle.size > max_bytes) {
    return BadBlock(handle, "size: expected at most " +
                                std::to_string(max_bytes) + ", found " +
                                std::to_string(handle.size));
  }
  return Status::OK();
}

// Reads payload and trailer into *bytes and verifies the checksum.
Status ReadVerified(const ByteSource& source, const SstFooter& footer,
                    const SstBlockHandle& handle, uint64_t max_bytes,
                    std::string* scratch, Slice* bytes) {
  RETURN_IF_ERROR(CheckHandle(footer, handle, max_bytes));
  const size_t n = handle.size + kSstBlockTrailerBytes;
  RETURN_IF_ERROR(source.Read(handle.offset, n, scratch, bytes));
  return VerifySstBlockBytes(footer, handle, *bytes);
}

}  // namespace

Status ReadSstBlock(const ByteSource& source, const SstFooter& footer,
                    const SstBlockHandle& handle, uint64_t max_bytes,
                    const Slice& dict, SstBlock* block) {
  block->contents_.clear();
  Slice bytes;
  RETURN_IF_ERROR(ReadVerified(source, footer, handle, max_bytes, &block->raw_,
                               &bytes));
  const Slice payload(bytes.data(), handle.size);
  block->compression_ = static_cast<SstCompression>(bytes[handle.size]);
  if (block->compression_ == SstCompression::kNone) {
    block->contents_ = payload;
    return Status::OK();
  }
  const Status s =
      DecompressSstBlock(block->compression_, footer.format_version, payload,
                         dict, max_bytes, &block->decompressed_);
  if (!s.ok()) {
    return WithContext(s, EndState::kCorrupt,
                       "block at offset " + std::to_string(handle.offset));
  }
  block->contents_ =
      Slice(block->decompressed_.data.get(), block->decompressed_.size);
  return s;
}

Status VerifySstBlockBytes(const SstFooter& footer,
                           const SstBlockHandle& handle, const Slice& bytes) {
  if (bytes.size() < kSstBlockTrailerBytes ||
      bytes.size() - kSstBlockTrailerBytes != handle.size) {
    return WrongSstBlockLength(handle, bytes.size());
  }
  const uint32_t computed =
      ComputeSstChecksum(footer.checksum,
                         Slice(bytes.data(), handle.size + 1)) +
      footer.ContextModifier(handle.offset);
  return CompareSstChecksums(footer.checksum, handle, computed,
                             bytes.data() + handle.size);
}

Status WrongSstBlockLength(const SstBlockHandle& handle, uint64_t found) {
  return BadBlock(handle, "expected " + std::to_string(handle.size) +
                              " bytes and their trailer, found " +
                              std::to_string(found));
}

Status CompareSstChecksums(SstChecksum type, const SstBlockHandle& handle,
                           uint32_t computed, const char* trailer) {
  const uint32_t stored = sst::DecodeLittle32(trailer + 1);
  if (stored == computed) {
    return Status::OK();
  }
  return BadBlock(handle, std::string("checksum (") + SstChecksumName(type) +
                              "): expected " + std::to_string(computed) +
                              ", found " + std::to_string(stored));
}

Status VerifySstBlock(const ByteSource& source, const SstFooter& footer,
                      const SstBlockHandle& handle) {
  std::string scratch;
  Slice bytes;
  if (handle.size <= kVerifiedAtOnce) {
    return ReadVerified(source, footer, handle, kVerifiedAtOnce, &scratch,
                        &bytes);
  }
  RETURN_IF_ERROR(CheckHandle(footer, handle, kMaxSstBlockBytes));
  SstBlockVerifier verifier(footer, handle);
  for (uint64_t at = handle.offset; at < handle.end(); at += bytes.size()) {
    RETURN_IF_ERROR(source.Read(
        at,
        static_cast<size_t>(std::min(kVerifiedAtOnce, handle.end() - at)),
        &scratch, &bytes));
    verifier.Add(bytes);
  }
  return verifier.Finish();
}

Status SstBlockCursor::Bad(const std::string& what) const {
  return MakeStatus(EndState::kCorrupt,
                    "block: " + what + ", at byte " +
                        std::to_string(next_at_) +
                        " of the block at offset " +
                        std::to_string(file_offset_));
}

Status SstBlockCursor::Init(const Slice& contents, const SstBlockLayout& layout,
                            uint64_t file_offset) {
  contents_ = contents;
  layout_ = layout;
  file_offset_ = file_offset;
  next_at_ = 0;
  next_restart_ = 0;
  entries_ = 0;
  key_bytes_ = 0;
  valid_ = false;
  key_.clear();
  handle_ = SstBlockHandle();
  return ReadTail();
}

Status SstBlockCursor::ReadTail() {
  if (contents_.size() < 2 * sizeof(uint32_t)) {
    return Bad("size: expected at least 8, found " +
               std::to_string(contents_.size()));
  }
  size_t end = contents_.size() - sizeof(uint32_t);
  uint32_t packed = sst::DecodeLittle32(contents_.data() + end);
  const bool hashed = (packed & kHashBit) != 0;
  separated_ = (packed & kSeparatedBit) != 0;
  RETURN_IF_ERROR(CheckMarks(packed));
  if (separated_) {
    end -= sizeof(uint32_t);  // a block has at least 8 bytes
    entries_end_ = sst::DecodeLittle32(contents_.data() + end);
  }
  packed &= ~(kHashBit | kUniformBit | kSeparatedBit);
  const size_t buckets_end = end - (hashed ? sizeof(uint16_t) : 0);
  if (hashed) {
    RETURN_IF_ERROR(SkipBuckets(&end));
  }
  if (packed == 0 || packed > end / sizeof(uint32_t)) {
    return Bad("restarts: expected 1 to " +
               std::to_string(end / sizeof(uint32_t)) + ", found " +
               std::to_string(packed));
  }
  num_restarts_ = packed;
  restarts_at_ = end - packed * sizeof(uint32_t);
  if (!separated_) {
    entries_end_ = restarts_at_;
  } else if (entries_end_ > restarts_at_) {
    return Bad("values: expected them before the restarts at " +
               std::to_string(restarts_at_) + ", found " +
               std::to_string(entries_end_));
  }
  next_value_at_ = entries_end_;
  if (sst::DecodeLittle32(contents_.data() + restarts_at_) != 0) {
    return Bad("first restart: expected 0, found another offset");
  }
  return hashed ? CheckBuckets(end, buckets_end) : Status::OK();
}

// Rejects marks that the properties do not declare. An old RocksDB that does
// not know a mark reads it as part of the restart count. A RocksDB that knows
// separated values aborts, in builds with assertions, if they are not declared.
Status SstBlockCursor::CheckMarks(uint32_t packed) const {
  const bool separated = (packed & kSeparatedBit) != 0;
  const bool uniform = (packed & kUniformBit) != 0;
  if ((packed & kReservedBit) != 0) {
    return Bad("packed count: expected bit 30 clear, found it set");
  }
  if ((separated && !layout_.separated) || (uniform && !layout_.uniform)) {
    return MakeStatus(
        EndState::kRefused,
        "block at offset " + std::to_string(file_offset_) +
            ": expected a layout that the table's properties declare, found " +
            (separated && !layout_.separated ? "values apart from keys"
                                             : "uniform keys"));
  }
  if (layout_.separated && !separated) {
    return Bad("packed count: expected values apart from keys as the "
               "properties say, found bit 28 clear");
  }
  return Status::OK();
}

// Moves *end from the end of the bucket count back to the first bucket.
Status SstBlockCursor::SkipBuckets(size_t* end) {
  if (!layout_.is_data || contents_.size() > kMaxHashedBlockBytes) {
    return Bad("packed count: expected no hash index, found its bit set");
  }
  if (*end < sizeof(uint16_t)) {
    return Bad("hash index: expected a bucket count, found none");
  }
  *end -= sizeof(uint16_t);
  const size_t buckets =
      static_cast<unsigned char>(contents_[*end]) |
      (size_t{static_cast<unsigned char>(contents_[*end + 1])} << 8);
  if (buckets == 0 || buckets >= *end) {
    return Bad("hash buckets: expected 1 to " + std::to_string(*end) +
               ", found " + std::to_string(buckets));
  }
  *end -= buckets;
  return Status::OK();
}

Status SstBlockCursor::CheckBuckets(size_t begin, size_t end) const {
  for (size_t at = begin; at < end; ++at) {
    const auto bucket = static_cast<unsigned char>(contents_[at]);
    if (bucket < kFirstSpecialBucket && bucket >= num_restarts_) {
      return Bad("hash bucket: expected a restart below " +
                 std::to_string(num_restarts_) + ", found " +
                 std::to_string(bucket));
    }
  }
  return Status::OK();
}

bool SstBlockCursor::IsAtRestart() const {
  return next_restart_ < num_restarts_ &&
         sst::DecodeLittle32(contents_.data() + restarts_at_ +
                             next_restart_ * sizeof(uint32_t)) == next_at_;
}

Status SstBlockCursor::CheckRestart(uint32_t shared) {
  if (next_restart_ == num_restarts_) {
    return Status::OK();
  }
  const uint32_t restart = sst::DecodeLittle32(
      contents_.data() + restarts_at_ + next_restart_ * sizeof(uint32_t));
  if (restart < next_at_) {
    return Bad("restart " + std::to_string(next_restart_) +
               ": expected the offset of an entry, found " +
               std::to_string(restart));
  }
  if (restart == next_at_) {
    if (shared != 0) {
      return Bad("shared bytes at a restart: expected 0, found " +
                 std::to_string(shared));
    }
    ++next_restart_;
  }
  return Status::OK();
}

Status SstBlockCursor::DecodeHandle(bool is_shared, Slice* input) {
  if (layout_.delta_handles && is_shared) {
    int64_t delta = 0;
    if (!sst::GetSignedVarint64(input, &delta)) {
      return Bad("handle delta: expected a varint, found none");
    }
    // A malformed delta may make the sum wrap. The code that reads the block
    // checks the handle.
    handle_ = {handle_.offset + handle_.size + kSstBlockTrailerBytes,
               handle_.size + static_cast<uint64_t>(delta)};
  } else if (!GetSstBlockHandle(input, &handle_)) {
    return Bad("handle: expected two varints, found none");
  }
  first_key_.clear();
  if (layout_.has_first_key) {
    uint32_t n = 0;
    if (!sst::GetVarint32(input, &n) || n > input->size()) {
      return Bad("first key: expected a length-prefixed key, found none");
    }
    first_key_ = Slice(input->data(), n);
    input->remove_prefix(n);
  }
  return Status::OK();
}

// Checks the state after the last entry.
Status SstBlockCursor::CheckEnd() const {
  // A block without entries also has one restart, at 0.
  const uint32_t unseen = num_restarts_ - next_restart_;
  if (unseen != 0 && (entries_ != 0 || unseen != 1)) {
    return Bad("restarts: expected an entry at each restart, found " +
               std::to_string(unseen) + " without an entry");
  }
  if (separated_ && next_value_at_ != restarts_at_) {
    return Bad("values: expected an entry for each byte, found " +
               std::to_string(restarts_at_ - next_value_at_) +
               " bytes without an entry");
  }
  return Status::OK();
}

// Reads the value from *input, or from the separate values at the block's end.
// Sets value_ and the members derived from it, and moves *input past the value.
Status SstBlockCursor::ReadValue(uint32_t shared, uint32_t value_bytes,
                                 Slice* input) {
  Slice values = separated_ ? Slice(contents_.data() + next_value_at_,
                                    restarts_at_ - next_value_at_)
                            : *input;
  if (!layout_.delta_handles && value_bytes > values.size()) {
    return Bad("value: expected at most " + std::to_string(values.size()) +
               " bytes, found " + std::to_string(value_bytes));
  }
  if (layout_.values_are_handles) {
    Slice encoded(values.data(),
                  layout_.delta_handles ? values.size() : value_bytes);
    RETURN_IF_ERROR(DecodeHandle(shared != 0, &encoded));
    if (!layout_.delta_handles && !encoded.empty()) {
      return Bad("handle: expected no bytes after it, found " +
                 std::to_string(encoded.size()) + " bytes");
    }
    value_bytes = static_cast<uint32_t>(encoded.data() - values.data());
  }
  value_ = Slice(values.data(), value_bytes);
  if (separated_) {
    next_value_at_ += value_bytes;
  } else {
    input->remove_prefix(value_bytes);
  }
  return Status::OK();
}

Status SstBlockCursor::Next() {
  valid_ = false;
  if (next_at_ == entries_end_) {
    return CheckEnd();
  }
  Slice input(contents_.data() + next_at_, entries_end_ - next_at_);
  uint32_t shared = 0;
  uint32_t unshared = 0;
  uint32_t value_bytes = 0;
  uint32_t value_offset = 0;
  const bool has_offset = separated_ && IsAtRestart();
  if (!sst::GetVarint32(&input, &shared) ||
      !sst::GetVarint32(&input, &unshared) ||
      (!layout_.delta_handles && !sst::GetVarint32(&input, &value_bytes)) ||
      (has_offset && !sst::GetVarint32(&input, &value_offset))) {
    return Bad("entry: expected varints with its lengths, found other bytes");
  }
  if (has_offset && value_offset != next_value_at_ - entries_end_) {
    return Bad("value's offset: expected " +
               std::to_string(next_value_at_ - entries_end_) + ", found " +
               std::to_string(value_offset));
  }
  if (shared > key_.size() || unshared > input.size()) {
    return Bad("key: expected at most " + std::to_string(key_.size()) +
               " shared and " + std::to_string(input.size()) +
               " unshared bytes, found " + std::to_string(shared) + " and " +
               std::to_string(unshared));
  }
  RETURN_IF_ERROR(CheckRestart(shared));
  key_bytes_ += uint64_t{shared} + unshared;
  if (key_bytes_ > MaxSstKeyBytes(contents_.size())) {
    return Bad("keys: expected at most " +
               std::to_string(MaxSstKeyBytes(contents_.size())) +
               " bytes in all keys of a block of " +
               std::to_string(contents_.size()) + " bytes, found " +
               std::to_string(key_bytes_));
  }
  key_.resize(shared);
  key_.append(input.data(), unshared);
  input.remove_prefix(unshared);
  RETURN_IF_ERROR(ReadValue(shared, value_bytes, &input));
  next_at_ = static_cast<size_t>(input.data() - contents_.data());
  ++entries_;
  valid_ = true;
  return Status::OK();
}

}  // namespace sstferry
