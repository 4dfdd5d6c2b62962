// Reads units of a clone to send them, or to compute their digests. A unit is a
// sequence of bytes in one file of the source, and is copied unchanged. Can
// also check a complete file by the checksums in it.
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

// The place from which a unit's bytes are read. Either `path` or `source` is
// set.
struct UnitPlace {
  std::string path;              // path of the unit's file
  UnitSource* source = nullptr;  // borrowed
};

// Sends the unit's bytes from `first_byte` on, as the only chunk of the unit's
// part. If place.source is set, sends the unit from its first byte. Calls
// `cancelled` from time to time. Reuses the memory of *buffer.
//   kSourceError, kCorrupt  the file cannot be read, or is too short
//   others                  errors of the sink and of UnitSource::Read()
[[nodiscard]] rocksdb::Status SendUnit(const UnitPlace& place,
                                       const Part& unit, uint64_t first_byte,
                                       const std::function<bool()>& cancelled,
                                       ChunkSink* sink,
                                       std::vector<char>* buffer);

// Sets *digest to the digest of the unit's bytes. Reads the bytes, unless
// `from` allows a UnitSource to return the digest that it has recorded. Returns
// the same errors as SendUnit().
[[nodiscard]] rocksdb::Status DigestUnit(const UnitPlace& place,
                                         const Part& unit,
                                         UnitSource::DigestFrom from,
                                         const std::function<bool()>& cancelled,
                                         std::vector<char>* buffer,
                                         Digest128* digest);

// Computes the digests that `piece` asks for: the SHA-256 of the piece, and the
// digests of all units that begin in it. The file at `path` is divided into
// units of `unit_bytes`. If `piece` is the file's first piece, also calls
// CheckUnitFile(). Uses `on_read` as CheckUnitFile() does.
//   kCorrupt  the file has no such piece, or a checksum is wrong
//   kRefused  the piece has more units than fit into a reply
//   others    errors of SendUnit()
[[nodiscard]] rocksdb::Status DigestPiece(
    const std::string& path, const CloneFile& file, uint64_t unit_bytes,
    const FileDigestRequest& piece,
    const std::function<bool(uint64_t)>& on_read, std::vector<char>* buffer,
    FileDigestReply* reply);

// Reads a table or a blob file completely, and checks the checksums that
// RocksDB wrote into it. Does nothing for other kinds of files. Before each
// read, calls `on_read` with the number of bytes. Stops if `on_read` returns
// false.
//   kSourceError  the file cannot be read
//   kCorrupt      a checksum is wrong
[[nodiscard]] rocksdb::Status CheckUnitFile(
    const std::string& path, const CloneFile& file,
    const std::function<bool(uint64_t)>& on_read);

}  // namespace sstferry
