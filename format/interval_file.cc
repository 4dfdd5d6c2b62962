#include "format/interval_file.h"

#include <algorithm>

#include "format/sealed_record.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

template <typename A, FieldsOf<RecordedTable> M>
void Fields(A& a, M& m) {
  a.Digest("id", m.id);
  a.Bytes("smallest", m.smallest, kMaxKeyBytes);
  a.Bytes("largest", m.largest, kMaxKeyBytes);
  Number(a, "bytes", m.bytes);
  Number(a, "smallest_sequence", m.smallest_sequence);
  Number(a, "largest_sequence", m.largest_sequence);
  Number(a, "entries", m.entries);
  Number(a, "deletions", m.deletions);
  Number(a, "merge_operands", m.merge_operands);
  Number(a, "range_deletions", m.range_deletions);
  a.Bool("may_single_delete", m.may_single_delete);
}

template <typename A, FieldsOf<RecordedFamily> M>
void Fields(A& a, M& m) {
  a.Bytes("name", m.name, kMaxFamilyNameBytes);
  a.List("files", m.files, kMaxTargetFiles, 81,
         [](auto& archive, auto& item) { Fields(archive, item); });
}

template <typename A, FieldsOf<IntervalFile> M>
void Fields(A& a, M& m) {
  a.Id("transfer_id", m.transfer_id);
  a.Bytes("source_database_id", m.source_database_id, kMaxIdentifierBytes);
  Number(a, "sequence", m.sequence);
  a.Bytes("target_database_id", m.target_database_id, kMaxIdentifierBytes);
  a.List("families", m.families, kMaxFamilies, 8,
         [](auto& archive, auto& item) { Fields(archive, item); });
  a.List("intervals", m.intervals, kMaxParts, 48,
         [](auto& archive, auto& item) { Fields(archive, item); });
  a.Check("intervals",
          std::all_of(m.intervals.begin(), m.intervals.end(),
                      [&m](const IntervalRecord& interval_record) {
                        return interval_record.family < m.families.size();
                      }),
          "expected listed column families, found another one");
}

Status EncodeIntervalFile(const IntervalFile& intervals, std::string* out) {
  std::string payload;
  Encode(intervals, &payload);
  if (payload.size() > kMaxIntervalPayloadBytes) {
    return MakeStatus(EndState::kRefused,
                      "interval records: expected at most " +
                          std::to_string(kMaxIntervalPayloadBytes) +
                          " bytes, found " + std::to_string(payload.size()));
  }
  SealFile(kIntervalMagic, payload, out);
  return Status::OK();
}

Status DecodeIntervalFile(const Slice& file, IntervalFile* intervals) {
  return UnsealRecord(kIntervalMagic, kMaxIntervalPayloadBytes, file,
                      intervals);
}

}  // namespace sstferry
