// Everything that depends on the version of the linked RocksDB. No other file
// may use ROCKSDB_MAJOR and ROCKSDB_MINOR.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>

#include "format/end_state.h"
#include "format/release.h"
#include "rocksdb/db.h"
#include "rocksdb/file_system.h"
#include "rocksdb/options.h"
#include "rocksdb/slice.h"
#include "rocksdb/sst_file_writer.h"
#include "rocksdb/status.h"
#include "rocksdb/table.h"
#include "rocksdb/version.h"
#include "rocksdb/wide_columns.h"

namespace sstferry {

constexpr bool RocksDbIsAtLeast(int major, int minor) {
  return ROCKSDB_MAJOR > major ||
         (ROCKSDB_MAJOR == major && ROCKSDB_MINOR >= minor);
}

inline constexpr RocksDbRelease kLinkedRelease{ROCKSDB_MAJOR, ROCKSDB_MINOR,
                                        ROCKSDB_PATCH};

// Newest format_version of block-based tables that the linked RocksDB and
// sstferry's own readers in format/rocksdb/ can both read and write.
inline constexpr uint32_t kMaxTableFormatVersion =
    std::min(MaxFormatVersion(kLinkedRelease), 7u);
// Oldest format_version that every supported release can write.
inline constexpr uint32_t kMinTableFormatVersion = 2;
// The format_version of new tables in a family of which the source has no
// tables. Every supported release can read this version.
inline constexpr uint32_t kPortableTableFormatVersion = 5;

constexpr uint32_t MaxReadableFormatVersion() { return kMaxTableFormatVersion; }
constexpr uint32_t DefaultFormatVersion() {
  return kPortableTableFormatVersion;
}

// Returns the version of the loaded library, such as "7.8.3".
inline std::string RocksDbVersion() {
  return rocksdb::GetRocksVersionAsString(true);
}

// Before 9.0, a universal family puts ingested files into level 0.
inline constexpr bool kUniversalIngestsToLastLevel = RocksDbIsAtLeast(9, 0);

// Before 7.10, RocksDB may sort level-0 files wrongly if it ingests files while
// memtables have entries of the same keys. The memtables must then be flushed
// before an ingestion.
inline constexpr bool kIngestsOverMemtables = RocksDbIsAtLeast(7, 10);

// Before 9.0, a universal family must not ingest files over existing data. A
// later compaction may keep the older data instead of the newer data.
inline constexpr bool kUniversalIngestsOverData = RocksDbIsAtLeast(9, 0);

// Before 9.3, a FIFO family puts ingested files into a level that its
// compaction never reads, so the files would never expire.
inline constexpr bool kFifoIngestsToLevel0 = RocksDbIsAtLeast(9, 3);

// Before 9.10, a compaction may drop entries that have the sequence number 0.
// It does so while a snapshot with this number exists (facebook/rocksdb#13155).
inline constexpr bool kDropsEntriesAtZero = !RocksDbIsAtLeast(9, 10);

// Before 8.7, an iterator may lose errors unless it ignores range deletions,
// even if no range deletion exists (facebook/rocksdb#11782, #11786). An error
// may occur at the start of a level's next file, or at an entry that a range
// deletion covers. The iterator then skips the rest of the level, and its
// status stays OK. The last patch releases of 8.3 to 8.6 have the fix, but
// RocksDB's headers do not prove which patch release is linked.
inline constexpr bool kIteratorsLoseErrors = !RocksDbIsAtLeast(8, 7);
// From 8.1 to 8.6, compactions may lose errors, too.
inline constexpr bool kCompactionsLoseErrors =
    kIteratorsLoseErrors && RocksDbIsAtLeast(8, 1);

// Before 8.6 (in Debian's build), RocksDB aborts the process if it reads a
// wide-column entity in an ingested file.
inline constexpr bool kIngestsEntities =
    kLinkedRelease >= kReadsIngestedEntities;

// Before 9.4, RocksDB replaces wide-column entities by plain values when it
// recovers prepared transactions.
inline constexpr bool kReplaysPreparedEntities =
    kLinkedRelease >= kReadsPreparedEntities;

// Since 11.1, data blocks may store values separately from keys, and index
// blocks may be marked as uniform. Older versions report such blocks as
// damaged.
inline constexpr bool kLinkedReadsMarkedBlocks =
    kLinkedRelease >= kReadsMarkedBlocks;

// Passes a unique_ptr to DB::Open() and similar functions of any release:
// DB::Open(options, path, IntoDb(&db)). Since 9.11, these functions accept a
// pointer to a unique_ptr. Before 11.0, they also accept a DB**.
#if ROCKSDB_MAJOR > 9 || (ROCKSDB_MAJOR == 9 && ROCKSDB_MINOR >= 11)
inline std::unique_ptr<rocksdb::DB>* IntoDb(std::unique_ptr<rocksdb::DB>* db) {
  return db;
}
#else
class IntoDb {
 public:
  explicit IntoDb(std::unique_ptr<rocksdb::DB>* db) : db_(db) {}
  IntoDb(const IntoDb&) = delete;
  IntoDb& operator=(const IntoDb&) = delete;
  ~IntoDb() { db_->reset(opened_); }
  operator rocksdb::DB**() { return &opened_; }  // NOLINT: implicit by intent

