// Whether a chunk lies where it must: inside its range and behind the chunk
// before it; of a refresh, without a gap that would leave old entries alive.
#pragma once

#include <cstdint>

#include "format/message/messages.h"
#include "pipeline/target/lane/pull_state.h"
#include "rocksdb/status.h"

namespace sstferry {

// `ordinal` is the chunk's in its range; `before` is where the one before it
// ends. kCorrupt: it lies elsewhere, or holds what no chunk may.
[[nodiscard]] rocksdb::Status CheckChunkBounds(const PullState& state,
                                               const Range& range,
                                               uint64_t ordinal,
                                               const TileEnd& before,
                                               const ChunkEnd& chunk);

// At the end of a range of a refresh, after so many chunks. kCorrupt: they do
// not reach it.
[[nodiscard]] rocksdb::Status CheckCleared(const PullState& state,
                                           const Range& range, uint64_t chunks,
                                           const TileEnd& last);

}  // namespace sstferry
