// Builds the chunks of a part: table files with the part's entries. Reads the
// entries, and writes them with RocksDB's SstFileWriter. Passes the bytes of
// each file to a ChunkSink while the file is being built.
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
  // All live files of the family, sorted by smallest keys. Set this only if the
  // files contain all entries of the family; the builder then merges the files.
  // If null, the builder reads the entries with RocksDB's iterator.
  const std::vector<TableFile>* files = nullptr;
  bool target_takes_entities = true;  // false: refuses entities
  std::function<bool()> cancelled;  // polled; may be null
  // Receives the number of entries that were added since the last call, several
  // times while a chunk is built. May be null.
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

  // Builds the chunks of `part` that `request` asks for. Ends a chunk before
  // the next user key if the chunk has at least chunk_bytes bytes. A large
  // entry may make the chunk much larger. Makes no chunk for an empty part.
  // Returns an error of the sink, or:
  //   kRefused                an entry cannot be moved, because its key is too
  //                           long or the target does not support wide columns;
  //                           the message names the key
  //   kCorrupt, kSourceError  reading failed
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