 private:
  std::unique_ptr<rocksdb::DB>* const db_;
  rocksdb::DB* opened_ = nullptr;
};
#endif

// The functions below set members of option structs that only some supported
// releases have. The functions are templates, because only in a template may a
// requires-expression name a member that does not exist.

// Disables block features that older targets report as damage.
template <typename TableOptions>
void UnmarkBlocks(TableOptions* table) {
  if constexpr (requires { table->separate_key_value_in_data_block; }) {
    table->separate_key_value_in_data_block = false;
  }
  if constexpr (requires { table->uniform_cv_threshold; }) {
    table->uniform_cv_threshold = -1;
  }
}

// Returns true if tables with these options may have block features that
// UnmarkBlocks() disables.
template <typename TableOptions>
bool MarksBlocks(const TableOptions& table) {
  bool marks = false;
  if constexpr (requires { table.separate_key_value_in_data_block; }) {
    marks |= table.separate_key_value_in_data_block;
  }
  if constexpr (requires { table.uniform_cv_threshold; }) {
    marks |= table.uniform_cv_threshold >= 0;
  }
  return marks;
}

// Limits the padding that RocksDB puts between blocks to align them. A reader
// reports missing bytes if the gap between two blocks is too wide.
template <typename TableOptions>
void BoundPadding(uint64_t max_bytes, TableOptions* table) {
  if constexpr (requires { table->super_block_alignment_size; }) {
    const size_t ratio = table->super_block_alignment_space_overhead_ratio;
    if (ratio != 0 && table->super_block_alignment_size / ratio > max_bytes) {
      table->super_block_alignment_size = 0;
    }
  }
}

// Makes RocksDB build and use its standard index, which covers every key. With
// the hash index, a key outside the prefix extractor's domain aborts the
// process. A user-defined index needs the application's code. Existing tables
// stay readable: RocksDB detects the kind of index in each table, and a table
// with a user-defined index has a standard index, too.
template <typename TableOptions>
void UseStandardIndex(TableOptions* table) {
  if (table->index_type == TableOptions::kHashSearch) {
    table->index_type = TableOptions::kBinarySearch;
  }
  if constexpr (requires { table->user_defined_index_factory; }) {
    table->user_defined_index_factory = nullptr;
  }
  if constexpr (requires { table->use_udi_as_primary_index; }) {
    table->use_udi_as_primary_index = false;
  }
  if constexpr (requires { table->fail_if_no_udi_on_open; }) {
    table->fail_if_no_udi_on_open = false;
  }
}

// Returns true if the application defines its own compression methods. They
// need format_version 7 or later.
template <typename FamilyOptions>
bool HasCompressionManager(const FamilyOptions& family) {
  if constexpr (requires { family.compression_manager; }) {
    return family.compression_manager != nullptr;
  }
  return false;
}
template <typename FamilyOptions>
void UseBuiltInCompression(FamilyOptions* family) {
  if constexpr (requires { family->compression_manager; }) {
    family->compression_manager = nullptr;
  }
}

// Prepares the options of a family that sstferry only reads, or fills only by
// ingestion. Disables options that make reads write or flush, keep data out of
// the last level, or prevent the open.
template <typename FamilyOptions>
void QuietFamily(FamilyOptions* family) {
  if constexpr (requires { family->max_write_buffer_number_to_maintain; }) {
    family->max_write_buffer_number_to_maintain = 0;  // removed in 10.2
  }
  if constexpr (requires { family->disallow_memtable_writes; }) {
    family->disallow_memtable_writes = false;
  }
  if constexpr (requires { family->memtable_op_scan_flush_trigger; }) {
    family->memtable_op_scan_flush_trigger = 0;
    family->memtable_avg_op_scan_flush_trigger = 0;
  }
  if constexpr (requires { family->cf_allow_ingest_behind; }) {
    family->cf_allow_ingest_behind = false;
  }
  if constexpr (requires { family->enable_blob_direct_write; }) {
    family->enable_blob_direct_write = false;
  }
  if constexpr (requires { family->min_tombstones_for_range_conversion; }) {
    family->min_tombstones_for_range_conversion = 0;
  }
  if constexpr (requires { family->read_triggered_compaction_threshold; }) {
    family->read_triggered_compaction_threshold = 0;
  }
}

// Prepares the options of a database copy that sstferry opens for reading.
// RocksDB then reports errors in the files when it opens them, and writes as
// little as possible.
template <typename DatabaseOptions>
void QuietDatabase(DatabaseOptions* db) {
  if constexpr (requires { db->skip_checking_sst_file_sizes_on_db_open; }) {
    db->skip_checking_sst_file_sizes_on_db_open = false;  // removed in 11.0
  }
  if constexpr (requires { db->open_files_async; }) {
    db->open_files_async = false;
  }
  if constexpr (requires { db->track_and_verify_wals; }) {
    db->track_and_verify_wals = false;  // a copy may have no WAL
  }
  if constexpr (requires { db->reuse_manifest_on_open; }) {
    db->reuse_manifest_on_open = false;
  }
  if constexpr (requires { db->optimize_manifest_for_recovery; }) {
    db->optimize_manifest_for_recovery = false;
  }
  if constexpr (requires { db->verify_manifest_content_on_close; }) {
    db->verify_manifest_content_on_close = false;
  }
  if constexpr (requires { db->async_wal_precreate; }) {
    db->async_wal_precreate = false;
  }
  if constexpr (requires { db->max_compaction_trigger_wakeup_seconds; }) {
    db->max_compaction_trigger_wakeup_seconds = 0;
  }
}

// Base class of file systems that intercept syncs. Since 10.6, RocksDB calls
// SyncFile() when it ingests a file. FileSystemWrapper would pass this call to
// the wrapped file system, and the subclass would not see the sync.
class SyncWatchingFileSystem : public rocksdb::FileSystemWrapper {
 public:
  using FileSystemWrapper::FileSystemWrapper;

