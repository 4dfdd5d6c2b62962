#include "pipeline/pull/first_sequence.h"

#include <algorithm>
#include <functional>

#include "format/end_state.h"
#include "format/rocksdb/manifest_append.h"
#include "pipeline/base/rocksdb_compat.h"
#include "pipeline/disk/durable.h"
#include "pipeline/pull/closed_files.h"
#include "rocksdb/comparator.h"
#include "rocksdb/env.h"
#include "rocksdb/metadata.h"
#include "rocksdb/table.h"

namespace sstferry {

using rocksdb::ColumnFamilyHandle;
using rocksdb::Status;

namespace {

// Sets *key to a key of the family and returns true if the family has a table.
bool FindKey(rocksdb::DB* db, ColumnFamilyHandle* family, std::string* key) {
  rocksdb::ColumnFamilyMetaData metadata;
  db->GetColumnFamilyMetaData(family, &metadata);
  for (const rocksdb::LevelMetaData& level : metadata.levels) {
    if (!level.files.empty()) {
      *key = level.files.front().smallestkey;
      return true;
    }
  }
  return false;
}

// Returns true if the last sequence is 0 and one of these families has a table.
// Sets *family to the first family that has a table and for which `fits`
// returns true, or to null if there is none. Sets *key to a key of that family.
bool FindFamily(rocksdb::DB* db,
                const std::vector<ColumnFamilyHandle*>& families,
                const std::function<bool(ColumnFamilyHandle*)>& fits,
                ColumnFamilyHandle** family, std::string* key) {
  *family = nullptr;
  if (db->GetLatestSequenceNumber() != 0) {
    return false;  // the usual case, which must be fast: each ingest calls this
  }
  bool has_tables = false;
  for (ColumnFamilyHandle* const candidate : families) {
    if (FindKey(db, candidate, key)) {
      has_tables = true;
      if (fits(candidate)) {
        *family = candidate;
        break;
      }
    }
  }
  return has_tables;
}

rocksdb::WriteOptions Durable() {
  rocksdb::WriteOptions options;
  options.sync = true;
  return options;
}

// Checks `status`, the result of a write of sstferry. The write bypasses a
// TransactionDB, which locks keys and rejects range deletions. That is safe,
// because no transaction uses the keys that sstferry writes.
Status CheckLeft(const Status& status, rocksdb::DB* db) {
  if (!status.ok()) {
    return WithContext(status, EndStateOf(status),
                       "raise the last sequence of " + db->GetName());
  }
  return db->GetLatestSequenceNumber() != 0
             ? Status::OK()
             : MakeStatus(EndState::kInternal,
                          "last sequence of " + db->GetName() +
                              ": expected 1 or more after a write, found 0");
}

}  // namespace

Status StandsAtZero(rocksdb::FileSystem* file_system, const std::string& dir,
                    bool* at_zero) {
  *at_zero = false;
  ManifestReader manifest;
  const Status status =
      ReadManifest(file_system, dir, &manifest, /*found=*/nullptr);
  if (!status.ok() || manifest.state().last_sequence != 0) {
    return status;
  }
  const bool has_tables = std::any_of(
      manifest.state().families.begin(), manifest.state().families.end(),
      [](const auto& family) { return !family.second.files.empty(); });
  WalFacts wals;
  // A WAL that cannot be read may contain an entry. RocksDB then continues from
  // the sequence number of that entry, not from 0.
  *at_zero = has_tables &&
             ReadWalFacts(file_system, dir,
                          OldestNeededWal(manifest.state(), true), &wals) &&
             wals.entries() == 0;
  return status;
}

Status RaiseLastSequence(rocksdb::FileSystem* file_system,
                         const std::string& dir, uint64_t at_least) {
  ManifestReader manifest;
  ManifestFileFound file;
  const Status status = ReadManifest(file_system, dir, &manifest, &file);
  const uint64_t wanted = std::max<uint64_t>(at_least, 1);
  if (!status.ok() || manifest.state().last_sequence >= wanted) {
    return status;
  }
  if (file.end != file.bytes) {
    return MakeStatus(EndState::kInternal,
                      "raise the last sequence in " + file.path +
                          ": found " +
                          std::to_string(file.bytes - file.end) +
                          " stray bytes after the last record, before the end "
                          "of the file at byte " + std::to_string(file.bytes));
  }
  std::string text;
  RETURN_IF_ERROR(rocksdb::ReadFileToString(file_system, file.path, &text));
  if (text.size() != file.bytes) {
    return MakeStatus(EndState::kInternal,
                      "read " + file.path + ": expected " +
                          std::to_string(file.bytes) + " bytes, found " +
                          std::to_string(text.size()));
  }
  AppendLastSequence(file.bytes, wanted, &text);
  return WriteDurably(file_system, file.path, text);
}

Status SpendFirstSequence(rocksdb::DB* db,
                          const std::vector<ColumnFamilyHandle*>& families,
                          bool* spent) {
  *spent = false;
  ColumnFamilyHandle* family = nullptr;
  std::string key;
  const auto takes_range_deletions = [db](ColumnFamilyHandle* handle) {
    return db->GetOptions(handle).table_factory->IsDeleteRangeSupported();
  };
  if (!FindFamily(db, families, takes_range_deletions, &family, &key)) {
    return Status::OK();
  }
  if (family == nullptr) {
    return MakeStatus(EndState::kRefused,
                      "target " + db->GetName() +
                          ": its last sequence number is 0; a refresh raises "
                          "it with a range deletion, which none of its table "
                          "formats supports; only a swap can refresh it");
  }
  const Status status =
      db->GetRootDB()->DeleteRange(Durable(), family, key, key);
  if (status.IsNotSupported() && !kDropsEntriesAtZero) {
    return Status::OK();  // a row cache makes RocksDB reject range deletions
  }
  *spent = status.ok();
  return CheckLeft(status, db);
}

Status LeaveSequenceZero(rocksdb::DB* db,
                         const std::vector<ColumnFamilyHandle*>& families,
                         bool* left) {
  *left = false;
  ColumnFamilyHandle* family = nullptr;
  std::string key;
  const auto has_known_order = [](ColumnFamilyHandle* handle) {
    return handle->GetComparator() == rocksdb::BytewiseComparator() ||
           handle->GetComparator() == rocksdb::ReverseBytewiseComparator();
  };
  if (!FindFamily(db, families, has_known_order, &family, &key)) {
    return Status::OK();
  }
  if (family == nullptr) {
    return SpendFirstSequence(db, families, left);
  }
  // Append to an existing key, so that the new key has the prefix of a key of
  // the family.
  key += ".sstferry." + rocksdb::Env::Default()->GenerateUniqueId();
  const Status status = db->GetRootDB()->Delete(Durable(), family, key);
  *left = status.ok();
  return CheckLeft(status, db);
}

}  // namespace sstferry
