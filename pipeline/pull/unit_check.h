// Checks a unit of a clone in the ways that do not apply to other chunks.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "format/digest.h"
#include "format/rocksdb/sst_part_check.h"
#include "pipeline/disk/staging_file.h"
#include "pipeline/pull/lane_shared.h"

namespace sstferry {

// Checks that a unit is expected: that it is of a clone (`clone` is null if no
// clone was asked for), the only chunk of its part, and of the size that both
// sides know. kCorrupt: it is not.
[[nodiscard]] rocksdb::Status CheckUnitTurn(const CloneLayout* clone,
                                            const ChunkBegin& begin,
                                            uint64_t next_ordinal);

// A unit that has not been received completely. Borrows the state. Threads:
// one.
class OpenUnit {
 public:
  // Returns null if the pull is no clone.
  static std::unique_ptr<OpenUnit> Make(const LaneShared* state,
                                        uint32_t part_id);

  // Returns the place to which the unit is written. If its blocks are checked
  // while they arrive, it is written without the page cache; otherwise with it,
  // because its file will be read.
  StagingPlace Place() const;
  // Adds the next bytes. kCorrupt: the checksum of a block is wrong.
  [[nodiscard]] rocksdb::Status Add(const rocksdb::Slice& bytes);
  // Called when all bytes have arrived and are in the file. If this unit
  // completes its file, checks the rest of the file, before the unit is
  // recorded. Errors are those of CheckClonedFile(); also kCorrupt if the end
  // is of another unit or has entries.
  [[nodiscard]] rocksdb::Status Finish(StagedChunk* chunk);

 private:
  OpenUnit(const LaneShared* state, uint32_t part_id);

  const LaneShared* const state_;
  const uint32_t part_id_;
  Digest128Stream content_;
  std::unique_ptr<SstPartCheck> blocks_;  // null: not checked while they arrive
};

// Returns the place of a unit, or of a chunk if `unit` is null.
StagingPlace PlaceOf(const LaneShared& state, const OpenUnit* unit,
                     uint32_t part_id, uint32_t ordinal);

// Returns the maximum of bytes that may follow: bytes after a unit belong to
// another lane.
uint64_t MostBytes(const ChunkBegin& begin);

}  // namespace sstferry
