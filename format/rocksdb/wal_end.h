// Finds where the WALs of a database end, as one moment has them.
//
// RocksDB may make a WAL's file, and write records about the log itself into it,
// before the WAL before is whole: for a moment with manual_wal_flush, always with
// async_wal_precreate. So the newest WAL that has a record is the end, and a newer
// one counts as absent.
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

// Where WALs end. If none has a record: the oldest, and no bytes; number 0: there
// is no WAL.
struct WalEnd {
  uint64_t number = 0;
  uint64_t bytes = 0;
  friend bool operator==(const WalEnd&, const WalEnd&) = default;
};

// Finds whether the first `end` bytes of a WAL have a record that is not about
// the log itself. Reads in order, and no further than that record.
[[nodiscard]] rocksdb::Status HasRecord(const ByteSource& wal, uint64_t number,
                                        uint64_t end, bool* has_record);

// Opens a WAL of `files` to read it.
using OpenWal = std::function<rocksdb::Status(
    const CloneFile& file, std::unique_ptr<ByteSource>* wal)>;

// Finds the end of the WALs among `files`. Opens the newest ones, until one has a
// record.
[[nodiscard]] rocksdb::Status FindWalEnd(const std::vector<CloneFile>& files,
                                         const OpenWal& open, WalEnd* end);

// Finds whether the first bytes of a MANIFEST, whole records, say that tables have
// all of the WAL of that number.
[[nodiscard]] rocksdb::Status IsFlushedBy(const rocksdb::Slice& manifest,
                                          uint64_t wal_number,
                                          bool* is_flushed);

}  // namespace sstferry
