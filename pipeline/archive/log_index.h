// The log of an archive: which segments are there, how they continue each
// other, and which times can be restored by them.
//
// Lineages form a tree: a follower that was started again continues the last
// segment that it found. So behind a set there may be more than one path, and
// each of them is what the source wrote. Names alone tell the times; of each
// lineage two heads are read, for what it continues and why it ended. Nothing of
// this is believed by a restore, which reads the heads of its path
// (log_reader.h).
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

// A set that counts, and that the log continues.
struct LoggedSet {
  SetName name;
  uint64_t sequence = 0;
  SetLog log;
};

// Segments behind a set, in order, and why there is no further one.
struct LogPath {
  std::vector<LogKey> segments;
  CutReason ended = CutReason::kNone;
  // A sentence about the end: "barrier: ...", "segment 12 is missing", or empty
  // where the log may continue.
  std::string why;
};

// Times that can be restored, without a gap.
struct LogWindow {
  uint64_t begin_micros = 0;
  uint64_t end_micros = 0;
  std::string why;  // it ends; empty: the log continues
  SetName set;      // the first one that is restored
};

struct ArchiveLog {
  struct Lineage {
    std::map<uint64_t, LogKey> segments;
    // The segment that its first one continues; number 0: none.
    SetId parent{};
    uint64_t parent_number = 0;
    CutReason ended = CutReason::kNone;
    std::string note;
    std::string problem;  // a head that cannot be read
  };

  std::vector<LoggedSet> sets;  // moments ascend
  std::map<SetId, Lineage> lineages;
  uint64_t bytes = 0;    // of all segments
  uint64_t foreign = 0;  // objects of other names

  // Returns the paths behind a set, the one that was begun last first. Each has
  // the segments from the set's on; there is always one.
  std::vector<LogPath> PathsOf(const SetLog& log) const;
  // Returns the windows of one path behind a set.
  std::vector<LogWindow> WindowsOf(const LoggedSet& set,
                                   const LogPath& path) const;
  // Returns all windows, the oldest first; they do not meet.
  std::vector<LogWindow> Windows() const;
};

// Finds all segments. *log has no sets.
[[nodiscard]] rocksdb::Status ListLog(const Archive& archive, ArchiveLog* log);
// Finds all segments, and the sets that they continue. A set whose record is
// damaged is left out.
[[nodiscard]] rocksdb::Status ReadLog(const Archive& archive, ArchiveLog* log);

// Reads the head of a segment; *digest is its SHA-256, *bytes its size. Wrong
// bytes are read again, twice.
//   kCorrupt   damage, or another segment's; or the archive has a key with which
//              it was not sealed
//   kRefused   there is no such object
[[nodiscard]] rocksdb::Status ReadLogHead(const Archive& archive,
                                          const LogKey& key, LogHead* head,
                                          Sha256Digest* digest,
                                          uint64_t* bytes);

// Gives bytes [offset, offset + bytes) of the payload behind such a head to
// `sink`, in order. kDamaged: it was not what was put there, perhaps after it was
// given. Of a sealed one without a key they are bytes of the object.
StoreResult ReadLogPayload(const Archive& archive, const LogHead& head,
                           uint64_t head_bytes, uint64_t offset,
                           uint64_t bytes, const ObjectSink& sink);

// "2026-11-24T14:03:20.000123Z".
std::string LogTimeText(uint64_t micros);
// Parses such a text, with at most six digits of a second or none, or
// "20261124T140320Z".
[[nodiscard]] bool ParseLogTime(const std::string& text, uint64_t* micros);

}  // namespace sstferry
