// Record of a set: the files of a database at one point in time, and the
// archive object that stores each file. A restore needs no other record.
// Normative text: format/FORMAT.md, "Archive".
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "format/archive.h"
#include "format/clone_file.h"
#include "format/digest.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace sstferry {

// Files are split into units of this size (CutIntoUnits()). A table of usual
// size is one unit, and is read in one request.
inline constexpr uint64_t kArchiveUnitBytes = 64u << 20;

// Maximum size of a record in bytes, compressed and uncompressed.
inline constexpr uint64_t kMaxSetBytes = 64u << 20;
inline constexpr uint64_t kMaxSetRawBytes = 128u << 20;

// --- sealed sets -------------------------------------------------------------
// With a key, a file's object consists of a head, which has the key's name and
// a salt, and of the file in chunks of kSealChunkBytes, each encrypted and
// followed by a tag. Any range of chunks can be read separately.
inline constexpr uint64_t kSealHeadBytes = 32;
inline constexpr uint64_t kSealChunkBytes = 64u << 10;
inline constexpr uint64_t kSealTagBytes = 16;
inline constexpr char kSealMagic[] = "SFASEAL1";
using SealKeyId = std::array<uint8_t, 8>;
using SealSalt = std::array<uint8_t, 16>;
// Returns the size of a sealed file's object.
constexpr uint64_t SealedBytes(uint64_t file_bytes) {
  return kSealHeadBytes + file_bytes +
         kSealTagBytes * (file_bytes / kSealChunkBytes +
                          (file_bytes % kSealChunkBytes != 0 ? 1 : 0));
}

struct ArchivedFile {
  CloneFile file;
  ArchiveKey key;
  // SHA-256 of the object. If the object is uploaded in pieces, the SHA-256 of
  // the pieces' SHA-256 digests.
  Sha256Digest sha256{};
  // Digests of the file's units, in order. Encrypted in the record of a sealed
  // set.
  std::vector<Digest128> units;
  SealSalt salt{};  // salt of the file's object; zeros: not sealed
  friend bool operator==(const ArchivedFile&, const ArchivedFile&) = default;
};

// Position in the log at which a follower's set ends. A restore continues from
// here.
struct SetLog {
  SetId lineage{};
  uint64_t segment = 0;  // first segment that may have later records; 0: no log
  // Everything in the set was written before this time, by the follower's
  // clock.
  uint64_t moment_micros = 0;
  friend bool operator==(const SetLog&, const SetLog&) = default;
};

struct ArchiveSet {
  static constexpr char kName[] = "set";

  SetName name;
  std::string label;     // given by the operator; empty: none
  std::string software;  // version that wrote the record
  std::string host;      // machine that pushed the set, for people only
  std::string database_id;  // the source's id; empty: unknown
  uint64_t sequence = 0;
  // RocksDB release in the source's OPTIONS; empty: unknown.
  std::string application;
  // First RocksDB release that can read the files, and the feature that
  // requires this release. Empty: no requirement.
  std::string needs;
  std::string needs_because;
  Digest128 content;  // over all files (rocksdb/file_identity.h)
  std::vector<std::string> families;
  std::vector<std::string> notes;  // about the point in time
  uint64_t unit_bytes = kArchiveUnitBytes;
  std::vector<ArchivedFile> files;
  SetLog log;
  // All files are sealed with one key. `seal` authenticates the record: it is a
  // code over the record in which the bytes of `seal` are zero.
  bool is_sealed = false;
  SealKeyId key_id{};
  Sha256Digest seal{};
  // Time at which the set got its name, by the clock of the machine that pushed
  // it; 0: unknown. The time in the name is by the store's clock, and later
  // than the times of all earlier sets.
  uint64_t host_seconds = 0;
  // The damaged set that this set repairs and whose time it has; zeros: none.
  SetId repairs{};
  uint64_t bytes() const;  // total size of the files
  // Returns the size of a file's object.
  uint64_t ObjectBytes(const ArchivedFile& file) const {
    return is_sealed ? SealedBytes(file.file.bytes) : file.file.bytes;
  }
  friend bool operator==(const ArchiveSet&, const ArchiveSet&) = default;
};

// Appends a complete object. kRefused: it would exceed the maximum size.
[[nodiscard]] rocksdb::Status EncodeArchiveSet(const ArchiveSet& set,
                                               std::string* out);

// Decodes the object of the set `name`.
//   kCorrupt  not exactly one complete record of this set, or the files do not
//             form one database, or a file lacks digests of its units
[[nodiscard]] rocksdb::Status DecodeArchiveSet(const rocksdb::Slice& object,
                                               const SetName& name,
                                               ArchiveSet* set);

// Encode and decode an uncompressed record. Both return the errors above.
std::string EncodeArchiveSetRecord(const ArchiveSet& set);
[[nodiscard]] rocksdb::Status DecodeArchiveSetRecord(
    const rocksdb::Slice& record, const SetName& name, ArchiveSet* set);

}  // namespace sstferry
