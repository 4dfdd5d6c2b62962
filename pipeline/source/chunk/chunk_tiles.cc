// Builds the chunks of a refresh, which replace their intervals at the target.
#include "format/limits.h"
#include "format/message/key_for_message.h"
#include "pipeline/base/tile.h"
#include "pipeline/read/interval_reader.h"
#include "pipeline/read/range_entries.h"
#include "pipeline/source/chunk/chunk_builder.h"
#include "pipeline/source/chunk/chunk_writer.h"
#include "pipeline/source/chunk/read_failure.h"

namespace sstferry {

using rocksdb::Comparator;
using rocksdb::Slice;
using rocksdb::Status;

// Iterates over the replacement intervals (tiles) of one range: the rest of the
// range from begin(), and the end of the tile that begins there.
class ChunkBuilder::Tiles {
 public:
  Tiles(const Range& range, const ReplacedFamily& target,
        const Comparator* order)
      : range_(range), target_(target), order_(order) {}

  // Moves the reader to the first entry of the rest.
  void Start(const RangeRequest& request, RangeEntries* reader);
  // True while a part of the range is left.
  bool more() const { return more_; }
  const std::string& begin() const { return begin_; }

  // Ends the tile of the entries before the reader's position: fills the
  // chunk's bounds and marks, and advances to the rest.
  // kRefused: the empty key in an order of the application's.
  [[nodiscard]] Status End(const EntryReader& reader, ChunkEnd* chunk);

 private:
  bool Before(const Slice& a, const Slice& b) const {
    return order_->Compare(a, b) < 0;
  }
  bool is_builtin() const {
    return order_ == rocksdb::BytewiseComparator() ||
           order_ == rocksdb::ReverseBytewiseComparator();
  }
  void StartAtOutermost(const EntryReader& reader);
  void SetMore(const EntryReader& reader);
  // Ends the tile before `end`, where the next one begins.
  void EndBefore(const std::string& end, ChunkEnd* chunk);
  // Ends the tile behind its last entry, before the next entry.
  void CutBefore(const std::string& next, ChunkEnd* chunk);
  void EndFamily(ChunkEnd* chunk);

