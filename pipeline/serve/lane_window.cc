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
                    "part " + std::to_string(ack.part_id) + " chunk " +
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

void LaneWindow::BeginRange(const PartRequest& request) {
  while (parts_.size() > 1) {
    DropPart(/*first=*/true);
  }
  Part& part = parts_.emplace_back();
  part.request = request;
  part.next_ordinal = request.received.chunks;
  part.after = request.after;
}

void LaneWindow::BeginChunk(const ChunkBegin& begin) {
  Part& part = parts_.back();
  Chunk& chunk = part.chunks.emplace_back();
  chunk.begin = begin;
  chunk.after = part.after;
  if (begin.first_byte != 0) {
    chunk.frames = std::move(kept_frames_);
  }
  if (kept_part_ == begin.part_id) {
    chunk.careful_until = begin.first_byte + kCarefulBytes;
  }
  kept_part_.reset();
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
  Part& part = parts_.back();
  part.chunks.back().end = end;
  part.next_ordinal++;
  part.after = std::move(after);
  part.ended = !part.chunks.back().rebuilt();  // it has no other
  bytes_ += BytesOfEnd(end);
}

// A part that is compared in pieces is asked for once for each piece's delta:
// with chunks 0 and 1 of the first one sent, chunk 2 belongs to the second.
LaneWindow::Part* LaneWindow::Find(uint32_t part_id, uint64_t ordinal) {
  const auto found = std::find_if(
      parts_.rbegin(), parts_.rend(), [&](const Part& part) {
        return part.request.part_id == part_id &&
               part.request.received.chunks <= ordinal;
      });
  return found == parts_.rend() ? nullptr : &*found;
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

void LaneWindow::DropChunk(Part* part) {
  Chunk& chunk = part->chunks.front();
  if (read_of_ == chunk.kept.get()) {
    read_of_ = nullptr;
  }
  Release(&chunk, chunk.bytes);
  bytes_ -= kBytesPerChunk + (chunk.end ? BytesOfEnd(*chunk.end) : 0);
  part->chunks.pop_front();
  part->sent_chunks -= part->sent_chunks > 0 ? 1 : 0;
}

void LaneWindow::DropPart(bool first) {
  Part& part = first ? parts_.front() : parts_.back();
  while (!part.chunks.empty()) {
    DropChunk(&part);
  }
  first ? parts_.pop_front() : parts_.pop_back();
}

LaneWindow::Part* LaneWindow::NextToSend() {
  for (Part& part : parts_) {
    if (!part.end_sent) {
      return &part;
    }
  }
  return nullptr;
}

void LaneWindow::ForgetUnasked() {
  while (!parts_.empty() && !parts_.back().asked) {
    DropPart(/*first=*/false);
  }
}

void LaneWindow::Clear() {
  while (!parts_.empty()) {
    DropPart(/*first=*/true);
  }
  kept_part_.reset();
  kept_frames_.Clear();
}

Status LaneWindow::Acknowledge(const ChunkAck& ack) {
  Part* const part = Find(ack.part_id, ack.ordinal);
  if (part == nullptr) {
    return Status::OK();
  }
  while (&parts_.front() != part) {
    if (!parts_.front().end_sent) {
      return NotSent(ack);
    }
    DropPart(/*first=*/true);
  }
  while (!part->chunks.empty() &&
         part->chunks.front().begin.ordinal < ack.ordinal) {
    if (part->sent_chunks == 0) {
      return NotSent(ack);
    }
    DropChunk(part);
  }
  if (part->chunks.empty() ||
      part->chunks.front().begin.ordinal != ack.ordinal) {
    return ack.ordinal > part->next_ordinal ? NotSent(ack) : Status::OK();
  }
  Chunk& chunk = part->chunks.front();
  if (ack.bytes > chunk.frames.bytes()) {
    return NotSent(ack);
  }
  Release(&chunk, ack.bytes);
  return Status::OK();
}

bool LaneWindow::SendAgainBehind(size_t chunk, bool building) {
  size_t kept = 0;
  for (Part& part : parts_) {
    if (!part.ended && !(building && &part == &parts_.back())) {
      break;
    }
    size_t i = kept == 0 ? chunk : 0;
    for (; i < part.chunks.size(); ++i) {
      Chunk& later = part.chunks[i];
      if (!later.rebuilt() || later.first_byte != 0) {
        break;
      }
      later.frames.Clear();
      later.careful_until = later.bytes;
      later.begun = false;
    }
    if (i < part.chunks.size()) {
      break;
    }
    part.sent_chunks = 0;
    part.end_sent = false;
    part.totals = Totals();
    part.chain = RangeDigest();
    kept++;
  }
  if (kept == 0 || (building && kept < parts_.size())) {
    return false;
  }
  while (parts_.size() > kept) {
    DropPart(/*first=*/false);
  }
  return true;
}

LaneWindow::Found LaneWindow::Rewind(const PartRequest& request,
                                     bool building) {
  Part* const part = Find(request.part_id, request.received.chunks);
  bool found = part != nullptr;
  while (found && &parts_.front() != part) {
    DropPart(/*first=*/true);
  }
  while (found && !part->chunks.empty() && part->chunks.front().end &&
         part->chunks.front().begin.ordinal < request.received.chunks) {
    DropChunk(part);
  }
  if (found && part->chunks.empty()) {
    found = request.received.chunks == part->next_ordinal &&
            request.after == part->after && request.open_bytes == 0 &&
            SendAgainBehind(0, building);
  } else if (found) {
    Chunk& chunk = part->chunks.front();
    const bool here = request.received.chunks == chunk.begin.ordinal &&
                      request.after == chunk.after &&
                      chunk.frames.EndsAt(request.open_frames,
                                          request.open_bytes);
    const bool whole = chunk.end && request.open_bytes == chunk.end->file_bytes;
    if (here && !chunk.rebuilt() && !whole) {
      FrameList frames = std::move(chunk.frames);
      frames.Truncate(request.open_frames);
      Clear();
      kept_frames_ = std::move(frames);
      kept_part_ = request.part_id;
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
  part->request = request;
  for (Part& kept : parts_) {
    kept.asked = &kept == part;
  }
  return Found::kAll;
}

uint64_t LaneWindow::FirstByte(const PartRequest& request) const {
  const bool kept = kept_part_ == request.part_id &&
                    kept_frames_.EndsAt(request.open_frames,
                                        request.open_bytes);
  return kept ? request.open_bytes : 0;
}

}  // namespace sstferry
