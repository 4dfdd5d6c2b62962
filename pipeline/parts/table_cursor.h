// Reads the entries of one table in key order, without RocksDB. Also returns
// older versions of keys, and deletions of single keys, but no range deletions.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "format/read_ahead.h"
#include "format/rocksdb/sst_reader.h"
#include "format/types.h"
#include "pipeline/base/file_source.h"
#include "pipeline/parts/table_file.h"
#include "rocksdb/comparator.h"
#include "rocksdb/file_system.h"

namespace sstferry {

// Settings for reading tables.
struct TableReads {
  rocksdb::FileSystem* file_system = nullptr;
  const rocksdb::Comparator* order = nullptr;
  KeyInterval interval;
  uint64_t readahead_bytes = 0;
};

// Reads the entries of one table in one interval.
//
// Ownership: shares the open file; borrows the TableReads.
// Threads:   one.
// Memory:    the offsets of the blocks inside the interval, one block, and a
//            buffer for readahead.
// Errors:    NotSupported for a table that this class cannot read, but RocksDB
//            may be able to read; errors of SstReader and FileSource.
class TableCursor {
 public:
  // Moves to the first entry inside the interval. REQUIRES: no key has a
  // timestamp.
  [[nodiscard]] rocksdb::Status Open(const TableFile& file,
                                     const TableReads& reads);

  // Returns true if there is a current entry. Returns false after the last
  // entry of the interval.
  bool valid() const { return valid_; }
  // Return the current entry. It stays valid until the next call of Next().
  const rocksdb::Slice& user_key() const { return user_key_; }
  const rocksdb::Slice& value() const { return cursor_.value(); }
  uint64_t sequence() const { return sequence_; }
  uint8_t type() const { return type_; }
  [[nodiscard]] rocksdb::Status Next();

 private:
  bool IsAtOrBehindBegin(const rocksdb::Slice& key) const;
  bool IsBeforeEnd(const rocksdb::Slice& key) const;
  [[nodiscard]] rocksdb::Status CheckKind(const TableFile& file);
  [[nodiscard]] rocksdb::Status FindBlocks();
  [[nodiscard]] rocksdb::Status OpenBlock();
  [[nodiscard]] rocksdb::Status ReadEntry();

  const TableReads* reads_ = nullptr;
  std::shared_ptr<const FileSource> file_;
  std::optional<ReadAhead> read_ahead_;
  SstReader table_;
  // Sequence number of all entries of an ingested file. RocksDB keeps it in the
  // MANIFEST, not in the file.
  std::optional<uint64_t> ingested_sequence_;
  std::vector<SstBlockHandle> blocks_;
  bool ends_inside_ =
      false;  // the last block may go past the interval
  size_t next_block_ = 0;
  SstBlock block_;
  SstBlockCursor cursor_;
  bool valid_ = false;
  rocksdb::Slice user_key_;
  uint64_t sequence_ = 0;
  uint8_t type_ = 0;
};

}  // namespace sstferry
