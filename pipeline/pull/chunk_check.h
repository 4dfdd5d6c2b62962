// Checks what a source sends for a part: that each chunk is expected and within
// the part's bounds, that its file matches its ChunkEnd and is valid for
// RocksDB, and that the part's totals are right.
#pragma once

#include <string>

#include "pipeline/pull/chunk_store.h"
#include "pipeline/pull/lane_shared.h"
#include "rocksdb/file_system.h"
#include "rocksdb/status.h"

namespace sstferry {

// Checks that the chunk `begin` is expected now. `ordinal`: the number that the
// chunk must have in its part; `as_delta`: this side requested a delta;
// `whole`: the part's only chunk has already arrived. kCorrupt: the chunk is
// not expected.
[[nodiscard]] rocksdb::Status CheckTurn(const LaneShared& state,
                                        const Part& part,
                                        const ChunkBegin& begin,
                                        uint64_t ordinal, bool as_delta,
                                        bool whole);

// Checks that a chunk's keys are inside the interval `piece` of its part and,
// unless the chunk is a delta, after `before`, the last key of the previous
// chunk. kCorrupt: they are not.
[[nodiscard]] rocksdb::Status CheckChunkBounds(const LaneShared& state,
                                               const Part& part,
                                               const KeyInterval& piece,
                                               uint64_t ordinal,
                                               const std::string& before,
                                               const JournalChunk& record);

// Compares `end`, the source's totals of a part, with the chunks that arrived.
// kCorrupt: they differ.
[[nodiscard]] rocksdb::Status CheckTotals(const Part& part,
                                          const PartEnd& end,
                                          const Totals& found,
                                          const Digest128& chain);

// Compares the file at chunk->path with chunk->record.chunk, and copies facts
// from the file into the record and the chunk. Verifies the checksum of every
// block, and decodes only blocks whose damage would crash RocksDB's parsers.
// `from_disk`: an earlier run received the chunk: reads the bytes on the disk
// (FileSource::OpenFromDisk()), and decodes all blocks.
//   kCorrupt  the file does not match the record, or is damaged
[[nodiscard]] rocksdb::Status CheckStagedChunk(
    rocksdb::FileSystem* file_system, const PullFamily& family, bool from_disk,
    StagedChunk* chunk);

}  // namespace sstferry
