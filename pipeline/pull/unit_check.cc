#include "pipeline/pull/unit_check.h"

#include <utility>
#include <vector>

#include "format/end_state.h"
#include "format/limits.h"
#include "pipeline/pull/file_check.h"
#include "pipeline/pull/received_chunks.h"

namespace sstferry {

using rocksdb::Status;

Status CheckUnitTurn(const CloneLayout* clone, const ChunkBegin& begin,
                     uint64_t next_ordinal) {
  if (clone == nullptr || begin.kind != PartKind::kUnit) {
    return MakeStatus(EndState::kCorrupt,
                      "chunk: received a kind of chunk that was not "
                      "requested");
  }
  if (next_ordinal != 0) {
    return MakeStatus(EndState::kCorrupt,
                      "unit: expected only one unit in its part, found a "
                      "second");
  }
  const uint64_t bytes = clone->unit(begin.part_id).bytes;
  return begin.file_bytes == bytes
             ? Status::OK()
             : MakeStatus(EndState::kCorrupt,
                          "unit: expected " + std::to_string(bytes) +
                              " bytes, found " +
                              std::to_string(begin.file_bytes));
}

OpenUnit::OpenUnit(const LaneShared* state, uint32_t part_id)
    : state_(state),
      part_id_(part_id),
      blocks_(state->clone->StartCheck(part_id, state->file_system)) {}

std::unique_ptr<OpenUnit> OpenUnit::Make(const LaneShared* state,
                                         uint32_t part_id) {
  return std::unique_ptr<OpenUnit>(
      state->clone == nullptr ? nullptr : new OpenUnit(state, part_id));
}

StagingPlace OpenUnit::Place() const {
  const Part& unit = state_->clone->unit(part_id_);
  StagingPlace place;
  place.path = state_->clone->PathOf(state_->clone->file_of(part_id_));
  place.part_at = state_->clone->PartAt(part_id_);
  place.direct = blocks_ != nullptr && place.part_at.has_value() &&
                 unit.offset % StagingBuffer::kAlignment == 0 &&
                 unit.bytes % StagingBuffer::kAlignment == 0;
  return place;
}

Status OpenUnit::Add(const rocksdb::Slice& bytes) {
  content_.Add(bytes);
  return blocks_ == nullptr
             ? Status::OK()
             : WithContext(blocks_->Add(bytes), EndState::kCorrupt,
                           CloneFileName(state_->clone->file_of(part_id_)) +
                               " of the source");
}

Status OpenUnit::Finish(StagedChunk* chunk) {
  chunk->record.content = content_.Finish();
  const ChunkEnd& end = chunk->record.chunk;
  if (end.part_id != part_id_ || end.ordinal != 0) {
    return MakeStatus(EndState::kCorrupt,
                      "end of unit: expected part " +
                          std::to_string(part_id_) + ", found part " +
                          std::to_string(end.part_id) + " chunk " +
                          std::to_string(end.ordinal));
  }
  const bool empty = end.entries == 0 && end.key_bytes == 0 &&
                     end.value_bytes == 0 && end.smallest.empty() &&
                     end.largest.empty();
  if (!empty) {
    return MakeStatus(EndState::kCorrupt,
                      "end of unit of " +
                          CloneFileName(state_->clone->file_of(part_id_)) +
                          ": expected no entries or keys, found some");
  }
  std::vector<ByteSpan> checked;
  const bool is_whole = state_->clone->CompleteUnit(
      part_id_, blocks_ != nullptr ? blocks_->checked() : ByteSpan(),
      &checked);
  if (!is_whole) {
    return Status::OK();
  }
  const Status status =
      CheckClonedFile(state_->file_system, chunk->path,
                      state_->clone->file_of(part_id_), std::move(checked),
                      &chunk->record.unchecked);
  if (chunk->record.unchecked) state_->clone->SetUnchecked(part_id_);
  return status;
}

StagingPlace PlaceOf(const LaneShared& state, const OpenUnit* unit,
                     uint32_t part_id, uint32_t ordinal) {
  return unit != nullptr
             ? unit->Place()
             : StagingPlace{
                   state.staging_dir + "/" + StagedName(part_id, ordinal),
                   std::nullopt, /*direct=*/false};
}

uint64_t MostBytes(const ChunkBegin& begin) {
  return begin.kind == PartKind::kUnit ? begin.file_bytes
                                          : kMaxChunkFileBytes;
}

}  // namespace sstferry
