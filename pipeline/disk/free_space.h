// Checks that the target's file system has room for a pull.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "format/messages.h"
#include "rocksdb/file_system.h"
#include "rocksdb/status.h"

namespace sstferry {

// Space that a pull needs. A chunk is written into staging/ and then linked
// into db/, so it needs its space only once. bytes() adds two amounts to the
// estimate. It adds 10 %, because the estimate may be wrong. It also adds one
// chunk for each lane, because each lane may have to receive a chunk again.
struct SpaceNeed {
  uint64_t estimated_bytes = 0;  // parts to receive completely
  uint64_t chunk_bytes = 0;      // the largest chunks, one per lane
  uint64_t reserve_bytes = 0;    // bytes that must stay free
  uint64_t present_bytes = 0;    // space that an unfinished pull uses or frees
  uint64_t bytes() const {
    const uint64_t needed =
        estimated_bytes + estimated_bytes / 10 + chunk_bytes;
    return needed - std::min(needed, present_bytes) + reserve_bytes;
  }
};

// Returns the space that `parts` need if this many lanes receive them. Assumes
// that no chunk is larger than `chunk_bytes` or than its part.
SpaceNeed SpaceNeedOf(const std::vector<Part>& parts, uint64_t chunk_bytes,
                      uint32_t lanes);

// Sets *bytes to the free bytes of the file system that contains `dir`. If the
// file system cannot report its free space, sets *bytes to the largest number.
[[nodiscard]] rocksdb::Status FreeBytes(rocksdb::FileSystem* file_system,
                                        const std::string& dir,
                                        uint64_t* bytes);

// Returns the total size of the files below `dir` that have no other hard link.
// Removing one of several links to a file frees no space. Returns 0 if `dir`
// does not exist.
uint64_t BytesBelow(const std::string& dir);

// Returns `percent` of the size, in bytes, of the file system that contains
// `dir`. Returns 0 if the size is unknown.
uint64_t ReserveOf(const std::string& dir, double percent);

// Formats bytes, for example as "60.00 MB".
std::string SpaceText(uint64_t bytes);

// Checks that the file system that contains `dir` has at least need.bytes()
// free bytes.
//   kNoSpace  the file system has less
[[nodiscard]] rocksdb::Status CheckFreeSpace(rocksdb::FileSystem* file_system,
                                             const std::string& dir,
                                             const SpaceNeed& need);

}  // namespace sstferry
