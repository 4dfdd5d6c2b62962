// Reads a unit of a clone, bytes of a file as they are: sends it, or tells its
// digest. Checks such a file by its own checksums.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "format/clone_file.h"
#include "format/messages_lane.h"
#include "pipeline/parts/chunk_builder.h"
#include "pipeline/snapshot/snapshot_origin.h"
#include "rocksdb/status.h"

namespace sstferry {

// Where the bytes of a unit are read.
struct UnitPlace {
  std::string path;              // of its file, or:
  UnitSource* source = nullptr;  // borrowed
};

// Sends the unit from its byte `first_byte` on, or from its first one, as the
// one chunk of a part. `cancelled` is polled; `buffer` is used again by later
// calls.
//   kSourceError, kCorrupt  the file cannot be read, or is too short
//   others                  the sink's, and those of UnitSource::Read()
[[nodiscard]] rocksdb::Status SendUnit(const UnitPlace& place,
                                       const Part& unit, uint64_t first_byte,
                                       const std::function<bool()>& cancelled,
                                       ChunkSink* sink,
                                       std::vector<char>* buffer);

// The digest of the unit's bytes, which are read for it where it is not known.
// Errors as above.
[[nodiscard]] rocksdb::Status DigestUnit(const UnitPlace& place,
                                         const Part& unit,
                                         const std::function<bool()>& cancelled,
                                         std::vector<char>* buffer,
                                         Digest128* digest);

// Answers a FileDigestRequest for the file at `path`, which is cut into units of
// `unit_bytes`. `on_read` as for CheckUnitFile().
//   kCorrupt    the file has no such piece, or a checksum is wrong
//   kRefused    the piece has more units than a reply
//   others      as SendUnit()
[[nodiscard]] rocksdb::Status DigestPiece(
    const std::string& path, const CloneFile& file, uint64_t unit_bytes,
    const FileDigestRequest& piece,
    const std::function<bool(uint64_t)>& on_read, std::vector<char>* buffer,
    FileDigestReply* reply);

// Reads a table or a blob file and checks it by the checksums that RocksDB
// wrote; another file has none that are checked here. `on_read` is called with
// the number of bytes of each read, and returns false to end it.
//   kSourceError  the file cannot be read
//   kCorrupt      a checksum is wrong
[[nodiscard]] rocksdb::Status CheckUnitFile(
    const std::string& path, const CloneFile& file,
    const std::function<bool(uint64_t)>& on_read);

}  // namespace sstferry
