#include "pipeline/base/known_fault.h"

#include "format/end_state.h"
#include "format/sealed_file.h"
#include "pipeline/base/last_transfer.h"
#include "sstferry/options.h"

namespace sstferry {

using rocksdb::Status;

Status ReadKnownFault(const std::string& dir, HealthFile* health) {
  *health = HealthFile();
  if (dir.empty()) {
    return Status::OK();
  }
  const std::string path = dir + "/" + kHealthFileName;
  bool found = false;
  std::string text;
  RETURN_IF_ERROR(ReadRecord(path, kSealedHeaderBytes + kMaxHealthPayloadBytes,
                             &found, &text));
  if (!found) {
    return Status::OK();
  }
  const Status status = DecodeHealthFile(text, health);
  if (!status.ok() || health->fault == ReplicaFault::kNone) {
    *health = HealthFile();
    health->fault = ReplicaFault::kDamaged;
    health->what =
        path + (status.ok() ? " is the record of a fault, but names none"
                            : " cannot be read: " + MessageOf(status));
  }
  return Status::OK();
}

Status CheckNoKnownFault(const std::string& dir) {
  HealthFile fault;
  const Status known = ReadKnownFault(dir, &fault);
  if (!known.ok()) {
    // Use kSourceError, which is retried after a lack of descriptors
    // (base/descriptor_shortage.h).
    return MakeStatus(EndState::kSourceError, MessageOf(known));
  }
  return fault.fault == ReplicaFault::kNone
             ? Status::OK()
             : MakeStatus(EndState::kRefused,
                          dir + " is a replica, and " + FaultSentence(fault) +
                              "; copy its source instead, or repair it first "
                              "(`sstferry status` there shows the command)");
}

std::string FaultSentence(const HealthFile& fault) {
  const std::string when = Rfc3339(fault.found_seconds);
  return std::string("it is known to be ") +
         (fault.fault == ReplicaFault::kDamaged
              ? "damaged"
              : "different from its source") +
         " (" + (when.empty() ? "" : "found " + when + ": ") + fault.what + ")";
}

}  // namespace sstferry
