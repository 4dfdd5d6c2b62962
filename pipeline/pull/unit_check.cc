#include "pipeline/pull/unit_check.h"

#include <utility>
#include <vector>

#include "format/end_state.h"
#include "format/limits.h"
#include "pipeline/pull/file_check.h"
#include "pipeline/pull/held_chunks.h"

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

OpenUnit::OpenUnit(const PullState* state, uint32_t range_id)
    : state_(state),
      range_id_(range_id),
      blocks_(state->clone->StartCheck(range_id, state->file_system)) {}

std::unique_ptr<OpenUnit> OpenUnit::Make(const PullState* state,
                                         uint32_t range_id) {
  return std::unique_ptr<OpenUnit>(
      state->clone == nullptr ? nullptr : new OpenUnit(state, range_id));
}

StagingPlace OpenUnit::Place() const {
  const CloneUnit& unit = state_->clone->unit(range_id_);
  StagingPlace place;
  place.path = state_->clone->PathOf(state_->clone->file_of(range_id_));
  place.part_at = state_->clone->PartAt(range_id_);
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
                           CloneFileName(state_->clone->file_of(range_id_)) +
                               " of the source");
}

Status OpenUnit::Finish(StagedChunk* chunk) {
  chunk->record.content = content_.Finish();
  const ChunkEnd& end = chunk->record.chunk;
  if (end.range_id != range_id_ || end.ordinal != 0) {
    return MakeStatus(EndState::kCorrupt,
                      "end of unit: expected range " +
                          std::to_string(range_id_) + ", found range " +
                          std::to_string(end.range_id) + " chunk " +
                          std::to_string(end.ordinal));
  }
  const bool empty = end.entries == 0 && end.key_bytes == 0 &&
                     end.value_bytes == 0 && end.smallest.empty() &&
                     end.largest.empty();
  if (!empty) {
    return MakeStatus(EndState::kCorrupt,
                      "unit: expected no entries, found some");
  }
  std::vector<ByteSpan> checked;
  const bool is_whole = state_->clone->CompleteUnit(
      range_id_, blocks_ != nullptr ? blocks_->checked() : ByteSpan(),
      &checked);
  if (!is_whole) {
    return Status::OK();
  }
  const Status status =
      CheckClonedFile(state_->file_system, chunk->path,
                      state_->clone->file_of(range_id_), std::move(checked),
                      &chunk->record.unchecked);
  if (chunk->record.unchecked) state_->clone->SetUnchecked(range_id_);
  return status;
}

StagingPlace PlaceOf(const PullState& state, const OpenUnit* unit,
                     uint32_t range_id, uint32_t ordinal) {
  return unit != nullptr
             ? unit->Place()
             : StagingPlace{
                   state.staging_dir + "/" + StagedName(range_id, ordinal),
                   std::nullopt, /*direct=*/false};
}

uint64_t MostBytes(const ChunkBegin& begin) {
  return begin.kind == ChunkKind::kCloned ? begin.file_bytes
                                          : kMaxChunkFileBytes;
}

}  // namespace sstferry
