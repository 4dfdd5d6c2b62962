// Finds the directory in which a database keeps its WALs. If a directory is
// missing or empty, this does not prove that the database needs no WAL.
//
// OPTIONS may name a wrong WAL directory. If the file system has copied the
// database (cp -a, a snapshot of a volume), OPTIONS of the copy still name the
// WAL directory of the original, which may be in use. So WALs outside the
// database's directory are used only in two cases: a process has the database
// open, or the WALs continue the database's MANIFEST. RocksDB removes WALs in
// the order of their numbers. So if the oldest WAL that the database needs is
// there, all WALs are there. The MANIFEST shows which WAL this is:
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
// In the last two cases, the database's own WALs may be refused. This happens
// if entries before their first record are in no table: the entries were
// written without a WAL, belonged to a dropped family, or were removed by
// SingleDelete.
#pragma once

#include <string>

#include "pipeline/options/seen_options.h"
#include "pipeline/snapshot/snapshot_manifest.h"
#include "rocksdb/status.h"

namespace sstferry {

// Finds the directory of a database's WALs. If `asked` (--wal-dir) is not
// empty, it is this directory. Otherwise it is wal_dir in OPTIONS or the
// database's own directory. wal_dir is used only if all of these are true:
// RocksDB has opened the database's directory (and so created a LOCK there),
// all needed WALs are in wal_dir, and they certainly belong to the database.
//
// The caller has read `manifest` before. RocksDB may remove WALs after this
// call. So after the caller has linked the WALs, it calls this function again.
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
