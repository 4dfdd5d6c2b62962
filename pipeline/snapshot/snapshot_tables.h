// Pins a database's table and blob files by hard links in held/, after reading
// the MANIFEST that lists them. A table may have LevelDB's name, 000012.ldb:
// RocksDB opens it if 000012.sst does not exist. Its link is named 000012.sst.
//
// RocksDB never opens held/, and only files in the copied MANIFEST move from
// held/ to db/. A file that the owner made later could have the same number as
// a new file of the copy, and RocksDB would truncate it through the link.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "format/rocksdb/manifest_reader.h"
#include "pipeline/snapshot/posix_files.h"
#include "rocksdb/status.h"

namespace sstferry {

// The pinned table and blob files of one snapshot. Threads: one.
class PinnedTables {
 public:
  // Searches for files in each of `directories`.
  PinnedTables(std::vector<std::string> directories, std::string pinned)
      : directories_(std::move(directories)), pinned_(std::move(pinned)) {}

  // Links files that are in `state` and not linked yet. *missing: name of a
  // file that does not exist; empty if all are linked.
  //   kRefused      a file is on another path (db_paths, cf_paths).
  //   kSourceError  it cannot be linked (for EXDEV and EPERM the message says
  //                 what to do).
  [[nodiscard]] rocksdb::Status Hold(const ManifestState& state,
                                     std::string* missing);

  // Removes links to files whose name now belongs to another file. After a
  // restart the owner may reuse a file number.
  [[nodiscard]] rocksdb::Status DropOthers();

  // Moves the files in `state` from held/ to `directory`.
  //   kCorrupt  a file's size differs from the MANIFEST.
  [[nodiscard]] rocksdb::Status MoveTo(const std::string& directory,
                                       const ManifestState& state,
                                       const std::string& manifest) const;

  uint64_t linked() const { return linked_; }
  bool holds_any() const { return !tables_.empty() || !blobs_.empty(); }

 private:
  using Numbers = std::unordered_map<uint64_t, FileId>;
  [[nodiscard]] rocksdb::Status HoldOne(uint64_t number, const char* suffix,
                                        Numbers* pinned, std::string* missing);
  [[nodiscard]] rocksdb::Status LinkOne(const std::string& from,
                                        const std::string& to, FileId* linked);
  [[nodiscard]] rocksdb::Status DropOthersOf(const char* suffix,
                                             Numbers* pinned);
  [[nodiscard]] rocksdb::Status Move(const std::string& name, uint64_t bytes,
                                     const std::string& directory,
                                     const std::string& manifest) const;

  const std::vector<std::string> directories_;
  const std::string pinned_;
  Numbers tables_;
  Numbers blobs_;
  uint64_t linked_ = 0;
};

}  // namespace sstferry
