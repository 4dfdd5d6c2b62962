// Finds the end of a database's WALs at one moment.
//
// RocksDB may create the next WAL, and write records about the log itself into
// it, before the previous WAL is complete. This happens briefly with
// manual_wal_flush, and always with async_wal_precreate. So the end is in the
// newest WAL that has a data record. Newer WALs are ignored.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "format/byte_source.h"
#include "format/clone_file.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace sstferry {

// End of the WALs. If no WAL has a data record, this is the oldest WAL with 0
// bytes. Number 0: there is no WAL.
struct WalEnd {
  uint64_t number = 0;
  uint64_t bytes = 0;
  friend bool operator==(const WalEnd&, const WalEnd&) = default;
};

// Checks if the first `end` bytes of a WAL have a data record (a record that is
// not about the log itself). Reads in order, up to the first data record.
[[nodiscard]] rocksdb::Status HasRecord(const ByteSource& wal, uint64_t number,
                                        uint64_t end, bool* has_record);

// Opens one of the WALs among `files` for reading.
using OpenWal = std::function<rocksdb::Status(
    const CloneFile& file, std::unique_ptr<ByteSource>* wal)>;

// Finds the end of the WALs among `files`. Opens the WALs, newest first, until
// one has a data record.
[[nodiscard]] rocksdb::Status FindWalEnd(const std::vector<CloneFile>& files,
                                         const OpenWal& open, WalEnd* end);

// Checks if tables have all entries of a WAL, according to the first `bytes`
// bytes of a MANIFEST (complete records).
[[nodiscard]] rocksdb::Status IsFlushedBy(const ByteSource& manifest,
                                          uint64_t bytes, uint64_t wal_number,
                                          bool* is_flushed);

}  // namespace sstferry
