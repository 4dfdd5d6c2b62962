// Releases of RocksDB, and from which release on an application reads what
// another one wrote. This is the one place that knows: the source builds for
// the release of the application that will open the replica, whatever RocksDB
// is linked into sstferry. rocksdb/known.h has names, by release.
//
// All functions may be called from any thread.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "rocksdb/slice.h"

namespace sstferry {

// 0.0.0: not known.
struct RocksDbRelease {
  uint32_t major = 0;
  uint32_t minor = 0;
  uint32_t patch = 0;
  bool is_known() const { return major != 0; }
  friend auto operator<=>(const RocksDbRelease&,
                          const RocksDbRelease&) = default;
};

// Returns "10.4.2", or "10.4" where the patch is 0; "" if it is not known, and
// "(unknown)" for that of a format_version which no known release reads.
std::string ReleaseName(const RocksDbRelease& release);

// Returns all three numbers, "10.4.0", as an OPTIONS file has them.
std::string ReleaseNumbers(const RocksDbRelease& release);

// Parses "10", "10.4" or "10.4.2", as OPTIONS files and operators write them;
// each number is at most 9999, and what follows a third number is ignored only
// behind a dot or a dash ("8.1.1-fork"). False: not a release.
[[nodiscard]] bool ParseRelease(const rocksdb::Slice& text,
                                RocksDbRelease* release);

// The first releases that read what their names say. Sources: HISTORY.md of
// RocksDB, and its code where that is silent.
inline constexpr RocksDbRelease kReadsXxh3Checksums{6, 27, 0};
inline constexpr RocksDbRelease kReadsBlobFiles{6, 18, 0};
inline constexpr RocksDbRelease kReadsCompressedWals{7, 1, 0};
// Record types 10 and 11, for sizes of user-defined timestamps.
inline constexpr RocksDbRelease kReadsTimestampRecords{8, 3, 0};
// Tables whose keys lack their timestamps.
inline constexpr RocksDbRelease kReadsStrippedTimestamps{8, 6, 0};
// Below it, reading an ingested table that holds a wide-column entity ends the
// process (in builds with assertions).
inline constexpr RocksDbRelease kReadsIngestedEntities{8, 6, 0};
// Record types from 128 on may be ignored.
inline constexpr RocksDbRelease kIgnoresWalRecords{10, 0, 0};
// Blocks that store values apart from keys, and uniform index blocks; older
// releases report them as damaged.
inline constexpr RocksDbRelease kReadsMarkedBlocks{11, 1, 0};

// Returns the highest format_version of block-based tables that it reads. 8 can
// be asked for from 11.10 on; no release writes it unless an application does.
// REQUIRES: the release is known.
constexpr uint32_t MaxFormatVersion(const RocksDbRelease& release) {
  return release >= RocksDbRelease{11, 10, 0}  ? 8
         : release >= RocksDbRelease{10, 4, 0} ? 7
         : release >= RocksDbRelease{8, 6, 0}  ? 6
         : release >= RocksDbRelease{6, 6, 0}  ? 5
         : release >= RocksDbRelease{5, 16, 0} ? 4
         : release >= RocksDbRelease{5, 15, 0} ? 3
                                        : 2;
}

// Returns the first release that reads tables of this format_version. One that
// no release is known to read gives one above all.
RocksDbRelease FirstWithFormat(uint32_t format_version);

// Something that files hold, and the first release that reads it.
struct Need {
  RocksDbRelease release;
  std::string what;  // "format_version 7"
};

// Finds what files ask of the RocksDB that opens them: the need that the latest
// release is the first to meet. Without needs every release since 6.6 opens
// them.
class Needs {
 public:
  void Add(const RocksDbRelease& release, const std::string& what);
  void AddFormatVersion(uint32_t format_version);
  // A type of WAL record (`rocksdb/log_format.h`). Other types than those of
  // records with data tell a release what it must know.
  void AddWalRecord(uint8_t type);

  const RocksDbRelease& release() const { return latest_.release; }
  const std::string& what() const { return latest_.what; }

 private:
  Need latest_;
};

}  // namespace sstferry
