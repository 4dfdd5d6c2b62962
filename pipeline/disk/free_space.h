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
// into db/, so they use their space only once. bytes() adds 10 % to the
// estimate, as its possible error, and one chunk for each lane, which may have
// to be sent again.
struct SpaceNeed {
  uint64_t estimated_bytes = 0;  // parts to be sent whole, not yet received
  uint64_t chunk_bytes = 0;      // the largest chunks, one for each lane
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

// Sets *bytes to the free bytes of the file system that holds `dir`, or to the
// largest number if the file system cannot report its free space.
[[nodiscard]] rocksdb::Status FreeBytes(rocksdb::FileSystem* file_system,
                                        const std::string& dir,
                                        uint64_t* bytes);

// Returns the bytes of the files below `dir` that have only one name, because
// removing another name of a file frees no space; 0 if `dir` does not exist.
uint64_t BytesBelow(const std::string& dir);

// Returns `percent` of the size of the file system that holds `dir`, in bytes;
// 0 if the size is unknown.
uint64_t ReserveOf(const std::string& dir, double percent);

// Formats bytes, for example as "60.00 MB".
std::string SpaceText(uint64_t bytes);

// Checks that the file system that holds `dir` has as much free space as
// `need`.
//   kNoSpace  it has less
[[nodiscard]] rocksdb::Status CheckFreeSpace(rocksdb::FileSystem* file_system,
                                             const std::string& dir,
                                             const SpaceNeed& need);

}  // namespace sstferry
