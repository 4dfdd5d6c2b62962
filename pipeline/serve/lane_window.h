// Resend buffer of a lane: data that its target has not acknowledged, across
// ends of chunks and parts. After a cut the lane sends the missing part again.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "format/messages.h"
#include "pipeline/parts/chunk_builder.h"
#include "pipeline/serve/frame_list.h"
#include "rocksdb/slice.h"

namespace sstferry {

// Keeps the bytes of rebuilt chunks, and only the frames' digests of those that
// can be read again: units of a clone, and those of a chunk cache.
//
// Memory: kBytes or SetMost(), because a caller waits for acknowledgements
// before it adds
//   more, kSpareBytes that are used again while they are in the cache, and 16
//   bytes per frame.
// Threads: one.
class LaneWindow {
 public:
  static constexpr uint64_t kBytes = 8u << 20;
  static constexpr uint64_t kSpareBytes = 4u << 20;
  // Frame size for the first data after a cut: on a link that sometimes damages
  // bytes, each damaged frame then costs little.
  static constexpr uint64_t kCarefulFrameBytes = 64u << 10;
  static constexpr uint64_t kCarefulBytes = 1u << 20;
  // Bytes that count for the record of a chunk, beside its keys.
  static constexpr uint64_t kBytesPerChunk = 4u << 10;

  struct Chunk {
    ChunkBegin begin;
    std::optional<std::string> after;  // `after` of a request for it
    FrameList frames;                  // of the newest connection and before
    std::optional<ChunkEnd> end;       // set once it is complete
    bool begun = false;                // on the current connection
    // Its bytes [first_byte, bytes) are in `pieces`.
    uint64_t first_byte = 0;
    uint64_t bytes = 0;
    std::deque<std::string> pieces;
    // Not null: they are read from there, and `pieces` are empty.
    std::shared_ptr<const KeptChunk> kept;
    uint64_t careful_until = 0;  // in small frames

    bool rebuilt() const { return IsBuilt(begin.kind); }
    // Returns how much of `rest` the next frame may take.
    size_t FrameBytes(size_t rest) const {
      return frames.bytes() < careful_until
                 ? std::min<size_t>(rest, kCarefulFrameBytes)
                 : rest;
    }
    // Returns the bytes from that one on in its piece, as many as a frame may
    // take. REQUIRES: first_byte <= byte < bytes; not `kept`.
    rocksdb::Slice At(uint64_t byte) const;
  };
  // One answer. A target has at most two unanswered requests, so the answer to
  // the request before these has arrived.
  struct Part {
    PartRequest request;
    bool asked = true;  // on the current connection
    std::deque<Chunk> chunks;
    size_t sent_chunks = 0;  // of these, on the current connection
    bool ended = false;      // has all its chunks
    bool end_sent = false;   // on the current connection
    // Totals of the chunks sent completely as an answer to `request`.
    Totals totals;
    RangeDigest chain;
    // The next chunk; `after` as in a request for it.
    uint64_t next_ordinal = 0;
    std::optional<std::string> after;
  };

  void BeginRange(const PartRequest& request);
  // A resumed unit has the frames that Rewind() kept.
  void BeginChunk(const ChunkBegin& begin);
  // Sets how many bytes the window keeps at most: its share of the memory of
  // all lanes.
  void SetMost(uint64_t bytes) { most_ = std::min(bytes, kBytes); }
  uint64_t most() const { return most_; }
  bool HasRoom(size_t bytes) const { return bytes_ + bytes <= most_; }
  // Adds to the last chunk. A chunk that can be read again does not copy the
  // piece, which must stay valid until EndLoan().
  void Add(const rocksdb::Slice& piece);
  void EndLoan() { read_of_ = nullptr; }
  // Returns bytes to send of a chunk, from that one on, as many as a frame may
  // take. REQUIRES: as Chunk::At(). *piece is valid until the next call.
  [[nodiscard]] rocksdb::Status Get(const Chunk& chunk, uint64_t byte,
                                    rocksdb::Slice* piece);
  // `after`: as in a request for the following chunk; none follows a delta.
  void EndChunk(const ChunkEnd& end, std::optional<std::string> after);
  void EndPart() { parts_.back().ended = true; }

  // Drops everything before the acknowledged byte. Ignores acknowledgements of
  // data that was dropped before. kCorrupt: it was never sent.
  [[nodiscard]] rocksdb::Status Acknowledge(const ChunkAck& ack);

  enum class Found {
    kAll,        // the unsent data now follows what the target has
    kToBeRead,   // only the frames of a unit, to be read again
    kNothing,    // the window is now empty
  };
  // Sets the target's position to that of `request`, its first one on another
  // connection; the target then has to request the parts behind it.
  // `building`: resume the last part, which has not ended; otherwise the
  // window drops it, and the lane answers its request anew.
  Found Rewind(const PartRequest& request, bool building);
  // Returns where to resume a unit that Rewind() found.
  uint64_t FirstByte(const PartRequest& request) const;
  void Clear();

  bool empty() const { return parts_.empty(); }
  // True if the target owes an acknowledgement.
  bool AwaitsAck() const {
    return std::any_of(parts_.begin(), parts_.end(), [](const Part& part) {
      return !part.chunks.empty();
    });
  }
  uint64_t bytes() const { return bytes_; }
  std::deque<Part>& parts() { return parts_; }
  // Returns the first part that is not completely sent; null: none.
  Part* NextToSend();
  // Drops the parts that were not requested on the current connection.
  void ForgetUnasked();
  Chunk& chunk() { return parts_.back().chunks.back(); }
  // True if the last part is a unit of a clone without its end.
  bool sends_unit() const {
    return !parts_.empty() && !parts_.back().ended &&
           !parts_.back().chunks.empty() &&
           !parts_.back().chunks.back().rebuilt();
  }

 private:
  // Returns the part that chunk `ordinal` of a part belongs to; null: none.
  Part* Find(uint32_t part_id, uint64_t ordinal);
  void Release(Chunk* chunk, uint64_t bytes);
  void DropChunk(Part* part);  // its first one
  void DropPart(bool first);    // or the last one
  // Nothing behind `chunk` of the first part has arrived.
  bool SendAgainBehind(size_t chunk, bool building);

  std::deque<Part> parts_;
  uint64_t bytes_ = 0;
  uint64_t most_ = kBytes;
  std::vector<std::string> spare_;
  uint64_t spare_bytes_ = 0;
  // Bytes of a chunk that can be read again: lent by Add(), or in `read_`.
  rocksdb::Slice view_;
  const KeptChunk* read_of_ = nullptr;  // whose they are; null: nobody's
  uint64_t read_at_ = 0;
  std::string read_;
  std::optional<uint32_t> kept_part_;  // of a unit:
  FrameList kept_frames_;
};

}  // namespace sstferry
