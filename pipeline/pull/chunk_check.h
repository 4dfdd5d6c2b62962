// Checks what a source sends of a part: whether a chunk may come and lies where
// it must, whether its file is what its ChunkEnd says and fit for RocksDB, and
// whether the totals at the end are right.
#pragma once

#include <string>

#include "pipeline/pull/chunk_store.h"
#include "pipeline/pull/lane_shared.h"
#include "rocksdb/file_system.h"
#include "rocksdb/status.h"

namespace sstferry {

// Checks that a chunk of this kind may come now: `ordinal` is the next one of
// its part, `as_delta` tells that one was asked for, `whole` that the only
// chunk which may come has come. kCorrupt: it may not.
[[nodiscard]] rocksdb::Status CheckTurn(const LaneShared& state,
                                        const Part& part,
                                        const ChunkBegin& begin,
                                        uint64_t ordinal, bool as_delta,
                                        bool whole);

// Checks that a chunk lies inside of that piece of its part and, unless it is a
// delta, behind `before`, the last key of the chunk before it. kCorrupt: it
// lies elsewhere.
[[nodiscard]] rocksdb::Status CheckChunkBounds(const LaneShared& state,
                                               const Part& part,
                                               const KeyInterval& piece,
                                               uint64_t ordinal,
                                               const std::string& before,
                                               const JournalChunk& record);

// Compares the end of a part with what came. kCorrupt: they differ.
[[nodiscard]] rocksdb::Status CheckTotals(const Part& part,
                                          const PartEnd& end,
                                          const Totals& found,
                                          const Digest128& chain);

// Compares the file at chunk->path with chunk->record.chunk, and fills the
// members of the record (and of the chunk) that its properties tell.
// Every block's checksum is verified; `all_blocks` decodes all of them, else
// only those that RocksDB's parsers could not bear to be wrong.
//   kCorrupt   another file, or damaged
[[nodiscard]] rocksdb::Status CheckStagedChunk(
    rocksdb::FileSystem* file_system, const PullFamily& family,
    bool all_blocks, StagedChunk* chunk);

}  // namespace sstferry
