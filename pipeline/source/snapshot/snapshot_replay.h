// What recovery will replay from the copied WALs of a snapshot, read before
// RocksDB opens them: RocksDB drops what it does not understand with status OK.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/digest.h"
#include "format/rocksdb/manifest_reader.h"
#include "pipeline/source/snapshot/snapshot_wals.h"
#include "rocksdb/options.h"
#include "rocksdb/status.h"

namespace sstferry {

struct Replay {
  // Of the WALs' numbers and bytes, the families' ids and log numbers, and how
  // recovery goes about it. All zero: not known.
  Digest128 digest;
  uint64_t entries = 0;
  // Recovery needs allow_2pc.
  bool has_prepare_sections = false;
  uint64_t prepared = 0;  // transactions that are neither committed nor not
  // The first WAL that ends inside a record; empty: none does.
  std::string torn;
  bool is_torn_inside = false;  // one that does is not the newest
};

// Of `wals`, which lie in `directory`, oldest first; `options` are those that
// recovery goes by.
//   kRefused       what RocksDB would replay in another way than the source's
//                  application: the message says why and what to do.
//   kIncompatible  records that the RocksDB of this process does not know.
//   kCorrupt       a record that is no write batch.
[[nodiscard]] rocksdb::Status ReadReplay(const std::string& directory,
                                         const std::vector<CopiedWal>& wals,
                                         const ManifestState& state,
                                         const rocksdb::DBOptions& options,
                                         Replay* replay);

// For those who adopt the snapshot: what they need of it in one file. One that
// is missing or damaged reads as not known.
[[nodiscard]] rocksdb::Status WriteReplay(const std::string& path,
                                          const Replay& replay);
void LoadReplay(const std::string& path, Replay* replay);

}  // namespace sstferry
