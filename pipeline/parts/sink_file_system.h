// A file system that stores nothing, and passes all written bytes to a sink.
// RocksDB's SstFileWriter writes chunks to it. So the source sends a chunk
// while it builds the chunk, and needs no disk space for it.
#pragma once

#include <memory>

#include "format/messages.h"
#include "rocksdb/file_system.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace sstferry {

// Receives chunks, one after the other. For each chunk, the builder calls
// Begin() once, Append() for each piece of the file, and End() once.
class ChunkSink {
 public:
  virtual ~ChunkSink() = default;
  [[nodiscard]] virtual rocksdb::Status Begin(const ChunkBegin& begin) = 0;
  // Receives the next bytes of the chunk's file.
  [[nodiscard]] virtual rocksdb::Status Append(const rocksdb::Slice& data) = 0;
  // Ends the chunk; `end` has the digest of its bytes.
  [[nodiscard]] virtual rocksdb::Status End(const ChunkEnd& end) = 0;
};

// Makes a file system that passes all bytes written to any file to `sink`. Only
// one file may be open at a time. The file system cannot read or rename files,
// and ignores deletions.
// Ownership: borrows the sink, which must exist longer than the file system.
std::shared_ptr<rocksdb::FileSystem> MakeSinkFileSystem(ChunkSink* sink);

}  // namespace sstferry
