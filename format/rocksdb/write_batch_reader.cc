#include "format/rocksdb/write_batch_reader.h"

#include <string>

#include "format/coding.h"
#include "format/end_state.h"
#include "format/rocksdb/sst_coding.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

constexpr size_t kBatchHeaderBytes = 12;
constexpr uint8_t kNote = 0x03;
constexpr uint8_t kCommitTimestampType = 0x15;

struct EntryType {
  uint8_t type;         // for column family 0
  uint8_t family_type;  // for an entry with a family id
  BatchEntryKind kind;
  bool has_value;
};

constexpr EntryType kEntryTypes[] = {
    {0x01, 0x05, BatchEntryKind::kPut, true},
    {0x00, 0x04, BatchEntryKind::kDelete, false},
    {0x07, 0x08, BatchEntryKind::kSingleDelete, false},
    {0x0f, 0x0e, BatchEntryKind::kDeleteRange, true},
    {0x02, 0x06, BatchEntryKind::kMerge, true},
    {0x11, 0x10, BatchEntryKind::kBlobIndex, true},
    {0x16, 0x17, BatchEntryKind::kEntity, true},
    {0x18, 0x19, BatchEntryKind::kTimedPut, true},
};

struct MarkerType {
  uint8_t type;
  BatchMarker marker;
  bool has_name;
};

constexpr MarkerType kMarkerTypes[] = {
    {0x09, BatchMarker::kBeginPrepare, false},
    {0x12, BatchMarker::kBeginPersistedPrepare, false},
    {0x13, BatchMarker::kBeginUnprepare, false},
    {0x0a, BatchMarker::kEndPrepare, true},
    {0x0b, BatchMarker::kCommit, true},
    {kCommitTimestampType, BatchMarker::kCommitWithTimestamp, true},
    {0x0c, BatchMarker::kRollback, true},
    {0x0d, BatchMarker::kNoop, false},
};

// Reads one batch. Errors contain the offset at which the entry begins.
class BatchReader {
 public:
  BatchReader(const Slice& record, BatchHandler* handler)
      : record_(record), rest_(record), handler_(handler) {
    rest_.remove_prefix(kBatchHeaderBytes);
  }

  Status Read(uint32_t count) {
    uint64_t found = 0;
    while (!rest_.empty()) {
      entry_offset_ = record_.size() - rest_.size();
      RETURN_IF_ERROR(ReadEntry(&found));
    }
    if (found != count) {
      return MakeStatus(EndState::kCorrupt,
                        "write batch: expected " + std::to_string(count) +
                            " entries, found " + std::to_string(found));
    }
    return Status::OK();
  }

 private:
  Status ReadEntry(uint64_t* found) {
    const auto type = static_cast<uint8_t>(rest_[0]);
    rest_.remove_prefix(1);
    for (const EntryType& entry : kEntryTypes) {
      if (type == entry.type || type == entry.family_type) {
        ++*found;
        return ReadKeyed(entry, type == entry.family_type);
      }
    }
    for (const MarkerType& marker : kMarkerTypes) {
      if (type == marker.type) {
        return ReadMarker(marker);
      }
    }
    Slice note;
    if (type == kNote) {
      return ReadString("note", &note);
    }
    return MakeStatus(EndState::kRefused,
                      "write batch: expected a known entry type, found " +
                          std::to_string(type) + ", offset " +
                          std::to_string(entry_offset_) +
                          "; a newer sstferry may read it");
  }

  Status ReadKeyed(const EntryType& entry, bool has_family) {
    uint32_t family_id = 0;
    if (has_family && !sst::GetVarint32(&rest_, &family_id)) {
      return Damaged("column family id");
    }
    Slice key;
    Slice value;
    Status s = ReadString("key", &key);
    if (s.ok() && entry.has_value) {
      s = ReadString("value", &value);
    }
    return s.ok() ? handler_->OnEntry(entry.kind, family_id, key, value) : s;
  }

  Status ReadMarker(const MarkerType& marker) {
    Slice timestamp;
    Slice name;
    Status s;
    if (marker.type == kCommitTimestampType) {
      s = ReadString("timestamp", &timestamp);
    }
    if (s.ok() && marker.has_name) {
      s = ReadString("name", &name);
    }
    return s.ok() ? handler_->OnMarker(marker.marker, name) : s;
  }

  Status ReadString(const char* field, Slice* out) {
    uint32_t size = 0;
    if (!sst::GetVarint32(&rest_, &size) || size > rest_.size()) {
      return Damaged(field);
    }
    *out = Slice(rest_.data(), size);
    rest_.remove_prefix(size);
    return Status::OK();
  }

  Status Damaged(const char* field) const {
    return MakeStatus(EndState::kCorrupt,
                      "write batch: " + std::string(field) +
                          " is truncated in the entry at offset " +
                          std::to_string(entry_offset_));
  }

  const Slice record_;
  Slice rest_;
  BatchHandler* const handler_;
  size_t entry_offset_ = 0;
};

}  // namespace

uint8_t TableTypeOf(BatchEntryKind kind) {
  uint8_t type = 0;
  for (const EntryType& entry : kEntryTypes) {
    if (entry.kind == kind) type = entry.type;
  }
  return type;
}

Status ReadWriteBatch(const Slice& record, BatchHeader* header,
                      BatchHandler* handler) {
  if (record.size() < kBatchHeaderBytes) {
    return MakeStatus(EndState::kCorrupt,
                      "write batch: expected at least 12 bytes, found " +
                          std::to_string(record.size()));
  }
  header->sequence = DecodeFixed64(record.data());
  header->count = DecodeFixed32(record.data() + 8);
  return handler == nullptr ? Status::OK()
                            : BatchReader(record, handler).Read(header->count);
}

}  // namespace sstferry
