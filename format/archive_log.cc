#include "format/archive_log.h"

#include <algorithm>
#include <cstring>

#include "format/archive_fields.h"
#include "format/coding.h"
#include "format/end_state.h"
#include "format/limits.h"
#include "format/sealed_file.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

constexpr char kLogMagic[] = "SFALOGS2";
constexpr char kOldLogMagic[] = "SFALOGS1";  // without the fields of LogHistory
// Prevents overflow in sums of offsets and bytes.
constexpr uint64_t kMaxSegmentWalBytes = 1ull << 60;

Status BadHead(const std::string& what) {
  return MakeStatus(EndState::kCorrupt, "segment: " + what);
}

// Checks rules that the field list cannot express: the WALs and the moments
// must match the payload.
Status CheckHead(const LogKey& key, const LogHead& head) {
  if (head.key != key) {
    return BadHead("expected " + LogKeyText(key) + ", found " +
                   LogKeyText(head.key));
  }
  const bool begins = head.previous_lineage == SetId();
  if (begins != (head.previous == Sha256Digest()) ||
      (begins && key.number != 1)) {
    return BadHead("expected lineage and digest of the segment before number " +
                   std::to_string(key.number) +
                   ", found neither or only one of them");
  }
  if (head.begin.wal_bytes > kMaxSegmentWalBytes) {
    return BadHead("expected a WAL of at most " +
                   std::to_string(kMaxSegmentWalBytes) + " bytes, found " +
                   std::to_string(head.begin.wal_bytes));
  }
  uint64_t bytes = 0;
  uint64_t newest = 0;
  for (const LogWal& wal : head.wals) {
    const bool ascends = wal.wal_number > newest;
    if (!ascends || wal.wal_number < head.begin.wal_number ||
        wal.bytes == 0 || wal.bytes > kMaxSegmentBytes - bytes) {
      return BadHead("expected WALs with ascending numbers and at most " +
                     std::to_string(kMaxSegmentBytes) +
                     " bytes in all, found WAL " +
                     std::to_string(wal.wal_number) + " with " +
                     std::to_string(wal.bytes) + " bytes");
    }
    newest = wal.wal_number;
    bytes += wal.bytes;
  }
  uint64_t micros = 0;
  uint64_t end = 0;
  for (const LogMoment& moment : head.moments) {
    if (moment.micros < micros || moment.bytes <= end ||
        moment.bytes > bytes || moment.micros > kMaxLogMicros) {
      return BadHead("expected moments in ascending order, found one at byte " +
                     std::to_string(moment.bytes));
    }
    micros = moment.micros;
    end = moment.bytes;
  }
  if (end != bytes) {
    return BadHead("expected moments for " + std::to_string(bytes) +
                   " bytes, found " + std::to_string(end));
  }
  return head.is_sealed ||
                 (head.key_id == SealKeyId() && head.salt == SealSalt() &&
                  head.seal == Sha256Digest())
             ? Status::OK()
             : BadHead("expected zeros as the seal of an unsealed segment, "
                       "found other bytes");
}

}  // namespace

// The fields about the source's history. The old format does not have them.
struct LogHistory {
  static constexpr char kName[] = "segment";

  std::string database_id;
  Digest128 wal{};
};
constexpr size_t kIdBytesBytes = 4;
constexpr size_t kWalDigestBytes = 16;

template <typename A, FieldsOf<LogHistory> M>
void Fields(A& a, M& m) {
  a.Bytes("database_id", m.database_id, kMaxIdentifierBytes);
  a.Digest("wal", m.wal);
}

template <typename A, FieldsOf<LogBegin> M>
void Fields(A& a, M& m) {
  Number(a, "manifest_number", m.manifest_number);
  Number(a, "manifest_bytes", m.manifest_bytes);
  a.Digest("manifest", m.manifest);
  Number(a, "wal_number", m.wal_number);
  Number(a, "wal_bytes", m.wal_bytes);
}

template <typename A, FieldsOf<LogWal> M>
void Fields(A& a, M& m) {
  Number(a, "wal_number", m.wal_number);
  Number(a, "bytes", m.bytes, kMaxSegmentBytes);
}

template <typename A, FieldsOf<LogMoment> M>
void Fields(A& a, M& m) {
  Number(a, "micros", m.micros, kMaxLogMicros);
  Number(a, "bytes", m.bytes, kMaxSegmentBytes);
  Number(a, "sequence", m.sequence);
}

