#include "pipeline/base/known_fault.h"

#include <filesystem>

#include "format/end_state.h"
#include "format/sealed_file.h"
#include "pipeline/base/last_transfer.h"
#include "sstferry/options.h"

namespace sstferry {

HealthFile ReadKnownFault(const std::string& dir) {
  HealthFile health;
  const std::string path = dir + "/" + kHealthFileName;
  std::error_code error;
  const auto found = std::filesystem::symlink_status(path, error).type();
  if (dir.empty() || found == std::filesystem::file_type::not_found) {
    return health;
  }
  const rocksdb::Status status = DecodeHealthFile(
      ReadStart(path, kSealedHeaderBytes + kMaxHealthPayloadBytes), &health);
  if (!status.ok() || health.fault == ReplicaFault::kNone) {
    health = HealthFile();
    health.fault = ReplicaFault::kDamaged;
    health.what = path + " cannot be read: " +
                  (status.ok() ? "it names no fault" : MessageOf(status));
  }
  return health;
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
