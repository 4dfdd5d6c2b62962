#include "pipeline/base/standby_record.h"

#include <filesystem>
#include <system_error>

#include "format/clone_file.h"
#include "format/end_state.h"
#include "format/sealed_file.h"
#include "pipeline/base/last_transfer.h"

namespace sstferry {

using rocksdb::Status;

Status ReadStandbyRecord(const std::string& dir, bool* found,
                         FollowFile* record) {
  const std::string path = dir + "/" + kFollowFileName;
  std::error_code error;
  *record = FollowFile();
  *found = std::filesystem::symlink_status(path, error).type() !=
           std::filesystem::file_type::not_found;
  if (!*found) {
    return Status::OK();
  }
  const Status status = DecodeFollowFile(
      ReadStart(path, kSealedHeaderBytes + kMaxFollowPayloadBytes), record);
  return WithContext(status, EndState::kCorrupt, path);
}

bool IsStandby(const std::string& dir) {
  std::error_code error;
  return std::filesystem::exists(dir + "/" + kFollowFileName, error) &&
         !std::filesystem::exists(dir + "/CURRENT", error);
}

std::string ManifestNameOf(const FollowFile& record) {
  CloneFile file;
  file.kind = CloneFileKind::kManifest;
  file.number = record.manifest_number;
  return CloneFileName(file);
}

}  // namespace sstferry
