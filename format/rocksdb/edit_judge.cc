#include "format/rocksdb/edit_judge.h"

#include <algorithm>
#include <set>

#include "rocksdb/slice.h"

namespace sstferry {
namespace {

using rocksdb::Slice;

constexpr char kBytewise[] = "leveldb.BytewiseComparator";
constexpr char kBackwards[] = "rocksdb.ReverseBytewiseComparator";
constexpr size_t kKeyTrailerBytes = 8;  // of an internal key

// Returns the user key of an internal key. The MANIFEST's reader has checked
// the key's length.
Slice UserKey(const std::string& internal) {
  return {internal.data(), internal.size() - kKeyTrailerBytes};
}

// Returns 1 if the comparator orders keys by their bytes, -1 for the reverse
// order, and 0 if the order is unknown, because the application has its own
// comparator.
int SignOf(const std::string& comparator) {
  return comparator == kBytewise ? 1 : comparator == kBackwards ? -1 : 0;
}

// The files that a compaction removes.
struct Removed {
  // The removed files with the smallest and with the largest key. If the order
  // is unknown, these are arbitrary removed files.
  const ManifestFile* first = nullptr;
  const ManifestFile* last = nullptr;
  std::set<uint64_t> epochs;
  uint64_t largest_sequence = 0;
};

// Finds the files that the edit removes. Returns false if the edit removes no
// file, or a file that does not exist.
bool FindRemoved(const VersionEdit& edit, const ManifestFamily& family,
                 Removed* removed) {
  const int sign = SignOf(family.comparator);
  for (const auto& [level, number] : edit.deleted_files) {
    const auto found = family.files.find(number);
    if (found == family.files.end()) {
      return false;
    }
    const ManifestFile& file = found->second;
    if (removed->first == nullptr ||
        sign * UserKey(file.smallest)
                   .compare(UserKey(removed->first->smallest)) < 0) {
      removed->first = &file;
    }
    if (removed->last == nullptr ||
        sign * UserKey(file.largest)
                   .compare(UserKey(removed->last->largest)) > 0) {
      removed->last = &file;
    }
    removed->epochs.insert(file.epoch);
    removed->largest_sequence =
        std::max(removed->largest_sequence, file.largest_sequence);
  }
  return removed->first != nullptr;
}

// Returns true if the keys of `file` are within those of `removed`, or if the
// application has its own comparator, because the order of its keys is unknown.
// In the second case, CompactionProblem() relies only on sequence numbers and
// epochs.
bool HasKeysWithin(const ManifestFile& file, const Removed& removed,
                   const std::string& comparator) {
  const int sign = SignOf(comparator);
  return sign * UserKey(removed.first->smallest)
                    .compare(UserKey(file.smallest)) <= 0 &&
         sign * UserKey(removed.last->largest)
                    .compare(UserKey(file.largest)) >= 0;
}

// Returns the reason why the added tables may have data that the removed tables
// do not have; empty if they cannot have such data.
std::string CompactionProblem(const VersionEdit& edit,
                              const ManifestFamily& family) {
  if (edit.new_files.empty()) {
    return "tables removed, none added";
  }
  Removed removed;
  if (!FindRemoved(edit, family, &removed)) {
    return "tables removed that do not exist";
  }
  for (const ManifestFile& file : edit.new_files) {
    const std::string name = "table " + std::to_string(file.number);
    if (file.largest_sequence > removed.largest_sequence) {
      return name + " has newer entries than the tables that it replaces";
    }
    if (file.epoch != 0 && removed.epochs.count(file.epoch) == 0) {
      return name + " has another epoch than the tables that it replaces";
    }
    if (!HasKeysWithin(file, removed, family.comparator)) {
      return name + " has keys outside those of the tables that it replaces";
    }
  }
  return "";
}

std::string FlushProblem(const VersionEdit& edit) {
  if (!edit.log_number) {
    return "tables added, none removed, and no WAL number";
  }
  const bool of_level_0 =
      std::all_of(edit.new_files.begin(), edit.new_files.end(),
                  [](const ManifestFile& file) { return file.level == 0; });
  return of_level_0 ? "" : "tables added to other levels than 0";
}

// Returns a description of what the edit changes apart from tables and numbers;
// empty if it changes nothing else.
std::string OtherProblem(const VersionEdit& edit) {
  return edit.adds_family    ? "column family added: " + edit.family_name
         : edit.drops_family ? "column family dropped: " +
                                   std::to_string(edit.family_id)
         : edit.comparator || edit.database_id || edit.max_family
             ? "the start of a new MANIFEST"
         : !edit.full_history_ts_low.empty() ? "full_history_ts_low"
         : edit.prev_log_number.value_or(0) != 0
             ? "a previous WAL"
         : edit.has_unknown ? "something that this version does not know"
                            : "";
}

}  // namespace

EditKind JudgeEdit(const VersionEdit& edit, const ManifestState& before,
                   std::string* why) {
  std::string problem = OtherProblem(edit);
  EditKind kind = EditKind::kBookkeeping;
  const auto family = before.families.find(edit.family_id);
  if (!problem.empty()) {
    // The record is a barrier; nothing else needs to be checked.
  } else if (!edit.deleted_files.empty()) {
    kind = EditKind::kCompaction;
    problem = family == before.families.end()
                  ? "tables of an unknown column family"
                  : CompactionProblem(edit, family->second);
  } else if (!edit.new_files.empty()) {
    kind = EditKind::kFlush;
    problem = FlushProblem(edit);
  } else if (!edit.blob_garbage.empty() || !edit.blob_additions.empty()) {
    problem = "blob files without tables";
  }
  if (problem.empty() && kind != EditKind::kCompaction &&
      !edit.blob_garbage.empty()) {
    problem = "garbage in blob files without a compaction";
  }
  if (problem.empty()) {
    return kind;
  }
  if (why != nullptr) {
    *why = problem;
  }
  return EditKind::kBarrier;
}

}  // namespace sstferry
