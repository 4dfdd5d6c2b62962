#include "pipeline/refresh/refresh_changes.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "format/coding.h"
#include "pipeline/refresh/table_keys.h"

namespace sstferry {

using rocksdb::Status;

namespace {

using DigestSet = std::set<std::pair<uint64_t, uint64_t>>;

// Minimum ratio of the family's entries to keys to look up: at most half as
// many keys are looked up as there are other entries. Even then one pass over
// the source costs less than a comparison, which reads both sides.
constexpr uint64_t kEntriesPerLookup = 3;

// Returns a digest that identifies a file while it exists; nullopt if it has no
// identity, or was made by the snapshot.
std::optional<Digest128> DigestOfFile(const FilePlan& file) {
  if (file.identity.empty() || file.flushed_by_snapshot) {
    return std::nullopt;
  }
  std::string text;
  PutBytes(&text, file.identity);
  PutFixed64(&text, file.bytes);
  PutFixed64(&text, file.smallest_sequence);
  PutFixed64(&text, file.largest_sequence);
  return DigestOf(text);
}

DigestSet DigestsOf(const SourceRecordFamily& family) {
  DigestSet digests;
  for (const Digest128& file : family.files) {
    digests.emplace(file.high, file.low);
  }
  return digests;
}

bool IsIn(const DigestSet& digests, const FilePlan& file) {
  const std::optional<Digest128> digest = DigestOfFile(file);
  return digest.has_value() &&
         digests.count({digest->high, digest->low}) != 0;
}

}  // namespace

Status FindSingleDeleteUse(const ChangeQuestion& question, std::string* where) {
  where->clear();
  if (question.wal_single_deletes) {
    *where = "its WALs hold a SingleDelete";
  } else if (question.then != nullptr && question.then->single_deletes) {
    *where = "the target has a record of a SingleDelete in it";
  }
  const bool searched = question.then != nullptr && question.then->searched;
  const DigestSet known =
      searched ? DigestsOf(*question.then) : DigestSet();
  for (const FilePlan& file : *question.files) {
    if (!where->empty()) {
      break;
    }
    if (!file.is_block_based) {
      *where = "its file " + file.name +
               " is not a block-based table, so it cannot be searched for one";
    } else if (file.deletions != 0 && !IsIn(known, file)) {
      bool found = false;
      const Status status =
          FindSingleDelete(rocksdb::FileSystem::Default().get(), file.path,
                           question.cancelled, &found);
      if (!status.ok()) {
        return status;
      }
      *where = found ? "its file " + file.name + " holds a SingleDelete" : "";
    }
  }
  return Status::OK();
}

Status FindChanges(const ChangeQuestion& question, FamilyChanges* changes) {
  if (question.then == nullptr || question.in_memory) {
    return Status::OK();
  }
  const DigestSet known = DigestsOf(*question.then);
  std::vector<const FilePlan*> added;
  uint64_t entries = 0;
  for (const FilePlan& file : *question.files) {
    entries += file.entries;
    if (IsIn(known, file)) {
      changes->old_files.push_back(file);
      continue;
    }
    added.push_back(&file);
    changes->new_files.push_back(file);
    changes->new_bytes += file.bytes;
    changes->new_entries += file.entries;
    if (file.has_range_deletions) {
      changes->known.cleared.emplace_back(file.smallest, file.largest);
    }
    if (!file.is_block_based) {
      return Status::OK();
    }
  }
  changes->known.knows_wal_keys = question.then->knows_keys;
  if ((changes->new_entries + question.then->keys.size()) * kEntriesPerLookup >
      entries) {
    return Status::OK();
  }
  auto keys = std::make_shared<ChangedKeys>(question.room_bytes);
  bool fits = true;
  for (const std::string& key : question.then->keys) {
    fits = fits && keys->Add(key);
  }
  bool single_deletes = false;  // FindSingleDeleteUse() has checked
  for (const FilePlan* file : added) {
    const Status status =
        fits ? keys->AddFile(*file, question.cancelled, &fits, &single_deletes)
             : Status::OK();
    if (!status.ok()) {
      return status;
    }
  }
  if (fits) {
    keys->Sort(question.order);
    changes->keys = std::move(keys);
  }
  return Status::OK();
}

Status RecordFamily(const ChangeQuestion& question,
                    SourceRecordFamily* family) {
  family->knows_keys = !question.in_memory;
  // The snapshot's flush may have dropped a SingleDelete with its put.
  family->single_deletes = question.wal_single_deletes;
  ChangedKeys keys(question.kept_room_bytes);
  for (const FilePlan& file : *question.files) {
    const std::optional<Digest128> digest = DigestOfFile(file);
    if (digest.has_value()) {
      family->files.push_back(*digest);
    }
    if (!file.flushed_by_snapshot || !family->knows_keys) {
      continue;
    }
    bool fits = file.is_block_based && !file.has_range_deletions &&
                file.entries <= question.kept_room_bytes / sizeof(uint64_t);
    bool single_deletes = false;
    const Status status =
        fits ? keys.AddFile(file, question.cancelled, &fits, &single_deletes)
             : Status::OK();
    family->single_deletes |= single_deletes;
    family->knows_keys = fits;
    if (!status.ok()) {
      return status;
    }
  }
  keys.Sort(question.order);
  for (size_t i = 0; i < keys.size() && family->knows_keys; ++i) {
    family->keys.push_back(keys.key(i).ToString());
  }
  return Status::OK();
}

}  // namespace sstferry
