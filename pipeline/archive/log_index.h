// Index of the log of an archive: its segments, how they continue each other,
// and which times can be restored from them.
//
// Lineages form a tree: a restarted follower continues the last segment that it
// found. So there may be more than one path after a set, and each of them is
// what the source wrote. The times are in the names; of each lineage two heads
// are read, for what it continues and why it ended. A restore does not rely on
// this index, but reads the heads of its path (log_reader.h).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "format/archive_log.h"
#include "format/archive_set.h"
#include "pipeline/archive/archive.h"
#include "rocksdb/status.h"

namespace sstferry {

// A set that counts and that the log continues.
struct LoggedSet {
  SetName name;
  uint64_t sequence = 0;
  SetLog log;
};

// Segments after a set, in order, and why there is no further one.
struct LogPath {
  std::vector<LogKey> segments;
  CutReason ended = CutReason::kNone;
  // A sentence about the end: "barrier: ...", "segment 12 is missing"; empty if
  // the log may continue.
  std::string why;
};

// A period without gaps that can be restored.
struct LogWindow {
  uint64_t begin_micros = 0;
  uint64_t end_micros = 0;
  std::string why;  // reason of its end; empty: the log continues
  SetName set;      // the first set that is restored
};

struct ArchiveLog {
  struct Lineage {
    std::map<uint64_t, LogKey> segments;
    // The segment that its first one continues; number 0: none.
    SetId parent{};
    uint64_t parent_number = 0;
    CutReason ended = CutReason::kNone;
    std::string note;
    std::string problem;  // set if a head cannot be read
  };

  std::vector<LoggedSet> sets;  // ascending by moment
  std::map<SetId, Lineage> lineages;
  uint64_t bytes = 0;    // of all segments
  uint64_t foreign = 0;  // objects with other names

  // Returns the paths after a set, the most recently begun first. Each has the
  // segments from that of the set on. There is always one.
  std::vector<LogPath> PathsOf(const SetLog& log) const;
  // Returns the windows of one path after a set.
  std::vector<LogWindow> WindowsOf(const LoggedSet& set,
                                   const LogPath& path) const;
  // Returns all windows, the oldest first. They do not touch each other.
  std::vector<LogWindow> Windows() const;
};

// Lists all segments. *log has no sets.
[[nodiscard]] rocksdb::Status ListLog(const Archive& archive, ArchiveLog* log);
// Lists all segments, and reads the sets that they continue. A set with a
// damaged record is left out.
[[nodiscard]] rocksdb::Status ReadLog(const Archive& archive, ArchiveLog* log);

// Reads the head of a segment; *digest is its SHA-256, *bytes its size. Wrong
// bytes are read again twice.
//   kCorrupt   the head is damaged or that of another segment; or the archive
//              has a key with which it was not sealed
//   kRefused   there is no such object
[[nodiscard]] rocksdb::Status ReadLogHead(const Archive& archive,
                                          const LogKey& key, LogHead* head,
                                          Sha256Digest* digest,
                                          uint64_t* bytes);

// Passes bytes [offset, offset + bytes) of the payload after such a head to
// `sink`, in order. kDamaged: they are not what was put, which may be noticed
// after they were passed. Without a key a sealed payload is passed as it is in
// the object.
StoreResult ReadLogPayload(const Archive& archive, const LogHead& head,
                           uint64_t head_bytes, uint64_t offset,
                           uint64_t bytes, const ObjectSink& sink);

// Formats a time as "2026-11-24T14:03:20.000123Z".
std::string LogTimeText(uint64_t micros);
// Parses such a text, with at most six digits of a second or none, or
// "20261124T140320Z".
[[nodiscard]] bool ParseLogTime(const std::string& text, uint64_t* micros);

}  // namespace sstferry
