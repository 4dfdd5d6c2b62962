// Reads the files of one set. If a file is lost, its errors explain why the
// restore failed.
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

// Reads the files of one set. Checks the bytes, and reads wrong bytes again.
//
// Threads: any.
// Errors:  those of the store; kCancelled; kCorrupt if a file is lost (the
//          message names a set that can be restored); kSnapshotGone if a prune
//          removed the set during the restore.
class SetReader {
 public:
  using Cancelled = std::function<bool()>;  // polled; may be null
  using Take = std::function<rocksdb::Status(uint64_t offset,
                                             const rocksdb::Slice& piece)>;
  using Check = std::function<rocksdb::Status(const std::string& bytes)>;

  // `key` may be null. For `read_bytes`, see Archive().
  SetReader(std::shared_ptr<ObjectStore> store,
            std::shared_ptr<const SealKey> key, ArchiveSet set,
            std::atomic<uint64_t>* read_bytes = nullptr);

  const ArchiveSet& set() const { return set_; }
  const Archive& archive() const { return archive_; }
  const std::string& place() const { return store_->place(); }

  // Looks up the objects of these files, but does not read them.
  [[nodiscard]] rocksdb::Status LookFor(
      const std::vector<const ArchivedFile*>& files);

  // Passes the bytes of a unit to `take`, in order, and compares them with the
  // digest. kDeadPeer: the bytes are wrong; the caller may read the unit again.
  [[nodiscard]] rocksdb::Status ReadUnit(const ArchivedFile& file,
                                         const Part& unit,
                                         const Digest128& digest,
                                         const Cancelled& cancelled,
                                         const Take& take);

  // Reads all units of a file. If a unit has wrong bytes, reads it again, and
  // passes its bytes to `take` again.
  [[nodiscard]] rocksdb::Status ReadWhole(const ArchivedFile& file,
                                          const Cancelled& cancelled,
                                          const Take& take);

  // Reads the file of a kind into memory. Leaves *text empty if the set has no
  // file of this kind. REQUIRES: it has at most one. kRefused: the file is
  // larger than max_bytes.
  [[nodiscard]] rocksdb::Status ReadText(CloneFileKind kind,
                                         uint64_t max_bytes,
                                         const Cancelled& cancelled,
                                         std::string* text);
  // Reads the MANIFEST up to its last complete record, and applies its records
  // to *state. kCorrupt: RocksDB cannot open a database with this MANIFEST. The
  // message names a set that can be restored.
  [[nodiscard]] rocksdb::Status ReadManifest(const Cancelled& cancelled,
                                             std::string* text,
                                             ManifestState* state);

  // Reads a range of a file for which the record has no digest, because it is
  // not a whole unit. If check() does not accept the bytes, reads them again,
  // up to kTriesOfBytes times in all. REQUIRES: the range is within the file.
  [[nodiscard]] rocksdb::Status ReadChecked(const ArchivedFile& file,
                                            uint64_t offset, uint64_t bytes,
                                            const Cancelled& cancelled,
                                            const Check& check,
                                            std::string* out);

  // Returns the error of a restore that fails because this file is lost.
  [[nodiscard]] rocksdb::Status Lost(const ArchivedFile& file,
                                     const std::string& what);

 private:
  [[nodiscard]] rocksdb::Status BadManifest(const rocksdb::Status& why);
  // Counts a failed read of a unit. Returns kDeadPeer if the unit may be read
  // again, and otherwise the error of Lost().
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
  // By file and offset of a unit: number of its failed reads; guarded by mu_.
  std::map<std::pair<const ArchivedFile*, uint64_t>, int> tries_;
  std::mutex lost_mu_;  // locked while the archive is checked
  // The error of the first lost file; guarded by lost_mu_.
  rocksdb::Status lost_;
};

// Reads the complete records of a MANIFEST. Sets *end to the end of the last
// complete record or, if records form a group, of the last complete group.
// kCorrupt: the MANIFEST is damaged.
[[nodiscard]] rocksdb::Status ReadManifestText(const std::string& text,
                                               ManifestState* state,
                                               uint64_t* end);

// Returns a note about the restore that names the set.
std::string NoteOfSet(const ArchiveSet& set);

// Returns the end of a message about a set that cannot be restored. It names
// the newest set that can be restored. `which` is the request; if it is a
// label, prefers the newest set with this label.
std::string NextBestSet(const Archive& archive, const std::string& which);

}  // namespace sstferry
