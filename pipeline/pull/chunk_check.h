// Checks the chunks that a source sends for a part. A chunk must be expected
// and within the part's bounds. Its file must match its ChunkEnd message and be
// valid for RocksDB. The part's totals must be right, too.
#pragma once

#include <string>

#include "pipeline/pull/chunk_store.h"
#include "pipeline/pull/lane_shared.h"
#include "rocksdb/file_system.h"
#include "rocksdb/status.h"

namespace sstferry {

// Checks that `begin` announces the chunk that this side expects next.
// `ordinal` is the expected number of the chunk in its part. `as_delta` is true
// if this side requested a delta. `whole` is true if the only chunk of the part
// has already arrived.
//   kCorrupt  the chunk is not expected
[[nodiscard]] rocksdb::Status CheckTurn(const LaneShared& state,
                                        const Part& part,
                                        const ChunkBegin& begin,
                                        uint64_t ordinal, bool as_delta,
                                        bool whole);

// Checks that a chunk's keys are inside the interval `piece` of its part.
// Unless the chunk is a delta, its keys must also be greater than `before`, the
// last key of the previous chunk.
//   kCorrupt  a key is outside these bounds
[[nodiscard]] rocksdb::Status CheckChunkBounds(const LaneShared& state,
                                               const Part& part,
                                               const KeyInterval& piece,
                                               uint64_t ordinal,
                                               const std::string& before,
                                               const JournalChunk& record);

// Compares the totals and the digest that the source sent at the end of a part
// with those of the chunks that arrived.
//   kCorrupt  they differ
[[nodiscard]] rocksdb::Status CheckTotals(const Part& part,
                                          const PartEnd& end,
                                          const Totals& found,
                                          const Digest128& chain);

// Compares the file at chunk->path with chunk->record.chunk. Copies facts from
// the file into *chunk and its record. Verifies the checksum of every block,
// but decodes only blocks whose damage would crash RocksDB's parsers.
// `from_disk` is true if an earlier run received the chunk. Then this reads the
// bytes on the disk (FileSource::OpenFromDisk()) and decodes all blocks.
//   kCorrupt  the file does not match the record, or is damaged
[[nodiscard]] rocksdb::Status CheckStagedChunk(
    rocksdb::FileSystem* file_system, const PullFamily& family, bool from_disk,
    StagedChunk* chunk);

}  // namespace sstferry
