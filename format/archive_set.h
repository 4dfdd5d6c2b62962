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

struct ArchivedFile {
  CloneFile file;
  ArchiveKey key;
  std::array<uint8_t, 32> sha256{};  // of the whole file
  std::vector<Digest128> units;      // of its units, in order
  friend bool operator==(const ArchivedFile&, const ArchivedFile&) = default;
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
  uint64_t bytes() const;  // of all files
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
