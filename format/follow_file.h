// The files that make a directory a standby, which follows a source. Its
// CURRENT names no MANIFEST. So RocksDB neither opens the directory (unless
// with best_efforts_recovery) nor creates a database in it. The two records are
// files of format/sealed_file.h. Normative text: format/FORMAT.md, "Standby".
//
//   CURRENT            kStandbyCurrent
//   sstferry.follow    "SFFOLLO1"  the cut with which the directory began;
//                                  written once, before the directory gets its
//                                  name. Refers to the MANIFEST, as CURRENT
//                                  does in a database.
//   sstferry.followed  "SFFOLPO1"  marks: how far the WALs are durable; two
//                                  slots of kFollowMarkSlotBytes, written in
//                                  turn
//
// A mark only tells a reader where to start reading. The WAL records and their
// checksums determine how far the standby has followed. If a power failure
// damages or loses a mark, the next reader reads again the WALs written since
// the previous mark. Nothing else is lost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "format/digest.h"
#include "format/messages_follow.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace sstferry {

// The contents of CURRENT in a standby. Without CURRENT, RocksDB with the
// option create_if_missing would create a database in the directory and delete
// the standby's tables. Every RocksDB refuses a CURRENT without a line end
// before it writes any file except LOG and LOCK.
inline constexpr char kStandbyCurrent[] =
    "sstferry standby: only sstferry promote makes it a database";
inline constexpr char kFollowFileName[] = "sstferry.follow";
inline constexpr char kFollowMagic[9] = "SFFOLLO1";
inline constexpr uint64_t kMaxFollowPayloadBytes = 1u << 20;
inline constexpr char kFollowMarkName[] = "sstferry.followed";
inline constexpr char kFollowMarkMagic[9] = "SFFOLPO1";
inline constexpr uint64_t kFollowMarkSlotBytes = 256;
inline constexpr uint32_t kFollowMarkSlots = 2;
inline constexpr size_t kMaxUnprovenDirs = 4;
inline constexpr size_t kMaxCutWals = 16'384;

// A WAL of a cut, and the size of its complete records at the time of the cut.
struct CutWal {
  uint64_t number = 0;
  uint64_t bytes = 0;
  friend bool operator==(const CutWal&, const CutWal&) = default;
};

// The cut with which a standby's directory began.
struct FollowFile : StandbyOrigin {
  static constexpr char kName[] = "standby record";

  // The MANIFEST, which has the same number at the source and in the standby.
  // The cut consists of its first manifest_bytes bytes, which are complete
  // records. manifest_digest is the digest of these bytes.
  uint64_t manifest_number = 0;
  uint64_t manifest_bytes = 0;
  Digest128 manifest_digest;
  // The WALs of the cut up to the newest one with a record, but at most the
  // newest kMaxCutWals. If a byte of these WALs is missing, the standby is
  // damaged.
  std::vector<CutWal> wals;
  uint64_t sequence = 0;           // sequence number of the cut
  CutReason reason = CutReason::kFirst;  // why the cut was taken
  // True if a compaction of a family with a compaction filter requires a new
  // cut.
  bool exact_filters = false;
  // Number of cuts for each reason since the standby was created.
  std::vector<uint64_t> cuts = std::vector<uint64_t>(kMaxCutReason + 1);
  friend bool operator==(const FollowFile&, const FollowFile&) = default;
};

void EncodeFollowFile(const FollowFile& record, std::string* out);
// Decodes a file. Returns Corruption unless `file` is exactly one complete
// file.
[[nodiscard]] rocksdb::Status DecodeFollowFile(const rocksdb::Slice& file,
                                               FollowFile* record);

// Position up to which a standby has the source's data.
struct StandbyPosition {
  // Number of the newest WAL with a record, as in FollowPosition; 0: there is
  // no WAL.
  uint64_t wal_number = 0;
  uint64_t wal_bytes = 0;  // up to the end of a record
  Digest128 wal{};         // only a Standby sets it; a mark does not store it
  uint64_t last_sequence = 0;
  // The standby has everything that the source had written before this time. In
  // microseconds since 1970, by the source's clock; 0: unknown.
  uint64_t read_micros = 0;
  FollowJudged judged;  // from the source's last answer
  // At some moment after this time, the source was closed and the standby had
  // everything. In microseconds since 1970, by the standby's clock; 0: unknown.
  uint64_t closed_micros = 0;
  friend bool operator==(const StandbyPosition&,
                         const StandbyPosition&) = default;
};

// A mark: the position up to which the WALs were durable at some moment.
struct FollowMark : StandbyPosition, SourceHeard {
  static constexpr char kName[] = "standby mark";

  uint64_t count = 0;          // ascending; the mark is in slot count % 2
  friend bool operator==(const FollowMark&, const FollowMark&) = default;
};

// Appends one slot of kFollowMarkSlotBytes bytes.
void EncodeFollowMark(const FollowMark& mark, std::string* out);
// Returns the newest valid mark in a file that may be truncated or damaged. If
// no mark is valid, returns a mark whose members are all 0.
FollowMark NewestFollowMark(const rocksdb::Slice& file);

}  // namespace sstferry
