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

// Size of the units into which the files of a set are split (CutIntoUnits()). A
// table of usual size is one unit, so one request reads it.
inline constexpr uint64_t kArchiveUnitBytes = 64u << 20;

// Maximum sizes of a set record in bytes, compressed and uncompressed.
inline constexpr uint64_t kMaxSetBytes = 64u << 20;
inline constexpr uint64_t kMaxSetRawBytes = 128u << 20;

// --- sealed sets -------------------------------------------------------------
// A push with a key encrypts (seals) the files of the set. The object of a
// sealed file begins with a head, which contains the key's id and a salt. The
// file follows in chunks of kSealChunkBytes. Each chunk is encrypted and
// followed by an authentication tag, so any range of chunks can be read alone.
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
  // SHA-256 of the object. If the object was uploaded in pieces, this is the
  // SHA-256 over the SHA-256 digests of the pieces.
  Sha256Digest sha256{};
  // Digests of the file's units, in order. The record of a sealed set stores
  // them encrypted.
  std::vector<Digest128> units;
  SealSalt salt{};  // salt of the file's object; zeros: not sealed
  friend bool operator==(const ArchivedFile&, const ArchivedFile&) = default;
};

// Position in the log at which a follower's set ends. To restore a later time,
// a restore reads the set and then the log from this position on.
struct SetLog {
  SetId lineage{};
  // The first segment that may have records after the set; 0: no log continues
  // the set.
  uint64_t segment = 0;
  // Everything in the set was written before this time, by the follower's
  // clock, in microseconds since 1970.
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
  std::vector<std::string> notes;  // for people, about the set's point in time
  uint64_t unit_bytes = kArchiveUnitBytes;
  std::vector<ArchivedFile> files;
  SetLog log;
  // True if all files are sealed with one key. Then `seal` authenticates the
  // record: it is a code over the record in which the bytes of `seal` are zero.
  bool is_sealed = false;
  SealKeyId key_id{};
  Sha256Digest seal{};
  // Time at which the set got its name, by the clock of the machine that pushed
  // the set; 0: unknown. In contrast, name.seconds is a time by the store's
  // clock.
  uint64_t host_seconds = 0;
  // Id of the damaged set that this set repairs; zeros: none. A set that
  // repairs another one has the other set's time in its name.
  SetId repairs{};
  uint64_t bytes() const;  // total size of the files
  // Returns the size of a file's object.
  uint64_t ObjectBytes(const ArchivedFile& file) const {
    return is_sealed ? SealedBytes(file.file.bytes) : file.file.bytes;
  }
  friend bool operator==(const ArchiveSet&, const ArchiveSet&) = default;
};

// Appends a complete object. Returns kRefused if the object would be larger
// than the maximum.
[[nodiscard]] rocksdb::Status EncodeArchiveSet(const ArchiveSet& set,
                                               std::string* out);

// Decodes the object of the set `name`.
//   kCorrupt  the object is not exactly one complete record of this set, the
//             files do not form one database, or a file lacks digests of units
[[nodiscard]] rocksdb::Status DecodeArchiveSet(const rocksdb::Slice& object,
                                               const SetName& name,
                                               ArchiveSet* set);

// Encode and decode a record without compression. DecodeArchiveSetRecord()
// returns the same errors as DecodeArchiveSet().
std::string EncodeArchiveSetRecord(const ArchiveSet& set);
[[nodiscard]] rocksdb::Status DecodeArchiveSetRecord(
    const rocksdb::Slice& record, const SetName& name, ArchiveSet* set);

}  // namespace sstferry
