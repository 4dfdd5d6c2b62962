// Turns a standby into a database.
//
//   1. truncate the newest WAL after its last complete record and sync it;
//      describe the result in last_transfer.json
//   2. replace CURRENT durably: from here on DIR is a database
//   3. remove sstferry.followed and sstferry.follow
//
// If the process is killed, the operator runs the command again. The second run
// depends on CURRENT. If CURRENT is still the standby's, the command starts
// over. If the first run wrote CURRENT, an application may have opened DIR and
// written to it; so the command only completes step 3, and changes no other
// file. If another program wrote CURRENT, the command changes nothing.
#pragma once

#include <optional>
#include <string>

#include "format/follow_file.h"
#include "pipeline/follow/standby.h"
#include "rocksdb/file_system.h"
#include "rocksdb/status.h"

namespace sstferry {

struct Promotion {
  FollowFile record;     // the standby's record
  StandbyPosition end;   // end of the standby's WALs; not set if was_cut_short
  bool was_cut_short = false;  // an earlier promotion already wrote CURRENT
};

// Promotes the standby in `dir`. REQUIRES: the caller has called LockStandby()
// and keeps the lock. Errors contain the path. With `force`, a damaged WAL is
// not changed, and RocksDB decides how to recover it. `proven` is the end of
// the WALs from ProveStandby(), which the caller called under the same lock. If
// `proven` is not set, reads the WALs.
//   kCorrupt  the record, or a WAL, is damaged
//   kRefused  another program made a database in the standby
//   kNoSpace  the disk is full
[[nodiscard]] rocksdb::Status PromoteStandby(
    rocksdb::FileSystem* file_system, const std::string& dir, bool force,
    const std::optional<StandbyPosition>& proven, Promotion* promotion);

}  // namespace sstferry
