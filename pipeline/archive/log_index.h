// Index of the log of an archive: its segments, how they continue each other,
// and which times can be restored from them.
//
// Lineages form a tree: a restarted follower begins a new lineage, which
// continues the last segment that the follower found. So several paths may
// follow a set; each of them contains what the source wrote. Segment names
// contain the times. Only the first and the last head of each lineage are read:
// they say what the lineage continues and why it ended. A restore does not rely
// on this index, but reads all heads of its path (log_reader.h).
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

// A committed set with a log after it.
struct LoggedSet {
  SetName name;
  uint64_t sequence = 0;
  SetLog log;
};

// Consecutive segments after a set, and the reason why no further one follows.
struct LogPath {
  std::vector<LogKey> segments;
  CutReason ended = CutReason::kNone;
  // A sentence about the end: "barrier: ...", "segment 12 is missing"; empty if
  // the log may continue.
  std::string why;
};

// Consecutive segments of one lineage. As a list of runs, a path takes little
// memory even if the log is long.
struct LogRun {
  SetId lineage{};
  uint64_t begin = 0;  // the first segment
  uint64_t end = 0;    // after the last one
};
struct LogRuns {
  std::vector<LogRun> runs;
  CutReason ended = CutReason::kNone;
  std::string why;
};

// A period without gaps that can be restored.
struct LogWindow {
  uint64_t begin_micros = 0;
  uint64_t end_micros = 0;
  std::string why;  // reason why it ended; empty: it has not ended
  SetName set;      // the first set from which it is restored
};

struct ArchiveLog {
  struct Lineage {
    std::map<uint64_t, LogKey> segments;
    // Segment that this lineage's first segment continues; number 0: none.
    SetId parent{};
    uint64_t parent_number = 0;
    CutReason ended = CutReason::kNone;
    std::string note;
    // Set if a head cannot be read, or if segments before the first one are
    // lost: what they continued is unknown.
    std::string problem;
    bool is_damaged = false;  // false: `problem` is only another key
  };

  std::vector<LoggedSet> sets;  // in the order of their moments
  std::map<SetId, Lineage> lineages;
  uint64_t bytes = 0;    // size of all segments
  uint64_t foreign = 0;  // objects with other names

  // Returns the number of the first segment of a lineage; 0: it has none.
  uint64_t FirstSegment(const SetId& lineage) const;
  // Returns, for each lineage, the lineage with which its log begins. Includes
  // the lineages of sets that no segment follows.
  std::map<SetId, SetId> Roots() const;
  // Passes the paths after a set to `take`, the most recently begun first,
  // until `take` returns false. Each path starts with the segment that `log`
  // names. There is at least one path. Each restart of a follower may add a
  // path, so only one is in memory.
  void PathsOf(const SetLog& log,
               const std::function<bool(const LogPath&)>& take) const;
  // Returns the windows of one path after a set.
  std::vector<LogWindow> WindowsOf(const LoggedSet& set,
                                   const LogPath& path) const;
  // Returns all windows, the oldest first, with gaps between those of one log.
  // Examines few segments twice, however many sets there are. *looks, which may
  // be null, receives the number of examined segments.
  std::vector<LogWindow> Windows(uint64_t* looks = nullptr) const;
};

// Finds the paths after many sets of a log, which must not change meanwhile.
class LogPaths {
 public:
  explicit LogPaths(const ArchiveLog& log);
  // Passes the paths to `take`, like ArchiveLog::PathsOf().
  void Of(const SetLog& after,
          const std::function<bool(const LogRuns&)>& take) const;
  LogPath Expand(const LogRuns& path) const;
  // Returns the last segment of a path. REQUIRES: the path has a segment.
  const LogKey& LastOf(const LogRuns& path) const;

 private:
  // Returns the number after the last segment that follows without a gap.
  uint64_t EndOfRun(const SetId& lineage, uint64_t begin) const;

  const ArchiveLog& log_;
  std::map<SetId, std::vector<SetId>> continuing_;  // by the lineage before
  std::map<SetId, std::map<uint64_t, uint64_t>> ends_;  // of runs, by begin
};

// Returns the periods that are in exactly one of the windows.
std::vector<LogWindow> ClearPeriods(const std::vector<LogWindow>& windows);

// Lists all segments. log->sets stays empty.
[[nodiscard]] rocksdb::Status ListLog(const Archive& archive, ArchiveLog* log);
// Lists all segments, and reads the sets that they continue. A set with a
// damaged record is left out, and so is one that a repair replaced, unless it
// is `named`: the repaired set has the same log.
[[nodiscard]] rocksdb::Status ReadLog(const Archive& archive, ArchiveLog* log,
                                      std::optional<SetName> named = {});

// Reads the head of a segment; *digest is the head's SHA-256, *bytes its size.
// Reads again, up to twice, if the bytes are wrong.
//   kCorrupt   the head is damaged or belongs to another segment; or the
//              archive has a key, but the head is not sealed with it
//   kRefused   there is no such object
[[nodiscard]] rocksdb::Status ReadLogHead(const Archive& archive,
                                          const LogKey& key, LogHead* head,
                                          Sha256Digest* digest,
                                          uint64_t* bytes);

// Passes bytes [offset, offset + bytes) of the payload of this head's segment
// to `sink`, in order. kDamaged: the bytes differ from those that were put;
// wrong bytes may already have been passed. Without a key, a sealed payload is
// passed in its encrypted form.
StoreResult ReadLogPayload(const Archive& archive, const LogHead& head,
                           uint64_t head_bytes, uint64_t offset,
                           uint64_t bytes, const ObjectSink& sink);

// Formats a time as "2026-11-24T14:03:20.000123Z".
std::string LogTimeText(uint64_t micros);
// Parses such a text, with at most six fractional digits, or the form
// "20261124T140320Z".
[[nodiscard]] bool ParseLogTime(const std::string& text, uint64_t* micros);

}  // namespace sstferry
