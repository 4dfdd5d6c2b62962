// A small file that is always written completely: a header with magic, length
// and digest, followed by the payload.
//
//   file:  offset  size  field
//          0       8     magic
//          8       4     payload_bytes, exactly the remaining file size
//          12      4     reserved, 0
//          16      8     XXH3-64 of payload, seeded with the XXH3-64 of
//                        bytes [0, 16)
//          24      ...   payload, to the end of the file
#pragma once

#include <cstdint>
#include <string>

#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace sstferry {

inline constexpr uint32_t kSealedHeaderBytes = 24;

// Appends a complete file. REQUIRES: `magic` is 8 bytes, payload below 4 GiB.
void SealFile(const char* magic, const rocksdb::Slice& payload,
              std::string* out);

// Checks a file and sets *payload to its payload, which points into the file.
// Returns Corruption unless `file` is exactly one complete file with this
// magic. The message begins with `name`.
[[nodiscard]] rocksdb::Status UnsealFile(const char* name, const char* magic,
                                         uint64_t max_payload_bytes,
                                         const rocksdb::Slice& file,
                                         rocksdb::Slice* payload);

}  // namespace sstferry
