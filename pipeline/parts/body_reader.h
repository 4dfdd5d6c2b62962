// Reads a file from front to back into the caller's memory. Uses pread, because
// reading a file on a failing disk through mmap would end the process instead
// of the transfer.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "rocksdb/status.h"

namespace sstferry {

// Reads one open file. Owns its descriptor. Threads: one.
class BodyReader {
 public:
  // kSourceError: the file cannot be opened.
  [[nodiscard]] static rocksdb::Status Open(const std::string& path,
                                            std::unique_ptr<BodyReader>* out);
  ~BodyReader();
  BodyReader(const BodyReader&) = delete;
  BodyReader& operator=(const BodyReader&) = delete;

  // Reads exactly `bytes` bytes. kSourceError: reading failed; kCorrupt: the
  // file is too short.
  [[nodiscard]] rocksdb::Status Read(uint64_t offset, size_t bytes,
                                     char* buffer);

 private:
  BodyReader(std::string path, int descriptor);

  const std::string path_;
  const int descriptor_;
};

}  // namespace sstferry