  // Overrides a method that 10.6 introduced; earlier releases do not call it.
  virtual rocksdb::IOStatus SyncFile(const std::string& name,
                                     const rocksdb::FileOptions& file_options,
                                     const rocksdb::IOOptions& options,
                                     bool use_fsync,
                                     rocksdb::IODebugContext* dbg) {
    std::unique_ptr<rocksdb::FSWritableFile> file;
    rocksdb::IOStatus status =
        ReopenWritableFile(name, file_options, &file, dbg);
    if (!status.ok()) {
      return status;
    }
    status = use_fsync ? file->Fsync(options, dbg) : file->Sync(options, dbg);
    const rocksdb::IOStatus closed = file->Close(options, dbg);
    return status.ok() ? closed : status;
  }
};

// Appends a wide-column entity to a table. Returns NotSupported (kRefused) if
// the linked RocksDB is older than 8.6, because its SstFileWriter cannot write
// entities.
[[nodiscard]] inline rocksdb::Status PutEntityInto(
    rocksdb::SstFileWriter* writer, const rocksdb::Slice& key,
    const rocksdb::WideColumns& columns) {
#if ROCKSDB_MAJOR > 8 || (ROCKSDB_MAJOR == 8 && ROCKSDB_MINOR >= 6)
  return writer->PutEntity(key, columns);
#else
  (void)writer;
  (void)key;
  (void)columns;
  return MakeStatus(
      EndState::kRefused,
      "wide-column entities: expected RocksDB 8.6 or later, found " +
          RocksDbVersion());
#endif
}

}  // namespace sstferry
