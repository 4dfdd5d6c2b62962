// Releases of RocksDB, and the first release that can read each format feature.
// All such facts are in this file; rocksdb/known.h lists names by release. A
// source builds files for the RocksDB release of the application that will open
// the replica. This release may be older than the RocksDB linked into sstferry.
//
// All functions may be called from any thread.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "rocksdb/slice.h"

namespace sstferry {

// A release of RocksDB. 0.0.0: unknown.
struct RocksDbRelease {
  uint32_t major = 0;
  uint32_t minor = 0;
  uint32_t patch = 0;
  bool is_known() const { return major != 0; }
  friend auto operator<=>(const RocksDbRelease&,
                          const RocksDbRelease&) = default;
};

// Returns "10.4.2", or "10.4" if the patch number is 0. Returns "" for an
// unknown release. Returns "(unknown)" for the result of FirstWithFormat() if
// no known release can read the format_version.
std::string ReleaseName(const RocksDbRelease& release);

// Returns all three numbers, such as "10.4.0", as in an OPTIONS file.
std::string ReleaseNumbers(const RocksDbRelease& release);

// Parses "10", "10.4" or "10.4.2", as written in OPTIONS files and by
// operators. Each number is at most 9999. Ignores text after a third number if
// a dot or a dash precedes it ("8.1.1-fork"). Returns false if the text is not
// a release.
[[nodiscard]] bool ParseRelease(const rocksdb::Slice& text,
                                RocksDbRelease* release);

// First releases that can read a feature; the name of a constant names the
// feature. Sources: RocksDB's HISTORY.md, or its code if HISTORY.md does not
// name the feature.
inline constexpr RocksDbRelease kReadsXxh3Checksums{6, 27, 0};
inline constexpr RocksDbRelease kReadsBlobFiles{6, 18, 0};
inline constexpr RocksDbRelease kReadsCompressedWals{7, 1, 0};
// Record types 10 and 11: sizes of user-defined timestamps.
inline constexpr RocksDbRelease kReadsTimestampRecords{8, 3, 0};
// Tables whose keys are stored without timestamps.
inline constexpr RocksDbRelease kReadsStrippedTimestamps{8, 6, 0};
// Older releases abort (in builds with assertions) when they read an ingested
// table that contains a wide-column entity.
inline constexpr RocksDbRelease kReadsIngestedEntities{8, 6, 0};
// Wide-column entities, in WALs and in tables.
inline constexpr RocksDbRelease kReadsEntities{7, 5, 0};
// Values with a write time (WriteBatch::TimedPut). RocksDB 8.11 defines their
// type, but cannot replay them.
inline constexpr RocksDbRelease kReadsTimedPuts{9, 1, 0};
// Wide-column entities of version 2, whose columns may be in blob files.
inline constexpr RocksDbRelease kReadsBlobColumns{11, 0, 0};
// Tables that contain their blobs themselves
// (SstFileWriter::OpenWithEmbeddedBlobs()).
inline constexpr RocksDbRelease kReadsEmbeddedBlobs{11, 6, 0};
// Wide-column entities of prepared transactions in WALs. Older releases replay
// such an entity as a plain value that contains the encoded columns.
inline constexpr RocksDbRelease kReadsPreparedEntities{9, 4, 0};
// This release and later ones ignore unknown types of WAL records from 128 on.
inline constexpr RocksDbRelease kIgnoresWalRecords{10, 0, 0};
// Blocks that store values separately from keys, and uniform index blocks.
// Older releases report such blocks as damaged.
inline constexpr RocksDbRelease kReadsMarkedBlocks{11, 1, 0};

// This release and later ones read no block-based tables of format_version 0 or
// 1.
inline constexpr RocksDbRelease kDropsOldFormats{11, 0, 0};

// Since this release, RocksDB also recycles WALs with kPointInTimeRecovery. A
// recycled file may contain old records, and recovery stops at the first one.
inline constexpr RocksDbRelease kStopsAtOldRecords{9, 1, 0};

// Returns the highest format_version of block-based tables that a release can
// read. An application can choose 8 since 11.10; no release writes 8 by
// default. REQUIRES: the release is known.
constexpr uint32_t MaxFormatVersion(const RocksDbRelease& release) {
  return release >= RocksDbRelease{11, 10, 0}  ? 8
         : release >= RocksDbRelease{10, 4, 0} ? 7
         : release >= RocksDbRelease{8, 6, 0}  ? 6
         : release >= RocksDbRelease{6, 6, 0}  ? 5
         : release >= RocksDbRelease{5, 16, 0} ? 4
         : release >= RocksDbRelease{5, 15, 0} ? 3
                                        : 2;
}

// Returns the first release that can read tables of this format_version. If no
// known release can, returns a release above all others.
RocksDbRelease FirstWithFormat(uint32_t format_version);

// The first release that writes wal_dir into OPTIONS only if the WALs are in
// another directory than the database. Earlier releases always write it
// (facebook/rocksdb#8582).
inline constexpr RocksDbRelease kNamesOnlyOtherWalDirs{6, 24, 0};

// A feature of files, and the first release that can read it.
struct Need {
  RocksDbRelease release;
  std::string what;  // "format_version 7"
};

// Finds the RocksDB releases that can open a set of files. The first one is the
// highest release that a feature of the files requires. If the files have an
// old format, kDropsOldFormats and later releases cannot open them. If no
// feature was added, every release since 6.6 can open the files.
class Needs {
 public:
  void Add(const RocksDbRelease& release, const std::string& what);
  // Adds a block-based table of this format_version.
  void AddFormatVersion(uint32_t format_version);
  // Adds the release that is required by WAL records of this type
  // (`rocksdb/log_format.h`). Every release can read the types of data records.
  void AddWalRecord(uint8_t type);

  const RocksDbRelease& release() const { return latest_.release; }
  const std::string& what() const { return latest_.what; }
  // Returns true if tables have a format_version that RocksDB reads only before
  // kDropsOldFormats.
  bool has_old_formats() const { return has_old_formats_; }

 private:
  Need latest_;
  bool has_old_formats_ = false;
};

}  // namespace sstferry
