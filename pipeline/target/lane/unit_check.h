// What a lane does with a unit of a clone that it does not do with a chunk.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "pipeline/target/lane/pull_state.h"

namespace sstferry {

// Whether a unit may begin: of a clone (null: none was asked for), the only
// chunk of its range, in the size that both sides know. kCorrupt: no.
[[nodiscard]] rocksdb::Status CheckUnitTurn(const CloneLayout* clone,
                                            const ChunkBegin& begin,
                                            uint64_t next_ordinal);

// A unit that has come. The lane whose unit makes its file whole checks all of
// the file, before the unit is recorded. Errors as CheckClonedFile(); a unit
// of another range or with entries is kCorrupt.
[[nodiscard]] rocksdb::Status CheckUnit(const PullState& state,
                                        uint32_t range_id,
                                        StagedChunk* chunk);

// The file that a chunk or a unit goes into, and where in it a unit begins
// that is not all of its file. `clone` may be null.
std::string ChunkPath(const PullState& state, uint32_t range_id,
                      uint32_t ordinal);
std::optional<uint64_t> PartAt(const CloneLayout* clone, uint32_t range_id);

// How many bytes may follow: what lies behind a unit belongs to another lane.
uint64_t MostBytes(const ChunkBegin& begin);

}  // namespace sstferry
