// Keeps a database's table and blob files alive by hard links in held/. The
// files are those that the MANIFEST lists. LevelDB's name of a table, such as
// 000012.ldb, is also accepted: RocksDB opens this file if 000012.sst does not
// exist. Its link is named 000012.sst.
//
// Only files in the copied MANIFEST are moved from held/ to db/, because
// RocksDB opens db/. Another file of the source could have the same number as a
// file that RocksDB creates in db/. RocksDB would then truncate the source's
// file through the link.
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

// The linked table and blob files of one snapshot. Threads: used by one thread.
class PinnedTables {
 public:
  // `directories` are searched for the files. `pinned` gets the links.
  PinnedTables(std::vector<std::string> directories, std::string pinned)
      : directories_(std::move(directories)), pinned_(std::move(pinned)) {}

  // Links the files in `state` that are not linked yet. If a file does not
  // exist, sets *missing to its name; otherwise *missing is empty.
  //   kRefused      a file is on another path (db_paths, cf_paths).
  //   kSourceError  it cannot be linked (for EXDEV and EPERM the message says
  //                 what to do).
  [[nodiscard]] rocksdb::Status Hold(const ManifestState& state,
                                     std::string* missing);

  // Removes a link if the file's name now belongs to another file. For example,
  // the owner may reuse a file number after a restart.
  [[nodiscard]] rocksdb::Status DropOthers();

  // Moves the links of the files in `state` from held/ to `directory`.
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
