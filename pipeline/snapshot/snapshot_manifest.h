// Follows a database's CURRENT and MANIFEST while the owner writes them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "format/rocksdb/manifest_reader.h"
#include "pipeline/snapshot/posix_files.h"
#include "rocksdb/status.h"

namespace sstferry {

// Reads the records of the current MANIFEST as the owner adds them. Threads:
// one.
class ManifestTail {
 public:
  // Called with each edit before the edit is applied to state(). `end` is the
  // value of end() after the edit's record or group.
  using Watch = std::function<void(
      const VersionEdit& edit, const ManifestState& before, uint64_t end)>;

  // `watch` may be null.
  explicit ManifestTail(std::string directory, Watch watch = nullptr)
      : directory_(std::move(directory)), watch_(std::move(watch)) {}

  // Reads new records. *changed: there were new records, or CURRENT refers to
  // another file. If a record is damaged, looks again for some milliseconds:
  // the owner may be writing it.
  //   NotFound      the MANIFEST in CURRENT does not exist.
  //   TryAgain      it was truncated meanwhile.
  //   kSourceError  no CURRENT in the directory, or a file cannot be read.
  //   kCorrupt      CURRENT or a record of the MANIFEST is damaged, and stays
  //                 so; RocksDB does not open the database.
  //   kRefused      a record that this version does not understand.
  [[nodiscard]] rocksdb::Status Follow(bool* changed);
  // Does the same for a caller that reads once: waits, for two seconds at most,
  // for an owner that is replacing its MANIFEST (kSourceError afterwards).
  [[nodiscard]] rocksdb::Status Read();

  const ManifestState& state() const { return reader_->state(); }
  const std::string& name() const { return name_; }
  // Returns the number in name(); 0: no MANIFEST was found yet.
  uint64_t number() const;
  // Returns the number of MANIFESTs seen; grows when CURRENT refers to another
  // file.
  uint64_t generation() const { return generation_; }

  // Returns true if there are bytes after the last complete record or group.
  // tail_age() is the number of calls of Follow() since these bytes last
  // changed. If they stop growing, an owner that crashed left them incomplete:
  // RocksDB ignores them.
  bool has_tail() const { return bytes_ > end_; }
  uint64_t tail_age() const { return tail_age_; }
  uint64_t end() const { return end_; }

  // Adds the bytes [begin, end) of the file name() to *digest.
  //   TryAgain  the file is shorter than `end`.
  [[nodiscard]] rocksdb::Status Digest(uint64_t begin, uint64_t end,
                                       Digest128Stream* digest) const;
  // Computes XXH3-128 over the first `bytes` bytes of the file.
  //   TryAgain  the file is shorter.
  [[nodiscard]] rocksdb::Status DigestOfBegin(uint64_t bytes,
                                              Digest128* digest) const;

  // Writes CURRENT and the part of the MANIFEST that was read into a directory
  // that has neither file. Includes the tail, so that recovery treats it as at
  // the source.
  [[nodiscard]] rocksdb::Status CopyInto(const std::string& directory) const;

 private:
  // Does the same as Follow(), but looks only once.
  [[nodiscard]] rocksdb::Status Look(bool* changed);
  // Opens another MANIFEST. After a failure the next look opens it again.
  [[nodiscard]] rocksdb::Status Begin(const std::string& name,
                                      const FileId& file);

  const std::string directory_;
  const Watch watch_;
  std::string name_;
  uint64_t generation_ = 0;
  Descriptor file_;
  FileId identity_;
  std::unique_ptr<ManifestReader> reader_;
  uint64_t end_ = 0;  // offset after the last complete record or group
  uint64_t bytes_ = 0;
  uint64_t tail_age_ = 0;
};

// Computes XXH3-128 over the first `bytes` bytes of a file in a private
// directory.
//   TryAgain  the file is shorter.
[[nodiscard]] rocksdb::Status DigestOfFileBegin(const std::string& path,
                                                uint64_t bytes,
                                                Digest128* digest);

// Reads a database's id from its MANIFEST, or else from its IDENTITY file;
// empty if neither has it.
[[nodiscard]] rocksdb::Status ReadDatabaseId(const std::string& directory,
                                             const ManifestState& state,
                                             std::string* id);
// Does the same, but reads the MANIFEST in `directory` itself. If the MANIFEST
// cannot be read, uses IDENTITY, which has the same id. Empty only if the
// database has no id.
//   kSourceError, kCorrupt, kRefused  the id is not known
[[nodiscard]] rocksdb::Status ReadDatabaseId(const std::string& directory,
                                             std::string* id);

}  // namespace sstferry
