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

// Space that a pull needs. Chunks are written into staging/ and then linked
// into db/, so they need their space once. bytes() adds a tenth to the
// estimate, as its error, and one chunk for each lane, which may have to be
// sent again.
struct SpaceNeed {
  uint64_t estimated_bytes = 0;  // all parts not yet received
  uint64_t chunk_bytes = 0;      // the largest chunks, one for each lane
  uint64_t reserve_bytes = 0;    // bytes that must stay free
  uint64_t present_bytes = 0;    // bytes that an unfinished pull has, or frees
  uint64_t bytes() const {
    const uint64_t needed =
        estimated_bytes + estimated_bytes / 10 + chunk_bytes;
    return needed - std::min(needed, present_bytes) + reserve_bytes;
  }
};

// Returns the space that `parts` need if this many lanes receive them. Assumes
// that a chunk has at most `chunk_bytes` and is no larger than its part.
SpaceNeed SpaceNeedOf(const std::vector<Part>& parts, uint64_t chunk_bytes,
                      uint32_t lanes);

// Sets *bytes to the free bytes of the file system that holds `dir`, or to the
// largest number if the file system cannot report it (NotSupported).
[[nodiscard]] rocksdb::Status FreeBytes(rocksdb::FileSystem* file_system,
                                        const std::string& dir,
                                        uint64_t* bytes);

// Returns the bytes of the files below `dir` that have no other name; 0 if
// there is no such directory.
uint64_t BytesBelow(const std::string& dir);

// Returns `percent` of the size of the file system that holds `dir`, in bytes;
// 0 if the size is unknown.
uint64_t ReserveOf(const std::string& dir, double percent);

// Formats bytes, for example as "60.00 MB".
std::string SpaceText(uint64_t bytes);

// Compares the free space of the file system that holds `dir` with `need`.
//   kNoSpace  there is less free space
[[nodiscard]] rocksdb::Status CheckFreeSpace(rocksdb::FileSystem* file_system,
                                             const std::string& dir,
                                             const SpaceNeed& need);

}  // namespace sstferry
