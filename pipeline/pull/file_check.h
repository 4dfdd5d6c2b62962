// Checks a complete file of a clone by its own checksums.
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

// Checks the file by its own checksums, except the blocks in `checked`
// (CheckSstFile()). Sets *unchecked if some bytes of the file have no checksum,
// as in a table that is not block-based or has blocks without checksums.
//   kCorrupt       a checksum is wrong, or the complete records of a WAL end at
//                  another offset than at the source
//   kIncompatible  this process's RocksDB could not read the whole file
[[nodiscard]] rocksdb::Status CheckClonedFile(rocksdb::FileSystem* file_system,
                                              const std::string& path,
                                              const CloneFile& file,
                                              std::vector<ByteSpan> checked,
                                              bool* unchecked);

// Compares the whole file with its checksum in a MANIFEST. Sets *compared to
// false if this process does not know the checksum function `function`.
[[nodiscard]] rocksdb::Status CompareWithManifest(
    rocksdb::FileSystem* file_system, const std::string& path,
    const std::string& function, const std::string& checksum, bool* compared);

// Computes the digest of a part of a file. kCorrupt: the file is too short.
[[nodiscard]] rocksdb::Status DigestOfPart(rocksdb::FileSystem* file_system,
                                           const std::string& path,
                                           uint64_t offset, uint64_t bytes,
                                           Digest128* digest);

// Computes the same digest as DigestOfPart(), but from the bytes on the disk.
// Bypasses the page cache if the file system supports direct reads; otherwise
// uses FileSource::OpenFromDisk().
[[nodiscard]] rocksdb::Status DigestFromDisk(rocksdb::FileSystem* file_system,
                                             const std::string& path,
                                             uint64_t offset, uint64_t bytes,
                                             Digest128* digest);

}  // namespace sstferry
