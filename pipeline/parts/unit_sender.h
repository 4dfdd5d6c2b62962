// Reads a unit of a clone (unchanged bytes of a file), to send it or to compute
// its digest. Also checks a complete file by the checksums that it contains.
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

// The location of a unit's bytes: either `path` or `source` is set.
struct UnitPlace {
  std::string path;              // path of its file
  UnitSource* source = nullptr;  // borrowed
};

// Sends the unit, starting at its byte `first_byte`, as the only chunk of its
// part. A unit of a UnitSource is always sent from its first byte. Polls
// `cancelled`; reuses `buffer` in later calls.
//   kSourceError, kCorrupt  the file cannot be read, or is too short
//   others                  errors of the sink and of UnitSource::Read()
[[nodiscard]] rocksdb::Status SendUnit(const UnitPlace& place,
                                       const Part& unit, uint64_t first_byte,
                                       const std::function<bool()>& cancelled,
                                       ChunkSink* sink,
                                       std::vector<char>* buffer);

// Sets *digest to the digest of the unit's bytes. Reads the bytes if their
// digest is not recorded. Errors are those of SendUnit().
[[nodiscard]] rocksdb::Status DigestUnit(const UnitPlace& place,
                                         const Part& unit,
                                         const std::function<bool()>& cancelled,
                                         std::vector<char>* buffer,
                                         Digest128* digest);

// Answers a FileDigestRequest for the file at `path`, which is divided into
// units of `unit_bytes`. `on_read` as in CheckUnitFile(). A request for the
// first piece also checks the whole file with CheckUnitFile().
//   kCorrupt  the file has no such piece, or a checksum is wrong
//   kRefused  the piece has more units than fit into a reply
//   others    errors of SendUnit()
[[nodiscard]] rocksdb::Status DigestPiece(
    const std::string& path, const CloneFile& file, uint64_t unit_bytes,
    const FileDigestRequest& piece,
    const std::function<bool(uint64_t)>& on_read, std::vector<char>* buffer,
    FileDigestReply* reply);

// Reads a table or a blob file and checks it by the checksums that RocksDB
// wrote; other kinds of files have no checksums to check. Calls `on_read` with
// the number of bytes of each read, and stops if it returns false.
//   kSourceError  the file cannot be read
//   kCorrupt      a checksum is wrong
[[nodiscard]] rocksdb::Status CheckUnitFile(
    const std::string& path, const CloneFile& file,
    const std::function<bool(uint64_t)>& on_read);

}  // namespace sstferry