template <typename A, FieldsOf<LogHead> M>
void Fields(A& a, M& m) {
  Fields(a, m.key);
  a.Id("previous_lineage", m.previous_lineage);
  a.Id("previous", m.previous);
  Fields(a, m.begin);
  Fields(a, m.judged);
  a.Enum("ended", m.ended, kMaxCutReason, CutReasonName);
  a.Text("note", m.note, kMaxArchiveTextBytes);
  a.Text("host", m.host, kMaxArchiveTextBytes);
  a.Text("software", m.software, kMaxArchiveTextBytes);
  a.List("wals", m.wals, kMaxSegmentWals, 16,
         [](auto& archive, auto& item) { Fields(archive, item); });
  a.List("moments", m.moments, kMaxSegmentMoments, 24,
         [](auto& archive, auto& item) { Fields(archive, item); });
  a.Digest("payload", m.payload);
  a.Bool("is_sealed", m.is_sealed);
  a.Id("key_id", m.key_id);
  a.Id("salt", m.salt);
  a.Id("seal", m.seal);
}

uint64_t LogHead::payload_bytes() const {
  return moments.empty() ? 0 : moments.back().bytes;
}

uint64_t LogHead::stored_bytes() const {
  return is_sealed ? SealedBytes(payload_bytes()) - kSealHeadBytes
                   : payload_bytes();
}

LogBegin LogHead::end() const {
  LogBegin place = begin;
  for (const LogWal& each : wals) {
    if (each.wal_number != place.wal_number) {
      place.wal_number = each.wal_number;
      place.wal_bytes = 0;
    }
    place.wal_bytes += each.bytes;
  }
  return place;
}

FollowPosition LogHead::position() const {
  const LogBegin place = end();
  FollowPosition position;
  position.database_id = database_id;
  position.manifest_number = place.manifest_number;
  position.cut_bytes = place.manifest_bytes;
  position.manifest_bytes = place.manifest_bytes;
  position.manifest = place.manifest;
  if (judged.manifest_bytes > place.manifest_bytes) {
    position.manifest_bytes = judged.manifest_bytes;
    position.manifest = judged.manifest;
  }
  position.wal_number = place.wal_number;
  position.wal_bytes = place.wal_bytes;
  position.wal = wal;
  return position;
}

uint64_t LogHead::last_sequence() const {
  uint64_t last = 0;
  for (const LogMoment& moment : moments) {
    last = std::max(last, moment.sequence);
  }
  return last;
}

std::string EncodeLogRecord(const LogHead& head) {
  std::string record;
  if (!head.database_id.empty()) {
    Encode(LogHistory{head.database_id, head.wal}, &record);
  }
  Encode(head, &record);
  return record;
}

void EncodeLogHead(const LogHead& head, std::string* out) {
  SealFile(head.database_id.empty() ? kOldLogMagic : kLogMagic,
           EncodeLogRecord(head), out);
}

uint64_t LogHeadBytes(const Slice& object) {
  if (object.size() < kSealedHeaderBytes ||
      (memcmp(object.data(), kLogMagic, 8) != 0 &&
       memcmp(object.data(), kOldLogMagic, 8) != 0)) {
    return 0;
  }
  const uint64_t bytes = kSealedHeaderBytes + DecodeFixed32(object.data() + 8);
  return bytes <= kMaxLogHeadBytes ? bytes : 0;
}

Status DecodeLogHead(const Slice& bytes, const LogKey& key, LogHead* head) {
  *head = LogHead();
  Slice payload;
  const bool is_old =
      bytes.size() >= 8 && memcmp(bytes.data(), kOldLogMagic, 8) == 0;
  RETURN_IF_ERROR(UnsealFile(LogHead::kName, is_old ? kOldLogMagic : kLogMagic,
                             kMaxLogHeadBytes, bytes, &payload));
  LogHistory history;
  if (!is_old) {
    const size_t id_bytes =
        payload.size() < kIdBytesBytes ? 0 : DecodeFixed32(payload.data());
    const size_t history_bytes = std::min<size_t>(
        payload.size(), kIdBytesBytes + std::min<size_t>(
                            id_bytes, kMaxIdentifierBytes) + kWalDigestBytes);
    RETURN_IF_ERROR(Decode(Slice(payload.data(), history_bytes), &history));
    payload.remove_prefix(history_bytes);
    if (history.database_id.empty()) {
      return BadHead("expected a database id, found none");
    }
  }
  RETURN_IF_ERROR(Decode(payload, head));
  head->database_id = std::move(history.database_id);
  head->wal = history.wal;
  return CheckHead(key, *head);
}

}  // namespace sstferry
