// What depends on the version of the linked RocksDB. Nothing else may look at
// ROCKSDB_MAJOR and ROCKSDB_MINOR.
#pragma once

#include <cstdint>
#include <string>

#include "format/end_state.h"
#include "rocksdb/iterator.h"
#include "rocksdb/slice.h"
#include "rocksdb/sst_file_writer.h"
#include "rocksdb/status.h"
#include "rocksdb/version.h"

namespace sstferry {

constexpr bool RocksDbIsAtLeast(int major, int minor) {
  return ROCKSDB_MAJOR > major ||
         (ROCKSDB_MAJOR == major && ROCKSDB_MINOR >= minor);
}

// The newest format_version of block-based tables that can be read and
// written: 6 came with 8.6, 7 with 10.4.
inline constexpr uint32_t kMaxTableFormatVersion =
    RocksDbIsAtLeast(10, 4) ? 7 : RocksDbIsAtLeast(8, 6) ? 6 : 5;
// The oldest that every supported version still writes.
inline constexpr uint32_t kMinTableFormatVersion = 2;
// Of families whose source files do not say: every supported version reads it.
inline constexpr uint32_t kPortableTableFormatVersion = 5;

constexpr uint32_t MaxReadableFormatVersion() { return kMaxTableFormatVersion; }
constexpr uint32_t DefaultFormatVersion() {
  return kPortableTableFormatVersion;
}

// "7.8.3", of the library that is loaded.
inline std::string RocksDbVersion() {
  return rocksdb::GetRocksVersionAsString(true);
}

// Below 9.0 a universal family puts ingested files into level 0.
inline constexpr bool kUniversalIngestsToLastLevel = RocksDbIsAtLeast(9, 0);

// Below 9.3 a FIFO family puts ingested files into a level it never reads for
// compaction, so they would never expire.
inline constexpr bool kFifoIngestsToLevel0 = RocksDbIsAtLeast(9, 3);

// Below 8.6 (Debian's build of it) reading an ingested file that holds a
// wide-column entity aborts the process.
inline constexpr bool kIngestsEntities = RocksDbIsAtLeast(8, 6);

// Appends the wide-column entity the iterator stands on. SstFileWriter can
// since 8.6; below, NotSupported (kRefused).
[[nodiscard]] inline rocksdb::Status PutEntityInto(
    rocksdb::SstFileWriter* writer, const rocksdb::Slice& key,
    const rocksdb::Iterator& entity) {
#if ROCKSDB_MAJOR > 8 || (ROCKSDB_MAJOR == 8 && ROCKSDB_MINOR >= 6)
  return writer->PutEntity(key, entity.columns());
#else
  (void)writer;
  (void)key;
  (void)entity;
  return MakeStatus(EndState::kRefused,
                    "wide-column entities need RocksDB 8.6 to be moved, found " +
                        RocksDbVersion());
#endif
}

}  // namespace sstferry
