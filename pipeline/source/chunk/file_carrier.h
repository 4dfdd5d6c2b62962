// Sends one file of the source as one chunk: its blocks as they lie there,
// each verified by its checksum on the way, then its new tail.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "format/message/messages.h"
#include "pipeline/source/chunk/chunk_builder.h"
#include "pipeline/source/plan/planner.h"

namespace sstferry {

struct FileCarrierOptions {
  // Look at every entry's type where the target cannot take wide-column
  // entities, which no property of a table tells of.
  bool target_takes_entities = true;
  std::function<bool()> cancelled;  // polled; may be null
  std::function<void(uint64_t entries, uint64_t key_value_bytes)> on_progress;
};

// Bytes in memory at a time, however large blocks are. Fits into a second-level
// cache: a byte is read, verified and sent while it is there.
inline constexpr size_t kCarryBufferBytes = 512u << 10;

// Ownership: borrows the sink and the buffer (made large enough here).
// Threads:   one carrier per lane, one file at a time.
class FileCarrier {
 public:
  FileCarrier(const FileCarrierOptions& options, ChunkSink* sink,
              std::vector<char>* buffer);

  // Sends the file from `first_byte` on. Blocks that lie before that byte are not read.
  //   kCorrupt, kSourceError  the file is damaged or cannot be read; the
  //                 message names it and the offset. The chunk then has no
  //                 end, and the target takes nothing of it.
  //   kRefused      a wide-column entity, naming its key
  [[nodiscard]] rocksdb::Status Carry(const Range& range,
                                      const CarriedFile& file,
                                      uint64_t first_byte);

 private:
  const FileCarrierOptions options_;
  ChunkSink* const sink_;
  std::vector<char>* const buffer_;
};

}  // namespace sstferry
