// Reads the log after a set, up to a time or a sequence number. Presents it as
// bytes of WALs that continue the WALs of the set.
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

// The point up to which a log is restored: a time or a sequence number.
struct LogPoint {
  std::optional<uint64_t> micros;
  std::optional<uint64_t> sequence;
  // The set to restore before the log; not set: the newest set before the
  // point.
  std::optional<SetName> set;
};
// Parses a time (ParseLogTime()) or "sequence:N", optionally with a set's name
// and "+" before it. Returns false for other texts.
[[nodiscard]] bool ParseLogPoint(const std::string& text, LogPoint* point);

// A set, and the path of segments after it, that contain a point.
struct LogChoice {
  SetName set;
  LogPath path;
};
// Chooses a set and a path that reaches the point. The set is the one that the
// point names; if it names none, the newest set that is not later than the
// point. Leaves *choice unset if `point` is a time that no log covers; then a
// set may be restored without a log.
//   kRefused  the point is in no window: the message says why, and names the
//             nearest points that can be restored. Or the point is a time of
//             two logs: the message names the set of each
[[nodiscard]] rocksdb::Status ChooseLog(const Archive& archive,
                                        const LogPoint& point,
                                        std::optional<LogChoice>* choice);

// The bytes of the log after one set.
//
// Threads: ReadBytes() from any.
class LogTail {
 public:
  // A WAL that the set and the log share, or that only the log has.
  struct Wal {
    uint64_t set_bytes = 0;  // bytes in the set; later bytes are in the log
    uint64_t end = 0;
  };

  // Reads the heads of the path and checks that they form a chain from the set
  // to the point. The archive and the set must outlive this object.
  //   kCorrupt  a segment is damaged, was replaced, or does not continue the
  //             set: the message names the segment and the last time before it
  //   kRefused  a segment is missing
  [[nodiscard]] static rocksdb::Status Read(
      const Archive& archive, const ArchiveSet& set, const LogPath& path,
      const LogPoint& point, const std::function<bool()>& cancelled,
      std::unique_ptr<LogTail>* tail);

  const std::map<uint64_t, Wal>& wals() const { return wals_; }
  // Returns a sequence number that the log certainly reaches; 0: unknown.
  uint64_t sequence() const { return sequence_; }
  // Reads the records of the set's WALs and of the log, and checks that the
  // sequence numbers after the set are consecutive. If the point is a sequence
  // number, ends the log before the first record that takes a later number.
  // Keeps up to `most_bytes` of payloads for ReadBytes(). Call it before wals()
  // and ReadBytes().
  //   kCorrupt  they are not consecutive: the message names the last sequence
  //             number before the fault
  //   kRefused  the point is after the last record, or the set has records
  //             after the point
  [[nodiscard]] rocksdb::Status CheckRecords(
      uint64_t most_bytes, const std::function<bool()>& cancelled);
  // Returns the segments that CheckRecords() reads, with the size of their
  // payloads.
  std::map<LogKey, uint64_t> SegmentsRead() const;
  // Passes bytes [offset, offset + bytes) of a WAL to `sink`, in order.
  // REQUIRES: the log has these bytes. kDamaged: a payload differs from the one
  // that was put; its bytes may already have been passed.
  StoreResult ReadBytes(uint64_t wal_number, uint64_t offset, uint64_t bytes,
                        const ObjectSink& sink) const;

 private:
  // Bytes of a WAL in a payload.
  struct Extent {
    size_t segment = 0;         // in segments_
    uint64_t payload_offset = 0;
    uint64_t wal_offset = 0;
    uint64_t bytes = 0;
  };
  using Place = std::pair<uint64_t, uint64_t>;  // WAL number, offset in the WAL
  struct Segment {
    LogHead head;
    Sha256Digest digest{};
    uint64_t head_bytes = 0;
    std::string payload;  // empty if it is not kept
  };

  LogTail(const Archive& archive, const ArchiveSet& set)
      : archive_(archive), set_(set) {}
  [[nodiscard]] rocksdb::Status FindBase();
  [[nodiscard]] rocksdb::Status ReadHeads(const std::vector<LogKey>& keys,
                                          size_t begin, size_t end);
  [[nodiscard]] rocksdb::Status CheckLink(size_t segment) const;
  // Adds the first `bytes` of a payload.
  [[nodiscard]] rocksdb::Status AddPayload(size_t segment, uint64_t bytes);
  [[nodiscard]] rocksdb::Status TryRecords(
      uint64_t* most_bytes, const std::function<bool()>& cancelled);
  // Keeps in memory the payloads that contain bytes [offset, offset + least) of
  // a WAL, while *most_bytes allows.
  [[nodiscard]] rocksdb::Status KeepPayload(uint64_t wal_number,
                                            uint64_t offset, uint64_t least,
                                            uint64_t* most_bytes);
  // Ends the log at offset `end` of a WAL.
  void CutAt(uint64_t wal_number, uint64_t end);
  [[nodiscard]] rocksdb::Status SetIsLater(uint64_t last) const;
  [[nodiscard]] rocksdb::Status Amiss(size_t segment,
                                      const std::string& what) const;
  // Appends bytes of a WAL from the set, not from the log.
  [[nodiscard]] rocksdb::Status ReadOfSet(uint64_t wal_number, uint64_t offset,
                                          uint64_t bytes,
                                          std::string* out) const;
  [[nodiscard]] rocksdb::Status ReadSome(uint64_t wal_number, uint64_t offset,
                                         uint64_t least,
                                         std::string* out) const;

  const Archive& archive_;
  const ArchiveSet& set_;
  std::optional<uint64_t> until_;  // the point, if it is a sequence number
  bool is_reached_ = false;        // the heads show that the log has the point
  std::string why_;                // as LogPath::why
  LogBegin base_;  // the set's end; without the MANIFEST's digest
  // End of the set's newest WAL, which may contain no record. Logs of older
  // sstferry versions begin there.
  Place newest_;
  std::vector<Segment> segments_;
  std::map<uint64_t, Wal> wals_;
  std::map<uint64_t, std::vector<Extent>> extents_;  // by WAL
  uint64_t sequence_ = 0;
};

}  // namespace sstferry
