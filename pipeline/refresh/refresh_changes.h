// Finds, for one family of a refresh, the keys that may have changed since the
// target's last refresh, and the record that the target keeps for the next one.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "format/source_record.h"
#include "pipeline/refresh/changed_keys.h"
#include "pipeline/refresh/interval_plan.h"
#include "rocksdb/comparator.h"
#include "rocksdb/status.h"

namespace sstferry {

// Maximum bytes of WAL keys, of all families, that a target keeps. With more,
// the next refresh compares.
inline constexpr uint64_t kMaxKeptKeyBytes = 8u << 20;

// Input: what the snapshot holds of the family, and what the source stored at
// the target last time. Ownership: borrows all.
struct ChangeQuestion {
  const rocksdb::Comparator* order = nullptr;
  const std::vector<FilePlan>* files = nullptr;
  const SourceRecordFamily* then = nullptr;  // null: nothing is known
  // Entries of WALs are in memory only.
  bool in_memory = false;
  bool wal_single_deletes = false;  // WALs hold a SingleDelete
  // Bytes left for keys to look up, and for keys to keep.
  uint64_t room_bytes = kMaxChangedKeyBytes;
  uint64_t kept_room_bytes = kMaxKeptKeyBytes;
  std::function<bool()> cancelled;  // may be null
};

// Sets *where to the evidence that the application uses SingleDelete, or may do
// so: a file, the WALs, or `then`; empty: none. A refresh puts entries above
// other puts, so a SingleDelete would remove the newer one and reveal the older
// one. Returns errors of ForEachTableKey().
[[nodiscard]] rocksdb::Status FindSingleDeleteUse(
    const ChangeQuestion& question, std::string* where);

// Result of FindChanges().
struct FamilyChanges {
  // Null: unknown, or too many to look up.
  std::shared_ptr<ChangedKeys> keys;
  uint64_t new_bytes = 0;  // of the files with these keys
  uint64_t new_entries = 0;
  std::vector<FilePlan> old_files;  // of the last refresh, still existing
  std::vector<TableFile> new_files;  // all others
  KnownChanges known;               // without its old_files
};

[[nodiscard]] rocksdb::Status FindChanges(const ChangeQuestion& question,
                                          FamilyChanges* changes);

// Fills files and keys of *family for the next refresh.
[[nodiscard]] rocksdb::Status RecordFamily(const ChangeQuestion& question,
                                           SourceRecordFamily* family);

}  // namespace sstferry
