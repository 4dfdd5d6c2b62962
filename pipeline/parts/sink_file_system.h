// A file system that stores no files: it immediately passes appended bytes to a
// sink. SstFileWriter writes to it, so that the source sends a chunk while
// building it and does not use its disk.
#pragma once

#include <memory>

#include "format/messages.h"
#include "rocksdb/file_system.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace sstferry {

// Receives chunks, one after the other. For each chunk, the builder calls
// Begin, Append..., End.
class ChunkSink {
 public:
  virtual ~ChunkSink() = default;
  [[nodiscard]] virtual rocksdb::Status Begin(const ChunkBegin& begin) = 0;
  // Receives the next bytes of the chunk's file.
  [[nodiscard]] virtual rocksdb::Status Append(const rocksdb::Slice& data) = 0;
  // Ends the chunk; `end` has the digest of its bytes.
  [[nodiscard]] virtual rocksdb::Status End(const ChunkEnd& end) = 0;
};

// Makes a file system on which every file that is opened for writing appends to
// `sink`, one file at a time. It refuses to read, rename and list, and ignores
// deletions.
// Ownership: borrows the sink, which must outlive it.
std::shared_ptr<rocksdb::FileSystem> MakeSinkFileSystem(ChunkSink* sink);

}  // namespace sstferry
