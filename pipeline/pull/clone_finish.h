// Makes a database from the files of a clone after all of them have arrived.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "format/release.h"
#include "pipeline/pull/clone_layout.h"
#include "rocksdb/file_system.h"
#include "rocksdb/status.h"

namespace sstferry {

// Facts about the finished clone.
struct FinishedClone {
  std::string database_id;  // empty: the first open creates it
  std::vector<std::string> families;
  std::map<int, uint64_t> levels;  // level -> tables
  std::string manifest;            // the name to write into CURRENT
  // Number of files that were compared with their checksum in the MANIFEST
  // because their own checksums do not cover every byte.
  uint64_t checked_whole = 0;
};

// Compares the MANIFEST with the files that arrived, then writes OPTIONS,
// IDENTITY and MANIFEST into db/. After that only CURRENT is missing. The files
// are as durable as `file_system` makes them. May be called again after a crash
// at any point. `new_id`: the clone's new database id; empty: the clone gets no
// id; nullopt: it keeps the source's id. `application`: the RocksDB release
// that will open the clone, written to OPTIONS (replica_options.h). `families`:
// the families to keep; other families in the MANIFEST are dropped. Empty: all.
//   kCorrupt       the MANIFEST lists other files for the kept families than
//                  arrived, or is damaged
//   kIncompatible  the MANIFEST has records that sstferry does not know
[[nodiscard]] rocksdb::Status FinishClone(const CloneLayout& layout,
                                          const std::optional<std::string>&
                                              new_id,
                                          const RocksDbRelease& application,
                                          const std::vector<std::string>&
                                              families,
                                          rocksdb::FileSystem* file_system,
                                          FinishedClone* finished);

}  // namespace sstferry
