// Turns a standby into a database.
//
//   1. truncate the newest WAL after its last complete record, sync it; write
//      last_transfer.json with what DIR holds then
//   2. write CURRENT durably: from here on DIR is a database
//   3. remove sstferry.followed and sstferry.follow
//
// If the process dies, the same command completes the promotion. Before step 2
// it starts over. After step 2 an application may have opened DIR and written
// to it, so only step 3 is done and no other file is changed.
#pragma once

#include <string>

#include "format/follow_file.h"
#include "pipeline/follow/standby.h"
#include "rocksdb/file_system.h"
#include "rocksdb/status.h"

namespace sstferry {

struct Promotion {
  FollowFile record;     // of the standby
  StandbyPosition end;   // the end of its WALs; not set if:
  bool was_cut_short = false;  // an earlier promotion had written CURRENT
};

// Promotes the standby in `dir`. REQUIRES: the caller holds LockStandby().
// Errors contain the path. With `force`, a truncated WAL stays as it is, and
// RocksDB decides about it.
//   kCorrupt  the record, or a WAL, is damaged
//   kNoSpace
[[nodiscard]] rocksdb::Status PromoteStandby(rocksdb::FileSystem* file_system,
                                             const std::string& dir, bool force,
                                             Promotion* promotion);

}  // namespace sstferry
