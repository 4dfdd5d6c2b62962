// Finds the directory of a database's WALs.
#pragma once

#include <cstdint>
#include <string>

#include "format/rocksdb/manifest_state.h"
#include "pipeline/options/options_text.h"
#include "rocksdb/status.h"

namespace sstferry {

// Facts from which FindWalDirectory() finds a database's WALs.
struct WalPlace {
  std::string database_dir;
  std::string asked;         // --wal-dir; empty: not given
  std::string named;         // wal_dir in OPTIONS
  uint64_t oldest_needed = 0;  // number of the oldest WAL that recovery needs
};

// Fills a WalPlace from --wal-dir, the text of OPTIONS and the MANIFEST.
WalPlace WalPlaceOf(const std::string& database_dir, const std::string& asked,
                    const OptionsText& options, const ManifestState& state);

// Finds the directory of the WALs. wal_dir in OPTIONS is used only if RocksDB
// opened this directory as a database (and so created a LOCK there) and all
// needed WALs are in wal_dir. In a checkpoint or copy, wal_dir is the
// original's directory, whose WALs contain later writes.
//   kRefused  the directory is uncertain: the message lists the candidates and
//             --wal-dir.
[[nodiscard]] rocksdb::Status FindWalDirectory(const WalPlace& place,
                                               std::string* directory);

}  // namespace sstferry
