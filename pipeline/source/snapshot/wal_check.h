// Tells a WAL that ends in the middle of a record (its owner died, or was
// writing while it was copied) from one with damaged bytes. RocksDB reads both
// up to the bad record and stops, with status OK, in three cases: a damaged
// length in the last block, a damaged type that looks like one of a recycled
// WAL, and any damage in a recycled WAL.
//
// A WAL is a row of 32 KiB blocks; a record does not cross a block's end, and
// up to 6 bytes there are left over. All integers are little-endian.
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

// Reads the WAL at `path`, or an open one; `name` stands in messages.
//   kCorrupt      a bad record, and proof that the WAL went on behind it or
//                 that the record was whole: names file and offset.
//   kSourceError  the file cannot be read.
// OK for a good WAL and for one cut or overwritten from some point on. (In a
// recycled WAL the last record of all may be damaged unseen: its bytes cannot
// be told from an earlier life's.)
[[nodiscard]] rocksdb::Status CheckWal(const std::string& path,
                                       uint64_t number,
                                       const std::string& name);
[[nodiscard]] rocksdb::Status CheckWal(int fd, uint64_t number,
                                       const std::string& name);

}  // namespace sstferry
