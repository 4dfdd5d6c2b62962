// What a lane has sent and its target has not acknowledged, over the ends of
// chunks and ranges: after a cut it is sent again from where the target stands.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "format/message/messages.h"
#include "pipeline/source/lane/frame_list.h"
#include "rocksdb/slice.h"

namespace sstferry {

// Of rebuilt chunks the bytes are kept, of carried ones only the frames'
// digests: they can be read again.
//
// Memory: kBytes, since a caller waits for acknowledgements before it adds
//   more, kSpareBytes that are used again while they are warm, and 16 bytes a
//   frame.
// Threads: one.
class LaneWindow {
 public:
  static constexpr uint64_t kBytes = 8u << 20;
  static constexpr uint64_t kSpareBytes = 4u << 20;
  // What is sent again goes in frames of so many bytes, at least for a while: a
  // link that damages bytes at times then damages few of them.
  static constexpr uint64_t kCarefulFrameBytes = 64u << 10;
  static constexpr uint64_t kCarefulBytes = 1u << 20;
  // What the record of a chunk counts, beside its keys.
  static constexpr uint64_t kBytesPerChunk = 4u << 10;

  struct Chunk {
    ChunkBegin begin;
    std::optional<std::string> after;  // what a request for it says
    FrameList frames;                  // of the newest connection and before
    std::optional<ChunkEnd> end;       // all of it is there
    bool begun = false;                // on the connection at hand
    // Its bytes [first_byte, bytes) are in `pieces`.
    uint64_t first_byte = 0;
    uint64_t bytes = 0;
    std::deque<std::string> pieces;
    uint64_t careful_until = 0;  // in small frames

    bool rebuilt() const { return begin.kind == ChunkKind::kRebuilt; }
    // What the next frame may take of `rest`.
    size_t FrameBytes(size_t rest) const {
      return frames.bytes() < careful_until
                 ? std::min<size_t>(rest, kCarefulFrameBytes)
                 : rest;
    }
    // What follows that byte in its piece, as much as a frame may take.
    // REQUIRES: first_byte <= byte < bytes.
    rocksdb::Slice At(uint64_t byte) const;
  };
  // One answer. A target has at most two unanswered requests, so what was
  // asked for two requests ago has arrived.
  struct Range {
    RangeRequest request;
    bool asked = true;  // on the connection at hand
    std::deque<Chunk> chunks;
    size_t sent_chunks = 0;  // of these, on the connection at hand
    bool ended = false;      // has all its chunks
    bool end_sent = false;   // on the connection at hand
    // Of the chunks sent in whole as an answer to `request`.
    Totals totals;
    RangeDigest chain;
    // Of the next chunk; `after` is what a request for it says.
    uint64_t next_ordinal = 0;
    std::optional<std::string> after;
  };

  void BeginRange(const RangeRequest& request);
  // A carried chunk that is gone on with has the frames that Rewind() kept.
  void BeginChunk(const ChunkBegin& begin);
  bool HasRoom(size_t bytes) const { return bytes_ + bytes <= kBytes; }
  // To the last chunk.
  void Add(const rocksdb::Slice& piece);
  // `after`: what a request for the chunk that follows says.
  void EndChunk(const ChunkEnd& end, const std::string& after);
  void EndRange() { ranges_.back().ended = true; }

  // Forgets what lies before the byte that is acknowledged. What is not known
  // here any more is passed over. kCorrupt: it was never sent.
  [[nodiscard]] rocksdb::Status Acknowledge(const ChunkAck& ack);

  enum class Found {
    kAll,        // what is not sent now follows what the target has
    kToBeRead,   // of a carried chunk, whose frames are kept, nothing else
    kNothing,    // and nothing is kept
  };
  // Makes the target stand where `request`, its first one on another
  // connection, says; the target then has to request the ranges behind it.
  // `building`: the last range, which has not ended, is resumed; otherwise the
  // window forgets it, and the lane answers its request anew.
  Found Rewind(const RangeRequest& request, bool building);
  // Where to go on with a carried chunk that Rewind() found.
  uint64_t FirstByte(const RangeRequest& request) const;
  void Clear();

  bool empty() const { return ranges_.empty(); }
  uint64_t bytes() const { return bytes_; }
  std::deque<Range>& ranges() { return ranges_; }
  // The first range that has not been sent to its end; null: there is none.
  Range* NextToSend();
  // Forgets the ranges that were not asked for on the connection at hand.
  void ForgetUnasked();
  Chunk& chunk() { return ranges_.back().chunks.back(); }
  // The last range is a carried file whose end has not come.
  bool carrying() const {
    return !ranges_.empty() && !ranges_.back().ended &&
           !ranges_.back().chunks.empty() &&
           !ranges_.back().chunks.back().rebuilt();
  }

 private:
  Range* Find(uint32_t range_id);
  void Release(Chunk* chunk, uint64_t bytes);
  void DropChunk(Range* range);  // its first
  void DropRange(bool first);    // or the last
  // Of what follows `chunk` of the first range nothing has arrived.
  bool SendAgainBehind(size_t chunk, bool building);

  std::deque<Range> ranges_;
  uint64_t bytes_ = 0;
  std::vector<std::string> spare_;
  uint64_t spare_bytes_ = 0;
  std::optional<uint32_t> kept_range_;  // of a carried chunk:
  FrameList kept_frames_;
};

}  // namespace sstferry
