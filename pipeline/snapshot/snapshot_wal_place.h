// Finds the directory of a database's WALs. Never concludes from a missing or
// empty directory that the database needs no WAL.
//
// In a copy that the file system made (cp -a, a snapshot of a volume), OPTIONS
// name the WAL directory of the original, which may be in use. So WALs outside
// of the database's directory are used only if they are certainly its own: a
// process has the database open, or they continue its MANIFEST. RocksDB removes
// WALs in the order of their numbers, so none is missing if the oldest one is
// there. The MANIFEST shows which WAL that is:
//
//   oldest WAL kept, in the MANIFEST        accepted WALs in wal_dir
//   number of a WAL: a flush recorded it    this WAL is the oldest
//   number after the last WAL's: the last   the oldest is the WAL that this
//   open recorded it                        open made, and its first sequence
//                                           number continues the MANIFEST's
//                                           last
//   none: RocksDB is older than 7.1.2, or   any whose first sequence number
//   there was no flush                      continues the MANIFEST's last
//
// In the last two cases, a database's own WALs are refused if entries before
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
//                 and --wal-dir. Or it is outside the database's directory, and
//                 has no WAL: perhaps its volume is not mounted.
//   kSourceError  a directory or a WAL cannot be read.
//   TryAgain      a WAL was truncated meanwhile. Or no directory was found, but
//                 the MANIFEST has grown: the owner may have flushed and
//                 removed WALs. *manifest has the new records.
//   Incomplete    a process has the database open, but the directory has no
//                 WAL: the process may just be opening it. EndStateOf() returns
//                 kSourceError.
[[nodiscard]] rocksdb::Status FindWalDirectory(const std::string& database_dir,
                                               const std::string& asked,
                                               const SeenOptions& options,
                                               ManifestTail* manifest,
                                               std::string* directory);

}  // namespace sstferry
