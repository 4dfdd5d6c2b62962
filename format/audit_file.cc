#include "format/audit_file.h"

#include "format/limits.h"
#include "format/sealed_record.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

template <typename A, FieldsOf<AuditFile> M>
void Fields(A& a, M& m) {
  a.Bytes("source_database_id", m.source_database_id, kMaxIdentifierBytes);
  Number(a, "pass_begun_micros", m.pass_begun_micros);
  Number(a, "done_begun_micros", m.done_begun_micros);
  Number(a, "done_ended_micros", m.done_ended_micros);
  Number(a, "next_family", m.next_family);
  a.OptionalBytes("next_key", m.next_key, kMaxKeyBytes);
  Number(a, "begun_micros", m.begun_micros);
  Number(a, "cpu_micros", m.cpu_micros);
  Number(a, "slices", m.slices);
  Number(a, "entries", m.entries);
  Number(a, "passes", m.passes);
  Number(a, "differences", m.differences);
  Number(a, "unaudited_cuts", m.unaudited_cuts);
  a.Text("unaudited_reason", m.unaudited_reason, kMaxMessageTextBytes);
  Number(a, "difference_micros", m.difference_micros);
  a.Text("difference", m.difference, kMaxMessageTextBytes);
  a.Bool("compares_all", m.compares_all);
  a.List("families", m.families, kMaxFamilies, 8,
         [](auto& archive, auto& item) {
           archive.Text("name", item.name, kMaxFamilyNameBytes);
           archive.Text("reason", item.reason, kMaxMessageTextBytes);
         });
}

void EncodeAuditFile(const AuditFile& audit, std::string* out) {
  SealRecord(kAuditMagic, audit, out);
}

Status DecodeAuditFile(const Slice& file, AuditFile* audit) {
  return UnsealRecord(kAuditMagic, kMaxAuditPayloadBytes, file, audit);
}

}  // namespace sstferry
