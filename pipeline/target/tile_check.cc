#include "pipeline/target/tile_check.h"

#include "format/key_for_message.h"
#include "pipeline/key_interval.h"
#include "pipeline/tile.h"

namespace sstferry {
namespace {

using rocksdb::Comparator;
using rocksdb::Status;

// Where the tile behind `last_key` begins: at an end that is exclusive, where
// no key is known that stands next.
std::string NextBegin(const Comparator* order, const std::string& last_key) {
  std::string next;
  return FirstKeyAfter(order, last_key, &next) ? next : last_key;
}

bool BeginsWhereItMust(const PullState& state, const Range& range,
                       uint64_t ordinal, const std::string& last_key,
                       const std::string& smallest) {
  const PullFamily& family = state.families[range.family];
  const Comparator* const order = family.comparator;
  if (!BeginsAtOrBefore(range.interval, order, smallest)) {
    return false;
  }
  if (!state.replaces) {
    return ordinal == 0 || order->Compare(smallest, last_key) > 0;
  }
  if (ordinal != 0) {
    return smallest == NextBegin(order, last_key);
  }
  if (range.interval.begin.has_value()) {
    return smallest == *range.interval.begin;
  }
  return !family.first || order->Compare(smallest, *family.first) <= 0;
}

// A chunk that clears may end where its range does.
bool EndsInside(const Comparator* order, const Range& range,
                const ChunkEnd& chunk) {
  return EndsAfter(range.interval, order, chunk.largest) ||
         (chunk.clears && !chunk.deletes_last &&
          order->Compare(chunk.largest, *range.interval.end) == 0);
}

}  // namespace

Status CheckChunkBounds(const PullState& state, const Range& range,
                        uint64_t ordinal, const std::string& last_key,
                        const ChunkEnd& chunk) {
  const Comparator* const order = state.families[range.family].comparator;
  const bool of_its_kind =
      state.replaces ? chunk.clears || chunk.smallest == chunk.largest
                     : !chunk.clears && !chunk.deletes_last;
  if (of_its_kind && chunk.range_id == range.id && chunk.ordinal == ordinal &&
      order->Compare(chunk.smallest, chunk.largest) <= 0 &&
      BeginsWhereItMust(state, range, ordinal, last_key, chunk.smallest) &&
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

Status CheckCleared(const PullState& state, const Range& range,
                    uint64_t chunks, const std::string& last_key) {
  const PullFamily& family = state.families[range.family];
  const Comparator* const order = family.comparator;
  const std::optional<std::string>& end = range.interval.end;
  bool cleared = false;
  if (chunks == 0) {
    cleared = !family.first || !MeetsSpan(range.interval, order, *family.first,
                                          *family.last);
  } else if (end.has_value()) {
    std::string last;
    cleared = last_key == (LastKeyBefore(order, *end, &last) ? last : *end);
  } else {
    cleared = !family.last || order->Compare(last_key, *family.last) >= 0;
  }
  return cleared ? Status::OK()
                 : MakeStatus(EndState::kCorrupt,
                              "end of range " + std::to_string(range.id) +
                                  ": expected chunks up to it, found " +
                                  std::to_string(chunks) + " up to " +
                                  KeyForMessage(last_key));
}

}  // namespace sstferry
