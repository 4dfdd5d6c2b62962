// The files that make a directory a standby: it follows a source, and no
// RocksDB opens it, or makes a database in it, because its CURRENT names no
// MANIFEST. Normative text: format/FORMAT.md, "Standby". The two records are
// files of format/sealed_file.h.
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
// A mark is only a hint where to start reading. The WAL records themselves,
// with their checksums, determine how far the standby has followed. If a power
// failure tears or loses a mark, the only cost is to read again the WALs
// written since the previous mark.
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

// The contents of CURRENT in a standby. Without a CURRENT, RocksDB's option
// create_if_missing would make a database there and delete the standby's
// tables. Every RocksDB refuses a CURRENT without a line end before it writes
// anything but LOG and LOCK.
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

// The end of the complete records of a WAL, as of a cut.
struct CutWal {
  uint64_t number = 0;
  uint64_t bytes = 0;
  friend bool operator==(const CutWal&, const CutWal&) = default;
};

// The cut with which a standby's directory began.
struct FollowFile : StandbyOrigin {
  static constexpr char kName[] = "standby record";

  // The MANIFEST, which has the same number at the source and in the standby.
  // The cut consists of its first manifest_bytes (complete records), which have
  // this digest.
  uint64_t manifest_number = 0;
  uint64_t manifest_bytes = 0;
  Digest128 manifest_digest;
  // The cut's WALs, up to the newest one with a record; if there are more than
  // kMaxCutWals, only the newest. If one of these bytes is missing, the standby
  // is damaged.
  std::vector<CutWal> wals;
  uint64_t sequence = 0;           // sequence number of the cut
  CutReason reason = CutReason::kFirst;  // why the cut was taken
  // If true, a compaction of a family with a compaction filter requires a new
  // cut.
  bool exact_filters = false;
  // Number of cuts by reason, since the standby was made.
  std::vector<uint64_t> cuts = std::vector<uint64_t>(kMaxCutReason + 1);
  friend bool operator==(const FollowFile&, const FollowFile&) = default;
};

void EncodeFollowFile(const FollowFile& record, std::string* out);
// Decodes a file. Corruption: not exactly one complete file.
[[nodiscard]] rocksdb::Status DecodeFollowFile(const rocksdb::Slice& file,
                                               FollowFile* record);

// End of the data in a standby.
struct StandbyPosition {
  // As in a FollowPosition: the newest WAL with a record. 0: there is no WAL.
  uint64_t wal_number = 0;
  uint64_t wal_bytes = 0;  // up to the end of a record
  Digest128 wal{};         // set only by a Standby; no mark has it
  uint64_t last_sequence = 0;
  // The standby has everything that the source had written up to this time, by
  // the source's clock, since 1970; 0: unknown.
  uint64_t read_micros = 0;
  FollowJudged judged;  // from the source's last answer
  // At some time after this one (by the standby's clock, since 1970), the
  // source was closed, and the standby had everything. 0: unknown.
  uint64_t closed_micros = 0;
  friend bool operator==(const StandbyPosition&,
                         const StandbyPosition&) = default;
};

// A mark: how far the WALs were durable at some moment.
struct FollowMark : StandbyPosition, SourceHeard {
  static constexpr char kName[] = "standby mark";

  uint64_t count = 0;          // ascending; the mark is in slot count % 2
  friend bool operator==(const FollowMark&, const FollowMark&) = default;
};

// Appends one slot of kFollowMarkSlotBytes bytes.
void EncodeFollowMark(const FollowMark& mark, std::string* out);
// Finds the newest mark in a file that may be truncated or damaged. Without a
// valid mark, returns a mark whose members are all 0.
FollowMark NewestFollowMark(const rocksdb::Slice& file);

}  // namespace sstferry
