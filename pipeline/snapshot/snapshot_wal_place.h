// Finds the directory of a database's WALs. A directory that is missing or
// empty never counts as one of a database that needs no WAL.
//
// In a copy that the file system made (cp -a, a snapshot of a volume), OPTIONS
// name the WAL directory of the original, which may be in use. So WALs outside
// of the database's directory are used only if they are certainly its own: a
// process has the database open, or they continue its MANIFEST. RocksDB removes
// WALs in the order of their numbers, so none is missing if the oldest one is
// there. The MANIFEST says which one that is:
//
//   oldest WAL that RocksDB keeps           the oldest WAL in wal_dir must be
//   a WAL: a flush recorded it              this WAL
//   the number after the last WAL's: the    the WAL that this open made; its
//   last open recorded it                   first sequence number continues
//                                           the MANIFEST's last
//   nothing: RocksDB is older than 7.1.2,   any; its first sequence number
//   or there was no flush                   continues the MANIFEST's last
//
// In the last two cases a database's own WALs are refused if entries before
// their first record are in no table, because they were written without a WAL,
// belonged to a dropped family, or were removed by SingleDelete.
#pragma once

#include <string>

#include "pipeline/options/seen_options.h"
#include "pipeline/snapshot/snapshot_manifest.h"
#include "rocksdb/status.h"

namespace sstferry {

// Finds the directory of a database's WALs: `asked` (--wal-dir), if it is set.
// Otherwise wal_dir in OPTIONS is used only if RocksDB opened this directory as
// a database (and so created a LOCK there), all needed WALs are in wal_dir, and
// they are certainly the database's own. `manifest` was read before. RocksDB
// may remove WALs afterwards: a caller that has pinned them calls again.
//   kRefused      the directory is uncertain: the message lists the candidates
//                 and --wal-dir. Or it is not the database's own, and has no
//                 WAL: it may be on a volume that is not mounted.
//   kSourceError  a directory or a WAL cannot be read.
//   TryAgain      a WAL was truncated meanwhile, or the directory is uncertain
//                 by a MANIFEST that has grown: the owner may have flushed and
//                 removed WALs. *manifest has the new records.
//   Incomplete    a process has the database open, but the directory has no
//                 WAL. The process may just be opening it. The state is
//                 kSourceError.
[[nodiscard]] rocksdb::Status FindWalDirectory(const std::string& database_dir,
                                               const std::string& asked,
                                               const SeenOptions& options,
                                               ManifestTail* manifest,
                                               std::string* directory);

}  // namespace sstferry
