// Reads the files of a database directory without RocksDB: the MANIFEST and the
// WALs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/end_state.h"
#include "format/rocksdb/manifest_reader.h"
#include "format/rocksdb/wal_facts.h"
#include "pipeline/pull/live_tables.h"
#include "rocksdb/db.h"
#include "rocksdb/file_system.h"
#include "rocksdb/status.h"

namespace sstferry {

// Describes the MANIFEST whose name is in CURRENT.
struct ManifestFileFound {
  std::string path;
  uint64_t bytes = 0;
  uint64_t end = 0;  // offset after its last complete record or group
};

// Reads the MANIFEST of the database in `dir`, which may be open. `found` may
// be null.
//   kRefused         `dir` contains no database
//   kCorrupt         the MANIFEST is damaged or missing
//   when_unreadable  the MANIFEST exists, but cannot be read
[[nodiscard]] rocksdb::Status ReadManifest(
    rocksdb::FileSystem* file_system, const std::string& dir,
    ManifestReader* reader, ManifestFileFound* found,
    EndState when_unreadable = EndState::kCorrupt);

// Reads the WALs in `dir` that recovery replays: number `oldest` and higher.
// Returns false if not all of them can be read.
bool ReadWalFacts(rocksdb::FileSystem* file_system, const std::string& dir,
                  uint64_t oldest, WalFacts* facts);

// Checks that `dir` itself contains every file that the MANIFEST lists. OPTIONS
// files cannot show that a file is in another directory of RocksDB, because
// they never contain db_paths.
//   kRefused  a file is in another directory; the message names it
//   kCorrupt  a file is missing, or the MANIFEST is damaged
[[nodiscard]] rocksdb::Status CheckFilesAreHere(
    rocksdb::FileSystem* file_system, const std::string& dir);

// Sets *is_empty to true if a WAL has no entries. The WAL is then an empty
// file, or contains only records that describe the WAL itself.
[[nodiscard]] rocksdb::Status IsEmptyWal(rocksdb::FileSystem* file_system,
                                         const std::string& path,
                                         uint64_t number, bool* is_empty);

// Reads the WALs that RocksDB will replay when it next opens the database in
// `dir`. Sets *known to false if a WAL cannot be read to its end.
//   kRefused  RocksDB would replay the WALs wrongly: WRITE_PREPARED
//             transactions need a TransactionDB, and the linked release cannot
//             replay wide-column entities of prepared transactions
//   kCorrupt  the MANIFEST is damaged
[[nodiscard]] rocksdb::Status ReadNeededWals(rocksdb::FileSystem* file_system,
                                             const std::string& dir,
                                             const rocksdb::DBOptions& options,
                                             WalFacts* facts, bool* known);

// Sets `is_unflushed` of each column family of a database that is open
// read-only. Sets *single_deletes to true if the database's WALs contain a
// SingleDelete, as far as the WALs can be read.
//   kRefused, kCorrupt  as for ReadNeededWals()
[[nodiscard]] rocksdb::Status FindUnflushed(
    rocksdb::FileSystem* file_system, rocksdb::DB* db,
    std::vector<FamilyHandle>* families, bool* single_deletes);

}  // namespace sstferry
