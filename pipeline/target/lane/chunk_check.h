// Is a chunk in staging what its ChunkEnd says, and fit for RocksDB?
#pragma once

#include <string>

#include "pipeline/target/database/chunk_store.h"
#include "pipeline/target/lane/pull_state.h"
#include "rocksdb/file_system.h"
#include "rocksdb/status.h"

namespace sstferry {

// Compares the file at chunk->path with chunk->record.chunk, and fills the
// members of the record (and of the chunk) that its properties tell.
// Every block's checksum is verified; `all_blocks` decodes all of them, else
// only those that RocksDB's parsers could not bear to be wrong.
//   kCorrupt   another file, or damaged
[[nodiscard]] rocksdb::Status CheckStagedChunk(
    rocksdb::FileSystem* file_system, const PullFamily& family,
    bool all_blocks, StagedChunk* chunk);

}  // namespace sstferry
