// Makes a database of a standby: DIR gets CURRENT, and is no standby any more.
//
//   1. truncate the newest WAL after its last whole record, sync it; write
//      last_transfer.json with what DIR holds then
//   2. write CURRENT durably: from here on DIR is a database
//   3. remove sstferry.followed and sstferry.follow
//
// Whoever dies in it may be followed by the same command. Before 2 it begins
// anew. After 2 an application may have opened DIR and written to it: then only
// 3 is left, and no other file is touched.
#pragma once

#include <string>

#include "format/follow_file.h"
#include "pipeline/follow/standby.h"
#include "rocksdb/file_system.h"
#include "rocksdb/status.h"

namespace sstferry {

struct Promotion {
  FollowFile record;     // what the standby was
  StandbyPosition end;   // what it has; its WALs are not looked at if:
  bool was_cut_short = false;  // an earlier promotion had written CURRENT
};

// Promotes the standby in `dir`. REQUIRES: the caller has LockStandby().
// Errors carry the path; kNoSpace.
//   kCorrupt  the record, or a WAL, is not what a follower leaves. With `force`,
//             a WAL that lacks bytes stays as it is, for RocksDB to judge.
[[nodiscard]] rocksdb::Status PromoteStandby(rocksdb::FileSystem* file_system,
                                             const std::string& dir, bool force,
                                             Promotion* promotion);

}  // namespace sstferry
