// Makes a database of the files of a clone once all have come.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "format/release.h"
#include "pipeline/pull/clone_layout.h"
#include "rocksdb/file_system.h"
#include "rocksdb/status.h"

namespace sstferry {

struct FinishedClone {
  std::string database_id;  // the clone's; empty: it gets one when it is opened
  std::vector<std::string> families;
  std::map<int, uint64_t> levels;  // level -> tables
  std::string manifest;            // what CURRENT is to name
  // Files without checksums of their own, whose bytes match the MANIFEST's.
  uint64_t checked_whole = 0;
};

// Compares the MANIFEST with the files that came, then writes OPTIONS, IDENTITY
// and MANIFEST into db/. Everything but CURRENT is then there, as durable as
// `file_system` makes it. May be called again after a crash at any point.
// `keep_identity`: the clone is to be the database that it is a clone of.
// `application`: the release that will open it; its OPTIONS say so
// (replica_options.h). `families`: the clone is of these, and the others of the
// MANIFEST are dropped; empty: of all.
//   kCorrupt       the MANIFEST names other files than came, or is damaged
//   kIncompatible  the MANIFEST has records that sstferry does not know
[[nodiscard]] rocksdb::Status FinishClone(const CloneLayout& layout,
                                          bool keep_identity,
                                          const RocksDbRelease& application,
                                          const std::vector<std::string>&
                                              families,
                                          rocksdb::FileSystem* file_system,
                                          FinishedClone* finished);

}  // namespace sstferry
