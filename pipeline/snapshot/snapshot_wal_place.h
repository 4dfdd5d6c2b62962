// Finds the directory of a database's WALs.
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

#include <cstdint>
#include <string>

#include "pipeline/options/seen_options.h"
#include "pipeline/snapshot/snapshot_manifest.h"
#include "rocksdb/status.h"

namespace sstferry {

// Facts from which FindWalDirectory() finds a database's WALs.
struct WalPlace {
  std::string database_dir;
  std::string asked;        // --wal-dir; empty: not given
  std::string named;        // wal_dir in OPTIONS
  bool is_unknown = false;  // there are OPTIONS files, but no complete one
  uint64_t oldest_needed = 0;  // number of the oldest WAL that recovery needs
  // Number of the oldest WAL that RocksDB keeps; it may be lower than that of
  // any WAL. 0: not recorded.
  uint64_t oldest_kept = 0;
  // Highest number that the WAL of the last open can have.
  uint64_t newest_of_open = 0;
  uint64_t last_sequence = 0;  // of the MANIFEST
};

// Fills a WalPlace from --wal-dir, OPTIONS and the MANIFEST.
WalPlace WalPlaceOf(const std::string& database_dir, const std::string& asked,
                    const SeenOptions& options, const ManifestTail& manifest);

// Finds the directory of the WALs. wal_dir in OPTIONS is used only if RocksDB
// opened this directory as a database (and so created a LOCK there), all needed
// WALs are in wal_dir, and they are certainly the database's own. RocksDB may
// remove WALs afterwards: a caller that has pinned them calls again.
//   kRefused      the directory is uncertain: the message lists the candidates
//                 and --wal-dir.
//   kSourceError  a directory or a WAL cannot be read.
//   TryAgain      a WAL was truncated meanwhile.
//   Incomplete    a process has the database open, but the directory has no
//                 WAL. The process may just be opening it. The state is
//                 kSourceError.
[[nodiscard]] rocksdb::Status FindWalDirectory(const WalPlace& place,
                                               std::string* directory);

}  // namespace sstferry
