#include "format/history.h"

#include "format/end_state.h"

namespace sstferry {

using rocksdb::Status;

namespace {

Standing StandingOf(FileBegin begin, bool is_same) {
  switch (begin) {
    case FileBegin::kKnown:
      return is_same ? Standing::kSame : Standing::kAnother;
    case FileBegin::kShort:
      return Standing::kAhead;
    case FileBegin::kGone:
      return Standing::kNotHeld;
    case FileBegin::kNever:
      break;
  }
  return Standing::kAnother;
}

}  // namespace

Status FindStanding(const FollowPosition& position, const History& history,
                    Standing* standing) {
  *standing = Standing::kAnother;
  // An unknown id is not equal to any other id.
  if (position.database_id.empty() ||
      position.database_id != history.database_id() ||
      position.manifest_number != history.manifest_number()) {
    return Status::OK();
  }
  FileBegin begin = FileBegin::kNever;
  Digest128 digest;
  RETURN_IF_ERROR(
      history.ManifestBegin(position.manifest_bytes, &begin, &digest));
  *standing = StandingOf(begin, digest == position.manifest);
  if (*standing != Standing::kSame || position.wal_number == 0) {
    return Status::OK();
  }
  digest = Digest128();
  RETURN_IF_ERROR(history.WalBegin(position.wal_number, position.wal_bytes,
                                   &begin, &digest));
  *standing =
      StandingOf(begin, position.wal_bytes == 0 || digest == position.wal);
  if (*standing == Standing::kNotHeld) {
    bool is_flushed = false;
    RETURN_IF_ERROR(history.IsWalFlushed(position.wal_number,
                                         position.manifest_bytes, &is_flushed));
    *standing = is_flushed ? Standing::kSame : Standing::kNotHeld;
  }
  return Status::OK();
}

}  // namespace sstferry
