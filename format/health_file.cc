#include "format/health_file.h"

#include "format/sealed_record.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

const char* ReplicaFaultName(ReplicaFault fault) {
  switch (fault) {
    case ReplicaFault::kNone:
      return "none";
    case ReplicaFault::kDifferent:
      return "different";
    case ReplicaFault::kDamaged:
      return "damaged";
  }
  return "unknown";
}

template <typename A, FieldsOf<HealthFile> M>
void Fields(A& a, M& m) {
  a.Enum("fault", m.fault, kMaxReplicaFault, ReplicaFaultName);
  a.Id("id", m.id);
  Number(a, "found_seconds", m.found_seconds);
  a.Text("what", m.what, kMaxMessageTextBytes);
  FamilyNames(a, "families", m.families);
  Fields(a, m.interval);
}

void EncodeHealthFile(const HealthFile& health, std::string* out) {
  SealRecord(kHealthMagic, health, out);
}

Status DecodeHealthFile(const Slice& file, HealthFile* health) {
  return UnsealRecord(kHealthMagic, kMaxHealthPayloadBytes, file, health);
}

}  // namespace sstferry