  const Range& range_;
  const ReplacedFamily& target_;
  const Comparator* const order_;
  std::string begin_;
  bool more_ = true;
};

void ChunkBuilder::Tiles::Start(const RangeRequest& request,
                                RangeEntries* reader) {
  if (request.after.has_value()) {
    begin_ = *request.after;
    reader->SeekFrom(begin_);
  } else {
    reader->SeekToBegin();
    if (range_.interval.begin.has_value()) {
      begin_ = *range_.interval.begin;
    } else {
      StartAtOutermost(*reader);
    }
  }
  if (more_) {
    SetMore(*reader);
  }
}

void ChunkBuilder::Tiles::StartAtOutermost(const EntryReader& reader) {
  more_ = reader.Valid() || target_.first.has_value();
  if (reader.Valid()) {
    begin_ = reader.key().ToString();
  }
  if (target_.first.has_value() &&
      (!reader.Valid() || Before(*target_.first, begin_))) {
    begin_ = *target_.first;
  }
}

void ChunkBuilder::Tiles::SetMore(const EntryReader& reader) {
  if (range_.interval.end.has_value()) {
    more_ = Before(begin_, *range_.interval.end);
  } else if (!reader.Valid()) {
    more_ = target_.last.has_value() && !Before(*target_.last, begin_);
  }
}

Status ChunkBuilder::Tiles::End(const EntryReader& reader,
                                ChunkEnd* chunk) {
  const bool empty_key =
      begin_.empty() || (reader.Valid() && reader.key().empty());
  if (empty_key && !is_builtin()) {
    return MakeStatus(EndState::kRefused,
                      "a refresh in place cannot replace the empty key in the "
                      "order " + std::string(order_->Name()) +
                          "; refresh by swap instead");
  }
  chunk->smallest = begin_;
  if (reader.Valid()) {
    CutBefore(reader.key().ToString(), chunk);
  } else if (range_.interval.end.has_value()) {
    EndBefore(*range_.interval.end, chunk);
    more_ = false;
  } else {
    EndFamily(chunk);
  }
  return Status::OK();
}

void ChunkBuilder::Tiles::EndBefore(const std::string& end, ChunkEnd* chunk) {
  std::string last;
  chunk->deletes_last = LastKeyBefore(order_, end, &last) &&
                        last.size() <= kMaxKeyBytes &&
                        (chunk->entries == 0 || chunk->largest != last);
  chunk->largest = chunk->deletes_last ? last : end;
  chunk->clears = Before(chunk->smallest, chunk->largest);
  begin_ = end;
}

void ChunkBuilder::Tiles::CutBefore(const std::string& next, ChunkEnd* chunk) {
  const std::string end = ClosedEnd(order_, chunk->largest);
  // If it does not fit, the next entry begins the next tile.
  const bool fits = order_ == rocksdb::BytewiseComparator() &&
                    chunk->entries != 0 && end.size() <= kMaxKeyBytes &&
                    !Before(next, end);
  EndBefore(fits ? end : next, chunk);
}

// Ends the last tile of the family, behind the outermost key of both sides.
void ChunkBuilder::Tiles::EndFamily(ChunkEnd* chunk) {
  std::string last = chunk->largest;
  if (target_.last.has_value() &&
      (chunk->entries == 0 || Before(last, *target_.last))) {
    last = *target_.last;
  }
  std::string behind;
  more_ = false;
  if (KeyBehind(order_, last, &behind)) {
    chunk->largest = behind;
    chunk->clears = true;
  } else if (chunk->smallest == last) {
    // A tile of its own without a range deletion, which could not include the
    // key.
    chunk->largest = last;
    chunk->deletes_last = chunk->entries == 0;
  } else {
    EndBefore(last, chunk);
    more_ = true;
  }
}

Status ChunkBuilder::BuildTiles(const Range& range,
                                const RangeRequest& request) {
  RangeEntries reader = EntriesOf(range);
  Tiles tiles(range, *options_.replaces, family_->GetComparator());
  const auto failure = [&] {
    return ReadFailure(reader.status(),
                       "read range " + std::to_string(range.id) +
                           " of column family '" + family_->GetName() + "'");
  };
  Status status = FindLoneKey(range);
  if (status.ok()) {
    tiles.Start(request, &reader);
    status = failure();
  }
  uint32_t ordinal = static_cast<uint32_t>(request.held.chunks);
  while (status.ok() && tiles.more()) {
    status = BuildTile(&reader, &tiles, range.id, ordinal++);
  }
  return status;
}

// Sets lone_key_ to the source's last key if a range deletion cannot include
// it.
Status ChunkBuilder::FindLoneKey(const Range& range) {
  lone_key_.reset();
  if (range.interval.end.has_value()) {
    return Status::OK();
  }
  IntervalReader reader(db_, family_, range.interval, /*readahead_bytes=*/0);
  reader.iterator()->SeekToLast();
  if (!reader.Valid()) {
    return ReadFailure(reader.status(), "read the last key of column family '" +
                                            family_->GetName() + "'");
  }
  const Comparator* const order = family_->GetComparator();
  const std::string key = reader.key().ToString();
  const auto& last = options_.replaces->last;
  std::string behind;
  if (!KeyBehind(order, key, &behind) &&
      (!last.has_value() || order->Compare(*last, key) <= 0)) {
    lone_key_ = key;
  }
  return Status::OK();
}

Status ChunkBuilder::BuildTile(EntryReader* reader, Tiles* tiles,
                               uint32_t range_id, uint32_t ordinal) {
  ChunkBegin begin;
  begin.range_id = range_id;
  begin.ordinal = ordinal;
  Status status = sink_->Begin(begin);
  if (!status.ok()) {
    return status;
  }
  ChunkEnd chunk;
  chunk.range_id = range_id;
  chunk.ordinal = ordinal;
  ChunkWriter writer(chunk_options_);
  status = writer.Open();
  const bool has_entries =
      reader->Valid() &&
      (!lone_key_.has_value() || reader->key() != *lone_key_ ||
       tiles->begin() == *lone_key_);
  if (status.ok() && has_entries) {
    status = AddEntries(reader, &writer, &chunk);
  }
  if (status.ok()) {
    status = tiles->End(*reader, &chunk);
  }
  if (status.ok() && chunk.clears) {
    status = WithContext(writer.DeleteRange(chunk.smallest, chunk.largest),
                         EndState::kInternal,
                         "clear up to " + KeyForMessage(chunk.largest));
  }
  if (status.ok() && chunk.deletes_last) {
    status = WithContext(writer.Delete(chunk.largest), EndState::kInternal,
                         "delete " + KeyForMessage(chunk.largest));
  }
  return status.ok() ? FinishChunk(&writer, &chunk) : status;
}

}  // namespace sstferry
