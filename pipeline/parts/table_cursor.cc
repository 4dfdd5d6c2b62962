#include "pipeline/parts/table_cursor.h"

#include <string>

#include "format/end_state.h"
#include "format/rocksdb/sst_coding.h"
#include "pipeline/base/key_interval.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

// Maximum number of blocks in one interval, which limits the memory. A part has
// far fewer blocks. RocksDB's iterator reads an interval that has more.
constexpr size_t kMaxBlocks = 1u << 17;
// Format version of the files that RocksDB has written for ingestion since 5.0.
constexpr uint32_t kExternalVersion = 2;

}  // namespace

Status TableCursor::Open(const TableFile& file, const TableReads& reads) {
  reads_ = &reads;
  RETURN_IF_ERROR(file.shared->Open(reads.file_system, file.path, &file_));
  if (file_->size() < file.bytes) {
    // Report this as a failed read. Otherwise the missing end would look like
    // damage.
    return MakeStatus(EndState::kSourceError,
                      file.path + ": truncated while it was read: expected " +
                          std::to_string(file.bytes) + " bytes, found " +
                          std::to_string(file_->size()));
  }
  read_ahead_.emplace(*file_, static_cast<size_t>(reads.readahead_bytes));
  RETURN_IF_ERROR(table_.Open(&*read_ahead_));
  RETURN_IF_ERROR(CheckKind(file));
  RETURN_IF_ERROR(FindBlocks());
  RETURN_IF_ERROR(Next());
  while (valid_ && !IsAtOrBehindBegin(user_key_)) {
    RETURN_IF_ERROR(Next());
  }
  return Status::OK();
}

bool TableCursor::IsAtOrBehindBegin(const Slice& key) const {
  return BeginsAtOrBefore(reads_->interval, reads_->order, key);
}

bool TableCursor::IsBeforeEnd(const Slice& key) const {
  return EndsAfter(reads_->interval, reads_->order, key);
}

Status TableCursor::CheckKind(const TableFile& file) {
  const SstProperties& properties = table_.properties();
  // Leave two kinds of tables to RocksDB's iterator: tables with a compression
  // dictionary, because this class would load the dictionary for each block,
  // and tables with range deletions. The merge returns no entry that such a
  // table deletes: a run opens each file, and detects the range deletions,
  // before the merge returns the file's smallest key or a later key.
  bool known = !table_.has_dictionary() && !table_.has_range_deletions();
  if (properties.external_version.has_value()) {
    known = known && properties.external_version == kExternalVersion &&
            file.smallest_sequence == file.largest_sequence;
    ingested_sequence_ = file.largest_sequence;
  }
  return known ? Status::OK() : Status::NotSupported("table of another kind");
}

// Lists the blocks that may have keys of the interval.
Status TableCursor::FindBlocks() {
  const Status status =
      table_.ForEachIndexEntry([this](const SstIndexEntry& entry) {
        if (ends_inside_) {
          return Status::Incomplete();  // the rest is after the interval
        }
        if (!IsAtOrBehindBegin(entry.separator)) {
          return Status::OK();
        }
        if (blocks_.size() == kMaxBlocks) {
          return Status::NotSupported("many blocks in one interval");
        }
        blocks_.push_back(entry.handle);
        ends_inside_ = !IsBeforeEnd(entry.separator);
        return Status::OK();
      });
  return status.IsIncomplete() ? Status::OK() : status;
}

Status TableCursor::OpenBlock() {
  return table_.OpenDataBlock(blocks_[next_block_++], &block_, &cursor_);
}

Status TableCursor::Next() {
  valid_ = false;
  Status status = next_block_ == 0 ? Status::OK() : cursor_.Next();
  while (status.ok() && !cursor_.valid()) {
    if (next_block_ == blocks_.size()) {
      return status;
    }
    status = OpenBlock();
    if (status.ok()) {
      status = cursor_.Next();
    }
  }
  return status.ok() ? ReadEntry() : status;
}

Status TableCursor::ReadEntry() {
  const std::string& key = cursor_.key();
  if (key.size() < kSstKeyTrailerBytes) {
    return Status::Corruption("key without a trailer");
  }
  user_key_ = Slice(key.data(), key.size() - kSstKeyTrailerBytes);
  const uint64_t trailer =
      sst::DecodeLittle64(key.data() + user_key_.size());
  type_ = static_cast<uint8_t>(trailer);
  sequence_ = ingested_sequence_.value_or(trailer >> 8);
  // Check the end of the interval only in the last block: all keys of the other
  // blocks are before it.
  valid_ = !ends_inside_ || next_block_ != blocks_.size() ||
           IsBeforeEnd(user_key_);
  return Status::OK();
}

}  // namespace sstferry
