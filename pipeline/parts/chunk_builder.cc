#include "pipeline/parts/chunk_builder.h"

#include "format/end_state.h"
#include "format/key_for_message.h"
#include "format/limits.h"
#include "pipeline/parts/chunk_writer.h"
#include "pipeline/parts/range_entries.h"
#include "pipeline/parts/read_failure.h"

namespace sstferry {
namespace {

using rocksdb::Slice;
using rocksdb::Status;

// Maximum number of entries between two polls of `cancelled`.
constexpr uint64_t kLookInterval = 64;

}  // namespace

std::string EntryForMessage(const rocksdb::ColumnFamilyHandle& family,
                            const Slice& key) {
  return "column family '" + family.GetName() + "' key " + KeyForMessage(key);
}

Status CheckEntry(const EntryReader& reader, bool target_takes_entities,
                  const rocksdb::ColumnFamilyHandle& family) {
  const size_t key_bytes = reader.key().size();
  const size_t value_bytes = reader.value().size();
  if (key_bytes > kMaxKeyBytes || value_bytes > kMaxValueBytes) {
    return OnlyAsFiles(
        EndState::kRefused,
        EntryForMessage(family, reader.key()) + ": expected at most " +
            std::to_string(kMaxKeyBytes) + " key and " +
            std::to_string(kMaxValueBytes) + " value bytes, found " +
            std::to_string(key_bytes) + " and " + std::to_string(value_bytes));
  }
  return target_takes_entities || !reader.is_entity()
             ? Status::OK()
             : OnlyAsFiles(EndState::kRefused,
                          EntryForMessage(family, reader.key()) +
                              ": wide-column entities need RocksDB 8.6 or "
                              "later in the target's sstferry and in its "
                              "application");
}

ChunkBuilder::ChunkBuilder(rocksdb::DB* db,
                           rocksdb::ColumnFamilyHandle* family,
                           const rocksdb::Options& chunk_options,
                           const ChunkBuilderOptions& options, ChunkSink* sink)
    : db_(db),
      family_(family),
      options_(options),
      sink_(sink),
      chunk_options_(chunk_options) {}

Status ChunkBuilder::Build(const Part& part, const PartRequest& request) {
  if (request.received.chunks > kMaxChunkOrdinal) {
    return MakeStatus(EndState::kCorrupt,
                      "part request: expected at most " +
                          std::to_string(kMaxChunkOrdinal) +
                          " received chunks, found " +
                          std::to_string(request.received.chunks));
  }
  RangeEntriesOptions entries;
  entries.readahead_bytes = options_.readahead_bytes;
  entries.files = options_.files;
  entries.cancelled = options_.cancelled;
  RangeEntries reader(db_, family_, part.interval, entries);
  if (request.after.has_value()) {
    reader.SeekAfter(*request.after);
  } else {
    reader.SeekToBegin();
  }
  uint32_t ordinal = static_cast<uint32_t>(request.received.chunks);
  while (reader.Valid()) {
    RETURN_IF_ERROR(BuildChunk(&reader, part, ordinal++));
  }
  return ReadFailure(reader.status(),
                     "read part " + std::to_string(part.id) +
                         " of column family '" + family_->GetName() + "'");
}

Status ChunkBuilder::BuildChunk(EntryReader* reader, const Part& part,
                                uint32_t ordinal) {
  ChunkBegin begin;
  begin.part_id = part.id;
  begin.ordinal = ordinal;
  RETURN_IF_ERROR(sink_->Begin(begin));
  ChunkEnd chunk;
  chunk.part_id = part.id;
  chunk.ordinal = ordinal;
  chunk.smallest = reader->key().ToString();
  ChunkWriter writer(chunk_options_, sink_);
  RETURN_IF_ERROR(writer.Open());
  RETURN_IF_ERROR(AddEntries(reader, &writer, &chunk));
  RETURN_IF_ERROR(
      WithContext(writer.Finish(), EndState::kInternal, "finish chunk"));
  chunk.file_bytes = writer.file_bytes();
  return sink_->End(chunk);
}

Status ChunkBuilder::AddEntries(EntryReader* reader, ChunkWriter* writer,
                                ChunkEnd* chunk) {
  uint64_t reported_entries = 0;
  uint64_t bytes_to_look = 0;
  while (reader->Valid()) {
    const Slice key = reader->key();
    const Slice value = reader->value();
    const bool checks = key.size() > kMaxKeyBytes ||
                        value.size() > kMaxValueBytes ||
                        !options_.target_takes_entities;
    if (checks) {
      RETURN_IF_ERROR(
          CheckEntry(*reader, options_.target_takes_entities, *family_));
    }
    const Status status = writer->Add(reader, key, value);
    if (!status.ok()) {
      return WithContext(status, EndState::kInternal,
                         EntryForMessage(*family_, key));
    }
    chunk->entries++;
    chunk->key_bytes += key.size();
    chunk->value_bytes += value.size();
    chunk->largest.assign(key.data(), key.size());
    const uint64_t entry_bytes = key.size() + value.size();
    bytes_to_look += entry_bytes;
    reader->Next();
    if (writer->bytes_so_far(entry_bytes) >= options_.chunk_bytes) {
      break;
    }
    if (chunk->entries % kLookInterval != 0 && bytes_to_look < 65536) {
      continue;
    }
    bytes_to_look = 0;
    if (options_.on_progress) {
      options_.on_progress(chunk->entries - reported_entries);
      reported_entries = chunk->entries;
    }
    if (options_.cancelled && options_.cancelled()) {
      return MakeStatus(EndState::kCancelled, "build: stopped on request");
    }
  }
  if (options_.on_progress) {
    options_.on_progress(chunk->entries - reported_entries);
  }
  // Check the status, because Valid() is false after an error, too. A part that
  // could not be read must not look complete.
  return ReadFailure(reader->status(),
                     "read column family '" + family_->GetName() + "'");
}

}  // namespace sstferry
