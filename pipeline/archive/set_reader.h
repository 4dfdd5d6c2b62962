// Reads the files of one set. If a file is lost, explains why the restore
// failed.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "format/archive_set.h"
#include "format/part.h"
#include "format/rocksdb/manifest_state.h"
#include "pipeline/archive/archive.h"
#include "pipeline/archive/seal.h"
#include "pipeline/archive/store.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace sstferry {

// Reads the files of one set, with retries and checks.
//
// Threads: any.
// Errors:  those of the store; kCancelled; kCorrupt for a lost file, with a
//          message that says which set can be restored; kSnapshotGone if a
//          prune has removed the set meanwhile.
class SetReader {
 public:
  using Cancelled = std::function<bool()>;  // polled; may be null
  using Take = std::function<rocksdb::Status(uint64_t offset,
                                             const rocksdb::Slice& piece)>;
  using Check = std::function<rocksdb::Status(const std::string& bytes)>;

  // `key` may be null. `read_bytes`: as in Archive().
  SetReader(std::shared_ptr<ObjectStore> store,
            std::shared_ptr<const SealKey> key, ArchiveSet set,
            std::atomic<uint64_t>* read_bytes = nullptr);

  const ArchiveSet& set() const { return set_; }
  const Archive& archive() const { return archive_; }
  const std::string& place() const { return store_->place(); }

  // Looks up the objects of these files without reading them.
  [[nodiscard]] rocksdb::Status LookFor(
      const std::vector<const ArchivedFile*>& files);

  // Passes the bytes of a unit to `take`, in order, and compares them with the
  // digest. kDeadPeer: they differ; the unit may be read again.
  [[nodiscard]] rocksdb::Status ReadUnit(const ArchivedFile& file,
                                         const Part& unit,
                                         const Digest128& digest,
                                         const Cancelled& cancelled,
                                         const Take& take);

  // Reads all units of a file. If a unit had wrong bytes, `take` receives its
  // bytes again.
  [[nodiscard]] rocksdb::Status ReadWhole(const ArchivedFile& file,
                                          const Cancelled& cancelled,
                                          const Take& take);

  // Reads the only file of a kind into memory; if there is none, *text stays
  // empty. kRefused: it is larger than max_bytes.
  [[nodiscard]] rocksdb::Status ReadText(CloneFileKind kind,
                                         uint64_t max_bytes,
                                         const Cancelled& cancelled,
                                         std::string* text);
  // Reads the MANIFEST up to its last complete record, and applies its records.
  // kCorrupt: RocksDB opens no database with it; the message says which set can
  // be restored.
  [[nodiscard]] rocksdb::Status ReadManifest(const Cancelled& cancelled,
                                             std::string* text,
                                             ManifestState* state);

  // Reads a range of a file that is not a whole unit, so that the record has no
  // digest for it. Reads it again if `check` does not accept the bytes, up to
  // kTriesOfBytes times in all. REQUIRES: the range is within the file.
  [[nodiscard]] rocksdb::Status ReadChecked(const ArchivedFile& file,
                                            uint64_t offset, uint64_t bytes,
                                            const Cancelled& cancelled,
                                            const Check& check,
                                            std::string* out);

  // Returns the status of a restore that fails because a file is lost.
  [[nodiscard]] rocksdb::Status Lost(const ArchivedFile& file,
                                     const std::string& what);

 private:
  [[nodiscard]] rocksdb::Status BadManifest(const rocksdb::Status& why);
  // Counts a failed read of a unit. Returns kDeadPeer while retries remain.
  [[nodiscard]] rocksdb::Status Distrust(const ArchivedFile& file,
                                         uint64_t offset,
                                         const std::string& what);
  [[nodiscard]] rocksdb::Status FindOut(const std::string& key,
                                        const std::string& what);

  const std::shared_ptr<ObjectStore> store_;
  const std::shared_ptr<const SealKey> key_;  // may be null
  const Archive archive_;
  const ArchiveSet set_;

  std::mutex mu_;
  // Number of failed reads of a unit, by file and offset; guarded by mu_.
  std::map<std::pair<const ArchivedFile*, uint64_t>, int> tries_;
  std::mutex lost_mu_;    // locked while the archive is checked
  rocksdb::Status lost_;  // the first; guarded by lost_mu_
};

// Reads the complete records of a MANIFEST; *end is the end of the last one, or
// of the last complete group. kCorrupt: it is damaged.
[[nodiscard]] rocksdb::Status ReadManifestText(const std::string& text,
                                               ManifestState* state,
                                               uint64_t* end);

// Returns the note that names the restored set.
std::string NoteOfSet(const ArchiveSet& set);

// Returns the end of a message about a set that cannot be restored: it names a
// set that can be. `which` is the request; if it is a label, the newest set
// with that label is named.
std::string NextBestSet(const Archive& archive, const std::string& which);

}  // namespace sstferry
