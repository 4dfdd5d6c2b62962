#include "format/rocksdb/version_edit.h"

#include "format/coding.h"
#include "format/end_state.h"
#include "format/rocksdb/sst_coding.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

enum Tag : uint32_t {
  kComparator = 1,
  kLogNumber = 2,
  kNextFile = 3,
  kLastSequence = 4,
  kCompactCursor = 5,
  kDeletedFile = 6,
  kNewFile = 7,
  kPrevLogNumber = 9,
  kMinLogNumberToKeep = 10,
  kNewFile2 = 100,
  kNewFile3 = 102,
  kNewFile4 = 103,
  kFamily = 200,
  kFamilyAdd = 201,
  kFamilyDrop = 202,
  kMaxFamily = 203,
  kInAtomicGroup = 300,
  kBlobAddition = 400,
  kBlobGarbage = 401,

  // Readers may ignore an unknown tag with this bit. A length and that many
  // bytes follow the tag.
  kIgnorable = 1u << 13,
  kDatabaseId = kIgnorable + 1,
  kBlobAdditionOld = kIgnorable + 2,
  kBlobGarbageOld = kIgnorable + 3,
  kWalAdditionOld = kIgnorable + 4,
  kWalDeletionOld = kIgnorable + 5,
  kFullHistoryTsLow = kIgnorable + 6,
  kWalAddition = kIgnorable + 7,
  kWalDeletion = kIgnorable + 8,
  kPersistTimestamps = kIgnorable + 9,
};

enum FileTag : uint32_t {
  kEndOfFields = 1,
  kNeedCompaction = 2,
  kMinLogNumberInFile = 3,
  kOldestBlobFile = 4,
  kOldestAncestorTime = 5,
  kCreationTime = 6,
  kChecksum = 7,
  kChecksumFunction = 8,
  kTemperature = 9,
  kMinTimestamp = 10,
  kMaxTimestamp = 11,
  kUniqueId = 12,
  kEpoch = 13,
  kRangeDeletionBytes = 14,
  kTailBytes = 15,
  kTimestampsPersisted = 16,
  kOpenMetadata = 17,
  kNotIgnorable = 1u << 6,  // a bit of the tag
  kPathId = kNotIgnorable + 1,
};

constexpr uint32_t kMaxPathId = 3;
constexpr uint32_t kMaxLevel = 255;  // RocksDB's levels are below 64
constexpr size_t kTrailerBytes = 8;  // of an internal key
constexpr size_t kUniqueIdBytes = 16;

// Tags of a blob file's fields.
constexpr uint32_t kEndOfBlobFields = 0;
// Tags of a WAL's fields.
constexpr uint32_t kEndOfWalFields = 1;
constexpr uint32_t kWalSyncedBytes = 2;

// Reads the fields of one record from front to back. Keeps the first error;
// later reads return nothing.
class EditReader {
 public:
  EditReader(const Slice& record, uint64_t max_memory_bytes, VersionEdit* edit)
      : record_(record),
        max_memory_bytes_(max_memory_bytes),
        rest_(record),
        edit_(edit) {}

  Status Read() {
    while (status_.ok() && !rest_.empty()) {
      tag_offset_ = record_.size() - rest_.size();
      const uint32_t tag = Number32("tag");
      if (status_.ok()) {
        ReadTag(tag);
      }
    }
    return status_;
  }

 private:
  void ReadTag(uint32_t tag) {
    switch (tag) {
      case kComparator:
        edit_->comparator = Text("comparator");
        break;
      case kLogNumber:
        edit_->log_number = Number("log number");
        break;
      case kNextFile:
        edit_->next_file = Number("next file");
        break;
      case kLastSequence:
        edit_->last_sequence = Number("last sequence");
        break;
      case kCompactCursor:
        Level();
        InternalKey("compaction cursor");
        break;
      case kDeletedFile: {
        const int level = Level();
        const uint64_t number = Number("deleted file");
        if (Take(sizeof(edit_->deleted_files[0]))) {
          edit_->deleted_files.emplace_back(level, number);
        }
        break;
      }
      case kNewFile:
      case kNewFile2:
      case kNewFile3:
      case kNewFile4:
        ReadFile(tag);
        break;
      case kPrevLogNumber:
        edit_->prev_log_number = Number("previous log number");
        break;
      case kMinLogNumberToKeep:
        edit_->min_log_number_to_keep = Number("log number to keep");
        break;
      case kFamily:
        edit_->family_id = Number32("column family id");
        break;
      case kFamilyAdd:
        edit_->adds_family = true;
        edit_->family_name = Text("column family name");
        break;
      case kFamilyDrop:
        edit_->drops_family = true;
        break;
      case kMaxFamily:
        edit_->max_family = Number32("highest column family id");
        break;
      case kInAtomicGroup:
        edit_->in_group = true;
        edit_->records_behind = Number32("records of the group");
        break;
      default:
        ReadLaterTag(tag);
        break;
    }
  }

