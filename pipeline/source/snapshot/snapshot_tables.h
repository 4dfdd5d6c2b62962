// Keeps a database's table and blob files alive by hard links in held/, from
// the moment a MANIFEST that names them was read.
//
// held/ is never opened by RocksDB, and only files that the copied MANIFEST
// names are moved from there to db/: a file that the owner made later could
// have the number that RocksDB gives to a new file of the copy, and would be
// truncated through its link.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "format/rocksdb/manifest_reader.h"
#include "rocksdb/status.h"

namespace sstferry {

// Threads: one.
class HeldTables {
 public:
  // Files are looked for in each of `directories`.
  HeldTables(std::vector<std::string> directories, std::string held)
      : directories_(std::move(directories)), held_(std::move(held)) {}

  // Links what `state` names and is not linked yet. *missing: a file that
  // nothing of that name is there for; empty: all are linked.
  //   kRefused      a file lies on another path (db_paths, cf_paths).
  //   kSourceError  it cannot be linked (EXDEV, EPERM say what to do).
  [[nodiscard]] rocksdb::Status Hold(const ManifestState& state,
                                     std::string* missing);

  // Drops links to what does not have its name any more: after a restart of
  // the owner a number may be another file's.
  [[nodiscard]] rocksdb::Status DropOthers();

  // Moves what `state` names from held/ to `directory`.
  //   kCorrupt  a file has another size than the MANIFEST says.
  [[nodiscard]] rocksdb::Status MoveTo(const std::string& directory,
                                       const ManifestState& state,
                                       const std::string& manifest) const;

  uint64_t linked() const { return linked_; }
  bool holds_any() const { return !tables_.empty() || !blobs_.empty(); }

 private:
  using Numbers = std::unordered_set<uint64_t>;
  [[nodiscard]] rocksdb::Status HoldOne(uint64_t number, const char* suffix,
                                        Numbers* held, std::string* missing);
  [[nodiscard]] rocksdb::Status DropOthersOf(const char* suffix,
                                             Numbers* held);
  [[nodiscard]] rocksdb::Status Move(const std::string& name, uint64_t bytes,
                                     const std::string& directory,
                                     const std::string& manifest) const;

  const std::vector<std::string> directories_;
  const std::string held_;
  Numbers tables_;
  Numbers blobs_;
  uint64_t linked_ = 0;
};

// 000012.sst and the like.
std::string NumberedName(uint64_t number, const char* suffix);

}  // namespace sstferry
