// Types that both the wire and applications use: format/ sends them, and
// pipeline/include/sstferry/ exports them. No messages and no encoding.
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

// Compression of ChunkData frames. kNone: never. kAuto: off at first, then
// switched by the target's Compress messages. kZstd: always, where it saves
// bytes.
enum class WireCompression : uint8_t { kNone = 0, kAuto = 1, kZstd = 2 };

// A snapshot that a source retains for a transfer.
struct RetainedSnapshot {
  // Complete only for its own target; others get its first bytes, then zeros.
  TransferId transfer_id{};
  std::string database;             // NAME of the served database
  uint64_t snapshot_sequence = 0;
  uint64_t age_seconds = 0;
  uint64_t ttl_left_seconds = 0;    // runs only while readers is 0
  uint32_t readers = 0;             // connected control sessions
  uint64_t pinned_bytes = 0;        // table and blob files
  // The target's description of itself, and the subject of its certificate.
  std::string target;
  friend bool operator==(const RetainedSnapshot&,
                         const RetainedSnapshot&) = default;
};

// Why a follower of a live source cannot resume at its position and needs a
// cut, that is, a clone of the source's present state.
enum class CutReason : uint8_t {
  kNone = 0,         // it can resume
  kFirst = 1,        // it has no position yet
  kNewLife = 2,      // another MANIFEST, or a WAL became shorter
  kBarrier = 3,      // a MANIFEST record that may not be harmless
  kSequenceGap = 4,  // no WAL has entries for some sequence numbers
  kUnlogged = 5,     // tables with entries that are in no WAL
  kBlobIndex = 6,    // a batch that refers to a blob file
  kLargeRecord = 7,  // a WAL record too large for a round
  kNotHeld = 8,      // the source no longer has WAL bytes from its position on
  kFilter = 9,       // a compaction of a family with a compaction filter
  // The target's own reasons, which no message carries.
  kCutEvery = 10,
  kMaxReplay = 11,
  kClock = 12,  // an archive's log: the clock was set back
  kDamage = 13,  // the standby is known to be damaged, or to differ
};
inline constexpr uint8_t kMaxSourceCutReason = 9;
inline constexpr uint8_t kMaxCutReason = 13;

// Returns "first", "new-life", ..., for reports and metrics.
const char* CutReasonName(CutReason reason);

// The source of a standby, the standby's last cut, and what it kept of data
// that its source did not have.
struct StandbyOrigin {
  std::string source;              // address given to its follower
  std::string source_database_id;
  uint64_t cut_micros = 0;         // time of the last cut, by DIR's clock
  // Describes the last time that the source returned without some records of
  // the standby: the number of lost sequence numbers, and the directory that
  // keeps these records. If some records are only in tables, the directory is a
  // database and has a CURRENT; otherwise it has only WALs.
  uint64_t lost_sequences = 0;
  std::string lost_dir;            // empty: it never happened
  // Directories with links to earlier WALs of the standby, oldest first. One is
  // made each time the source returns with another MANIFEST or shorter WALs, if
  // it is unknown whether the source still has all records of the standby. Only
  // the newest few remain.
  std::vector<std::string> unproven_dirs;
  friend bool operator==(const StandbyOrigin&, const StandbyOrigin&) = default;
};

// Knowledge about a process that has a source's database open.
enum class SourceProcess : uint8_t { kUnknown = 0, kOpen = 1, kClosed = 2 };
inline constexpr uint8_t kMaxSourceProcess = 2;

// Last contact of a standby's follower with its source. Times by DIR's clock,
// in microseconds since 1970.
struct SourceHeard {
  // Start of the follower that received the last answer, or that still waits
  // for its first answer.
  uint64_t begun_micros = 0;
  uint64_t heard_micros = 0;  // the source's last answer; 0: no answer yet
  // State of the source according to the last answer. If the source has sent
  // only a cut since then, kClosed becomes kUnknown (ForgetClosed()).
  SourceProcess source_process = SourceProcess::kUnknown;
  // Time at which the follower noticed that the source is silent: it had waited
  // for an answer for longer than kSourceSilent (sstferry/follow.h), and the
  // source had sent nothing, not even a reply to a ping. 0: not since the last
  // answer. While a follower sends no request, for example during a cut that
  // the source requires, it cannot notice this.
  uint64_t silent_micros = 0;
  // Forgets that no process has the source open: bytes of a cut do not show
  // whether a process has opened it since the last answer.
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
  // Bytes of WALs that the target lacks, and the time since it last had
  // everything.
  uint64_t behind_bytes = 0;
  uint64_t behind_millis = 0;
  uint64_t held_bytes = 0;     // WAL bytes that the source keeps for it
  // Number of cuts that the target has begun since it connected, and the
  // source's reason for the last cut; kNone: no cut, or the follower's own
  // decision.
  uint64_t cuts = 0;
  CutReason cut = CutReason::kNone;
  friend bool operator==(const FollowerState&, const FollowerState&) = default;
};

}  // namespace sstferry
