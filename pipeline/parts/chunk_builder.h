// Builds the chunks of a part. An iterator feeds SstFileWriter, whose output is
// passed to a ChunkSink while the file is being built.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "format/messages.h"
#include "pipeline/base/stage_clock.h"
#include "pipeline/parts/sink_file_system.h"
#include "pipeline/parts/table_file.h"
#include "rocksdb/db.h"
#include "rocksdb/options.h"

namespace sstferry {

// Returns a description of an entry for messages.
std::string EntryForMessage(const rocksdb::ColumnFamilyHandle& family,
                            const rocksdb::Slice& key);

// Checks that a chunk can contain the reader's current entry.
//   kRefused  the key or the value is too long, or the entry is a wide-column
//             entity, which the target does not accept
[[nodiscard]] rocksdb::Status CheckEntry(
    const class EntryReader& reader, bool target_takes_entities,
    const rocksdb::ColumnFamilyHandle& family);

class ChunkWriter;

struct ChunkBuilderOptions {
  uint64_t chunk_bytes = 64'000'000;
  uint64_t readahead_bytes = 0;
  // All live files of the family, sorted by smallest keys; set only if they
  // contain all entries of the family. Chunks are then merged from these files.
  // Null: RocksDB's iterator reads the entries.
  const std::vector<TableFile>* files = nullptr;
  bool target_takes_entities = true;  // false: wide-column entities are refused
  std::function<bool()> cancelled;  // polled; may be null
  // Called with the number of new entries as they are built; may be null.
  std::function<void(uint64_t entries)> on_progress;
};

// Builds chunks of one family.
//
// Ownership: borrows db, the family and the sink.
// Threads:   one builder per lane, one part at a time.
class ChunkBuilder {
 public:
  // `chunk_options`: the options of the family, with the chosen format version.
  ChunkBuilder(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family,
               const rocksdb::Options& chunk_options,
               const ChunkBuilderOptions& options, ChunkSink* sink);

  // Builds the chunks of `part` that `request` asks for. A chunk that has
  // reached chunk_bytes ends before the next user key; a single large entry may
  // make it larger. An empty part has no chunk.
  //   kRefused                an entry cannot be moved (key too long, wide
  //                           columns without support); the message names its
  //                           key
  //   kCorrupt, kSourceError  reading failed. The sink's errors are returned,
  //                           too
  [[nodiscard]] rocksdb::Status Build(const Part& part,
                                      const PartRequest& request);

 private:
  [[nodiscard]] rocksdb::Status BuildChunk(class EntryReader* reader,
                                           const Part& part,
                                           uint32_t ordinal);
  [[nodiscard]] rocksdb::Status AddEntries(class EntryReader* reader,
                                           ChunkWriter* writer,
                                           ChunkEnd* chunk);

  rocksdb::DB* const db_;
  rocksdb::ColumnFamilyHandle* const family_;
  const ChunkBuilderOptions options_;
  ChunkSink* const sink_;
  const rocksdb::Options chunk_options_;
};

}  // namespace sstferry
