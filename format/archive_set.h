// The record of a set: one point in time of a database, file by file, and where
// in the archive each of them lies. It is all that a restore needs. Normative
// text: format/FORMAT.md, "Archive".
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

// Files are cut into units of so many bytes (CutIntoUnits()), so that a table
// of a usual size is read at once.
inline constexpr uint64_t kArchiveUnitBytes = 64u << 20;

// A record, compressed and not.
inline constexpr uint64_t kMaxSetBytes = 64u << 20;
inline constexpr uint64_t kMaxSetRawBytes = 128u << 20;

// --- sealed sets -------------------------------------------------------------
// Under a key, the object of a file is a head, which has the name of the key and
// a salt, and the file in chunks of kSealChunkBytes, each encrypted and followed
// by a tag. Any range of chunks can be read for itself.
inline constexpr uint64_t kSealHeadBytes = 32;
inline constexpr uint64_t kSealChunkBytes = 64u << 10;
inline constexpr uint64_t kSealTagBytes = 16;
inline constexpr char kSealMagic[] = "SFASEAL1";
using SealKeyId = std::array<uint8_t, 8>;
using SealSalt = std::array<uint8_t, 16>;
// Returns the size of the object of a file.
constexpr uint64_t SealedBytes(uint64_t file_bytes) {
  return kSealHeadBytes + file_bytes +
         kSealTagBytes * (file_bytes / kSealChunkBytes +
                          (file_bytes % kSealChunkBytes != 0 ? 1 : 0));
}

struct ArchivedFile {
  CloneFile file;
  ArchiveKey key;
  // Digests the object; where it is uploaded in pieces, the digests of these.
  Sha256Digest sha256{};
  // Digests the file's units, in order. Of a sealed one in a record: encrypted.
  std::vector<Digest128> units;
  SealSalt salt{};  // of its object; zeros: it is not sealed
  friend bool operator==(const ArchivedFile&, const ArchivedFile&) = default;
};

// Where the log continues a set that a follower took: behind all of its bytes.
struct SetLog {
  SetId lineage{};
  uint64_t segment = 0;  // the first one that may hold more; 0: no log does
  // All that the set holds was written before, by the follower's clock.
  uint64_t moment_micros = 0;
  friend bool operator==(const SetLog&, const SetLog&) = default;
};

struct ArchiveSet {
  static constexpr char kName[] = "set";

  SetName name;
  std::string label;     // the operator's; empty: none
  std::string software;  // that wrote it
  std::string host;      // that it was pushed from, for people
  std::string database_id;  // the source's; empty: none
  uint64_t sequence = 0;
  // RocksDB's release of the source's OPTIONS, and the first one that reads the
  // files, with what asks for it; empty: not known, or any.
  std::string application;
  std::string needs;
  std::string needs_because;
  Digest128 content;  // of all files (rocksdb/file_identity.h)
  std::vector<std::string> families;
  std::vector<std::string> notes;  // about the point in time
  uint64_t unit_bytes = kArchiveUnitBytes;
  std::vector<ArchivedFile> files;
  SetLog log;
  // All of its files are sealed with one key, and so is the record: by a code
  // over all of it, in which the code itself counts as zeros.
  bool is_sealed = false;
  SealKeyId key_id{};
  Sha256Digest seal{};
  // The clock of the machine that pushed it, when it took its name; 0: not
  // known. The name's time is the store's, and after that of every set before.
  uint64_t host_seconds = 0;
  // The damaged set that it repairs, of the same time; zeros: none.
  SetId repairs{};
  uint64_t bytes() const;  // of all files
  // Returns the size of a file's object.
  uint64_t ObjectBytes(const ArchivedFile& file) const {
    return is_sealed ? SealedBytes(file.file.bytes) : file.file.bytes;
  }
  friend bool operator==(const ArchiveSet&, const ArchiveSet&) = default;
};

// Appends a whole object. kRefused: it would be larger than one may be.
[[nodiscard]] rocksdb::Status EncodeArchiveSet(const ArchiveSet& set,
                                               std::string* out);

// Decodes the object of the set `name`.
//   kCorrupt  not exactly one whole record of that set, whose files are those
//             of one database, each with the digests of all of its units
[[nodiscard]] rocksdb::Status DecodeArchiveSet(const rocksdb::Slice& object,
                                               const SetName& name,
                                               ArchiveSet* set);

// Encodes and decodes a record without its compression. Errors as above.
std::string EncodeArchiveSetRecord(const ArchiveSet& set);
[[nodiscard]] rocksdb::Status DecodeArchiveSetRecord(
    const rocksdb::Slice& record, const SetName& name, ArchiveSet* set);

}  // namespace sstferry