  // Reads a tag that later RocksDB versions added.
  void ReadLaterTag(uint32_t tag) {
    switch (tag) {
      case kBlobAddition:
      case kBlobAdditionOld:
        ReadBlobAddition();
        break;
      case kBlobGarbage:
      case kBlobGarbageOld:
        ReadBlobGarbage();
        break;
      case kDatabaseId:
        edit_->database_id = Text("database id");
        break;
      case kWalAdditionOld:
        ReadWalAddition(&rest_);
        break;
      case kWalDeletionOld:
        edit_->wals_deleted_before = Number("deleted WALs");
        break;
      case kFullHistoryTsLow: {
        edit_->full_history_ts_low = Text("full_history_ts_low");
        Expect("full_history_ts_low", !edit_->full_history_ts_low.empty(),
               "a timestamp");
        break;
      }
      case kWalAddition: {
        Slice fields = Bytes("WAL");
        ReadWalAddition(&fields);
        break;
      }
      case kWalDeletion: {
        Slice fields = Bytes("deleted WALs");
        edit_->wals_deleted_before = NumberOf(&fields, "deleted WALs");
        break;
      }
      case kPersistTimestamps:
        edit_->persists_timestamps = Byte(
            "persist_user_defined_timestamps",
            Bytes("persist_user_defined_timestamps")) == 1;
        break;
      default:
        if ((tag & kIgnorable) != 0) {
          edit_->has_unknown = true;
          Bytes("ignored tag");
        } else {
          NotKnown("tag", tag);
        }
        break;
    }
  }

  void ReadFile(uint32_t tag) {
    ManifestFile file;
    file.level = Level();
    file.number = Number("table's number");
    if (tag == kNewFile3) {
      SetPathId(Number32("table's path id"), &file);
    }
    file.bytes = Number("table's size");
    file.smallest = InternalKey("table's smallest key");
    file.largest = InternalKey("table's largest key");
    if (tag != kNewFile) {
      file.smallest_sequence = Number("table's smallest sequence");
      file.largest_sequence = Number("table's largest sequence");
    }
    if (tag == kNewFile4) {
      uint32_t field = Number32("table's field");
      while (status_.ok() && field != kEndOfFields) {
        ReadFileField(field, Bytes("table's field"), &file);
        field = Number32("table's field");
      }
    }
    if (Take(MemoryOf(file))) {
      edit_->new_files.push_back(std::move(file));
    }
  }

  void ReadFileField(uint32_t field, Slice value, ManifestFile* file) {
    switch (field) {
      case kNeedCompaction:
        file->marked_for_compaction = Byte("need compaction", value) == 1;
        break;
      case kMinLogNumberInFile:
        if (Expect("log number to keep", value.size() >= 8, "8 bytes")) {
          edit_->min_log_number_to_keep = DecodeFixed64(value.data());
        }
        break;
      case kOldestBlobFile:
        file->oldest_blob_file = NumberOf(&value, "oldest blob file");
        break;
      case kOldestAncestorTime:
        file->oldest_ancestor_time = NumberOf(&value, "oldest ancestor time");
        break;
      case kCreationTime:
        file->creation_time = NumberOf(&value, "creation time");
        break;
      case kChecksum:
        file->checksum = value.ToString();
        break;
      case kChecksumFunction:
        file->checksum_function = value.ToString();
        break;
      case kTemperature:
        file->temperature = Byte("temperature", value);
        break;
      case kUniqueId:
        if (Expect("unique id", value.size() == kUniqueIdBytes, "16 bytes")) {
          file->has_unique_id = true;
          file->unique_id.high = DecodeFixed64(value.data());
          file->unique_id.low = DecodeFixed64(value.data() + 8);
        }
        break;
      case kEpoch:
        file->epoch = NumberOf(&value, "epoch");
        break;
      case kTailBytes:
        file->tail_bytes = NumberOf(&value, "tail size");
        break;
      case kTimestampsPersisted:
        file->has_timestamps = Byte("timestamps persisted", value) == 1;
        break;
      case kPathId:
        SetPathId(Byte("path id", value), file);
        break;
      case kMinTimestamp:
      case kMaxTimestamp:
      case kRangeDeletionBytes:
      case kOpenMetadata:
        break;
      default:
        edit_->has_unknown = true;
        if ((field & kNotIgnorable) != 0) {
          NotKnown("table's field", field);
        }
        break;
    }
  }

  void SetPathId(uint32_t path_id, ManifestFile* file) {
    Expect("path id", path_id <= kMaxPathId, "at most 3");
    file->path_id = path_id;
  }

  void ReadBlobAddition() {
    ManifestBlobFile blob;
    blob.number = Number("blob file's number");
    blob.total_count = Number("blob file's count");
    blob.total_bytes = Number("blob file's bytes");
    Bytes("blob file's checksum function");
    Bytes("blob file's checksum");
    SkipBlobFields();
    if (Take(kBlobBytes)) {
      edit_->blob_additions.push_back(blob);
    }
  }

