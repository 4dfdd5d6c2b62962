#include "pipeline/target/lane/unit_check.h"

#include "format/end_state.h"
#include "format/limits.h"
#include "pipeline/target/clone/file_check.h"
#include "pipeline/target/lane/held_chunks.h"

namespace sstferry {

using rocksdb::Status;

Status CheckUnitTurn(const CloneLayout* clone, const ChunkBegin& begin,
                     uint64_t next_ordinal) {
  if (clone == nullptr || begin.kind != ChunkKind::kCloned) {
    return MakeStatus(EndState::kCorrupt,
                      "chunk: expected a kind that was asked for, found "
                      "another");
  }
  if (next_ordinal != 0) {
    return MakeStatus(EndState::kCorrupt,
                      "unit: expected one in its range, found another");
  }
  const uint64_t bytes = clone->unit(begin.range_id).bytes;
  return begin.file_bytes == bytes
             ? Status::OK()
             : MakeStatus(EndState::kCorrupt,
                          "unit: expected " + std::to_string(bytes) +
                              " bytes, found " +
                              std::to_string(begin.file_bytes));
}

Status CheckUnit(const PullState& state, uint32_t range_id,
                 StagedChunk* chunk) {
  const ChunkEnd& end = chunk->record.chunk;
  if (end.range_id != range_id || end.ordinal != 0) {
    return MakeStatus(EndState::kCorrupt,
                      "end of unit: expected range " +
                          std::to_string(range_id) + ", found range " +
                          std::to_string(end.range_id) + " chunk " +
                          std::to_string(end.ordinal));
  }
  if (end.entries != 0 || end.key_bytes != 0 || end.value_bytes != 0 ||
      !end.smallest.empty() || !end.largest.empty() || end.clears ||
      end.deletes_last) {
    return MakeStatus(EndState::kCorrupt,
                      "unit: expected no entries, found some");
  }
  return state.clone->CompleteUnit(range_id)
             ? CheckClonedFile(state.file_system, chunk->path,
                               state.clone->file_of(range_id),
                               &chunk->record.unchecked)
             : Status::OK();
}

std::string ChunkPath(const PullState& state, uint32_t range_id,
                      uint32_t ordinal) {
  return state.clone != nullptr
             ? state.clone->PathOf(state.clone->file_of(range_id))
             : state.staging_dir + "/" + StagedName(range_id, ordinal);
}

std::optional<uint64_t> PartAt(const CloneLayout* clone, uint32_t range_id) {
  return clone == nullptr ? std::nullopt : clone->PartAt(range_id);
}

uint64_t MostBytes(const ChunkBegin& begin) {
  return begin.kind == ChunkKind::kCloned ? begin.file_bytes
                                          : kMaxChunkFileBytes;
}

}  // namespace sstferry
