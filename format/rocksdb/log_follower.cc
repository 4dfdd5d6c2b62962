#include "format/rocksdb/log_follower.h"

#include <zstd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "format/coding.h"
#include "format/crc32c.h"
#include "format/end_state.h"
#include "format/limits.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

constexpr size_t kPlainHeaderBytes = 7;
constexpr size_t kRecyclableHeaderBytes = 11;
constexpr size_t kTimestampSizeBytes = 6;
constexpr uint32_t kZstdType = 7;

constexpr uint8_t kNotWritten = 0;
constexpr uint8_t kLastRecyclable = 8;
constexpr uint8_t kCompression = 9;
constexpr uint8_t kTimestampSizes = 10;
constexpr uint8_t kRecyclableTimestampSizes = 11;
constexpr uint8_t kFirstIgnorable = 128;
constexpr uint8_t kRecyclablePredecessor = 131;

// Expected record types, as written in messages.
constexpr char kWalTypes[] = "record types 1 to 11 and zstd";
constexpr char kManifestTypes[] = "record types 1 to 4";

// Position of a physical record in its logical record. Types 1 to 4 and types 5
// to 8 have these positions, in this order.
enum class Fragment : uint8_t { kWhole, kFirst, kMiddle, kLast };

bool IsRecyclable(uint8_t type) {
  return (type > 4 && type <= kLastRecyclable) ||
         type == kRecyclableTimestampSizes || type == kRecyclablePredecessor;
}

uint64_t MaxRecordBytes(LogKind kind) {
  return kind == LogKind::kWal ? kMaxLogRecordBytes : kMaxManifestMemoryBytes;
}

size_t HeaderBytes(uint8_t type) {
  return IsRecyclable(type) ? kRecyclableHeaderBytes : kPlainHeaderBytes;
}

// Returns the error for a record that is too large. For a MANIFEST it is
// kRefused, because the record may be undamaged.
Status TooLarge(LogKind kind, uint64_t offset) {
  return MakeStatus(
      kind == LogKind::kWal ? EndState::kCorrupt : EndState::kRefused,
      "log record: expected at most " + std::to_string(MaxRecordBytes(kind)) +
          " bytes, found more, before offset " + std::to_string(offset));
}

}  // namespace

struct LogFollower::Physical {
  uint8_t type = 0;
  Slice payload;
  size_t bytes = 0;  // header and payload
  uint64_t offset = 0;
  uint64_t end_offset = 0;
};

struct LogFollower::Reading {
  bool in_record = false;
  std::string record;  // collected parts, or decompressed bytes
  std::string wrong;   // reason why the last record is wrong
};

// Decompresses logical records part by part.
class LogFollower::Inflater {
 public:
  enum class Outcome : uint8_t { kDone, kDamaged, kTooLarge };

