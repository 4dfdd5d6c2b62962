#include "format/health_file.h"

#include "format/message_fields.h"
#include "format/sealed_file.h"

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
  FamilyNames(a, m.families);
  Fields(a, m.interval);
}

void EncodeHealthFile(const HealthFile& health, std::string* out) {
  std::string payload;
  Encode(health, &payload);
  SealFile(kHealthMagic, payload, out);
}

Status DecodeHealthFile(const Slice& file, HealthFile* health) {
  *health = HealthFile();
  Slice payload;
  RETURN_IF_ERROR(UnsealFile("health record", kHealthMagic,
                             kMaxHealthPayloadBytes, file, &payload));
  return Decode(payload, health);
}

}  // namespace sstferry
