// The files of a clone, which both sides number and split in the same way. The
// wire carries a file's kind and number, never its name; each side makes the
// name from them.
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
  // Offset after the last complete record of a WAL or a MANIFEST, as read by
  // the source. A reader that stops before this offset has found damage. 0 for
  // other files.
  uint64_t records_end = 0;
  // Identity of a table or a blob file (rocksdb/file_identity.h). All zero:
  // unknown.
  Digest128 identity{};
  // Another table may have the same identity; only a comparison of bytes proves
  // that two tables are equal.
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

// Returns true for a table or a blob file. No two of these have the same
// number, but one of them may have the number of a WAL: if RocksDB writes a
// table while it recovers WALs of another directory (wal_dir), it does not yet
// know the numbers of the later WALs.
inline bool IsDataFile(const CloneFile& file) {
  return file.kind == CloneFileKind::kTable ||
         file.kind == CloneFileKind::kBlob;
}

// Returns "000012.sst", "MANIFEST-000004", ...
std::string CloneFileName(const CloneFile& file);

// Parses kind and number from a name in a database's directory. Returns false
// if a clone cannot have a file of this name.
[[nodiscard]] bool ParseCloneFileName(const std::string& name,
                                      CloneFile* file);

// A table of at least this size gets an extra unit for its tail, unless the
// tail is larger than a unit. The tail is the last 1/32 of the table, starting
// at a multiple of kCloneTailAlignment. It contains the index, whose block
// boundaries are needed to check the other units while they arrive.
inline constexpr uint64_t kMinTailedTableBytes = 1u << 20;
inline constexpr uint64_t kCloneTailShare = 32;
inline constexpr uint64_t kCloneTailAlignment = 64u << 10;
// Units of this size have no tails: a table up to this size is one unit. For
// databases with so many tables that two units of each would exceed kMaxParts.
inline constexpr uint64_t kUntailedUnitBytes =
    kMaxChunkBytes - kCloneTailAlignment;
// Tables and blob files of a clone with units of kUntailedUnitBytes. Leaves
// parts for other files, and for files of several units.
inline constexpr uint64_t kMaxCloneDataFiles = kMaxParts - 4096;

// Splits each file into units of `unit_bytes` (the last one may be smaller),
// followed by a table's tail. An empty file has no units. kRefused: more than
// kMaxParts units. The units of a file do not depend on the other files.
// REQUIRES: unit_bytes > 0.
[[nodiscard]] rocksdb::Status CutIntoUnits(const std::vector<CloneFile>& files,
                                           uint64_t unit_bytes,
                                           std::vector<Part>* units);

// Checks a list of files that a peer sent: no duplicates, one MANIFEST, at most
// one OPTIONS and one IDENTITY, none of these three above its limit (limits.h),
// and only file numbers that RocksDB can use. Otherwise returns Corruption.
[[nodiscard]] rocksdb::Status CheckCloneFiles(
    const std::vector<CloneFile>& files);

}  // namespace sstferry
