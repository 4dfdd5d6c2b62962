// The two files by which a directory is a standby: one that follows a source
// and that nothing opens, because it has no CURRENT. Normative text:
// format/FORMAT.md, "Standby". Both are files of format/sealed_file.h.
//
//   sstferry.follow    "SFFOLLO1"  what the directory was cut from; written
//                                  once, before the directory gets its name.
//                                  It names the MANIFEST in CURRENT's place.
//   sstferry.followed  "SFFOLPO1"  how far the WALs are durable; two slots of
//                                  kFollowMarkSlotBytes, written by turns
//
// A mark is only where a reader may begin: the records of the WALs themselves,
// by their checksums, say how far the standby has come. So a mark that is torn,
// or that a power cut took back, costs the time to read what came after it.
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

inline constexpr char kFollowFileName[] = "sstferry.follow";
inline constexpr char kFollowMagic[9] = "SFFOLLO1";
inline constexpr uint64_t kMaxFollowPayloadBytes = 64u << 10;
inline constexpr char kFollowMarkName[] = "sstferry.followed";
inline constexpr char kFollowMarkMagic[9] = "SFFOLPO1";
inline constexpr uint64_t kFollowMarkSlotBytes = 256;
inline constexpr uint32_t kFollowMarkSlots = 2;
inline constexpr size_t kMaxUnprovenDirs = 4;

// The cut that a standby's directory began with.
struct FollowFile {
  static constexpr char kName[] = "standby record";

  std::string source;              // as the follower was told
  std::string source_database_id;
  // The MANIFEST, which has the same number at the source and here. There its
  // first manifest_bytes, whole records, are the cut's, with this digest.
  uint64_t manifest_number = 0;
  uint64_t manifest_bytes = 0;
  Digest128 manifest_digest;
  uint64_t sequence = 0;           // of the cut
  uint64_t cut_micros = 0;         // since 1970, by the standby's clock
  CutReason reason = CutReason::kFirst;  // of the cut
  // Compactions of families with a compaction filter ask for the next one.
  bool exact_filters = false;
  // The number of cuts by reason, since the standby was made.
  std::vector<uint64_t> cuts = std::vector<uint64_t>(kMaxCutReason + 1);
  // A source came back with less than the standby had: how many sequences,
  // and where the WALs that hold them are kept; the last time that it happened.
  uint64_t lost_sequences = 0;
  std::string lost_dir;            // empty: never
  // The WALs as they were when the source began another life that did not show
  // whether it has all of them, the oldest first.
  std::vector<std::string> unproven_dirs;
  friend bool operator==(const FollowFile&, const FollowFile&) = default;
};

void EncodeFollowFile(const FollowFile& record, std::string* out);
// Corruption: not exactly one whole file.
[[nodiscard]] rocksdb::Status DecodeFollowFile(const rocksdb::Slice& file,
                                               FollowFile* record);

// How far the WALs were durable at some moment.
struct FollowMark {
  static constexpr char kName[] = "standby mark";

  uint64_t count = 0;          // grows; a mark is in slot count % 2
  uint64_t wal_number = 0;     // 0: there was none
  uint64_t wal_bytes = 0;      // whole records
  uint64_t last_sequence = 0;
  // By the source's clock, since 1970: all that the source had then is here.
  uint64_t read_micros = 0;
  // By the standby's clock, since 1970: the source was closed at some time after
  // this, with all of it here. 0: that is not known.
  uint64_t closed_micros = 0;
  FollowJudged judged;
  // By the standby's clock, since 1970: when the follower that wrote this
  // began, and when it, or one before it, got the source's last answer; 0: never.
  uint64_t begun_micros = 0;
  uint64_t heard_micros = 0;
  // That answer said that a process has the source open.
  bool source_open = false;
  friend bool operator==(const FollowMark&, const FollowMark&) = default;
};

// Appends a slot, kFollowMarkSlotBytes long.
void EncodeFollowMark(const FollowMark& mark, std::string* out);
// Finds the newest mark in a file that may be short or damaged; none: all
// members are 0.
FollowMark NewestFollowMark(const rocksdb::Slice& file);

}  // namespace sstferry
