#include "format/follow_file.h"

#include <algorithm>

#include "format/limits.h"
#include "format/sealed_record.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

template <typename A, FieldsOf<FollowFile> M>
void Fields(A& a, M& m) {
  a.Text("source", m.source, kMaxMessageTextBytes);
  a.Bytes("source_database_id", m.source_database_id, kMaxIdentifierBytes);
  Number(a, "manifest_number", m.manifest_number);
  Number(a, "manifest_bytes", m.manifest_bytes);
  a.Digest("manifest_digest", m.manifest_digest);
  a.List("wals", m.wals, kMaxCutWals, 16, [](auto& archive, auto& item) {
    Number(archive, "number", item.number);
    Number(archive, "bytes", item.bytes);
  });
  Number(a, "sequence", m.sequence);
  Number(a, "cut_micros", m.cut_micros);
  a.Enum("reason", m.reason, kMaxCutReason, CutReasonName);
  a.Bool("exact_filters", m.exact_filters);
  a.List("cuts", m.cuts, kMaxCutReason + 1, 8, [](auto& archive, auto& item) {
    Number(archive, "count", item);
  });
  Number(a, "lost_sequences", m.lost_sequences);
  a.Text("lost_dir", m.lost_dir, kMaxMessageTextBytes);
  a.List("unproven_dirs", m.unproven_dirs, kMaxUnprovenDirs, 4,
         [](auto& archive, auto& item) {
           archive.Text("dir", item, kMaxMessageTextBytes);
         });
}

template <typename A, FieldsOf<FollowMark> M>
void Fields(A& a, M& m) {
  Number(a, "count", m.count);
  Number(a, "wal_number", m.wal_number);
  Number(a, "wal_bytes", m.wal_bytes);
  Number(a, "last_sequence", m.last_sequence);
  Number(a, "read_micros", m.read_micros);
  Number(a, "closed_micros", m.closed_micros);
  Fields(a, m.judged);
  Number(a, "begun_micros", m.begun_micros);
  Number(a, "heard_micros", m.heard_micros);
  a.Enum("source_process", m.source_process, kMaxSourceProcess,
         SourceProcessName);
  Number(a, "silent_micros", m.silent_micros);
}

void EncodeFollowFile(const FollowFile& record, std::string* out) {
  SealRecord(kFollowMagic, record, out);
}

Status DecodeFollowFile(const Slice& file, FollowFile* record) {
  return UnsealRecord(kFollowMagic, kMaxFollowPayloadBytes, file, record);
}

void EncodeFollowMark(const FollowMark& mark, std::string* out) {
  std::string payload;
  Encode(mark, &payload);
  payload.resize(kFollowMarkSlotBytes - kSealedHeaderBytes, '\0');
  SealFile(kFollowMarkMagic, payload, out);
}

FollowMark NewestFollowMark(const Slice& file) {
  FollowMark newest;
  for (uint32_t slot = 0; slot < kFollowMarkSlots; ++slot) {
    const uint64_t offset = slot * kFollowMarkSlotBytes;
    if (file.size() < offset + kFollowMarkSlotBytes) {
      break;
    }
    constexpr uint64_t kPayloadBytes =
        kFollowMarkSlotBytes - kSealedHeaderBytes;
    Slice payload;
    FollowMark mark;
    if (!UnsealFile(FollowMark::kName, kFollowMarkMagic, kPayloadBytes,
                    Slice(file.data() + offset, kFollowMarkSlotBytes),
                    &payload)
             .ok()) {
      continue;
    }
    std::string encoded;
    Encode(mark, &encoded);  // all marks have the same length
    if (Decode(Slice(payload.data(), encoded.size()), &mark).ok() &&
        mark.count >= newest.count) {
      newest = mark;
    }
  }
  return newest;
}

}  // namespace sstferry
