// Puts the records of a source's WALs into an archive as a log, which consists
// of segments (format/archive_log.h).
//
// The writer collects received bytes in memory until a segment is due, and then
// puts the segment as one object. If the put fails, the writer retries it with
// the same bytes and name. Meanwhile it collects at most one other segment.
// Each follower writes its own lineage, so no two followers put the same name.
// After a restart, a follower continues the log in a new lineage. The first
// segment of the new lineage names the last segment of the earlier lineage.
//
// Times are by this machine's clock and never decrease within a log. If the
// clock is set back by more than kMostClockBackMicros, the log ends (gap()). A
// time can be restored if the follower had all records of the source at some
// moment in the max_gap_micros before the time. An outage of the source, the
// store or the follower ends a restorable period; after the outage, the log
// continues. The writer must add the source's answer within max_gap_micros
// after the request. A later answer does not prove that the follower has all
// records, because the source may have written more since.
//
// The writer checks that the sequence numbers of the records are consecutive.
// It cannot check records of a WAL whose beginning it did not receive.
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
// Time after which an empty segment is put if the source writes nothing.
inline constexpr uint64_t kIdleSegmentMicros = 60'000'000;
// Minimum time between two moments that a segment records.
inline constexpr uint64_t kLogMomentMicros = 10'000;

struct LogWriterOptions {
  uint64_t segment_bytes = 16u << 20;  // at most kMaxSegmentBytes / 2
  uint64_t max_gap_micros = kMaxLogGapMicros;
  bool has_if_absent = false;    // like ArchiveHead::has_if_absent
  const SealKey* key = nullptr;  // must outlive the LogWriter; null: not sealed
  std::string host;
  std::string software;
  // Returns the time in microseconds since 1970; null: MicrosNow() is used.
  std::function<uint64_t()> now_micros;
};

// A position in a log at which a record ends: a WAL, an offset in it, and the
// XXH3-128 of the WAL's bytes before this offset.
struct LogPlace {
  uint64_t wal_number = 0;
  uint64_t wal_bytes = 0;
  Digest128 wal{};
};

// Statistics of a log.
struct LogState {
  uint64_t segments = 0;    // number of segments that were put
  uint64_t bytes = 0;       // size of these segments, with their heads
  uint64_t gaps = 0;        // number of outages
  uint64_t put_micros = 0;  // archived records reach up to this time
  uint64_t put_sequence = 0;
  uint64_t seen_micros = 0;  // received records reach up to this time
  uint64_t last_sequence = 0;
  // Number of received bytes that may not have been put yet, and the time when
  // the first of them arrived (0: no such bytes).
  uint64_t unput_bytes = 0;
  uint64_t unput_micros = 0;
};

// Writes one lineage of a log.
//
// Threads: any. Put(), Append() and End() may run concurrently.
class LogWriter {
 public:
  // Begins a log after the set with the id `cut`, at the position where the set
  // ends. The set contains everything that was written before `asked_micros`,
  // and nothing that was written after `moment_micros`.
  LogWriter(const SetId& cut, const FollowPosition& position,
            uint64_t asked_micros, uint64_t moment_micros,
            LogWriterOptions options);
  // Continues a log. `last` is the head of its last segment, and `digest` is
  // the SHA-256 of this head.
  LogWriter(const SetId& lineage, const LogHead& last,
            const Sha256Digest& digest, LogWriterOptions options);

  // Makes the writer check the records after a cut that ends at `sequence`.
  // `wal_begin` has the first block of the WAL in which the cut ends, or all
  // bytes of the WAL before the cut's end if they are fewer. Must be the first
  // call. Without this call, the writer checks only WALs that begin in the log.
  [[nodiscard]] rocksdb::Status BeginChecksAfterCut(
      const rocksdb::Slice& wal_begin, uint64_t sequence);

  const SetId& lineage() const { return lineage_; }
  // Returns the position at which the next records must begin.
  FollowPosition position() const;
  // Returns the number of the segment that the writer is collecting.
  uint64_t segment() const;
  // Returns the number of the first segment that may not have been put yet.
  uint64_t next_to_put() const;
  LogState state() const;
  // Returns the latest time in the log. It may be later than the clock.
  uint64_t latest_micros() const;
  // Returns the reason why this log cannot continue; kNone: it can continue. If
  // it cannot, the follower must begin a new log with a new set.
  Gap gap() const;
  // Returns the positions that were reached most recently, the newest last.
  std::vector<LogPlace> places() const;

  // Adds the answer of the source to one request: complete records that
  // continue the log, and what the source reported about them. `asked_micros`
  // is the time of the request by this machine's clock. Does nothing if gap()
  // is set. Sets gap() if the sequence numbers are not consecutive, or the
  // clock was set back.
  //   kCorrupt   the records do not continue the log; nothing was added
  [[nodiscard]] rocksdb::Status Append(const std::vector<WalBytes>& parts,
                                       const FollowEnd& end,
                                       uint64_t asked_micros);
  // Returns true if Put() must be called before the next Append().
  bool is_full() const;

  // Puts a complete segment whose put failed before, and then the segment that
  // is being collected. Does nothing if no segment is due.
  //   kBusy   another object with the same name has different bytes
  //   others  errors of the store: the next call retries
  [[nodiscard]] rocksdb::Status Put(ObjectStore* store);
  // Puts the last segment, which records why the log ends. Sets gap() first, so
  // that no other call adds a segment after the last one. After an error, the
  // next call of End() continues.
  [[nodiscard]] rocksdb::Status End(ObjectStore* store, CutReason reason,
                                    const std::string& note);

 private:
  struct Object {
    LogKey key;
    std::string bytes;
    uint64_t sequence = 0;
    uint64_t payload_bytes = 0;
    uint64_t first_micros = 0;  // arrival of its first bytes; 0: none
  };

  // Returns true if an answer to a request at `asked_micros` is recent enough
  // to prove that the follower has all records.
  bool IsRecent(uint64_t asked_micros, uint64_t now_micros) const;
  // Does what Put() does. REQUIRES: the caller has locked put_mu_, but not mu_.
  [[nodiscard]] rocksdb::Status PutDue(ObjectStore* store);
  // REQUIRES for all following functions: the caller has locked mu_.
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
  // mu_ guards all following members.
  LogHead head_;         // head of the segment that is being collected
  std::string payload_;  // payload of the same segment
  FollowPosition at_;    // position of the payload's end
  Gap gap_;
  std::deque<LogPlace> places_;
  WalContinuity continuity_{0};
  // Reads the WAL in which the log ends; null: this WAL cannot be checked.
  std::unique_ptr<LogFollower> follower_;
  uint64_t followed_ = 0;           // number of the WAL that follower_ reads
  uint64_t now_ = 0;                // latest time that the clock showed
  uint64_t seen_ = 0;               // last time with all records; 0: none
  std::unique_ptr<Object> sealed_;  // complete, but perhaps not put yet
  bool ended_ = false;              // End() has completed the last segment
  LogState state_;
};

}  // namespace sstferry
