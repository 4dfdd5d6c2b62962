// Makes the checks of a unit of a clone that a lane does not make of a chunk.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "format/digest.h"
#include "format/rocksdb/sst_part_check.h"
#include "pipeline/disk/staging_file.h"
#include "pipeline/pull/lane_shared.h"

namespace sstferry {

// Checks that a unit may begin: of a clone (null: none was asked for), the only
// chunk of its part, in the size that both sides know. kCorrupt: no.
[[nodiscard]] rocksdb::Status CheckUnitTurn(const CloneLayout* clone,
                                            const ChunkBegin& begin,
                                            uint64_t next_ordinal);

// A unit of which not everything has come. Borrows the state. Threads: one.
class OpenUnit {
 public:
  // Null: the pull is no clone.
  static std::unique_ptr<OpenUnit> Make(const LaneShared* state,
                                        uint32_t part_id);

  // Its blocks are checked while they arrive, so it is written past the page
  // cache; else through it, because its file is read.
  StagingPlace Place() const;
  // The next bytes. kCorrupt: a block's checksum.
  [[nodiscard]] rocksdb::Status Add(const rocksdb::Slice& bytes);
  // All have come, and are in the file. The lane whose unit makes its file
  // whole checks what is left of the file, before the unit is recorded. Errors
  // as CheckClonedFile(); the end of another unit or with entries is kCorrupt.
  [[nodiscard]] rocksdb::Status Finish(StagedChunk* chunk);

 private:
  OpenUnit(const LaneShared* state, uint32_t part_id);

  const LaneShared* const state_;
  const uint32_t part_id_;
  Digest128Stream content_;
  std::unique_ptr<SstPartCheck> blocks_;  // null: not while they arrive
};

// Where a unit goes, or with null a chunk.
StagingPlace PlaceOf(const LaneShared& state, const OpenUnit* unit,
                     uint32_t part_id, uint32_t ordinal);

// How many bytes may follow: what lies behind a unit belongs to another lane.
uint64_t MostBytes(const ChunkBegin& begin);

}  // namespace sstferry
