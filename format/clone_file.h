// The files of a clone. The source and the target number them and split them
// into units in the same way. A message contains a file's kind and number, but
// never its name. Each side makes the name from the kind and the number.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/digest.h"
#include "format/limits.h"
#include "format/part.h"
#include "rocksdb/status.h"

namespace sstferry {

enum class CloneFileKind : uint8_t {
  kTable = 0,
  kBlob = 1,
  kWal = 2,
  kManifest = 3,
  kOptions = 4,
  kIdentity = 5,  // its number is 0
};
inline constexpr uint8_t kMaxCloneFileKind = 5;

struct CloneFile {
  CloneFileKind kind = CloneFileKind::kTable;
  uint64_t number = 0;
  uint64_t bytes = 0;
  // Offset after the last complete record that the source read in a WAL or a
  // MANIFEST. If a reader finds fewer records, the file is damaged. 0 for other
  // files.
  uint64_t records_end = 0;
  // Identity of a table or a blob file (rocksdb/file_identity.h). All zero: the
  // identity is unknown.
  Digest128 identity{};
  // True if another table may have the same identity. Then only a comparison of
  // the bytes proves that two tables are equal.
  bool identity_is_weak = false;
  // Modification time of a blob file at the source, in nanoseconds since 1970;
  // 0 for other files.
  uint64_t modified_ns = 0;
  friend bool operator==(const CloneFile&, const CloneFile&) = default;
};

// The files of a database at one point in time.
struct FileSet {
  uint64_t unit_bytes = 0;  // size of the units into which the files are split
  // Digest of the content of all files (rocksdb/file_identity.h). All zero:
  // unknown.
  Digest128 content{};
  std::vector<CloneFile> files;
  friend bool operator==(const FileSet&, const FileSet&) = default;
};

// Returns true for a table or a blob file. All tables and blob files of a
// database have different numbers, but one of them may have the number of a
// WAL. For example, RocksDB recovers WALs from another directory (wal_dir) and
// writes a table before it knows the numbers of the later WALs.
inline bool IsDataFile(const CloneFile& file) {
  return file.kind == CloneFileKind::kTable ||
         file.kind == CloneFileKind::kBlob;
}

// Returns "000012.sst", "MANIFEST-000004", ...
std::string CloneFileName(const CloneFile& file);

// Parses a file's kind and number from its name in a database's directory.
// Returns false if no file of a clone has such a name.
[[nodiscard]] bool ParseCloneFileName(const std::string& name,
                                      CloneFile* file);

// Constants for the tail of a table: its last 1/32, beginning at a multiple of
// kCloneTailAlignment. A table of at least kMinTailedTableBytes gets an extra
// unit for its tail, unless the tail is larger than a unit. The tail contains
// the index, which shows where blocks begin. With the index, the target checks
// the other units while they arrive.
inline constexpr uint64_t kMinTailedTableBytes = 1u << 20;
inline constexpr uint64_t kCloneTailShare = 32;
inline constexpr uint64_t kCloneTailAlignment = 64u << 10;
// With units of this size, no table gets an extra unit for its tail, so a table
// up to this size is one unit. Used for databases with so many tables that two
// units for each table would exceed kMaxParts.
inline constexpr uint64_t kUntailedUnitBytes =
    kMaxChunkBytes - kCloneTailAlignment;
// Maximum number of tables and blob files in a clone with units of
// kUntailedUnitBytes. The other parts are for other files, and for files of
// several units.
inline constexpr uint64_t kMaxCloneDataFiles = kMaxParts - 4096;

// Splits each file into units of `unit_bytes` bytes; the last unit may be
// smaller. If a table gets an extra unit for its tail, this unit follows the
// others. An empty file has no units. How a file is split does not depend on
// the other files. Returns kRefused if there are more than kMaxParts units.
// REQUIRES: unit_bytes > 0.
[[nodiscard]] rocksdb::Status CutIntoUnits(const std::vector<CloneFile>& files,
                                           uint64_t unit_bytes,
                                           std::vector<Part>* units);

// Checks a list of files that a peer sent. Returns Corruption unless there is
// exactly one MANIFEST, at most one OPTIONS and at most one IDENTITY, and none
// of these is larger than its limit (limits.h). RocksDB must be able to use the
// file numbers. No two files may have the same number, except a WAL and another
// file.
[[nodiscard]] rocksdb::Status CheckCloneFiles(
    const std::vector<CloneFile>& files);

}  // namespace sstferry
