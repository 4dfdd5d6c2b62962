#include "format/rocksdb/sst_file_check.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "format/end_state.h"
#include "format/read_ahead.h"
#include "format/rocksdb/sst_block.h"
#include "format/rocksdb/sst_reader.h"

namespace sstferry {
namespace {

using rocksdb::Slice;
using rocksdb::Status;

// Maximum number of meta blocks and partitions whose positions (16 bytes each)
// are kept. A file with more of them is reported as unchecked, because gaps
// between its blocks cannot be found.
constexpr size_t kMaxExtents = 1u << 20;
constexpr size_t kPieceBytes = 64u << 10;

class FileChecker {
 public:
  // `checked` is sorted in file order.
  FileChecker(const ByteSource& source, std::vector<ByteSpan> checked,
              SstFileFacts* facts)
      : source_(source),
        body_(source),
        checked_(std::move(checked)),
        facts_(facts) {}

  [[nodiscard]] Status Check() {
    const Status opened = reader_.Open(&source_);
    if (opened.IsNotSupported()) {
      facts_->unchecked = true;
      return Status::OK();
    }
    RETURN_IF_ERROR(opened);
    const SstFooter& footer = reader_.footer();
    facts_->format_version = footer.format_version;
    facts_->unchecked = footer.checksum == SstChecksum::kNone;
    RETURN_IF_ERROR(
        reader_.ForEachIndexEntry([this](const SstIndexEntry& entry) {
          const Status gap = CheckGap(data_end_, entry.handle.offset);
          data_end_ = entry.handle.end();
          return gap.ok() && !IsChecked(entry.handle)
                     ? VerifySstBlock(body_, reader_.footer(), entry.handle)
                     : gap;
        }));
    RETURN_IF_ERROR(CheckMetaBlocks());
    return CheckRest();
  }

 private:
  // Returns true if the block is in a checked span. The blocks must be passed
  // in file order.
  bool IsChecked(const SstBlockHandle& handle) {
    while (span_ < checked_.size() && checked_[span_].end < handle.end()) {
      ++span_;
    }
    return span_ < checked_.size() && checked_[span_].begin <= handle.offset;
  }

  // Checks the meta blocks, except the metaindex and the properties, which
  // Open() has verified. An ingestion may have modified the properties block
  // after it was written, without updating the block's checksum.
  [[nodiscard]] Status CheckMetaBlocks() {
    Add(reader_.footer().metaindex);
    const auto each = [this](const SstBlockHandle& handle) {
      return Verify(handle);
    };
    for (const SstMetaBlock& meta : reader_.meta_blocks()) {
      if (meta.name == kSstPropertiesName) {
        Add(meta.handle);
        continue;
      }
      RETURN_IF_ERROR(Verify(meta.handle));
      if (meta.name.starts_with(kPartitionedFilterPrefix)) {
        RETURN_IF_ERROR(reader_.ForEachPartition(meta.handle, each));
      }
    }
    RETURN_IF_ERROR(Verify(reader_.index_handle()));
    return reader_.properties().index_type == SstIndexType::kTwoLevel
               ? reader_.ForEachPartition(reader_.index_handle(), each)
               : Status::OK();
  }

  [[nodiscard]] Status Verify(const SstBlockHandle& handle) {
    if (!HandleFits(handle, reader_.footer().footer_offset)) {
      return Status::Corruption("a block reaches into the footer");
    }
    Add(handle);
    return VerifySstBlock(body_, reader_.footer(), handle);
  }

  void Add(const SstBlockHandle& handle) {
    if (extents_.size() < kMaxExtents) {
      extents_.emplace_back(handle.offset, handle.end());
    } else {
      facts_->unchecked = true;
    }
  }

  // Checks everything after the data blocks.
  [[nodiscard]] Status CheckRest() {
    std::sort(extents_.begin(), extents_.end());
    uint64_t end = data_end_;
    for (const auto& [begin, next] : extents_) {
      RETURN_IF_ERROR(CheckGap(end, begin));
      end = std::max(end, next);
    }
    return CheckGap(end, reader_.footer().footer_offset);
  }

  // Searches for nonzero bytes between blocks. Zeros are padding, but other
  // bytes belong to no known block.
  [[nodiscard]] Status CheckGap(uint64_t begin, uint64_t end) {
    std::string scratch;
    while (begin < end && !facts_->unchecked) {
      const size_t bytes =
          static_cast<size_t>(std::min<uint64_t>(kPieceBytes, end - begin));
      Slice piece;
      RETURN_IF_ERROR(body_.Read(begin, bytes, &scratch, &piece));
      facts_->unchecked |=
          std::any_of(piece.data(), piece.data() + piece.size(),
                      [](char c) { return c != 0; });
      begin += bytes;
    }
    return Status::OK();
  }

  const ByteSource& source_;
  const ReadAhead body_;  // read in file order, while the index is walked
  const std::vector<ByteSpan> checked_;
  SstFileFacts* const facts_;
  size_t span_ = 0;  // first span of checked_ that may contain the next block
  SstReader reader_;
  uint64_t data_end_ = 0;
  std::vector<std::pair<uint64_t, uint64_t>> extents_;  // begin, end
};

}  // namespace

Status CheckSstFile(const ByteSource& source, std::vector<ByteSpan> checked,
                    SstFileFacts* facts) {
  *facts = SstFileFacts();
  std::sort(checked.begin(), checked.end(),
            [](const ByteSpan& a, const ByteSpan& b) {
              return a.begin < b.begin;
            });
  return FileChecker(source, std::move(checked), facts).Check();
}

}  // namespace sstferry