  void ReadBlobGarbage() {
    ManifestBlobFile blob;
    blob.number = Number("blob file's number");
    blob.garbage_count = Number("blob file's garbage count");
    blob.garbage_bytes = Number("blob file's garbage bytes");
    SkipBlobFields();
    if (Take(kBlobBytes)) {
      edit_->blob_garbage.push_back(blob);
    }
  }

  void SkipBlobFields() {
    uint32_t field = Number32("blob file's field");
    while (status_.ok() && field != kEndOfBlobFields) {
      if ((field & kNotIgnorable) != 0) {
        NotKnown("blob file's field", field);
        return;
      }
      edit_->has_unknown = true;
      Bytes("blob file's field");
      field = Number32("blob file's field");
    }
  }

  void ReadWalAddition(Slice* fields) {
    const uint64_t number = NumberOf(fields, "WAL's number");
    uint64_t bytes = kUnknownWalBytes;
    uint32_t field = Number32Of(fields, "WAL's field");
    while (status_.ok() && field != kEndOfWalFields) {
      if (field != kWalSyncedBytes) {
        NotKnown("WAL's field", field);
        return;
      }
      bytes = NumberOf(fields, "WAL's size");
      field = Number32Of(fields, "WAL's field");
    }
    if (Take(kWalMemoryBytes)) {
      edit_->wal_additions.emplace_back(number, bytes);
    }
  }

  int Level() {
    const uint32_t level = Number32("level");
    Expect("level", level <= kMaxLevel, "at most 255");
    return static_cast<int>(level);
  }

  std::string InternalKey(const char* field) {
    const Slice key = Bytes(field);
    Expect(field, key.size() >= kTrailerBytes, "at least 8 bytes");
    return key.ToString();
  }

  uint8_t Byte(const char* field, const Slice& value) {
    return Expect(field, value.size() == 1, "one byte")
               ? static_cast<uint8_t>(value[0])
               : uint8_t{0};
  }

  uint64_t Number(const char* field) { return NumberOf(&rest_, field); }
  uint32_t Number32(const char* field) { return Number32Of(&rest_, field); }

  uint64_t NumberOf(Slice* bytes, const char* field) {
    uint64_t value = 0;
    Expect(field, sst::GetVarint64(bytes, &value), "a varint64");
    return value;
  }

  uint32_t Number32Of(Slice* bytes, const char* field) {
    uint32_t value = 0;
    Expect(field, sst::GetVarint32(bytes, &value), "a varint32");
    return value;
  }

  Slice Bytes(const char* field) {
    const uint32_t size = Number32(field);
    if (!Expect(field, size <= rest_.size(), "a complete value")) {
      return {};
    }
    const Slice bytes(rest_.data(), size);
    rest_.remove_prefix(size);
    return bytes;
  }

  std::string Text(const char* field) {
    const Slice bytes = Bytes(field);
    return Take(bytes.size()) ? bytes.ToString() : std::string();
  }

  // Counts memory that the edit is about to take. Records an error above the
  // limit.
  bool Take(uint64_t bytes) {
    edit_->memory_bytes += bytes;
    if (status_.ok() && edit_->memory_bytes > max_memory_bytes_) {
      status_ = ManifestTooLarge(max_memory_bytes_);
      rest_.clear();
    }
    return status_.ok();
  }

  // Records an error unless `holds`.
  bool Expect(const char* field, bool holds, const char* expected) {
    if (!holds) {
      Fail(EndState::kCorrupt, std::string(field) + ": expected " + expected +
                                   ", found none");
    }
    return status_.ok();
  }

  void NotKnown(const char* what, uint32_t number) {
    Fail(EndState::kRefused, std::string(what) + ": expected a known value, "
                             "found " + std::to_string(number));
  }

  void Fail(EndState state, const std::string& problem) {
    if (status_.ok()) {
      status_ = MakeStatus(
          state, "MANIFEST: " + problem + ", in the record's tag at offset " +
                     std::to_string(tag_offset_) +
                     (state == EndState::kRefused
                          ? "; a newer sstferry may read it"
                          : ""));
    }
    rest_.clear();
  }

  const Slice record_;
  const uint64_t max_memory_bytes_;
  Slice rest_;
  VersionEdit* const edit_;
  size_t tag_offset_ = 0;
  Status status_;
};

}  // namespace

uint64_t MemoryOf(const ManifestFile& file) {
  // Counts one node in ManifestFamily::files, and one in
  // ManifestReader::blob_links_.
  return sizeof(file) + 2 * kNodeBytes + file.smallest.size() +
         file.largest.size() + file.checksum.size() +
         file.checksum_function.size();
}

Status ManifestTooLarge(uint64_t max_bytes) {
  return MakeStatus(EndState::kRefused,
                    "MANIFEST: expected contents that need at most " +
                        std::to_string(max_bytes) +
                        " bytes of memory when decoded, found more");
}

Status DecodeVersionEdit(const Slice& record, VersionEdit* edit,
                         uint64_t max_memory_bytes) {
  return EditReader(record, max_memory_bytes, edit).Read();
}

}  // namespace sstferry
