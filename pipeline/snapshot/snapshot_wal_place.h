// Finds the directory of a database's WALs.
#pragma once

#include <cstdint>
#include <string>

#include "format/rocksdb/manifest_state.h"
#include "pipeline/snapshot/options_text.h"
#include "rocksdb/status.h"

namespace sstferry {

struct WalPlace {
  std::string database_dir;
  std::string asked;         // given by the operator; empty: not given
  std::string named;         // wal_dir in OPTIONS
  uint64_t oldest_needed = 0;  // number of the oldest WAL for recovery
};

// Fills a WalPlace from the text of OPTIONS and the MANIFEST.
WalPlace WalPlaceOf(const std::string& database_dir, const std::string& asked,
                    const OptionsText& options, const ManifestState& state);

// wal_dir in OPTIONS is right only for a directory that RocksDB opened as a
// database (it left a LOCK there) and whose needed WALs are in wal_dir and
// nowhere else. In a checkpoint or copy it is the origin's directory, whose
// WALs hold later writes.
//   kRefused  the directory is not certain: the message names the candidates
//             and --wal-dir.
[[nodiscard]] rocksdb::Status FindWalDirectory(const WalPlace& place,
                                               std::string* directory);

}  // namespace sstferry
