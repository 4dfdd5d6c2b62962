#include "format/rocksdb/sst_part_check.h"

#include <algorithm>
#include <utility>

#include "format/rocksdb/sst_block.h"
#include "format/rocksdb/sst_reader.h"

namespace sstferry {
namespace {

using rocksdb::Slice;
using rocksdb::Status;

// Maximum size of a block that is collected in memory until it is complete.
constexpr uint64_t kMaxBlockBytes = 1u << 20;

// A source of which only the bytes from `readable_from` on can be read.
class EndOfSource : public ByteSource {
 public:
  EndOfSource(const ByteSource& source, uint64_t readable_from)
      : source_(source), readable_from_(readable_from) {}

  [[nodiscard]] Status Read(uint64_t offset, size_t n, std::string* scratch,
                            Slice* out) const override {
    return offset < readable_from_
               ? Status::Incomplete("not all of the file is there")
               : source_.Read(offset, n, scratch, out);
  }
  uint64_t size() const override { return source_.size(); }

 private:
  const ByteSource& source_;
  const uint64_t readable_from_;
};

}  // namespace

std::unique_ptr<SstPartCheck> SstPartCheck::Make(const ByteSource& table,
                                                 uint64_t readable_from,
                                                 const ByteSpan& part) {
  const EndOfSource source(table, readable_from);
  SstReader reader;
  if (!reader.Open(&source).ok() ||
      reader.footer().checksum == SstChecksum::kNone) {
    return nullptr;
  }
  std::unique_ptr<SstPartCheck> check(
      new SstPartCheck(reader.footer(), part));
  bool known = true;
  const Status walked =
      reader.ForEachIndexEntry([&](const SstIndexEntry& entry) {
        if (entry.handle.offset >= part.begin &&
            entry.handle.end() <= part.end) {
          known = known && check->AddBlock(entry.handle);
        }
        return known ? Status::OK() : Status::Incomplete("blocks with gaps");
      });
  check->block_at_ = check->first_;
  return walked.ok() && !check->sizes_.empty() ? std::move(check) : nullptr;
}

bool SstPartCheck::AddBlock(const SstBlockHandle& handle) {
  if (sizes_.empty()) {
    first_ = handle.offset;
    block_at_ = handle.offset;
  }
  if (handle.offset != block_at_ || handle.size > kMaxBlockBytes) {
    return false;
  }
  sizes_.push_back(static_cast<uint32_t>(handle.size));
  block_at_ = handle.end();
  return true;
}

Status SstPartCheck::Add(Slice bytes) {
  Status status;
  while (status.ok() && !bytes.empty() && next_ < sizes_.size()) {
    const size_t block_bytes = sizes_[next_] + kSstBlockTrailerBytes;
    size_t taken = bytes.size();
    if (at_ < block_at_ && partial_.empty()) {
      taken = static_cast<size_t>(
          std::min<uint64_t>(bytes.size(), block_at_ - at_));
    } else if (partial_.empty() && bytes.size() >= block_bytes) {
      taken = block_bytes;
      status = Verify(Slice(bytes.data(), block_bytes));
    } else {
      taken = std::min(bytes.size(), block_bytes - partial_.size());
      partial_.append(bytes.data(), taken);
      if (partial_.size() == block_bytes) {
        status = Verify(partial_);
        partial_.clear();
      }
    }
    at_ += taken;
    bytes.remove_prefix(taken);
  }
  at_ += bytes.size();
  return status;
}

Status SstPartCheck::Verify(const Slice& block) {
  SstBlockHandle handle;
  handle.offset = block_at_;
  handle.size = sizes_[next_];
  block_at_ = handle.end();
  ++next_;
  return VerifySstBlockBytes(footer_, handle, block);
}

ByteSpan SstPartCheck::checked() const {
  return next_ == sizes_.size() ? ByteSpan{first_, block_at_} : ByteSpan();
}

}  // namespace sstferry
