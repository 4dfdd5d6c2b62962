#include "pipeline/pull/chunk_check.h"

#include "format/key_for_message.h"
#include "format/rocksdb/sst_check.h"
#include "pipeline/base/file_source.h"
#include "pipeline/base/key_interval.h"
#include "pipeline/base/rocksdb_compat.h"
#include "pipeline/pull/unit_check.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

ChunkExpectation ExpectationOf(const PullFamily& family,
                               const JournalChunk& record) {
  const ChunkEnd& end = record.chunk;
  ChunkExpectation expected;
  expected.smallest = end.smallest;
  expected.largest = end.largest;
  expected.num_entries = end.entries;
  expected.key_bytes = end.key_bytes;
  expected.allow_entities = kIngestsEntities;
  expected.allow_marked_blocks = kLinkedReadsMarkedBlocks;
  expected.comparator = family.comparator->Name();
  expected.is_delta = record.kind == PartKind::kDelta;
  expected.format_version = family.format_version;
  expected.order = [&family](const Slice& a, const Slice& b) {
    return family.comparator->Compare(a, b);
  };
  return expected;
}

}  // namespace

Status CheckTurn(const LaneShared& state, const Part& part,
                 const ChunkBegin& begin, uint64_t ordinal, bool as_delta,
                 bool whole) {
  if (begin.part_id != part.id || begin.ordinal != ordinal) {
    return MakeStatus(EndState::kCorrupt,
                      "chunk: expected part " + std::to_string(part.id) +
                          " chunk " + std::to_string(ordinal) +
                          ", found part " + std::to_string(begin.part_id) +
                          " chunk " + std::to_string(begin.ordinal));
  }
  if (begin.kind == PartKind::kUnit || state.clone != nullptr) {
    return CheckUnitTurn(state.clone, begin, ordinal);
  }
  const bool delta = begin.kind == PartKind::kDelta;
  if (delta != as_delta) {
    return MakeStatus(EndState::kCorrupt,
                      std::string("chunk: requested a ") +
                          (as_delta ? "delta" : "rebuilt chunk") +
                          ", received a " +
                          (delta ? "delta" : "rebuilt chunk"));
  }
  if (whole) {
    return MakeStatus(EndState::kCorrupt,
                      "chunk: expected a delta to be the only chunk of its "
                      "part, found another chunk");
  }
  return Status::OK();
}

Status CheckChunkBounds(const LaneShared& state, const Part& part,
                        const KeyInterval& piece, uint64_t ordinal,
                        const std::string& before,
                        const JournalChunk& record) {
  const ChunkEnd& chunk = record.chunk;
  const rocksdb::Comparator* const order =
      state.families[part.family].comparator;
  const bool follows = record.kind == PartKind::kDelta || ordinal == 0 ||
                       order->Compare(chunk.smallest, before) > 0;
  if (chunk.part_id == part.id && chunk.ordinal == ordinal && follows &&
      order->Compare(chunk.smallest, chunk.largest) <= 0 &&
      HoldsSpan(piece, order, chunk.smallest, chunk.largest)) {
    return Status::OK();
  }
  return MakeStatus(
      EndState::kCorrupt,
      "chunk keys: expected keys inside the part and after the previous "
      "chunk, found " + KeyForMessage(chunk.smallest) + " to " +
          KeyForMessage(chunk.largest));
}

Status CheckTotals(const Part& part, const PartEnd& end,
                   const Totals& found, const Digest128& chain) {
  return end.part_id == part.id && end.totals == found && end.chain == chain
             ? Status::OK()
             : MakeStatus(EndState::kCorrupt,
                          "end of part " + std::to_string(part.id) +
                              ": expected " +
                              std::to_string(end.totals.entries) +
                              " entries in " +
                              std::to_string(end.totals.chunks) +
                              " chunks, found " +
                              std::to_string(found.entries) +
                              " entries in " + std::to_string(found.chunks) +
                              " chunks");
}

Status CheckStagedChunk(rocksdb::FileSystem* file_system,
                        const PullFamily& family, bool from_disk,
                        StagedChunk* chunk) {
  std::unique_ptr<FileSource> source;
  RETURN_IF_ERROR(
      from_disk ? FileSource::OpenFromDisk(file_system, chunk->path, &source)
                : FileSource::Open(file_system, chunk->path, &source));
  ChunkExpectation expected = ExpectationOf(family, chunk->record);
  expected.all_blocks = from_disk;
  ChunkFacts facts;
  Status status = CheckChunk(*source, expected, &facts);
  chunk->deletions = facts.deletions;
  chunk->record.unchecked = facts.checksum == SstChecksum::kNone;
  chunk->record.creating_database_id = facts.db_id;
  chunk->record.creating_session_id = facts.db_session_id;
  chunk->record.original_file_number = facts.original_file_number;
  return status;
}

}  // namespace sstferry
