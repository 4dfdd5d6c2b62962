// Reads a unit of a clone, bytes of a file as they are: sends it, or tells its
// digest.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "format/clone_file.h"
#include "pipeline/source/chunk/chunk_builder.h"
#include "rocksdb/status.h"

namespace sstferry {

// Sends the unit of the file at `path` from its byte `first_byte` on, as the
// one chunk of a range. `cancelled` is polled; `buffer` is used again by later
// calls.
//   kSourceError, kCorrupt  the file cannot be read, or is too short
//   others                  the sink's
[[nodiscard]] rocksdb::Status SendUnit(const std::string& path,
                                       const CloneUnit& unit,
                                       uint32_t range_id, uint64_t first_byte,
                                       const std::function<bool()>& cancelled,
                                       ChunkSink* sink,
                                       std::vector<char>* buffer);

// The digest of the unit's bytes, which are read for it. Errors as above.
[[nodiscard]] rocksdb::Status DigestUnit(const std::string& path,
                                         const CloneUnit& unit,
                                         const std::function<bool()>& cancelled,
                                         std::vector<char>* buffer,
                                         Digest128* digest);

}  // namespace sstferry
