// Sends one file of the source as one chunk: its blocks unchanged, each
// verified by its checksum on the way, then its new tail.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "format/message/messages.h"
#include "pipeline/source/chunk/chunk_builder.h"
#include "pipeline/source/plan/planner.h"

namespace sstferry {

struct FileCarrierOptions {
  // If false, checks every entry's type, because no property of a table shows
  // wide-column entities, which the target cannot accept.
  bool target_takes_entities = true;
  std::function<bool()> cancelled;  // polled; may be null
  std::function<void(uint64_t entries, uint64_t key_value_bytes)> on_progress;
};

// Size of the buffer, for blocks of any size. It fits into a second-level
// cache, so that a byte is still there when it is verified and sent.
inline constexpr size_t kCarryBufferBytes = 512u << 10;

// Carries files, each as one chunk.
//
// Ownership: borrows the sink and the buffer, which it resizes.
// Threads:   one carrier per lane, one file at a time.
class FileCarrier {
 public:
  FileCarrier(const FileCarrierOptions& options, ChunkSink* sink,
              std::vector<char>* buffer);

  // Sends the file from `first_byte`. Does not read blocks before that byte.
  //   kCorrupt, kSourceError  the file is damaged or cannot be read; the
  //                 message names it and the offset. The chunk then has no
  //                 end, and the target drops it.
  //   kRefused      a wide-column entity; the message names its key
  [[nodiscard]] rocksdb::Status Carry(const Range& range,
                                      const CarriedFile& file,
                                      uint64_t first_byte);

 private:
  const FileCarrierOptions options_;
  ChunkSink* const sink_;
  std::vector<char>* const buffer_;
};

}  // namespace sstferry
