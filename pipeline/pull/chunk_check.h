// Checks what a source sends for a part: that a chunk is expected and is within
// its bounds, that its file matches its ChunkEnd and is valid for RocksDB, and
// that the totals at the end are right.
#pragma once

#include <string>

#include "pipeline/pull/chunk_store.h"
#include "pipeline/pull/lane_shared.h"
#include "rocksdb/file_system.h"
#include "rocksdb/status.h"

namespace sstferry {

// Checks that a chunk of this kind is expected now. `ordinal` is the next one
// of the part; `as_delta`: a delta was asked for; `whole`: the only expected
// chunk has arrived already. kCorrupt: it is not expected.
[[nodiscard]] rocksdb::Status CheckTurn(const LaneShared& state,
                                        const Part& part,
                                        const ChunkBegin& begin,
                                        uint64_t ordinal, bool as_delta,
                                        bool whole);

// Checks that a chunk is inside `piece` of its part and, unless it is a delta,
// after `before`, the last key of the previous chunk. kCorrupt: it is not.
[[nodiscard]] rocksdb::Status CheckChunkBounds(const LaneShared& state,
                                               const Part& part,
                                               const KeyInterval& piece,
                                               uint64_t ordinal,
                                               const std::string& before,
                                               const JournalChunk& record);

// Compares the end of a part with what arrived. kCorrupt: they differ.
[[nodiscard]] rocksdb::Status CheckTotals(const Part& part,
                                          const PartEnd& end,
                                          const Totals& found,
                                          const Digest128& chain);

// Compares the file at chunk->path with chunk->record.chunk, and sets the
// members of the record (and of the chunk) that its properties contain.
// Verifies the checksum of every block. `all_blocks`: decodes all blocks;
// otherwise only those whose damage would crash RocksDB's parsers.
//   kCorrupt  it is another file, or damaged
[[nodiscard]] rocksdb::Status CheckStagedChunk(
    rocksdb::FileSystem* file_system, const PullFamily& family,
    bool all_blocks, StagedChunk* chunk);

}  // namespace sstferry
