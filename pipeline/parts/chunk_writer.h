// Writes one chunk, for the classes that build chunks.
#pragma once

#include <memory>

#include "pipeline/base/rocksdb_compat.h"
#include "pipeline/parts/entry_reader.h"
#include "pipeline/parts/sink_file_system.h"
#include "rocksdb/env.h"
#include "rocksdb/options.h"
#include "rocksdb/sst_file_writer.h"

namespace sstferry {

// An SST file under construction, whose bytes are passed to a sink.
class ChunkWriter {
 public:
  // Borrows the sink. Ignores the env of `options`.
  ChunkWriter(const rocksdb::Options& options, ChunkSink* sink)
      : env_(rocksdb::NewCompositeEnv(MakeSinkFileSystem(sink))),
        writer_(rocksdb::EnvOptions(), WithEnv(options, env_.get()),
                /*column_family=*/nullptr, /*invalidate_page_cache=*/false) {}

  rocksdb::Status Open() { return writer_.Open("/chunk.sst"); }

  rocksdb::Status Add(EntryReader* reader, const rocksdb::Slice& key,
                      const rocksdb::Slice& value) {
    if (reader->is_entity()) {
      return PutEntityInto(&writer_, key, reader->columns());
    }
    return writer_.Put(key, value);
  }

  rocksdb::Status DeleteRange(const rocksdb::Slice& begin,
                              const rocksdb::Slice& end) {
    return writer_.DeleteRange(begin, end);
  }
  rocksdb::Status Delete(const rocksdb::Slice& key) {
    return writer_.Delete(key);
  }

  // Returns the bytes of flushed blocks plus the uncompressed bytes of the
  // current block.
  uint64_t bytes_so_far(uint64_t added_bytes) {
    const uint64_t flushed = writer_.FileSize();
    if (flushed != flushed_bytes_) {
      flushed_bytes_ = flushed;
      pending_bytes_ = 0;
    }
    pending_bytes_ += added_bytes;
    return flushed_bytes_ + pending_bytes_;
  }
  uint64_t file_bytes() { return writer_.FileSize(); }
  // Finishes the file. Asks for no ExternalSstFileInfo: with one, RocksDB 9.10
  // fails an assertion if the smallest key of the file is the empty key and no
  // other key is empty.
  rocksdb::Status Finish() { return writer_.Finish(); }

 private:
  static rocksdb::Options WithEnv(rocksdb::Options options, rocksdb::Env* env) {
    options.env = env;
    return options;
  }

  const std::unique_ptr<rocksdb::Env> env_;
  rocksdb::SstFileWriter writer_;
  uint64_t flushed_bytes_ = 0;
  uint64_t pending_bytes_ = 0;
};

}  // namespace sstferry
