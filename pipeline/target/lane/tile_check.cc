#include "pipeline/target/lane/tile_check.h"

#include "format/message/key_for_message.h"
#include "pipeline/base/key_interval.h"
#include "pipeline/base/tile.h"
#include "pipeline/target/lane/unit_check.h"

namespace sstferry {
namespace {

using rocksdb::Comparator;
using rocksdb::Status;

bool BeginsWhereItMust(const PullState& state, const Range& range,
                       uint64_t ordinal, const TileEnd& before,
                       const std::string& smallest) {
  const PullFamily& family = state.families[range.family];
  const Comparator* const order = family.comparator;
  if (!BeginsAtOrBefore(range.interval, order, smallest)) {
    return false;
  }
  if (!state.replaces) {
    return ordinal == 0 || order->Compare(smallest, before.key) > 0;
  }
  if (ordinal != 0) {
    return smallest == NextBegin(order, before);
  }
  if (range.interval.begin.has_value()) {
    return smallest == *range.interval.begin;
  }
  return !family.first || order->Compare(smallest, *family.first) <= 0;
}

// A chunk that ends before its largest key may end where its range does.
bool EndsInside(const Comparator* order, const Range& range,
                const ChunkEnd& chunk) {
  return EndsAfter(range.interval, order, chunk.largest) ||
         (EndOf(chunk).exclusive &&
          order->Compare(chunk.largest, *range.interval.end) == 0);
}

// What a range deletion does not cover is one key by itself: a deletion, or the
// family's last entry where nobody knows a key behind it.
bool IsTile(const Comparator* order, const Range& range,
            const ChunkEnd& chunk) {
  std::string behind;
  if (chunk.clears) {
    return order->Compare(chunk.smallest, chunk.largest) < 0 &&
           (!chunk.deletes_last ||
            FirstKeyAfter(order, chunk.largest, &behind));
  }
  const bool builtin = order == rocksdb::BytewiseComparator() ||
                       order == rocksdb::ReverseBytewiseComparator();
  const bool may_hold = !range.interval.end.has_value() &&
                        !(builtin && KeyBehind(order, chunk.largest, &behind));
  return chunk.smallest == chunk.largest &&
         (chunk.deletes_last ? chunk.entries == 0
                             : chunk.entries == 1 && may_hold);
}

// It leaves the rest of its range as it is.
bool IsDelta(const Comparator* order, const Range& range,
             const ChunkEnd& chunk) {
  return !chunk.clears && !chunk.deletes_last &&
         BeginsAtOrBefore(range.interval, order, chunk.smallest);
}

}  // namespace

Status CheckTurn(const PullState& state, const Range& range,
                 const ChunkBegin& begin, uint64_t ordinal, bool whole) {
  if (begin.range_id != range.id || begin.ordinal != ordinal) {
    return MakeStatus(EndState::kCorrupt,
                      "chunk: expected range " + std::to_string(range.id) +
                          " chunk " + std::to_string(ordinal) +
                          ", found range " + std::to_string(begin.range_id) +
                          " chunk " + std::to_string(begin.ordinal));
  }
  if (begin.kind == ChunkKind::kCloned || state.clone != nullptr) {
    return CheckUnitTurn(state.clone, begin, ordinal);
  }
  const bool delta = begin.kind == ChunkKind::kDelta;
  if (delta && (!state.takes_delta || range.need == RangeNeed::kSend)) {
    return MakeStatus(EndState::kCorrupt,
                      "chunk: expected a rebuilt one as agreed, found a delta");
  }
  if (whole || (delta && ordinal != 0)) {
    return MakeStatus(EndState::kCorrupt,
                      "chunk: expected a delta to be the only one of its "
                      "range, found another");
  }
  return Status::OK();
}

Status CheckChunkBounds(const PullState& state, const Range& range,
                        uint64_t ordinal, const TileEnd& before,
                        const JournalChunk& record) {
  const ChunkEnd& chunk = record.chunk;
  const Comparator* const order = state.families[range.family].comparator;
  const bool delta = record.kind == ChunkKind::kDelta;
  const bool of_its_kind =
      delta            ? IsDelta(order, range, chunk)
      : state.replaces ? IsTile(order, range, chunk)
                       : !chunk.clears && !chunk.deletes_last;
  if (of_its_kind && chunk.range_id == range.id && chunk.ordinal == ordinal &&
      order->Compare(chunk.smallest, chunk.largest) <= 0 &&
      (delta ||
       BeginsWhereItMust(state, range, ordinal, before, chunk.smallest)) &&
      EndsInside(order, range, chunk)) {
    return Status::OK();
  }
  return MakeStatus(
      EndState::kCorrupt,
      "chunk keys: expected inside the range and after the chunk before" +
          std::string(state.replaces ? ", without a gap" : "") + ", found " +
          KeyForMessage(chunk.smallest) + " to " +
          KeyForMessage(chunk.largest));
}

Status CheckTotals(const Range& range, const RangeEnd& end,
                   const Totals& found, const Digest128& chain) {
  return end.range_id == range.id && end.totals == found && end.chain == chain
             ? Status::OK()
             : MakeStatus(EndState::kCorrupt,
                          "end of range " + std::to_string(range.id) +
                              ": expected " +
                              std::to_string(end.totals.entries) +
                              " entries in " +
                              std::to_string(end.totals.chunks) +
                              " chunks, found " +
                              std::to_string(found.entries) + " in " +
                              std::to_string(found.chunks));
}

Status CheckCleared(const PullState& state, const Range& range,
                    uint64_t chunks, const TileEnd& last) {
  const PullFamily& family = state.families[range.family];
  const Comparator* const order = family.comparator;
  const std::optional<std::string>& end = range.interval.end;
  bool cleared = false;
  if (chunks == 0) {
    cleared = !family.first || !MeetsSpan(range.interval, order, *family.first,
                                          *family.last);
  } else if (end.has_value()) {
    cleared = NextBegin(order, last) == *end;
  } else {
    cleared = !family.last || order->Compare(last.key, *family.last) >=
                                  (last.exclusive ? 1 : 0);
  }
  return cleared ? Status::OK()
                 : MakeStatus(EndState::kCorrupt,
                              "end of range " + std::to_string(range.id) +
                                  ": expected chunks up to it, found " +
                                  std::to_string(chunks) + " up to " +
                                  KeyForMessage(last.key));
}

}  // namespace sstferry
