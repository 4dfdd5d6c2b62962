// Makes a database of the files of a clone once all have come.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "pipeline/target/clone/clone_layout.h"
#include "rocksdb/file_system.h"
#include "rocksdb/status.h"

namespace sstferry {

struct FinishedClone {
  std::string database_id;  // the clone's; empty: it gets one when it is opened
  std::vector<std::string> families;
  std::map<int, uint64_t> levels;  // level -> tables
  std::string manifest;            // what CURRENT is to name
  // The RocksDB that wrote OPTIONS, "9.10", if it is newer than this one.
  std::string newer_options_version;
  // Files without checksums of their own, whose bytes match the MANIFEST's.
  uint64_t checked_whole = 0;
};

// Compares the MANIFEST with the files that came, then writes OPTIONS, IDENTITY
// and MANIFEST into db/. Everything but CURRENT is then there, as durable as
// `file_system` makes it. May be called again after a crash at any point.
// `keep_identity`: the clone is to be the database that it is a clone of.
//   kCorrupt       the MANIFEST names other files than came, or is damaged
//   kIncompatible  the MANIFEST has records that sstferry does not know
[[nodiscard]] rocksdb::Status FinishClone(const CloneLayout& layout,
                                          bool keep_identity,
                                          rocksdb::FileSystem* file_system,
                                          FinishedClone* finished);

// The text of an OPTIONS file without wal_dir and db_log_dir, so that nothing
// that opens the clone with it works in a directory of the source.
std::string WithoutLogDirectories(const std::string& options_text);

// The version of RocksDB that wrote an OPTIONS file, if it is newer than
// `major`.`minor`; else empty.
std::string NewerVersion(const std::string& options_text, int major, int minor);

}  // namespace sstferry
