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
  *record = FollowFile();
  std::string text;
  RETURN_IF_ERROR(ReadRecord(path, kSealedHeaderBytes + kMaxFollowPayloadBytes,
                             found, &text));
  return *found ? WithContext(DecodeFollowFile(text, record),
                              EndState::kCorrupt, path)
                : Status::OK();
}

bool IsStandby(const std::string& dir) {
  std::error_code error;
  return std::filesystem::exists(dir + "/" + kFollowFileName, error) &&
         !std::filesystem::exists(dir + "/CURRENT", error);
}

FollowMark ReadFollowMark(const std::string& dir) {
  return NewestFollowMark(ReadStart(dir + "/" + kFollowMarkName,
                                    kFollowMarkSlots * kFollowMarkSlotBytes));
}

std::string ManifestNameOf(const FollowFile& record) {
  CloneFile file;
  file.kind = CloneFileKind::kManifest;
  file.number = record.manifest_number;
  return CloneFileName(file);
}

}  // namespace sstferry
