// Where a database's WALs lie.
#pragma once

#include <cstdint>
#include <string>

#include "rocksdb/status.h"

namespace sstferry {

struct WalPlace {
  std::string database_dir;
  std::string asked;         // somebody says where; empty: nobody does
  std::string named;         // OPTIONS' wal_dir
  uint64_t oldest_needed = 0;  // of the WALs that recovery would replay
};

// OPTIONS' wal_dir is the truth only of a directory that RocksDB opened as a
// database (it left a LOCK there) and whose needed WALs lie there and nowhere
// else; in a checkpoint or copy it is what the origin used, and the origin's
// WALs hold later writes.
//   kRefused  it is not certain: the message names the directories and
//             --wal-dir.
[[nodiscard]] rocksdb::Status FindWalDirectory(const WalPlace& place,
                                               std::string* directory);

}  // namespace sstferry
