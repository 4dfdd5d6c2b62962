#include "pipeline/follow/promote.h"

#include <algorithm>

#include "format/audit_file.h"
#include "format/end_state.h"
#include "format/file_name.h"
#include "pipeline/base/last_transfer.h"
#include "pipeline/base/standby_record.h"
#include "pipeline/disk/access.h"
#include "pipeline/disk/durable.h"
#include "pipeline/snapshot/posix_files.h"

namespace sstferry {
namespace {

using rocksdb::Status;

// Replaces last_transfer.json by the record of the promotion. This record is
// durable before CURRENT is written. So if CURRENT names a MANIFEST, it proves
// that the promotion wrote CURRENT (CheckNotTaken()).
Status WriteTransfer(rocksdb::FileSystem* file_system, const std::string& dir,
                     const Promotion& promotion) {
  const std::string text = PromotedTransferText(
      dir, std::max(promotion.end.last_sequence, promotion.record.sequence),
      promotion.end.read_micros);
  Access access;
  RETURN_IF_ERROR(AccessBeside(dir, &access));
  const std::string path = dir + "/" + kLastTransferName;
  RETURN_IF_ERROR(WriteDurably(file_system, path, text));
  return SetAccess(path, access);
}

Status WriteCurrent(rocksdb::FileSystem* file_system, const std::string& dir,
                    const FollowFile& record) {
  const std::string manifest = ManifestNameOf(record);
  FileId found;
  RETURN_IF_ERROR(FileIdOfName(dir + "/" + manifest, &found));
  if (!found.exists()) {
    return MakeStatus(EndState::kCorrupt,
                      dir + ": expected " + manifest + ", which " +
                          kFollowFileName + " names, found none");
  }
  Access access;
  RETURN_IF_ERROR(AccessBeside(dir, &access));
  // Sets owner and mode before the rename, because an application may open DIR
  // immediately after it.
  const std::string path = dir + "/CURRENT";
  const std::string made = path + ".sstferry";
  RETURN_IF_ERROR(WriteDurably(file_system, made, manifest + "\n"));
  RETURN_IF_ERROR(SetAccess(made, access));
  FaultPoint("Promote:CurrentMade");
  const Status status = file_system->RenameFile(
      made, path, rocksdb::IOOptions(), nullptr);
  RETURN_IF_ERROR(WithContext(status, EndStateOf(status), "write " + path));
  return SyncDirectory(file_system, dir);
}

}  // namespace

Status PromoteStandby(rocksdb::FileSystem* file_system, const std::string& dir,
                      bool force, const std::optional<StandbyPosition>& proven,
                      Promotion* promotion) {
  *promotion = Promotion();
  bool found = false;
  RETURN_IF_ERROR(ReadStandbyRecord(dir, &found, &promotion->record));
  RETURN_IF_ERROR(CheckNotTaken(dir));
  promotion->was_cut_short = !IsStandby(dir);
  if (!promotion->was_cut_short) {
    StandbyPosition* const end = &promotion->end;
    Status status;
    if (proven.has_value()) {
      *end = *proven;
    } else {
      StandbyWals wals;
      status = ReadStandbyWals(file_system, dir, promotion->record, &wals);
      *end = wals.end;
    }
    const bool is_forced = force && EndStateOf(status) == EndState::kCorrupt;
    if (!is_forced) {
      RETURN_IF_ERROR(status);
      RETURN_IF_ERROR(TrimStandby(file_system, dir, *end));
    }
    FaultPoint("Promote:TailCut");
    if (end->wal_number != 0) {
      RETURN_IF_ERROR(SyncFile(
          file_system, dir + "/" + NumberedName(end->wal_number, ".log")));
    }
    RETURN_IF_ERROR(WriteTransfer(file_system, dir, *promotion));
    FaultPoint("Promote:TransferWritten");
    RETURN_IF_ERROR(WriteCurrent(file_system, dir, promotion->record));
    FaultPoint("Promote:CurrentWritten");
  }
  // Removes the record last, because the promotion is unfinished as long as the
  // record exists.
  for (const char* const name :
       {kAuditFileName, kFollowMarkName, kFollowFileName}) {
    RETURN_IF_ERROR(RemoveTree(file_system, dir + "/" + name));
    FaultPoint("Promote:PartRemoved");
  }
  return SyncDirectory(file_system, dir);
}

}  // namespace sstferry