  Inflater() : stream_(ZSTD_createDCtx()) {}
  ~Inflater() { ZSTD_freeDCtx(stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  bool has_record() const { return stream_ != nullptr; }

  void Restart() { ZSTD_DCtx_reset(stream_, ZSTD_reset_session_only); }

  // Appends the decompressed bytes of `input`.
  Outcome Append(const Slice& input, std::string* out) {
    ZSTD_inBuffer in = {input.data(), input.size(), 0};
    bool more = !input.empty();
    while (more) {
      ZSTD_outBuffer part = {buffer_, sizeof(buffer_), 0};
      if (ZSTD_isError(ZSTD_decompressStream(stream_, &part, &in)) != 0) {
        return Outcome::kDamaged;
      }
      if (part.pos > kMaxLogRecordBytes - out->size()) {
        return Outcome::kTooLarge;
      }
      out->append(buffer_, part.pos);
      more = in.pos < in.size || part.pos == part.size;
    }
    return Outcome::kDone;
  }

 private:
  ZSTD_DCtx* stream_;
  char buffer_[kLogBlockBytes];
};

LogFollower::LogFollower(LogKind kind, uint64_t log_number)
    : kind_(kind),
      log_number_(kind == LogKind::kWal ? static_cast<uint32_t>(log_number)
                                        : 0) {}

LogFollower::~LogFollower() = default;

Status LogFollower::Follow(const ByteSource& source,
                           const OnRecord& on_record) {
  const uint64_t size = source.size();
  if (kind_ == LogKind::kManifest && size > kMaxManifestFileBytes) {
    return MakeStatus(
        EndState::kRefused,
        "MANIFEST: expected at most " + std::to_string(kMaxManifestFileBytes) +
            " bytes, found " + std::to_string(size) +
            "; let its application reopen the database, which starts a new "
            "MANIFEST");
  }
  Reading reading;
  Physical physical;
  Step step = Step::kNext;
  std::string scratch;
  stopped_inside_ = false;
  stop_ = LogStop::kEnd;
  is_damaged_ = false;
  for (uint64_t at = end_; at < size && step <= Step::kNextBlock;) {
    const uint64_t block_end = (at / kLogBlockBytes + 1) * kLogBlockBytes;
    Slice rest;
    RETURN_IF_ERROR(source.Read(
        at, static_cast<size_t>(std::min(block_end, size) - at), &scratch,
        &rest));
    for (step = Step::kNext; step == Step::kNext && !rest.empty();) {
      physical.offset = at;
      step = Look(rest, block_end <= size, &physical, &reading);
      if (step == Step::kNextBlock && physical.bytes > 0 &&
          reading.in_record) {
        step = Wrong("the rest of a record", "zeros", &reading);
      }
      if (step == Step::kNext) {
        at += physical.bytes;
        physical.end_offset = at;
        rest.remove_prefix(physical.bytes);
        RETURN_IF_ERROR(Take(physical, &reading, on_record, &step));
      }
    }
    at = block_end;
  }
  stopped_inside_ = step >= Step::kEndsInside || reading.in_record;
  stop_ = step > Step::kOldRecord || reading.in_record ? LogStop::kOther
          : step == Step::kOldRecord                   ? LogStop::kOldRecord
                                                       : LogStop::kEnd;
  is_damaged_ = step == Step::kDamaged;
  return is_damaged_ ? MakeStatus(EndState::kCorrupt,
                                  "MANIFEST: record at offset " +
                                      std::to_string(physical.offset) + ": " +
                                      reading.wrong)
                     : Status::OK();
}

void LogFollower::SkipTo(uint64_t end) {
  if (end > end_) {
    end_ = end;
    first_read_ = true;
    stopped_inside_ = false;
    stop_ = LogStop::kEnd;
  }
}

// Parses the physical record at the start of `rest`, the unread bytes of a
// block. If the result is kNextBlock, physical->bytes is not 0 if `rest` has
// room for a header.
LogFollower::Step LogFollower::Look(const Slice& rest, bool whole_block,
                                    Physical* physical,
                                    Reading* reading) const {
  physical->bytes = 0;
  if (rest.size() < kPlainHeaderBytes) {
    return whole_block ? Step::kNextBlock : EndOfDamage(rest);
  }
  physical->type = static_cast<uint8_t>(rest[6]);
  if (kind_ == LogKind::kManifest && IsRecyclable(physical->type)) {
    return Wrong(kManifestTypes, "type " + std::to_string(physical->type),
                 reading);
  }
  const size_t length = DecodeFixed16(rest.data() + 4);
  const size_t header = HeaderBytes(physical->type);
  if (rest.size() < header) {
    return whole_block ? Step::kNextBlock : EndOfDamage(rest);
  }
  physical->bytes = header + length;
  if (IsRecyclable(physical->type) &&
      DecodeFixed32(rest.data() + kPlainHeaderBytes) != log_number_) {
    return physical->bytes <= rest.size() ? Step::kOldRecord : Step::kEnd;
  }
  if (physical->type == kNotWritten && length == 0) {
    return Step::kNextBlock;
  }
  if (physical->bytes > rest.size()) {
    return kind_ == LogKind::kWal || !whole_block
               ? EndOfDamage(rest)
               : Wrong("at most " + std::to_string(rest.size() - header) +
                           " bytes up to the block's end",
                       std::to_string(length), reading);
  }
  const uint32_t stored = DecodeFixed32(rest.data());
  const uint32_t found =
      MaskCrc32c(Crc32c(rest.data() + 6, physical->bytes - 6));
  if (found != stored) {
    return kind_ == LogKind::kWal
               ? EndOfDamage(rest)
               : Wrong("checksum " + std::to_string(stored),
                       std::to_string(found), reading);
  }
  physical->payload = Slice(rest.data() + header, length);
  return Step::kNext;
}

// Ends the log at a record that has all of its bytes but is wrong or out of
// place.
LogFollower::Step LogFollower::Wrong(const std::string& expected,
                                     const std::string& found,
                                     Reading* reading) const {
  reading->wrong = "expected " + expected + ", found " + found;
  return kind_ == LogKind::kWal ? Step::kEndsInside : Step::kDamaged;
}

// Interprets a truncated or damaged record: either the log ends here, or
// incomplete bytes of this log follow. REQUIRES: the record does not have the
// log number of another WAL.
LogFollower::Step LogFollower::EndOfDamage(const Slice& rest) const {
  const bool may_be_old = recyclable_ &&
                          rest.size() >= kRecyclableHeaderBytes &&
                          !IsRecyclable(static_cast<uint8_t>(rest[6]));
  return may_be_old || AllZero(rest) ? Step::kEnd : Step::kEndsInside;
}

Status LogFollower::Take(const Physical& physical, Reading* reading,
                         const OnRecord& on_record, Step* step) {
  const uint8_t type = physical.type;
  if ((IsRecyclable(type) && first_read_ && !recyclable_) ||
      type == kNotWritten) {
    *step = Wrong("a type that fits the earlier records",
                  "type " + std::to_string(type), reading);
    return Status::OK();
  }
  recyclable_ = recyclable_ || IsRecyclable(type);
  if (type > kLastRecyclable) {
    return TakeMeta(physical, reading, step);
  }
  const Fragment part = static_cast<Fragment>((type - 1) % 4);
  const bool begins = part == Fragment::kWhole || part == Fragment::kFirst;
  // Old writers may leave an empty first fragment before the record.
  if (begins ? reading->in_record && !reading->record.empty()
             : !reading->in_record) {
    *step = Wrong(begins ? "the rest of a record" : "the beginning of a record",
                  "type " + std::to_string(type), reading);
    return Status::OK();
  }
  Slice record = physical.payload;
  if (begins) {
    reading->record.clear();
  }
  if (inflater_ != nullptr) {
    if (begins) {
      inflater_->Restart();
    }
    switch (inflater_->Append(physical.payload, &reading->record)) {
      case Inflater::Outcome::kDone:
        break;
      case Inflater::Outcome::kDamaged:
        *step = Step::kEndsInside;
        return Status::OK();
      case Inflater::Outcome::kTooLarge:
        return TooLarge(kind_, physical.end_offset);
    }
    record = reading->record;
  } else if (part != Fragment::kWhole) {
    if (physical.payload.size() >
        MaxRecordBytes(kind_) - reading->record.size()) {
      return TooLarge(kind_, physical.end_offset);
    }
    reading->record.append(physical.payload.data(), physical.payload.size());
    record = reading->record;
  }
  reading->in_record = part == Fragment::kFirst || part == Fragment::kMiddle;
  if (reading->in_record) {
    return Status::OK();
  }
  const Status s = on_record(record, physical.end_offset);
  if (s.ok()) {
    end_ = physical.end_offset;
    first_read_ = true;
  }
  return s;
}

// Handles a record about the log itself.
Status LogFollower::TakeMeta(const Physical& physical, Reading* reading,
                             Step* step) {
  const uint8_t type = physical.type;
  const Slice& payload = physical.payload;
  bool fits = !reading->in_record;
  if (kind_ == LogKind::kManifest && type < kFirstIgnorable) {
    // Refuses types that are legal only in WALs. For example, a small
    // compressed file could decompress to a huge edit.
    return NotKnown("a record of type " + std::to_string(type),
                    physical.end_offset);
  }
  if (type == kCompression) {
    fits = fits && !first_read_ && inflater_ == nullptr &&
           payload.size() >= sizeof(uint32_t);
    if (fits && DecodeFixed32(payload.data()) != kZstdType) {
      return NotKnown("compression " +
                          std::to_string(DecodeFixed32(payload.data())),
                      physical.end_offset);
    }
  } else if (type == kTimestampSizes || type == kRecyclableTimestampSizes) {
    fits = fits && payload.size() % kTimestampSizeBytes == 0;
  } else if (type < kFirstIgnorable) {
    return NotKnown("a record of type " + std::to_string(type),
                    physical.end_offset);
  }
  if (!fits) {
    *step = Wrong("a record of type " + std::to_string(type) +
                      " at a permitted place and of a permitted size",
                  "one at another place or of another size", reading);
    return Status::OK();
  }
  if (type == kCompression) {
    auto inflater = std::make_unique<Inflater>();
    if (!inflater->has_record()) {
      return MakeStatus(EndState::kInternal, "no memory for a zstd stream");
    }
    inflater_ = std::move(inflater);
  }
  meta_types_.insert(type);
  end_ = physical.end_offset;
  return Status::OK();
}

Status LogFollower::NotKnown(const std::string& found, uint64_t offset) const {
  const bool is_wal = kind_ == LogKind::kWal;
  return MakeStatus(EndState::kRefused,
                    std::string(is_wal ? "WAL" : "MANIFEST") + ": expected " +
                        (is_wal ? kWalTypes : kManifestTypes) + ", found " +
                        found + ", before offset " + std::to_string(offset) +
                        "; a newer sstferry may read it");
}

namespace {

// A source for the bytes of a log from `begin` on. The follower that uses it is
// positioned at `begin` and reads nothing before it.
class TailSource : public ByteSource {
 public:
  TailSource(uint64_t begin, const Slice& bytes)
      : begin_(begin), bytes_(bytes) {}
  Status Read(uint64_t offset, size_t n, std::string* scratch,
              Slice* out) const override {
    return SliceSource(bytes_).Read(offset - begin_, n, scratch, out);
  }
  uint64_t size() const override { return begin_ + bytes_.size(); }

 private:
  const uint64_t begin_;
  const Slice bytes_;
};

}  // namespace

Status StartAt(const ByteSource& log, uint64_t end, LogFollower* follower) {
  if (end == 0) {
    return Status::OK();
  }
  // The first block shows if the log is compressed and recyclable.
  RETURN_IF_ERROR(follower->Follow(
      SourcePart(log, 0, std::min(end, kLogBlockBytes)),
      [](const Slice&, uint64_t) { return Status::OK(); }));
  follower->SkipTo(end);
  return Status::OK();
}

Status FollowBehind(uint64_t begin, const Slice& bytes, LogFollower* follower,
                    const LogFollower::OnRecord& on_record) {
  return follower->Follow(TailSource(begin, bytes), on_record);
}

}  // namespace sstferry
