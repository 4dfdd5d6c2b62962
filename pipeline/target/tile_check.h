// Whether a chunk lies where it must: inside its range and behind the chunk
// before it; of a refresh, without a gap that would leave old entries alive.
#pragma once

#include <cstdint>
#include <string>

#include "format/messages.h"
#include "pipeline/target/pull_state.h"
#include "rocksdb/status.h"

namespace sstferry {

// `ordinal` is the chunk's in its range; of those before it, `last_key` is the
// end of the last one. kCorrupt: it lies elsewhere.
[[nodiscard]] rocksdb::Status CheckChunkBounds(const PullState& state,
                                               const Range& range,
                                               uint64_t ordinal,
                                               const std::string& last_key,
                                               const ChunkEnd& chunk);

// At the end of a range of a refresh, after so many chunks. kCorrupt: they do
// not reach it.
[[nodiscard]] rocksdb::Status CheckCleared(const PullState& state,
                                           const Range& range, uint64_t chunks,
                                           const std::string& last_key);

}  // namespace sstferry
