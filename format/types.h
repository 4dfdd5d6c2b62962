// Types for messages and for applications. format/ sends them, and
// pipeline/include/sstferry/ exports them. This file has no messages and no
// encoding.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sstferry {

using TransferId = std::array<uint8_t, 16>;
std::string ToHex(const TransferId& id);

// Half-open key interval. An absent bound means unbounded; "" is a valid key.
struct KeyInterval {
  std::optional<std::string> begin;
  std::optional<std::string> end;
  friend bool operator==(const KeyInterval&, const KeyInterval&) = default;
};

// Compression of ChunkData frames. kNone: never. kAuto: off at first; Compress
// messages of the target switch it on and off. kZstd: always, but only for
// frames that become smaller.
enum class WireCompression : uint8_t { kNone = 0, kAuto = 1, kZstd = 2 };

// A snapshot that a source retains for a transfer.
struct RetainedSnapshot {
  // Id of the transfer. Only the transfer's own target receives the complete
  // id. Other targets receive its first bytes, then zeros.
  TransferId transfer_id{};
  std::string database;             // NAME of the served database
  uint64_t snapshot_sequence = 0;
  uint64_t age_seconds = 0;
  uint64_t ttl_left_seconds = 0;    // decreases only while readers is 0
  uint32_t readers = 0;             // connected control sessions
  uint64_t pinned_bytes = 0;        // table and blob files
  // The target's description of itself, and the subject of its certificate.
  std::string target;
  friend bool operator==(const RetainedSnapshot&,
                         const RetainedSnapshot&) = default;
};

// Reasons why a follower of a live source cannot resume at its position and
// needs a cut (a clone of the source's present state).
enum class CutReason : uint8_t {
  kNone = 0,         // the follower can resume
  kFirst = 1,        // the follower has no position yet
  kNewLife = 2,      // another MANIFEST, or a WAL became shorter
  kBarrier = 3,      // a MANIFEST record that may not be harmless
  kSequenceGap = 4,  // no WAL has entries for some sequence numbers
  kUnlogged = 5,     // tables with entries that are in no WAL
  kBlobIndex = 6,    // a batch that refers to a blob file
  kLargeRecord = 7,  // a WAL record too large for a round
  kNotHeld = 8,      // the source no longer has the WAL bytes that follow
  kFilter = 9,       // a compaction of a family with a compaction filter
  // Reasons that only the target can have. No message carries them.
  kCutEvery = 10,
  kMaxReplay = 11,
  kClock = 12,  // an archive's log: the clock was set back
  kDamage = 13,  // the standby is damaged, or differs from the source
};
inline constexpr uint8_t kMaxSourceCutReason = 9;
inline constexpr uint8_t kMaxCutReason = 13;

// Returns "first", "new-life", ..., for reports and metrics.
const char* CutReasonName(CutReason reason);

// The source of a standby, the standby's last cut, and records that the standby
// kept although the source had lost them.
struct StandbyOrigin {
  std::string source;  // address of the source, as given to the follower
  std::string source_database_id;
  uint64_t cut_micros = 0;  // time of the last cut, by the standby's clock
  // The newest case in which the source returned without some records of the
  // standby. lost_sequences is the number of lost sequence numbers. lost_dir is
  // the directory in which the standby keeps the lost records. If some of them
  // are only in tables, the directory is a database with a CURRENT; otherwise
  // it has only WALs.
  uint64_t lost_sequences = 0;
  std::string lost_dir;            // empty: it never happened
  // Directories with links to earlier WALs of the standby, oldest first. The
  // standby makes one when the source returns with another MANIFEST or with
  // shorter WALs, and it is unknown if the source still has all records of the
  // standby. The standby keeps only the newest few directories.
  std::vector<std::string> unproven_dirs;
  friend bool operator==(const StandbyOrigin&, const StandbyOrigin&) = default;
};

// State of a source: a process has its database open, no process has, or
// unknown.
enum class SourceProcess : uint8_t { kUnknown = 0, kOpen = 1, kClosed = 2 };
inline constexpr uint8_t kMaxSourceProcess = 2;

// Last contact of a standby's follower with its source. Times are in
// microseconds since 1970, by the standby's clock.
struct SourceHeard {
  // Time at which the follower began. This is the follower that received the
  // last answer, or that still waits for its first answer.
  uint64_t begun_micros = 0;
  uint64_t heard_micros = 0;  // time of the source's last answer; 0: none yet
  // State of the source according to its last answer. If the source has sent a
  // cut after this answer, kClosed becomes kUnknown (ForgetClosed()).
  SourceProcess source_process = SourceProcess::kUnknown;
  // Time at which the follower noticed that the source is silent; 0: it has not
  // noticed this since the last answer. A source is silent if the follower has
  // waited for an answer for longer than kSourceSilent (sstferry/follow.h) and
  // has received nothing, not even a reply to a ping. A follower that sends no
  // request, for example during a cut, cannot notice it.
  uint64_t silent_micros = 0;
  // Replaces kClosed by kUnknown. The bytes of a cut do not show if a process
  // has opened the source since the last answer.
  void ForgetClosed() {
    if (source_process == SourceProcess::kClosed) {
      source_process = SourceProcess::kUnknown;
    }
  }
  friend bool operator==(const SourceHeard&, const SourceHeard&) = default;
};

// A target that follows a database, as seen by its source.
struct FollowerState {
  std::string database;        // NAME of the served database
  std::string target;          // as RetainedSnapshot::target
  // Bytes of WALs that the target lacks, and the time since the target last had
  // everything.
  uint64_t behind_bytes = 0;
  uint64_t behind_millis = 0;
  uint64_t held_bytes = 0;     // WAL bytes that the source keeps for the target
  // Number of cuts that the target has begun since it connected, and the
  // source's reason for the last one. kNone: there was no cut, or the target
  // itself decided to take it.
  uint64_t cuts = 0;
  CutReason cut = CutReason::kNone;
  friend bool operator==(const FollowerState&, const FollowerState&) = default;
};

}  // namespace sstferry
