// Reads a database's CURRENT and MANIFEST while their owner, the process that
// has the database open, writes them.
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
// used by one thread.
class ManifestTail {
 public:
  // Function that is called with each edit before the edit is applied. `before`
  // is the state without the edit. `end` is the offset at which the edit's
  // record or group ends in the MANIFEST.
  using Watch = std::function<void(
      const VersionEdit& edit, const ManifestState& before, uint64_t end)>;

  // `watch` may be null.
  explicit ManifestTail(std::string directory, Watch watch = nullptr)
      : directory_(std::move(directory)), watch_(std::move(watch)) {}

  // Reads the records that are new since the last call. Sets *changed to true
  // if there were new records, or if CURRENT has the name of another MANIFEST.
  // If a record is damaged, reads it again for some time, because the owner may
  // be writing it.
  //   NotFound      the MANIFEST in CURRENT does not exist.
  //   TryAgain      it was truncated meanwhile.
  //   kSourceError  no CURRENT in the directory, or a file cannot be read.
  //   kCorrupt      CURRENT or a record of the MANIFEST is damaged, and stays
  //                 so; RocksDB does not open the database.
  //   kRefused      a record that this version does not understand.
  [[nodiscard]] rocksdb::Status Follow(bool* changed);
  // Reads the MANIFEST once, with the errors of Follow(). If the owner is just
  // replacing its MANIFEST, waits at most two seconds, then returns
  // kSourceError.
  [[nodiscard]] rocksdb::Status Read();

  const ManifestState& state() const { return reader_->state(); }
  const std::string& name() const { return name_; }
  // Returns the number in name(). Returns 0 if no MANIFEST was found yet.
  uint64_t number() const;
  // Returns the number of MANIFEST files that were read. The number grows if
  // CURRENT has the name of another file.
  uint64_t generation() const { return generation_; }

  // has_tail() returns true if there are bytes after the last complete record
  // or group. tail_age() returns how many calls of Follow() have found the same
  // such bytes. If these bytes no longer change, an owner has crashed while it
  // wrote a record. RocksDB ignores them.
  bool has_tail() const { return bytes_ > end_; }
  uint64_t tail_age() const { return tail_age_; }
  uint64_t end() const { return end_; }

  // Adds the bytes [begin, end) of the current MANIFEST to *digest.
  //   TryAgain  the file is shorter than `end`.
  [[nodiscard]] rocksdb::Status Digest(uint64_t begin, uint64_t end,
                                       Digest128Stream* digest) const;
  // Computes XXH3-128 of the first `bytes` bytes of the current MANIFEST.
  //   TryAgain  the file is shorter.
  [[nodiscard]] rocksdb::Status DigestOfBegin(uint64_t bytes,
                                              Digest128* digest) const;

  // Writes CURRENT and the part of the MANIFEST that was read into a directory
  // that does not have these files. Copies bytes after the last complete
  // record, too, so that the recovery finds the same end as at the source.
  [[nodiscard]] rocksdb::Status CopyInto(const std::string& directory) const;

 private:
  // Does the same as Follow(), but reads only once.
  [[nodiscard]] rocksdb::Status Look(bool* changed);
  // Opens another MANIFEST. If this fails, the next call of Look() tries again.
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

// Computes XXH3-128 of the first `bytes` bytes of a file in a private
// directory.
//   TryAgain  the file is shorter.
[[nodiscard]] rocksdb::Status DigestOfFileBegin(const std::string& path,
                                                uint64_t bytes,
                                                Digest128* digest);

// Reads a database's id from its MANIFEST. If the MANIFEST has no id, reads it
// from the IDENTITY file. Sets *id to an empty string if neither has one.
[[nodiscard]] rocksdb::Status ReadDatabaseId(const std::string& directory,
                                             const ManifestState& state,
                                             std::string* id);
// Does the same, but first reads the MANIFEST in `directory`. If the MANIFEST
// cannot be read, uses the id in IDENTITY, which is the same. Sets *id to an
// empty string only if the database has no id.
//   kSourceError, kCorrupt, kRefused  the id is not known
[[nodiscard]] rocksdb::Status ReadDatabaseId(const std::string& directory,
                                             std::string* id);

}  // namespace sstferry
