// Distinguishes a damaged WAL from a WAL that ends inside a record (its owner
// crashed, or was writing during the copy). RocksDB treats both alike in three
// cases: a damaged length in the last block, a damaged type that looks like a
// recycled WAL's type, and any damage in a recycled WAL. It then reads up to
// the bad record, and stops with status OK.
//
// A WAL is a sequence of 32 KiB blocks. A record does not cross the end of a
// block; up to 6 bytes at a block's end are unused. All integers are
// little-endian.
//
//   offset  size  field     value
//   0       4     checksum  masked CRC-32C of type, log number and payload
//   4       2     length    of the payload
//   6       1     type      1-4 plain, 5-8 recyclable, 0 preallocated, others
//   7       4     log       low half of the WAL's number, recyclable only
#pragma once

#include <cstdint>
#include <string>

#include "rocksdb/status.h"

namespace sstferry {

// Checks the WAL at `path`, or an open WAL. Messages contain `name`. Returns OK
// for a good WAL, and for a WAL that was truncated or overwritten from some
// offset on. Damage to the last record of a recycled WAL may go unnoticed,
// because the damaged bytes look like those of an older WAL in the same file.
//   kCorrupt      a bad record, and proof that the WAL continued after it or
//                 that the record was complete; the message contains file and
//                 offset.
//   kSourceError  the file cannot be read.
[[nodiscard]] rocksdb::Status CheckWal(const std::string& path,
                                       uint64_t number,
                                       const std::string& name);
[[nodiscard]] rocksdb::Status CheckWal(int fd, uint64_t number,
                                       const std::string& name);

}  // namespace sstferry
