// Makes a database from the files of a clone after all of them have arrived.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "format/digest.h"
#include "format/release.h"
#include "pipeline/pull/clone_layout.h"
#include "rocksdb/file_system.h"
#include "rocksdb/status.h"

namespace sstferry {

// A small file in db/ that was written here, not received.
struct WrittenFile {
  std::string name;
  uint64_t bytes = 0;
  Digest128 content;
};

// Facts about the finished clone.
struct FinishedClone {
  std::string database_id;  // empty: the first open creates it
  std::vector<std::string> families;
  std::map<int, uint64_t> levels;  // level -> tables
  std::string manifest;            // the name to write into CURRENT
  // Number of files that were compared with their checksum in the MANIFEST.
  // Only files whose own checksums do not cover every byte are compared.
  uint64_t checked_whole = 0;
  // The files OPTIONS, IDENTITY and MANIFEST, as they were written.
  std::vector<WrittenFile> written;
};

// Completes db/ except for CURRENT. Compares the MANIFEST with the files that
// arrived, then writes OPTIONS, IDENTITY and MANIFEST. The files are as durable
// as `file_system` makes them. May be called again after a crash at any point.
//
// `new_id` is the new database id of the clone. If it is empty, the clone gets
// no id. If it is nullopt, the clone keeps the source's id. `application` is
// the RocksDB release that will open the clone; OPTIONS are written for it
// (replica_options.h). `families` are the column families to keep; an empty
// list keeps all. Other families are dropped from the MANIFEST.
//   kCorrupt       the MANIFEST is damaged, or lists other files for the kept
//                  families than arrived
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
