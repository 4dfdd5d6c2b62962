// The files of a clone, as both sides number and cut them. A file has a kind
// and a number and never a name from the wire: each side makes the name.
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
  // The offset behind the last whole record of a WAL or a MANIFEST, as its
  // source read it; a reader that stops before it has found damage. 0 for other
  // files.
  uint64_t records_end = 0;
  // Identifies a table or a blob file (rocksdb/file_identity.h). All zero: not
  // known.
  Digest128 identity{};
  // Another table may have the same identity: only equal bytes prove that two
  // are the same.
  bool identity_is_weak = false;
  // The source's last write to a blob file, in nanoseconds since 1970; else 0.
  uint64_t modified_ns = 0;
  friend bool operator==(const CloneFile&, const CloneFile&) = default;
};

// "000012.sst", "MANIFEST-000004", ...
std::string CloneFileName(const CloneFile& file);

// Sets kind and number from a name in a database's directory. False: a name of
// no file that a clone has.
[[nodiscard]] bool ParseCloneFileName(const std::string& name,
                                      CloneFile* file);

// A table of at least this size, of which a tail is no larger than a unit, has
// its tail as a unit of its own: its last 32nd part, from a multiple of
// kCloneTailAlignment on. The index lies there, and tells the blocks of the
// units before while they arrive.
inline constexpr uint64_t kMinTailedTableBytes = 1u << 20;
inline constexpr uint64_t kCloneTailShare = 32;
inline constexpr uint64_t kCloneTailAlignment = 64u << 10;

// Cuts each file into parts, units of `unit_bytes`, its last one perhaps
// smaller, and behind them the tail of a table. An empty file has none.
// kRefused: more than kMaxParts units. REQUIRES: unit_bytes > 0.
[[nodiscard]] rocksdb::Status CutIntoUnits(const std::vector<CloneFile>& files,
                                           uint64_t unit_bytes,
                                           std::vector<Part>* units);

// Checks a list of files that a peer sent: each once, one MANIFEST, at most one
// OPTIONS and IDENTITY, no number that a directory cannot hold. Corruption.
[[nodiscard]] rocksdb::Status CheckCloneFiles(
    const std::vector<CloneFile>& files);

}  // namespace sstferry
