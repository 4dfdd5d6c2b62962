#include "pipeline/serve/lane_window.h"

#include <algorithm>
#include <utility>

#include "format/end_state.h"

namespace sstferry {
namespace {

using rocksdb::Slice;
using rocksdb::Status;

uint64_t BytesOfEnd(const ChunkEnd& end) {
  return end.smallest.size() + end.largest.size();
}

// Bytes read at once of a chunk that can be read again.
constexpr uint64_t kReadBytes = 512u << 10;

Status NotSent(const ChunkAck& ack) {
  return MakeStatus(EndState::kCorrupt,
                    "lane: expected what was sent to be acknowledged, found "
                    "range " + std::to_string(ack.range_id) + " chunk " +
                        std::to_string(ack.ordinal) + " up to byte " +
                        std::to_string(ack.bytes));
}

}  // namespace

Slice LaneWindow::Chunk::At(uint64_t byte) const {
  uint64_t at = bytes;
  size_t i = pieces.size();
  while (at > byte) {
    at -= pieces[--i].size();
  }
  Slice rest(pieces[i]);
  rest.remove_prefix(static_cast<size_t>(byte - at));
  return Slice(rest.data(), FrameBytes(rest.size()));
}

void LaneWindow::BeginRange(const RangeRequest& request) {
  while (ranges_.size() > 1) {
    DropRange(/*first=*/true);
  }
  Range& range = ranges_.emplace_back();
  range.request = request;
  range.next_ordinal = request.held.chunks;
  range.after = request.after;
}

void LaneWindow::BeginChunk(const ChunkBegin& begin) {
  Range& range = ranges_.back();
  Chunk& chunk = range.chunks.emplace_back();
  chunk.begin = begin;
  chunk.after = range.after;
  if (begin.first_byte != 0) {
    chunk.frames = std::move(kept_frames_);
  }
  if (kept_range_ == begin.range_id) {
    chunk.careful_until = begin.first_byte + kCarefulBytes;
  }
  kept_range_.reset();
  kept_frames_.Clear();
  bytes_ += kBytesPerChunk;
}

Status LaneWindow::Get(const Chunk& chunk, uint64_t byte, Slice* piece) {
  if (chunk.kept == nullptr) {
    *piece = chunk.At(byte);
    return Status::OK();
  }
  if (read_of_ != chunk.kept.get() || byte < read_at_ ||
      byte >= read_at_ + view_.size()) {
    const Status status = chunk.kept->Read(
        byte, static_cast<size_t>(std::min<uint64_t>(chunk.bytes - byte,
                                                     kReadBytes)),
        &read_);
    read_of_ = status.ok() ? chunk.kept.get() : nullptr;
    read_at_ = byte;
    view_ = read_;
    if (!status.ok()) {
      return status;
    }
  }
  Slice rest = view_;
  rest.remove_prefix(static_cast<size_t>(byte - read_at_));
  *piece = Slice(rest.data(), chunk.FrameBytes(rest.size()));
  return Status::OK();
}

void LaneWindow::Add(const Slice& piece) {
  Chunk& last = chunk();
  if (last.kept != nullptr) {
    view_ = piece;
    read_of_ = last.kept.get();
    read_at_ = last.bytes;
    last.bytes += piece.size();
    return;
  }
  std::string& copy = last.pieces.emplace_back();
  if (!spare_.empty() && spare_.back().capacity() <= 2 * piece.size()) {
    spare_bytes_ -= spare_.back().capacity();
    copy = std::move(spare_.back());
    spare_.pop_back();
  }
  copy.assign(piece.data(), piece.size());
  last.bytes += piece.size();
  bytes_ += piece.size();
}

void LaneWindow::EndChunk(const ChunkEnd& end,
                          std::optional<std::string> after) {
  Range& range = ranges_.back();
  range.chunks.back().end = end;
  range.next_ordinal++;
  range.after = std::move(after);
  range.ended = !range.chunks.back().rebuilt();  // it has no other
  bytes_ += BytesOfEnd(end);
}

// A range that is compared in parts is asked for once for each part's delta:
// with chunks 0 and 1 of the first one sent, chunk 2 belongs to the second.
LaneWindow::Range* LaneWindow::Find(uint32_t range_id, uint64_t ordinal) {
  const auto found = std::find_if(
      ranges_.rbegin(), ranges_.rend(), [&](const Range& range) {
        return range.request.range_id == range_id &&
               range.request.held.chunks <= ordinal;
      });
  return found == ranges_.rend() ? nullptr : &*found;
}

// Releases the pieces that end at `bytes` or before. A kept chunk has none, and
// can be sent again from its first byte on.
void LaneWindow::Release(Chunk* chunk, uint64_t bytes) {
  while (!chunk->pieces.empty() &&
         chunk->first_byte + chunk->pieces.front().size() <= bytes) {
    std::string& piece = chunk->pieces.front();
    chunk->first_byte += piece.size();
    bytes_ -= piece.size();
    if (spare_bytes_ + piece.capacity() <=
        std::min(kSpareBytes, most_ / 2)) {
      spare_bytes_ += piece.capacity();
      spare_.push_back(std::move(piece));
    }
    chunk->pieces.pop_front();
  }
}

void LaneWindow::DropChunk(Range* range) {
  Chunk& chunk = range->chunks.front();
  if (read_of_ == chunk.kept.get()) {
    read_of_ = nullptr;
  }
  Release(&chunk, chunk.bytes);
  bytes_ -= kBytesPerChunk + (chunk.end ? BytesOfEnd(*chunk.end) : 0);
  range->chunks.pop_front();
  range->sent_chunks -= range->sent_chunks > 0 ? 1 : 0;
}

void LaneWindow::DropRange(bool first) {
  Range& range = first ? ranges_.front() : ranges_.back();
  while (!range.chunks.empty()) {
    DropChunk(&range);
  }
  first ? ranges_.pop_front() : ranges_.pop_back();
}

LaneWindow::Range* LaneWindow::NextToSend() {
  for (Range& range : ranges_) {
    if (!range.end_sent) {
      return &range;
    }
  }
  return nullptr;
}

void LaneWindow::ForgetUnasked() {
  while (!ranges_.empty() && !ranges_.back().asked) {
    DropRange(/*first=*/false);
  }
}

void LaneWindow::Clear() {
  while (!ranges_.empty()) {
    DropRange(/*first=*/true);
  }
  kept_range_.reset();
  kept_frames_.Clear();
}

Status LaneWindow::Acknowledge(const ChunkAck& ack) {
  Range* const range = Find(ack.range_id, ack.ordinal);
  if (range == nullptr) {
    return Status::OK();
  }
  while (&ranges_.front() != range) {
    if (!ranges_.front().end_sent) {
      return NotSent(ack);
    }
    DropRange(/*first=*/true);
  }
  while (!range->chunks.empty() &&
         range->chunks.front().begin.ordinal < ack.ordinal) {
    if (range->sent_chunks == 0) {
      return NotSent(ack);
    }
    DropChunk(range);
  }
  if (range->chunks.empty() ||
      range->chunks.front().begin.ordinal != ack.ordinal) {
    return ack.ordinal > range->next_ordinal ? NotSent(ack) : Status::OK();
  }
  Chunk& chunk = range->chunks.front();
  if (ack.bytes > chunk.frames.bytes()) {
    return NotSent(ack);
  }
  Release(&chunk, ack.bytes);
  return Status::OK();
}

bool LaneWindow::SendAgainBehind(size_t chunk, bool building) {
  size_t kept = 0;
  for (Range& range : ranges_) {
    if (!range.ended && !(building && &range == &ranges_.back())) {
      break;
    }
    size_t i = kept == 0 ? chunk : 0;
    for (; i < range.chunks.size(); ++i) {
      Chunk& later = range.chunks[i];
      if (!later.rebuilt() || later.first_byte != 0) {
        break;
      }
      later.frames.Clear();
      later.careful_until = later.bytes;
      later.begun = false;
    }
    if (i < range.chunks.size()) {
      break;
    }
    range.sent_chunks = 0;
    range.end_sent = false;
    range.totals = Totals();
    range.chain = RangeDigest();
    kept++;
  }
  if (kept == 0 || (building && kept < ranges_.size())) {
    return false;
  }
  while (ranges_.size() > kept) {
    DropRange(/*first=*/false);
  }
  return true;
}

LaneWindow::Found LaneWindow::Rewind(const RangeRequest& request,
                                     bool building) {
  Range* const range = Find(request.range_id, request.held.chunks);
  bool found = range != nullptr;
  while (found && &ranges_.front() != range) {
    DropRange(/*first=*/true);
  }
  while (found && !range->chunks.empty() && range->chunks.front().end &&
         range->chunks.front().begin.ordinal < request.held.chunks) {
    DropChunk(range);
  }
  if (found && range->chunks.empty()) {
    found = request.held.chunks == range->next_ordinal &&
            request.after == range->after && request.open_bytes == 0 &&
            SendAgainBehind(0, building);
  } else if (found) {
    Chunk& chunk = range->chunks.front();
    const bool here = request.held.chunks == chunk.begin.ordinal &&
                      request.after == chunk.after &&
                      chunk.frames.EndsAt(request.open_frames,
                                          request.open_bytes);
    const bool whole = chunk.end && request.open_bytes == chunk.end->file_bytes;
    if (here && !chunk.rebuilt() && !whole) {
      FrameList frames = std::move(chunk.frames);
      frames.Truncate(request.open_frames);
      Clear();
      kept_frames_ = std::move(frames);
      kept_range_ = request.range_id;
      return Found::kToBeRead;
    }
    found = here && request.open_bytes >= chunk.first_byte &&
            SendAgainBehind(1, building);
    if (found) {
      chunk.frames.Truncate(request.open_frames);
      chunk.careful_until = chunk.bytes;
      chunk.begun = false;
      Release(&chunk, request.open_bytes);
    }
  }
  if (!found) {
    Clear();
    return Found::kNothing;
  }
  range->request = request;
  for (Range& kept : ranges_) {
    kept.asked = &kept == range;
  }
  return Found::kAll;
}

uint64_t LaneWindow::FirstByte(const RangeRequest& request) const {
  const bool kept = kept_range_ == request.range_id &&
                    kept_frames_.EndsAt(request.open_frames,
                                        request.open_bytes);
  return kept ? request.open_bytes : 0;
}

}  // namespace sstferry
