// Checks a whole file of a clone by the checksums that it has.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/clone_file.h"
#include "format/digest.h"
#include "format/rocksdb/sst_file_check.h"
#include "rocksdb/file_system.h"
#include "rocksdb/status.h"

namespace sstferry {

// Reads the file but for the blocks that were `checked` (CheckSstFile()).
// *unchecked: bytes of it have no checksum (another kind of
// table than block-based, blocks without checksums).
//   kCorrupt       a checksum is wrong, or a log ends before its source's did
//   kIncompatible  RocksDB here would not read all of it
[[nodiscard]] rocksdb::Status CheckClonedFile(rocksdb::FileSystem* file_system,
                                              const std::string& path,
                                              const CloneFile& file,
                                              std::vector<ByteSpan> checked,
                                              bool* unchecked);

// Compares all of the file with the checksum that a MANIFEST has of it.
// *compared: `function` is one that is known here.
[[nodiscard]] rocksdb::Status CompareWithManifest(
    rocksdb::FileSystem* file_system, const std::string& path,
    const std::string& function, const std::string& checksum, bool* compared);

// The digest of a part of a file. kCorrupt: it is too short.
[[nodiscard]] rocksdb::Status DigestOfPart(rocksdb::FileSystem* file_system,
                                           const std::string& path,
                                           uint64_t offset, uint64_t bytes,
                                           Digest128* digest);

// The same as the disk has it, past the page cache where the file system can
// read so.
[[nodiscard]] rocksdb::Status DigestFromDisk(rocksdb::FileSystem* file_system,
                                             const std::string& path,
                                             uint64_t offset, uint64_t bytes,
                                             Digest128* digest);

}  // namespace sstferry
