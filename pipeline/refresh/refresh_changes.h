// Finds out, for one family of a refresh, which keys may have changed since the
// target's last refresh, and what the target is to keep for the next one.
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

// Keys of WALs that a target keeps, of all families; beyond, the next refresh
// compares.
inline constexpr uint64_t kMaxKeptKeyBytes = 8u << 20;

// Input: what the snapshot holds of the family, and what the source left with
// the target last time. Ownership: borrows all.
struct ChangeQuestion {
  const rocksdb::Comparator* order = nullptr;
  const std::vector<FilePlan>* files = nullptr;
  const SourceRecordFamily* then = nullptr;  // null: nothing is known
  // Entries of WALs are in memory, and no file has them.
  bool in_memory = false;
  bool wal_single_deletes = false;  // WALs hold a SingleDelete
  // Memory that is left for keys to look up, and for keys to be kept.
  uint64_t room_bytes = kMaxChangedKeyBytes;
  uint64_t kept_room_bytes = kMaxKeptKeyBytes;
  std::function<bool()> cancelled;  // may be null
};

// Sets *where to what shows that the application uses SingleDelete, or may do
// so: a file, the WALs, or `then`; empty: nothing. A refresh lays puts above
// puts: a SingleDelete would remove the newer one and bring back the older one.
// Errors of
// ForEachTableKey().
[[nodiscard]] rocksdb::Status FindSingleDeleteUse(
    const ChangeQuestion& question, std::string* where);

// FindChanges() finds these.
struct FamilyChanges {
  // Null: not known, or too many to look up.
  std::shared_ptr<ChangedKeys> keys;
  uint64_t new_bytes = 0;  // of the files with these keys
  uint64_t new_entries = 0;
  std::vector<FilePlan> old_files;  // of the last refresh, live still
  std::vector<TableFile> new_files;  // all others
  KnownChanges known;               // but for its old_files
};

[[nodiscard]] rocksdb::Status FindChanges(const ChangeQuestion& question,
                                          FamilyChanges* changes);

// Fills files and keys of *family for the next refresh.
[[nodiscard]] rocksdb::Status RecordFamily(const ChangeQuestion& question,
                                           SourceRecordFamily* family);

}  // namespace sstferry
