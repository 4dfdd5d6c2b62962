// Reads the files of one set, and says what becomes of a restore for which one
// of them is lost.
#pragma once

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

inline constexpr int kTriesOfUnit = 3;

// Threads: any.
// Errors:  those of the store; kCancelled; kCorrupt for a file that is lost,
//          whose message says what is left; kSnapshotGone if a prune has
//          removed the set meanwhile.
class SetReader {
 public:
  using Cancelled = std::function<bool()>;  // polled; may be null
  using Take = std::function<rocksdb::Status(uint64_t offset,
                                             const rocksdb::Slice& piece)>;
  using Check = std::function<rocksdb::Status(const std::string& bytes)>;

  // `key` may be null.
  SetReader(std::shared_ptr<ObjectStore> store,
            std::shared_ptr<const SealKey> key, ArchiveSet set);

  const ArchiveSet& set() const { return set_; }
  const std::string& place() const { return store_->place(); }

  // Looks for the objects of these files. Reads none.
  [[nodiscard]] rocksdb::Status LookFor(
      const std::vector<const ArchivedFile*>& files);

  // Hands the bytes of a unit to `take`, in order, and compares them with the
  // digest. kDeadPeer: they were others, and may be got again.
  [[nodiscard]] rocksdb::Status ReadUnit(const ArchivedFile& file,
                                         const Part& unit,
                                         const Digest128& digest,
                                         const Cancelled& cancelled,
                                         const Take& take);

  // Reads all units of a file. Of a unit that came wrong, `take` gets the bytes
  // again.
  [[nodiscard]] rocksdb::Status ReadWhole(const ArchivedFile& file,
                                          const Cancelled& cancelled,
                                          const Take& take);

  // Reads the file of a kind, of which there is at most one, into memory; none:
  // *text stays empty. kRefused: it has more bytes.
  [[nodiscard]] rocksdb::Status ReadText(CloneFileKind kind,
                                         uint64_t max_bytes,
                                         const Cancelled& cancelled,
                                         std::string* text);
  // Reads the MANIFEST up to its last whole record, and what it says.
  [[nodiscard]] rocksdb::Status ReadManifest(const Cancelled& cancelled,
                                             std::string* text,
                                             ManifestState* state);

  // Reads these bytes of a file, which no digest of the record covers: again,
  // if `check` does not accept them, kTriesOfUnit times in all.
  // REQUIRES: the file has them.
  [[nodiscard]] rocksdb::Status ReadChecked(const ArchivedFile& file,
                                            uint64_t offset, uint64_t bytes,
                                            const Cancelled& cancelled,
                                            const Check& check,
                                            std::string* out);

  // Says what becomes of a restore for which a file is lost.
  [[nodiscard]] rocksdb::Status Lost(const ArchivedFile& file,
                                     const std::string& what);

 private:
  // Counts a unit that came as other bytes: kDeadPeer as long as it may be got
  // again.
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
  // Tries of units that came wrong, by file and offset; under mu_.
  std::map<std::pair<const ArchivedFile*, uint64_t>, int> tries_;
  std::mutex lost_mu_;    // held while the archive is checked
  rocksdb::Status lost_;  // the first; under lost_mu_
};

// Reads the whole records of a MANIFEST; *end is behind the last. kCorrupt.
[[nodiscard]] rocksdb::Status ReadManifestText(const std::string& text,
                                               ManifestState* state,
                                               uint64_t* end);

// Returns the note that tells which set a restore is of.
std::string NoteOfSet(const ArchiveSet& set);

// Returns the end of a sentence about a set that cannot be restored: which one
// can be. `which` is what was asked for: of a label, the newest with it.
std::string NextBestSet(const Archive& archive, const std::string& which);

}  // namespace sstferry
