// Checks the units of a clone. chunk_check.h checks all other chunks.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "format/digest.h"
#include "format/rocksdb/sst_part_check.h"
#include "pipeline/disk/staging_file.h"
#include "pipeline/pull/lane_shared.h"

namespace sstferry {

// Checks that a unit is expected: that the pull is a clone (otherwise `clone`
// is null), that the unit is the only chunk of its part, and that it has the
// size that both sides know. kCorrupt: the unit is not expected.
[[nodiscard]] rocksdb::Status CheckUnitTurn(const CloneLayout* clone,
                                            const ChunkBegin& begin,
                                            uint64_t next_ordinal);

// A unit that has not been received completely. Borrows the state. Threads:
// one.
class OpenUnit {
 public:
  // Returns null if the pull is not a clone.
  static std::unique_ptr<OpenUnit> Make(const LaneShared* state,
                                        uint32_t part_id);

  // Returns the path and offset to which the unit is written. If its blocks are
  // checked while they arrive, the unit is written without the page cache.
  // Otherwise it is written through the page cache, because its file will be
  // read.
  StagingPlace Place() const;
  // Adds the next bytes. kCorrupt: the checksum of a block is wrong.
  [[nodiscard]] rocksdb::Status Add(const rocksdb::Slice& bytes);
  // Called when all bytes of the unit are in the file. If this unit completes
  // its file, checks the rest of the file before the unit is recorded. Returns
  // the errors of CheckClonedFile(). Also returns kCorrupt if the ChunkEnd is
  // for another unit, or has entries.
  [[nodiscard]] rocksdb::Status Finish(StagedChunk* chunk);

 private:
  OpenUnit(const LaneShared* state, uint32_t part_id);

  const LaneShared* const state_;
  const uint32_t part_id_;
  Digest128Stream content_;
  std::unique_ptr<SstPartCheck> blocks_;  // null: not checked while they arrive
};

// Returns the path and offset of a unit. If `unit` is null, returns the path of
// a chunk.
StagingPlace PlaceOf(const LaneShared& state, const OpenUnit* unit,
                     uint32_t part_id, uint32_t ordinal);

// Returns the maximum number of bytes of the chunk. A unit must not exceed its
// size, because another lane may write the bytes that follow it in the file.
uint64_t MostBytes(const ChunkBegin& begin);

}  // namespace sstferry
