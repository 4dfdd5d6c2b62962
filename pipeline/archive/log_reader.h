// Reads the log after a set, up to a time or a sequence number, and presents it
// as bytes of WALs, which continue the WALs of the set.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "format/archive_log.h"
#include "format/archive_set.h"
#include "pipeline/archive/archive.h"
#include "pipeline/archive/log_index.h"
#include "rocksdb/status.h"

namespace sstferry {

// The point up to which a log is restored: a time or a sequence number. Exactly
// one of `micros` and `sequence` has a value.
struct LogPoint {
  std::optional<uint64_t> micros;
  std::optional<uint64_t> sequence;
  // The set with which the restore begins; nullopt: the newest set before the
  // point.
  std::optional<SetName> set;
};
// Parses a time (ParseLogTime()) or "sequence:N". "SET+" may precede the point,
// for example "SET+sequence:5". Returns false for other texts.
[[nodiscard]] bool ParseLogPoint(const std::string& text, LogPoint* point);

// A set and a path of segments after it, with which a point can be restored.
struct LogChoice {
  SetName set;
  LogPath path;
};
// Chooses a set and a path that reaches the point. Chooses the set that the
// point names or, if it names none, the newest set that is not later than the
// point. If no log covers the time of the point, leaves *choice unset. The
// caller may then restore a set without a log.
//   kRefused  the point cannot be restored: the message says why, and names the
//             nearest times that can be restored. Or two logs cover the time of
//             the point: the message names a set of each log
[[nodiscard]] rocksdb::Status ChooseLog(const Archive& archive,
                                        const LogPoint& point,
                                        std::optional<LogChoice>* choice);

// The part of a log that follows a set, up to a point.
//
// Threads: ReadBytes() from any.
class LogTail {
 public:
  // A WAL of which the log has bytes. The set may have its first bytes.
  struct Wal {
    uint64_t set_bytes = 0;  // number of bytes that the set has
    uint64_t end = 0;
  };

  // Reads the heads of the segments of a path. Checks that the segments form a
  // chain from the set to the point. The archive and the set must outlive the
  // LogTail.
  //   kCorrupt  a segment is damaged, was replaced, or does not continue the
  //             set. The message names the segment, and the last time before it
  //             that can be restored
  //   kRefused  a segment is missing
  [[nodiscard]] static rocksdb::Status Read(
      const Archive& archive, const ArchiveSet& set, const LogPath& path,
      const LogPoint& point, const std::function<bool()>& cancelled,
      std::unique_ptr<LogTail>* tail);

  const std::map<uint64_t, Wal>& wals() const { return wals_; }
  // Returns a sequence number that is surely in the log; 0: unknown.
  uint64_t sequence() const { return sequence_; }
  // Reads the records of the set's WALs and of the log. Checks that the
  // sequence numbers after the set are consecutive. If the point is a sequence
  // number, ends the log before the first record with a later number. Keeps up
  // to `most_bytes` of payloads in memory for ReadBytes(). Must be called
  // before wals() and ReadBytes().
  //   kCorrupt  the sequence numbers have a gap: the message names the last
  //             number before it
  //   kRefused  the point is after the last record, or the set has records
  //             after the point
  [[nodiscard]] rocksdb::Status CheckRecords(
      uint64_t most_bytes, const std::function<bool()>& cancelled);
  // Returns the segments that CheckRecords() reads, and the size of each
  // payload.
  std::map<LogKey, uint64_t> SegmentsRead() const;
  // Passes the bytes [offset, offset + bytes) of a WAL to `sink`, in order.
  // kDamaged: a payload differs from the payload that was put. `sink` may have
  // received wrong bytes. REQUIRES: the log has these bytes.
  StoreResult ReadBytes(uint64_t wal_number, uint64_t offset, uint64_t bytes,
                        const ObjectSink& sink) const;

 private:
  // A range of a WAL whose bytes are in the payload of one segment.
  struct Extent {
    size_t segment = 0;  // index in segments_
    uint64_t payload_offset = 0;
    uint64_t wal_offset = 0;
    uint64_t bytes = 0;
  };
  using Place = std::pair<uint64_t, uint64_t>;  // WAL number, offset in the WAL
  struct Segment {
    LogHead head;
    Sha256Digest digest{};
    uint64_t head_bytes = 0;
    std::string payload;  // empty: not kept in memory
  };

  LogTail(const Archive& archive, const ArchiveSet& set)
      : archive_(archive), set_(set) {}
  [[nodiscard]] rocksdb::Status FindBase();
  [[nodiscard]] rocksdb::Status ReadHeads(const std::vector<LogKey>& keys,
                                          size_t begin, size_t end);
  [[nodiscard]] rocksdb::Status CheckLink(size_t segment) const;
  // Adds the first `bytes` of a segment's payload to wals_ and extents_.
  [[nodiscard]] rocksdb::Status AddPayload(size_t segment, uint64_t bytes);
  [[nodiscard]] rocksdb::Status TryRecords(
      uint64_t* most_bytes, const std::function<bool()>& cancelled);
  // Keeps the payloads in memory that contain the bytes [offset, offset +
  // least) of a WAL, as far as *most_bytes allows.
  [[nodiscard]] rocksdb::Status KeepPayload(uint64_t wal_number,
                                            uint64_t offset, uint64_t least,
                                            uint64_t* most_bytes);
  // Ends the log at the offset `end` of a WAL, and removes everything after it.
  void CutAt(uint64_t wal_number, uint64_t end);
  [[nodiscard]] rocksdb::Status SetIsLater(uint64_t last) const;
  [[nodiscard]] rocksdb::Status Amiss(size_t segment,
                                      const std::string& what) const;
  // Appends bytes of a WAL to *out. Reads them from the set, not from the log.
  [[nodiscard]] rocksdb::Status ReadOfSet(uint64_t wal_number, uint64_t offset,
                                          uint64_t bytes,
                                          std::string* out) const;
  [[nodiscard]] rocksdb::Status ReadSome(uint64_t wal_number, uint64_t offset,
                                         uint64_t least,
                                         std::string* out) const;

  const Archive& archive_;
  const ArchiveSet& set_;
  std::optional<uint64_t> until_;  // the point's sequence number
  bool is_reached_ = false;        // the heads show that the path has the point
  std::string why_;                // like LogPath::why
  // End of the set's last WAL record. It has no digest of the MANIFEST.
  LogBegin base_;
  // End of the newest WAL of the set, even if this WAL contains no record. Logs
  // of older sstferry versions begin there.
  Place newest_;
  std::vector<Segment> segments_;
  std::map<uint64_t, Wal> wals_;
  // Maps the number of a WAL to the ranges of the WAL in payloads.
  std::map<uint64_t, std::vector<Extent>> extents_;
  uint64_t sequence_ = 0;
};

}  // namespace sstferry
