// Puts what a source's WALs get into an archive, as segments of a log
// (format/archive_log.h).
//
// The bytes of a round are gathered in memory until a segment is due, and put as
// one object. A segment that could not be put is put again, the same bytes under
// the same name; until it is there, no more than one other segment is gathered.
// Each follower writes a lineage of its own, so no two ever write under one
// name: one that is started again continues what an earlier one wrote by naming
// its last segment.
//
// The clock is that of this machine, and it never goes back within a log: a clock
// that is set back by more than kMostClockBackMicros ends it (gap()). A time can
// be restored if the follower heard at most max_gap_micros before it that it had
// all: an outage of the source, of the store or of the follower ends what can be
// restored, and the log continues behind it.
//
// The records that it is given must continue each other's sequence numbers, as far
// as it can read them: it is not given those of its set.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "format/archive_log.h"
#include "format/rocksdb/log_follower.h"
#include "format/rocksdb/wal_continuity.h"
#include "pipeline/archive/store.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace sstferry {

class SealKey;

inline constexpr uint64_t kMaxLogGapMicros = 3'000'000;
// A source that writes nothing gets a segment so often, which says so.
inline constexpr uint64_t kIdleSegmentMicros = 60'000'000;
// Moments of one segment are at least so far apart.
inline constexpr uint64_t kLogMomentMicros = 10'000;

struct LogWriterOptions {
  uint64_t segment_bytes = 16u << 20;  // at most kMaxSegmentBytes / 2
  uint64_t max_gap_micros = kMaxLogGapMicros;
  bool has_if_absent = false;          // of the archive
  const SealKey* key = nullptr;        // outlives it; null: it is not sealed
  std::string host;
  std::string software;
  // Microseconds since 1970; a test gives another clock.
  std::function<uint64_t()> now_micros;
};

// Bytes of a WAL, from an offset on.
struct LogPart {
  uint64_t wal_number = 0;
  uint64_t offset = 0;
  rocksdb::Slice bytes;
};

// A place that a log has reached: an end of whole records of a WAL, and XXH3-128
// over the WAL up to there.
struct LogPlace {
  uint64_t wal_number = 0;
  uint64_t wal_bytes = 0;
  Digest128 wal{};
};

// How a log is.
struct LogState {
  uint64_t segments = 0;        // put
  uint64_t bytes = 0;           // of these, with their heads
  uint64_t gaps = 0;            // outages
  uint64_t put_micros = 0;      // up to here it is in the archive; 0: nothing
  uint64_t put_sequence = 0;
  uint64_t seen_micros = 0;     // up to here it was received
  uint64_t last_sequence = 0;
  // Received and not known to be put, and since when there is any; 0: nothing is.
  uint64_t unput_bytes = 0;
  uint64_t unput_micros = 0;
};

// One lineage.
//
// Threads: any. Put() and Append() at the same time; End() by one, last.
class LogWriter {
 public:
  // Begins a log behind a cut whose set has this id, at the cut's position. All
  // that the set holds was written before `moment_micros`.
  LogWriter(const SetId& cut, const FollowPosition& position,
            uint64_t moment_micros, LogWriterOptions options);
  // Continues a log whose last segment has the head `last`, which is `digest`.
  LogWriter(const SetId& lineage, const LogHead& last,
            const Sha256Digest& digest, LogWriterOptions options);

  // Begins to check the records behind a cut at `sequence`. `wal_begin` is the
  // first block of the WAL in which it ends, or all that comes before its end. Call
  // it first, or not at all: then only WALs that begin in the log are checked.
  [[nodiscard]] rocksdb::Status CheckBehind(const rocksdb::Slice& wal_begin,
                                            uint64_t sequence);

  const SetId& lineage() const { return lineage_; }
  // Returns the position behind which it takes bytes.
  FollowPosition position() const;
  // Returns the number of the segment that is gathered now.
  uint64_t segment() const;
  // Returns the number of the first one that is not known to be put.
  uint64_t next_to_put() const;
  LogState state() const;
  // Returns why it can take no more, and another log must begin with a set; a
  // kNone: it can.
  Gap gap() const;
  // Returns the places that it has reached last, the newest last.
  std::vector<LogPlace> places() const;

  // Adds a round: whole records, which continue what it has, and what the source
  // said behind them. Does nothing if gap() is not none, which it sets if the
  // sequence numbers do not continue, or the clock was set back.
  //   kCorrupt   they do not: nothing was added
  [[nodiscard]] rocksdb::Status Append(const std::vector<LogPart>& parts,
                                       const FollowEnd& end);
  // Returns true if no more is to be added before a Put().
  bool is_full() const;

  // Puts what a segment was gathered of, and what could not be put before. Does
  // nothing if there is nothing to tell.
  //   kBusy   the name has other bytes
  //   others  the store's: the next call tries again
  [[nodiscard]] rocksdb::Status Put(ObjectStore* store);
  // Puts the last segment, which says why the log ends.
  [[nodiscard]] rocksdb::Status End(ObjectStore* store, CutReason reason,
                                    const std::string& note);

 private:
  struct Object {
    LogKey key;
    std::string bytes;
    uint64_t sequence = 0;
    uint64_t payload_bytes = 0;
    uint64_t first_micros = 0;  // when its first bytes came; 0: it has none
  };

  // Under mu_, all of them.
  void Reached();
  [[nodiscard]] rocksdb::Status Check(const std::vector<LogPart>& parts) const;
  [[nodiscard]] rocksdb::Status CheckRecords(const LogPart& part);
  void Add(const std::vector<LogPart>& parts);
  bool IsDue() const;
  void Seal();
  [[nodiscard]] rocksdb::Status PutOne(ObjectStore* store,
                                       const Object& object) const;

  const LogWriterOptions options_;
  const SetId lineage_;

  std::mutex put_mu_;  // before mu_
  mutable std::mutex mu_;
  // Under mu_, all below.
  LogHead head_;         // of the segment that is gathered
  std::string payload_;  // of it
  FollowPosition at_;    // its end
  Gap gap_;
  std::deque<LogPlace> places_;
  WalContinuity continuity_{0};
  // Reads the WAL in which it ends; null: its records cannot be read.
  std::unique_ptr<LogFollower> follower_;
  uint64_t followed_ = 0;  // its number
  uint64_t now_ = 0;     // the latest time that was seen
  uint64_t seen_ = 0;    // when it had all, the last time
  std::unique_ptr<Object> sealed_;  // not known to be put
  LogState state_;
};

}  // namespace sstferry
