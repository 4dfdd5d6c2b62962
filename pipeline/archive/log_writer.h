// Puts the records of a source's WALs into an archive, as segments of a log
// (format/archive_log.h).
//
// The received bytes are collected in memory until a segment is due, and then
// put as one object. If the put fails, it is retried with the same bytes and
// name; meanwhile at most one other segment is collected. Each follower writes
// its own lineage, so no two followers write under the same name. A restarted
// follower continues the log: its first segment names the last segment of the
// earlier lineage.
//
// Times are by this machine's clock and never go back within a log: if the
// clock is set back by more than kMostClockBackMicros, the log ends (gap()). A
// time can be restored if the follower had all records at some moment in the
// max_gap_micros before it. An outage of the source, the store or the follower
// ends the restorable period, and the log continues after it. An answer that
// was added more than max_gap_micros after its request does not show that the
// follower has all records: the source may have written more since.
//
// The writer checks that the sequence numbers of the records are consecutive.
// It cannot check records in a WAL whose beginning it did not receive.
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
// If the source writes nothing, an empty segment is put at this interval.
inline constexpr uint64_t kIdleSegmentMicros = 60'000'000;
// Minimum time between two recorded moments of a segment.
inline constexpr uint64_t kLogMomentMicros = 10'000;

struct LogWriterOptions {
  uint64_t segment_bytes = 16u << 20;  // at most kMaxSegmentBytes / 2
  uint64_t max_gap_micros = kMaxLogGapMicros;
  bool has_if_absent = false;          // as ArchiveHead::has_if_absent
  const SealKey* key = nullptr;        // must outlive it; null: not sealed
  std::string host;
  std::string software;
  // Returns microseconds since 1970; null: MicrosNow().
  std::function<uint64_t()> now_micros;
};

// A position in a log: the end of complete records of a WAL, and the XXH3-128
// of the WAL up to there.
struct LogPlace {
  uint64_t wal_number = 0;
  uint64_t wal_bytes = 0;
  Digest128 wal{};
};

// State of a log.
struct LogState {
  uint64_t segments = 0;        // number of segments that were put
  uint64_t bytes = 0;           // size of these segments, with their heads
  uint64_t gaps = 0;            // outages
  uint64_t put_micros = 0;      // the archive has records up to this time
  uint64_t put_sequence = 0;
  uint64_t seen_micros = 0;     // records up to this time arrived
  uint64_t last_sequence = 0;
  // Received bytes that are not known to be put, and the time when the first of
  // them arrived (0: no such bytes).
  uint64_t unput_bytes = 0;
  uint64_t unput_micros = 0;
};

// Writes one lineage.
//
// Threads: any. Put() and Append() may run concurrently; End() is the last
// call, by one thread.
class LogWriter {
 public:
  // Begins a log after a cut whose set has this id, at the cut's position. The
  // set has everything that was written before `asked_micros`, and nothing that
  // was written after `moment_micros`.
  LogWriter(const SetId& cut, const FollowPosition& position,
            uint64_t asked_micros, uint64_t moment_micros,
            LogWriterOptions options);
  // Continues a log whose last segment has the head `last` with the SHA-256
  // `digest`.
  LogWriter(const SetId& lineage, const LogHead& last,
            const Sha256Digest& digest, LogWriterOptions options);

  // Starts checking the records after a cut at `sequence`. `wal_begin`: the
  // first block of the WAL in which the cut ends, or all bytes before the cut's
  // end if these are fewer. Must be the first call; without it, only WALs that
  // begin in the log are checked.
  [[nodiscard]] rocksdb::Status CheckBehind(const rocksdb::Slice& wal_begin,
                                            uint64_t sequence);

  const SetId& lineage() const { return lineage_; }
  // Returns the position at which the next bytes must begin.
  FollowPosition position() const;
  // Returns the number of the segment that is being collected.
  uint64_t segment() const;
  // Returns the number of the first segment that is not known to be put.
  uint64_t next_to_put() const;
  LogState state() const;
  // Returns the latest time in the log, which may be ahead of the clock.
  uint64_t latest_micros() const;
  // Returns why this log cannot continue, so that a new log with a new set must
  // begin; kNone: it can continue.
  Gap gap() const;
  // Returns the most recently reached positions, the newest last.
  std::vector<LogPlace> places() const;

  // Adds a round: complete records that continue the log, and what the source
  // reported about them. The round was requested at `asked_micros`, by this
  // machine's clock. Does nothing if gap() is set. Sets gap() if the sequence
  // numbers are not consecutive, or the clock was set back.
  //   kCorrupt   the records do not continue the log: nothing was added
  [[nodiscard]] rocksdb::Status Append(const std::vector<WalBytes>& parts,
                                       const FollowEnd& end,
                                       uint64_t asked_micros);
  // Returns true if Put() must be called before the next Append().
  bool is_full() const;

  // Puts a segment whose put failed before, and then the collected segment.
  // Does nothing if no segment is due.
  //   kBusy   there is an object of that name with other bytes
  //   others  errors of the store: the next call retries
  [[nodiscard]] rocksdb::Status Put(ObjectStore* store);
  // Puts the last segment, with the reason why the log ends.
  [[nodiscard]] rocksdb::Status End(ObjectStore* store, CutReason reason,
                                    const std::string& note);

 private:
  struct Object {
    LogKey key;
    std::string bytes;
    uint64_t sequence = 0;
    uint64_t payload_bytes = 0;
    uint64_t first_micros = 0;  // when its first bytes arrived; 0: no bytes
  };

  // Returns true if an answer that was requested at `asked_micros` is recent.
  bool IsRecent(uint64_t asked_micros, uint64_t now_micros) const;
  // REQUIRES for all functions below: mu_ is locked.
  void Reached();
  [[nodiscard]] rocksdb::Status Check(const std::vector<WalBytes>& parts) const;
  [[nodiscard]] rocksdb::Status CheckRecords(const WalBytes& part);
  void Add(const std::vector<WalBytes>& parts);
  bool IsDue() const;
  void Seal();
  [[nodiscard]] rocksdb::Status PutOne(ObjectStore* store,
                                       const Object& object) const;

  const LogWriterOptions options_;
  const SetId lineage_;

  std::mutex put_mu_;  // locked before mu_
  mutable std::mutex mu_;
  // Guarded by mu_: all members below.
  LogHead head_;         // head of the segment being collected
  std::string payload_;  // payload of the same segment
  FollowPosition at_;    // end of the payload
  Gap gap_;
  std::deque<LogPlace> places_;
  WalContinuity continuity_{0};
  // Reads the WAL in which the log ends; null: that WAL cannot be checked.
  std::unique_ptr<LogFollower> follower_;
  uint64_t followed_ = 0;  // number of follower_'s WAL
  uint64_t now_ = 0;     // the latest time seen
  uint64_t seen_ = 0;    // last time when all records had arrived; 0: none
  std::unique_ptr<Object> sealed_;  // complete, not known to be put
  LogState state_;
};

}  // namespace sstferry
