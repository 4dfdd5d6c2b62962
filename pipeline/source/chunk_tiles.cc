// Chunks that replace their intervals at a target that holds data.
#include "format/key_for_message.h"
#include "pipeline/interval_reader.h"
#include "pipeline/source/chunk_writer.h"
#include "pipeline/source/read_failure.h"
#include "pipeline/tile.h"

namespace sstferry {

using rocksdb::Comparator;
using rocksdb::Slice;
using rocksdb::Status;

// What of a range is left to replace, from begin() on, and where the tile that
// begins there ends.
class ChunkBuilder::Tiles {
 public:
  Tiles(const Range& range, const ReplacedFamily& target,
        const Comparator* order)
      : range_(range), target_(target), order_(order) {}

  // Moves the reader to the first entry of what is left.
  void Start(const RangeRequest& request, IntervalReader* reader);
  // Something is left.
  bool more() const { return more_; }
  const std::string& begin() const { return begin_; }
  // The empty key is a tile of its own, since writers of newer versions assert
  // that both bounds of a file are empty or none.
  bool is_empty_key() const { return begin_.empty(); }

  // Ends the tile that holds the entries up to `last_entry` (null: none):
  // fills chunk's bounds and marks, and moves on to what follows.
  // kRefused for the empty key in an order of the application's.
  [[nodiscard]] Status End(const IntervalReader& reader, ChunkEnd* chunk);

 private:
  bool Before(const Slice& a, const Slice& b) const {
    return order_->Compare(a, b) < 0;
  }
  void StartAtOutermost(const IntervalReader& reader);
  // The tile ends before `next`, at which the following one begins.
  void EndBefore(const std::string& next, ChunkEnd* chunk);
  void EndAt(const std::string& last, ChunkEnd* chunk);
  void EndRange(ChunkEnd* chunk);

  const Range& range_;
  const ReplacedFamily& target_;
  const Comparator* const order_;
  std::string begin_;
  bool more_ = true;
};

void ChunkBuilder::Tiles::Start(const RangeRequest& request,
                                IntervalReader* reader) {
  if (request.after.has_value()) {
    if (!FirstKeyAfter(order_, *request.after, &begin_)) {
      // In reverse order only the last tile ends so; in orders of the
      // application's a tile is open at its end, which begins the next. (Its
      // last tile may come again, which changes nothing.)
      begin_ = *request.after;
      more_ = order_ != rocksdb::ReverseBytewiseComparator();
    }
    reader->SeekFrom(begin_);
  } else {
    reader->SeekToBegin();
    if (range_.interval.begin.has_value()) {
      begin_ = *range_.interval.begin;
    } else {
      StartAtOutermost(*reader);
    }
  }
  const auto& end = range_.interval.end;
  if (more_ && end.has_value()) {
    more_ = Before(begin_, *end);
  } else if (more_ && !reader->Valid()) {
    more_ = target_.last.has_value() && !Before(*target_.last, begin_);
  }
}

void ChunkBuilder::Tiles::StartAtOutermost(const IntervalReader& reader) {
  more_ = reader.Valid() || target_.first.has_value();
  if (reader.Valid()) {
    begin_ = reader.key().ToString();
  }
  if (target_.first.has_value() &&
      (!reader.Valid() || Before(*target_.first, begin_))) {
    begin_ = *target_.first;
  }
}

Status ChunkBuilder::Tiles::End(const IntervalReader& reader,
                                ChunkEnd* chunk) {
  chunk->smallest = begin_;
  if (is_empty_key() || (reader.Valid() && reader.key().empty())) {
    if (order_ != rocksdb::BytewiseComparator() &&
        order_ != rocksdb::ReverseBytewiseComparator()) {
      return MakeStatus(EndState::kRefused,
                        "the empty key in the order " +
                            std::string(order_->Name()) +
                            ": only a refresh by swap takes it");
    }
  }
  std::string next;
  if (is_empty_key()) {
    EndAt("", chunk);
    more_ = FirstKeyAfter(order_, "", &next);
    begin_ = next;
    if (more_ && !range_.interval.end.has_value() && !reader.Valid()) {
      more_ = target_.last.has_value() && !Before(*target_.last, begin_);
    } else if (more_ && range_.interval.end.has_value()) {
      more_ = Before(begin_, *range_.interval.end);
    }
  } else if (!reader.Valid()) {
    EndRange(chunk);
  } else if (order_ == rocksdb::BytewiseComparator()) {
    const std::string last = chunk->largest;
    EndAt(last, chunk);
    more_ = FirstKeyAfter(order_, last, &begin_);
  } else {
    EndBefore(reader.key().ToString(), chunk);
  }
  return Status::OK();
}

void ChunkBuilder::Tiles::EndAt(const std::string& last, ChunkEnd* chunk) {
  chunk->deletes_last = chunk->entries == 0 || chunk->largest != last;
  chunk->largest = last;
  chunk->clears = Before(chunk->smallest, last);
}

void ChunkBuilder::Tiles::EndBefore(const std::string& next, ChunkEnd* chunk) {
  std::string last;
  if (LastKeyBefore(order_, next, &last)) {
    EndAt(last, chunk);
  } else {
    chunk->largest = next;
    chunk->clears = true;
  }
  begin_ = next;
}

void ChunkBuilder::Tiles::EndRange(ChunkEnd* chunk) {
  more_ = false;
  if (range_.interval.end.has_value()) {
    EndBefore(*range_.interval.end, chunk);
    return;
  }
  std::string last = chunk->largest;
  if (target_.last.has_value() &&
      (chunk->entries == 0 || Before(last, *target_.last))) {
    last = *target_.last;
  }
  if (last.empty()) {
    // In reverse order, behind all others; it stands alone.
    EndBefore(last, chunk);
    more_ = true;
  } else {
    EndAt(last, chunk);
  }
}

Status ChunkBuilder::BuildTiles(const Range& range,
                                const RangeRequest& request) {
  IntervalReader reader(db_, family_, range.interval,
                        options_.readahead_bytes);
  Tiles tiles(range, *options_.replaces, family_->GetComparator());
  tiles.Start(request, &reader);
  uint32_t ordinal = static_cast<uint32_t>(request.held.chunks);
  Status status = ReadFailure(reader.status(),
                              "read range " + std::to_string(range.id) +
                                  " of column family '" + family_->GetName() +
                                  "'");
  while (status.ok() && tiles.more()) {
    status = BuildTile(&reader, &tiles, range.id, ordinal++);
  }
  return status;
}

Status ChunkBuilder::BuildTile(IntervalReader* reader, Tiles* tiles,
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
  Writer writer(chunk_options_);
  status = writer.Open();
  const bool has_entries =
      reader->Valid() && reader->key().empty() == tiles->is_empty_key();
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
