// The files of a clone, numbered and cut in the same way by both sides. The
// wire carries a file's kind and number, never its name; each side makes the
// name from them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/digest.h"
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
  // Offset after the last whole record of a WAL or a MANIFEST, as the source
  // read it. A reader that stops before this offset has found damage. 0 for
  // other files.
  uint64_t records_end = 0;
  // Identity of a table or a blob file (rocksdb/file_identity.h). All zero: not
  // known.
  Digest128 identity{};
  // Another table may have the same identity: only a comparison of bytes proves
  // that two tables are the same.
  bool identity_is_weak = false;
  // Time of the source's last write to a blob file, in nanoseconds since 1970;
  // 0 for other files.
  uint64_t modified_ns = 0;
  friend bool operator==(const CloneFile&, const CloneFile&) = default;
};

// Returns "000012.sst", "MANIFEST-000004", ...
std::string CloneFileName(const CloneFile& file);

// Parses kind and number from a name in a database's directory. Returns false
// if a clone has no file of that name.
[[nodiscard]] bool ParseCloneFileName(const std::string& name,
                                      CloneFile* file);

// A table of at least this size gets an extra unit for its tail, if the tail is
// no larger than a unit. The tail is the table's last 32nd part, from a
// multiple of kCloneTailAlignment on. It contains the index, which gives the
// boundaries of the blocks in the other units while those arrive.
inline constexpr uint64_t kMinTailedTableBytes = 1u << 20;
inline constexpr uint64_t kCloneTailShare = 32;
inline constexpr uint64_t kCloneTailAlignment = 64u << 10;

// Cuts each file into units of `unit_bytes` (the last one may be smaller),
// followed by the tail of a table. An empty file has no units. kRefused: more
// than kMaxParts units. REQUIRES: unit_bytes > 0.
[[nodiscard]] rocksdb::Status CutIntoUnits(const std::vector<CloneFile>& files,
                                           uint64_t unit_bytes,
                                           std::vector<Part>* units);

// Checks a list of files that a peer sent: no duplicates, one MANIFEST, at most
// one OPTIONS and one IDENTITY, and only file numbers that RocksDB can use.
// Returns Corruption otherwise.
[[nodiscard]] rocksdb::Status CheckCloneFiles(
    const std::vector<CloneFile>& files);

}  // namespace sstferry
