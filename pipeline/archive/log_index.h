// Index of the log of an archive. It shows how the segments continue each
// other, and which times can be restored.
//
// A restarted follower begins a new lineage, whose first segment continues the
// last segment that the follower found. So lineages form a tree, and several
// paths through it may follow a set. Each path contains what the source wrote.
// The names of segments contain their times. The index reads only the head of
// the first segment, which shows what the lineage continues, and the head of
// the last one, which shows why the lineage ended. A restore does not rely on
// the index, but reads all heads of its path (log_reader.h).
//
// Lineages that continue each other are one log, whose times ascend. The times
// of two logs overlap only if a clock was wrong, or two followers ran at once.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "format/archive_log.h"
#include "format/archive_set.h"
#include "pipeline/archive/archive.h"
#include "rocksdb/status.h"

namespace sstferry {

// A committed set that a log continues.
struct LoggedSet {
  SetName name;
  uint64_t sequence = 0;
  SetLog log;
};

// Consecutive segments after a set.
struct LogPath {
  std::vector<LogKey> segments;
  CutReason ended = CutReason::kNone;
  // Why no segment follows: "barrier: ...", "segment 12 is missing"; empty: the
  // log may continue.
  std::string why;
};

// Consecutive segments of one lineage, by their numbers. A path can be stored
// as a list of runs, which takes little memory even if the log is long.
struct LogRun {
  SetId lineage{};
  uint64_t begin = 0;  // number of the first segment
  uint64_t end = 0;    // number of the last segment + 1
};
struct LogRuns {
  std::vector<LogRun> runs;
  CutReason ended = CutReason::kNone;
  std::string why;
};

// A period without gaps. Every time in it can be restored.
struct LogWindow {
  uint64_t begin_micros = 0;
  uint64_t end_micros = 0;
  std::string why;  // why the period ended; empty: it goes on
  SetName set;      // the earliest set from which the period is restored
};

struct ArchiveLog {
  struct Lineage {
    std::map<uint64_t, LogKey> segments;
    // The lineage and number of the segment that the first segment of this
    // lineage continues; number 0: it continues none.
    SetId parent{};
    uint64_t parent_number = 0;
    CutReason ended = CutReason::kNone;
    std::string note;
    // Set if a head cannot be read. Also set if the first segments are lost, so
    // that it is unknown which lineage they continued.
    std::string problem;
    // False if `problem` only says that a head is not sealed with the archive's
    // key.
    bool is_damaged = false;
  };

  std::vector<LoggedSet> sets;  // in the order of log.moment_micros
  // True if the record of a committed set could be read, with or without a log,
  // and with the archive's key if it has one.
  bool has_own_set = false;
  std::map<SetId, Lineage> lineages;
  uint64_t bytes = 0;    // total size of all segments
  uint64_t foreign = 0;  // number of objects that are no segments

  // Returns the number of a lineage's first existing segment; 0: it has none.
  uint64_t FirstSegment(const SetId& lineage) const;
  // Maps each lineage to the first lineage of its log. Includes the lineages of
  // sets that no segment follows yet.
  std::map<SetId, SetId> Roots() const;
  // Passes the paths after a set to `take`, the most recent first, until `take`
  // returns false. `log` is the set's position in the log. Each path begins
  // with the segment log.segment. There is at least one path, which may be
  // empty. Only one path is in memory, because each restart of a follower may
  // add a path.
  void PathsOf(const SetLog& log,
               const std::function<bool(const LogPath&)>& take) const;
  // Returns the restorable periods that one path after a set provides. If no
  // segment ends after the set's moment, this moment is the only period.
  std::vector<LogWindow> WindowsOf(const LoggedSet& set,
                                   const LogPath& path) const;
  // Returns all restorable periods, the oldest first. Periods of the same log
  // do not overlap. Examines few segments twice, even if there are many sets.
  // If `looks` is not null, *looks receives the number of segments that were
  // examined.
  std::vector<LogWindow> Windows(uint64_t* looks = nullptr) const;
};

// Finds the paths after many sets. The log must not change while this object
// exists.
class LogPaths {
 public:
  explicit LogPaths(const ArchiveLog& log);
  // Passes the paths after a set to `take`, like ArchiveLog::PathsOf().
  void Of(const SetLog& after,
          const std::function<bool(const LogRuns&)>& take) const;
  LogPath Expand(const LogRuns& path) const;
  // Returns the last segment of a path. REQUIRES: the path has a segment.
  const LogKey& LastOf(const LogRuns& path) const;

 private:
  // Returns the number after the last consecutive segment, beginning with
  // segment `begin`. Returns `begin` if this segment does not exist.
  uint64_t EndOfRun(const SetId& lineage, uint64_t begin) const;

  const ArchiveLog& log_;
  // Maps a lineage to the lineages that continue it.
  std::map<SetId, std::vector<SetId>> continuing_;
  // For each lineage, maps the first segment of each series of consecutive
  // segments to the number after its last segment.
  std::map<SetId, std::map<uint64_t, uint64_t>> ends_;
};

// Returns the periods that belong to exactly one of the windows.
std::vector<LogWindow> ClearPeriods(const std::vector<LogWindow>& windows);

// Lists all segments. Leaves log->sets empty.
[[nodiscard]] rocksdb::Status ListLog(const Archive& archive, ArchiveLog* log);
// Lists all segments, and reads the sets that they continue. Leaves out a set
// with a damaged record. Leaves out a set that a repair replaced, because the
// new set has the same log, unless the set is `named`.
[[nodiscard]] rocksdb::Status ReadLog(const Archive& archive, ArchiveLog* log,
                                      std::optional<SetName> named = {});

// Reads the head of a segment. Sets *digest to the SHA-256 of the head, and
// *bytes to its size. If the bytes are wrong, reads them again, up to
// kTriesOfBytes times in all.
[[nodiscard]] rocksdb::Status ReadLogHead(const Archive& archive,
                                          const LogKey& key, LogHead* head,
                                          Sha256Digest* digest,
                                          uint64_t* bytes);

// Passes the bytes [offset, offset + bytes) of a segment's payload to `sink`,
// in order. Without a key, passes a sealed payload in its encrypted form.
// kDamaged: the bytes differ from those that were put. `sink` may have received
// wrong bytes.
StoreResult ReadLogPayload(const Archive& archive, const LogHead& head,
                           uint64_t head_bytes, uint64_t offset,
                           uint64_t bytes, const ObjectSink& sink);

// Formats a time as "2026-11-24T14:03:20.000123Z".
std::string LogTimeText(uint64_t micros);
// Parses a time like "2026-11-24T14:03:20.000123Z", with up to six fractional
// digits, or like "20261124T140320Z". Returns false for other texts.
[[nodiscard]] bool ParseLogTime(const std::string& text, uint64_t* micros);

}  // namespace sstferry
