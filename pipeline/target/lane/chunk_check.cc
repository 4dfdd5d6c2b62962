#include "pipeline/target/lane/chunk_check.h"

#include "format/sst/sst_check.h"
#include "pipeline/base/file_source.h"
#include "pipeline/base/rocksdb_compat.h"

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
  expected.clears = end.clears;
  expected.deletes_last = end.deletes_last;
  expected.num_entries = end.entries;
  expected.key_bytes = end.key_bytes;
  expected.allow_entities = kIngestsEntities;
  expected.allow_marked_blocks = kReadsMarkedBlocks;
  expected.comparator = family.comparator->Name();
  expected.is_delta = record.kind == ChunkKind::kDelta;
  expected.format_version = family.format_version;
  expected.order = [&family](const Slice& a, const Slice& b) {
    return family.comparator->Compare(a, b);
  };
  return expected;
}

}  // namespace

Status CheckStagedChunk(rocksdb::FileSystem* file_system,
                        const PullFamily& family, bool all_blocks,
                        StagedChunk* chunk) {
  std::unique_ptr<FileSource> source;
  Status status = FileSource::Open(file_system, chunk->path, &source);
  if (!status.ok()) {
    return status;
  }
  ChunkExpectation expected = ExpectationOf(family, chunk->record);
  expected.all_blocks = all_blocks;
  ChunkFacts facts;
  status = CheckChunk(*source, expected, &facts);
  chunk->deletions = facts.deletions;
  chunk->record.unchecked = facts.checksum == SstChecksum::kNone;
  chunk->record.creating_database_id = facts.db_id;
  chunk->record.creating_session_id = facts.db_session_id;
  chunk->record.original_file_number = facts.original_file_number;
  return status;
}

}  // namespace sstferry
