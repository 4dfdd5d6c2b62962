// Whether a chunk lies where it must: inside its range and behind the chunk
// before it; of a refresh, without a gap that would leave old entries alive.
#pragma once

#include <cstdint>

#include "format/message/messages.h"
#include "pipeline/target/database/chunk_store.h"
#include "pipeline/target/lane/pull_state.h"
#include "rocksdb/status.h"

namespace sstferry {

// Whether a chunk of this kind may come now: `ordinal` is the next one of its
// range, `whole` says that the range has the only chunk that it may have.
// kCorrupt: it may not.
[[nodiscard]] rocksdb::Status CheckTurn(const PullState& state,
                                        const Range& range,
                                        const ChunkBegin& begin,
                                        uint64_t ordinal, bool whole);

// `ordinal` is the chunk's in its range; `before` is where the one before it
// ends. kCorrupt: it lies elsewhere, or holds what no chunk may.
[[nodiscard]] rocksdb::Status CheckChunkBounds(const PullState& state,
                                               const Range& range,
                                               uint64_t ordinal,
                                               const TileEnd& before,
                                               const JournalChunk& record);

// Compares the end of a range with what came. kCorrupt: they differ.
[[nodiscard]] rocksdb::Status CheckTotals(const Range& range,
                                          const RangeEnd& end,
                                          const Totals& found,
                                          const Digest128& chain);

// At the end of a range of a refresh, after so many chunks. kCorrupt: they do
// not reach it.
[[nodiscard]] rocksdb::Status CheckCleared(const PullState& state,
                                           const Range& range, uint64_t chunks,
                                           const TileEnd& last);

}  // namespace sstferry
