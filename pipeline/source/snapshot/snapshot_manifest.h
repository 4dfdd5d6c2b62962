// Follows a database's CURRENT and MANIFEST while their owner writes them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "format/rocksdb/log_follower.h"
#include "format/rocksdb/manifest_reader.h"
#include "pipeline/source/directory/posix_files.h"
#include "rocksdb/status.h"

namespace sstferry {

// Threads: one.
class ManifestTail {
 public:
  explicit ManifestTail(std::string directory)
      : directory_(std::move(directory)) {}

  // Reads what is new. *changed: something was, or CURRENT names another file.
  //   NotFound      the MANIFEST that CURRENT names is not there.
  //   TryAgain      it was cut meanwhile.
  //   kSourceError  no CURRENT in the directory, or a file cannot be read.
  //   kCorrupt      CURRENT, or a record of the MANIFEST.
  //   kRefused      a record that nobody here understands.
  [[nodiscard]] rocksdb::Status Follow(bool* changed);

  const ManifestState& state() const { return reader_->state(); }
  const std::string& name() const { return name_; }
  // Grows with each MANIFEST that CURRENT named.
  uint64_t generation() const { return generation_; }

  // What lies behind the last whole record and group: none; or some, for how
  // many calls of Follow() the same. That which does not grow is left by an
  // owner that died, or damaged.
  bool has_tail() const { return bytes_ > end_; }
  uint64_t tail_age() const { return tail_age_; }
  uint64_t end() const { return end_; }

  // Writes CURRENT and the MANIFEST as it was read, into a directory without
  // both; with the tail, so that recovery judges it as at the source.
  [[nodiscard]] rocksdb::Status CopyInto(const std::string& directory) const;

 private:
  [[nodiscard]] rocksdb::Status Begin(const std::string& name,
                                      const FileId& file);

  const std::string directory_;
  std::string name_;
  uint64_t generation_ = 0;
  Descriptor file_;
  FileId identity_;
  std::unique_ptr<LogFollower> follower_;
  std::unique_ptr<ManifestReader> reader_;
  uint64_t end_ = 0;  // of the last whole record or group
  uint64_t bytes_ = 0;
  uint64_t tail_age_ = 0;
};

// What the id of a database is: the MANIFEST's, else that of its IDENTITY
// file; empty when it has neither.
[[nodiscard]] rocksdb::Status ReadDatabaseId(const std::string& directory,
                                             const ManifestState& state,
                                             std::string* id);

}  // namespace sstferry
