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

// Recognizes the CURRENT of a standby by its size, because a CURRENT of RocksDB
// never has that size. Does not open the file, so the result is right even if
// this process cannot open files now.
bool HasCurrent(const std::string& dir) {
  const std::string path = dir + "/CURRENT";
  std::error_code error;
  return std::filesystem::exists(path, error) &&
         std::filesystem::file_size(path, error) != sizeof(kStandbyCurrent) - 1;
}

bool IsStandby(const std::string& dir) {
  std::error_code error;
  return std::filesystem::exists(dir + "/" + kFollowFileName, error) &&
         !HasCurrent(dir);
}

Status CheckNotTaken(const std::string& dir) {
  if (!HasCurrent(dir)) {
    return Status::OK();
  }
  LastTransfer last;  // is written before CURRENT: read it after CURRENT
  ReadLastTransfer(dir, &last);  // a forced promotion may have no transfer id
  if (!last.promoted_at.empty()) {
    return Status::OK();
  }
  return MakeStatus(
      EndState::kRefused,
      dir + ": expected a standby, found one in which another program made a "
            "database (CURRENT is there, and not from a promotion); nothing "
            "was changed. Stop that program and move the directory away, "
            "because it may have writes that are nowhere else; then follow "
            "again");
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
