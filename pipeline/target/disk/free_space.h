// Whether what a pull is about to bring fits on its disk.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/message/messages.h"
#include "rocksdb/file_system.h"
#include "rocksdb/status.h"

namespace sstferry {

// Chunks are written into staging/ and then linked into db/, so they need
// their space once. On top of the estimate lie, at worst, a chunk of each lane
// that has to be sent again, and what the estimate is wrong by.
struct SpaceNeed {
  uint64_t estimated_bytes = 0;  // of all that is still to come
  uint64_t chunk_bytes = 0;      // one chunk of each lane, the largest ones
  uint64_t reserve_bytes = 0;    // that stay free
  uint64_t bytes() const {
    return estimated_bytes + estimated_bytes / 10 + chunk_bytes +
           reserve_bytes;
  }
};

// What `ranges` need when so many lanes fetch them. A chunk is taken to be at
// most `chunk_bytes`, and no larger than its range.
SpaceNeed SpaceNeedOf(const std::vector<Range>& ranges, uint64_t chunk_bytes,
                      uint32_t lanes);

// Free bytes of the file system that holds `dir`; of one that cannot tell
// (NotSupported), more than anybody asks for.
[[nodiscard]] rocksdb::Status FreeBytes(rocksdb::FileSystem* file_system,
                                        const std::string& dir,
                                        uint64_t* bytes);

// So much of the size of the file system that holds `dir`; 0 where that cannot
// be told.
uint64_t ReserveOf(const std::string& dir, double percent);

// "60.00 MB"
std::string Megabytes(uint64_t bytes);

// kNoSpace when the file system that holds `dir` has less than `need` free;
// the message says what is needed, what is there, and what to do.
// `keeps_old_copy`: a replaced database stays, which the message then says.
[[nodiscard]] rocksdb::Status CheckFreeSpace(rocksdb::FileSystem* file_system,
                                             const std::string& dir,
                                             const SpaceNeed& need,
                                             bool keeps_old_copy);

}  // namespace sstferry
