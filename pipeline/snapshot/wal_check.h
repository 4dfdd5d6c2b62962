// Distinguishes a WAL that ends inside a record (its owner died, or was writing
// during the copy) from a damaged one. RocksDB does not in three cases, in
// which it reads up to the bad record and stops with status OK: a damaged
// length in the last block, a damaged type that looks like one of a recycled
// WAL, and any damage in a recycled WAL.
//
// A WAL is a sequence of 32 KiB blocks; a record does not cross a block's end,
// where up to 6 bytes are unused. All integers are little-endian.
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

// Checks the WAL at `path`, or an open one; `name` is used in messages.
//   kCorrupt      a bad record, and proof that the WAL continued behind it or
//                 that the record was whole; the message names file and offset.
//   kSourceError  the file cannot be read.
// OK for a good WAL and for one cut or overwritten from some point on. (Damage
// to the last record of a recycled WAL may not be found: its bytes look like
// those of an earlier life.)
[[nodiscard]] rocksdb::Status CheckWal(const std::string& path,
                                       uint64_t number,
                                       const std::string& name);
[[nodiscard]] rocksdb::Status CheckWal(int fd, uint64_t number,
                                       const std::string& name);

}  // namespace sstferry
