// A file system that stores no files: it immediately passes appended bytes to a
// sink. SstFileWriter writes to it, so that the source sends a chunk while
// building it and does not use its disk.
#pragma once

#include <memory>

#include "rocksdb/file_system.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace sstferry {

// Receives the bytes of one file in order.
class ByteSink {
 public:
  virtual ~ByteSink() = default;
  [[nodiscard]] virtual rocksdb::Status Append(const rocksdb::Slice& data) = 0;
};

// Makes a file system on which every file that is opened for writing appends to
// `sink`, one file at a time. It refuses to read, rename and list, and ignores
// deletions.
// Ownership: borrows the sink, which must outlive it.
std::shared_ptr<rocksdb::FileSystem> MakeSinkFileSystem(ByteSink* sink);

}  // namespace sstferry
