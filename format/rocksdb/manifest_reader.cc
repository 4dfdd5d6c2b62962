#include "format/rocksdb/manifest_reader.h"

#include <algorithm>
#include <string>
#include <utility>

#include "format/end_state.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

// Much larger than any atomic group, which has at most one record per column
// family.
constexpr uint64_t kMaxGroupRecords = 1u << 20;

// Memory of a family without its texts and files, with its blob_links_.
constexpr uint64_t kFamilyBytes = sizeof(ManifestFamily) +
                                  sizeof(std::map<uint64_t, uint64_t>) +
                                  2 * kNodeBytes;

Status Against(const std::string& what, const std::string& expected,
               const std::string& found) {
  return MakeStatus(EndState::kCorrupt, "MANIFEST: " + what + ": expected " +
                                            expected + ", found " + found);
}

}  // namespace

ManifestReader::ManifestReader(Watch watch, uint64_t max_memory_bytes)
    : watch_(std::move(watch)),
      max_memory_bytes_(max_memory_bytes),
      log_(LogKind::kManifest) {
  state_.families[0].name = "default";
}

Status ManifestReader::Follow(const ByteSource& source) {
  is_damaged_ = false;
  const Status status =
      log_.Follow(source, [this](const Slice& record, uint64_t end) {
        const uint64_t before = std::exchange(end_, end);
        const Status added = Add(record);
        if (!added.ok() || in_group()) {
          end_ = before;
        }
        return added;
      });
  const bool opens = has_log_number_ && has_next_file_ && has_last_sequence_;
  is_damaged_ = log_.is_damaged() || (status.ok() && !opens);
  return status.ok() && !opens
             ? Against("records before offset " + std::to_string(log_.end()),
                       "a log number, the next file and the last sequence, "
                       "without which RocksDB opens no database",
                       "not all of them")
             : status;
}

Status ManifestReader::Add(const Slice& record) {
  VersionEdit edit;
  RETURN_IF_ERROR(DecodeVersionEdit(record, &edit, max_memory_bytes_));
  const uint64_t edit_bytes = sizeof(edit) + edit.memory_bytes;
  if (memory_bytes_ + group_bytes_ + edit_bytes > max_memory_bytes_) {
    return ManifestTooLarge(max_memory_bytes_);
  }
  if (!edit.in_group) {
    return group_.empty()
               ? Apply(&edit)
               : Against("atomic group",
                         std::to_string(group_size_ - group_.size()) +
                             " more records",
                         "a record outside the group");
  }
  const uint64_t records = group_.size() + 1 + edit.records_behind;
  if (group_.empty()) {
    group_size_ = records;
  }
  if (records != group_size_ || records > kMaxGroupRecords) {
    return Against("atomic group",
                   std::to_string(std::min(group_size_, kMaxGroupRecords)) +
                       " records",
                   std::to_string(records));
  }
  group_bytes_ += edit_bytes;
  group_.push_back(std::move(edit));
  if (group_.size() < group_size_) {
    return Status::OK();
  }
  for (VersionEdit& each : group_) {
    RETURN_IF_ERROR(Apply(&each));
  }
  group_.clear();
  group_bytes_ = 0;
  return Status::OK();
}

// Applies an edit. As in RocksDB, an edit cannot add files if it adds or drops
// a family, or is about WALs.
Status ManifestReader::Apply(VersionEdit* edit) {
  if (watch_) {
    watch_(*edit, state_);
  }
  const uint32_t id = edit->family_id;
  const auto found = state_.families.find(id);
  const bool exists = found != state_.families.end();
  ManifestFamily* family = nullptr;
  if (edit->adds_family) {
    if (exists) {
      return Against("column family " + std::to_string(id),
                     "one addition", "a second one");
    }
    family = &state_.families[id];
    family->id = id;
    memory_bytes_ += kFamilyBytes;
    Set(edit->family_name, &family->name);
  } else if (!exists && (edit->drops_family || !edit->IsAboutWals())) {
    return Against("column family " + std::to_string(id), "an existing one",
                   "none");
  } else if (edit->drops_family) {
    if (id == 0) {
      return Against("column family 0", "no record that drops it", "one");
    }
    DropFamily(id);
  } else if (edit->IsAboutWals()) {
    RETURN_IF_ERROR(ApplyWals(*edit));
  } else {
    family = &found->second;
    RETURN_IF_ERROR(ApplyFiles(edit, family));
  }
  ApplyNumbers(*edit, family);
  return Status::OK();
}

Status ManifestReader::ApplyFiles(VersionEdit* edit, ManifestFamily* family) {
  memory_bytes_ -= family->blobs.size() * kBlobBytes;
  RETURN_IF_ERROR(ApplyBlobs(*edit, family));
  std::map<uint64_t, uint64_t>& links = blob_links_[family->id];
  std::vector<uint64_t> unlinked;
  for (const auto& [level, number] : edit->deleted_files) {
    const auto file = family->files.find(number);
    if (file == family->files.end() || file->second.level != level) {
      return Against("table " + std::to_string(number),
                     "it in level " + std::to_string(level),
                     "a record that deletes it although it is missing there");
    }
    const auto link = links.find(file->second.oldest_blob_file);
    if (link != links.end() && --link->second == 0) {
      unlinked.push_back(link->first);
      links.erase(link);
    }
    memory_bytes_ -= MemoryOf(file->second);
    family->files.erase(file);
  }
  for (ManifestFile& file : edit->new_files) {
    const uint64_t number = file.number;
    const uint64_t blob = file.oldest_blob_file;
    memory_bytes_ += MemoryOf(file);
    if (!family->files.emplace(number, std::move(file)).second) {
      return Against("table " + std::to_string(number),
                     "one addition", "a second one");
    }
    // A table may refer to a blob file that is not in the MANIFEST (from a
    // BlobDB). Such a file does not count.
    if (family->blobs.count(blob) > 0) {
      ++links[blob];
    }
  }
  DropUnneededBlobs(*edit, unlinked, family);
  memory_bytes_ += family->blobs.size() * kBlobBytes;
  return Status::OK();
}

Status ManifestReader::ApplyBlobs(const VersionEdit& edit,
                                  ManifestFamily* family) {
  for (const ManifestBlobFile& added : edit.blob_additions) {
    if (!family->blobs.emplace(added.number, added).second) {
      return Against("blob file " + std::to_string(added.number),
                     "one addition", "a second one");
    }
  }
  for (const ManifestBlobFile& garbage : edit.blob_garbage) {
    const auto found = family->blobs.find(garbage.number);
    if (found == family->blobs.end()) {
      return Against("blob file " + std::to_string(garbage.number),
                     "an existing one", "garbage in a missing one");
    }
    ManifestBlobFile& blob = found->second;
    if (garbage.garbage_count > blob.total_count - blob.garbage_count ||
        garbage.garbage_bytes > blob.total_bytes - blob.garbage_bytes) {
      return Against("blob file " + std::to_string(garbage.number),
                     "no more garbage than contents", "more");
    }
    blob.garbage_count += garbage.garbage_count;
    blob.garbage_bytes += garbage.garbage_bytes;
  }
  return Status::OK();
}

// Drops the blob files that no table needs after the edit. Examines only those
// that the edit may have made unneeded, because a MANIFEST may have millions of
// edits and millions of blob files.
void ManifestReader::DropUnneededBlobs(const VersionEdit& edit,
                                       const std::vector<uint64_t>& unlinked,
                                       ManifestFamily* family) {
  std::map<uint64_t, ManifestBlobFile>& blobs = family->blobs;
  const std::map<uint64_t, uint64_t>& links = blob_links_[family->id];
  if (links.empty()) {
    blobs.clear();
    return;
  }
  blobs.erase(blobs.begin(), blobs.lower_bound(links.begin()->first));
  const auto examine = [&](uint64_t number) {
    ++examined_blobs_;
    const auto blob = blobs.find(number);
    if (blob != blobs.end() && links.count(number) == 0 &&
        blob->second.garbage_count >= blob->second.total_count) {
      blobs.erase(blob);
    }
  };
  for (const ManifestBlobFile& added : edit.blob_additions) {
    examine(added.number);
  }
  for (const ManifestBlobFile& garbage : edit.blob_garbage) {
    examine(garbage.number);
  }
  for (const uint64_t number : unlinked) {
    examine(number);
  }
}

void ManifestReader::DropFamily(uint32_t id) {
  const auto found = state_.families.find(id);
  const ManifestFamily& family = found->second;
  memory_bytes_ -= kFamilyBytes + family.name.size() +
                   family.comparator.size() +
                   family.full_history_ts_low.size() +
                   family.blobs.size() * kBlobBytes;
  for (const auto& [number, file] : family.files) {
    memory_bytes_ -= MemoryOf(file);
  }
  state_.families.erase(found);
  blob_links_.erase(id);
}

Status ManifestReader::ApplyWals(const VersionEdit& edit) {
  memory_bytes_ -= state_.wals.size() * kWalMemoryBytes;
  for (const auto& [number, bytes] : edit.wal_additions) {
    if (number < state_.deleted_wals_before) {
      continue;
    }
    const auto [wal, added] = state_.wals.emplace(number, bytes);
    if (added) {
      continue;
    }
    if (bytes == kUnknownWalBytes) {
      return Against("WAL " + std::to_string(number),
                     "one addition", "a second one");
    }
    // RocksDB may record the sizes of a WAL in another order than it wrote the
    // bytes.
    wal->second = wal->second == kUnknownWalBytes
                      ? bytes
                      : std::max(wal->second, bytes);
  }
  if (edit.wal_additions.empty() &&
      edit.wals_deleted_before > state_.deleted_wals_before) {
    state_.deleted_wals_before = edit.wals_deleted_before;
    state_.wals.erase(state_.wals.begin(),
                      state_.wals.lower_bound(edit.wals_deleted_before));
  }
  memory_bytes_ += state_.wals.size() * kWalMemoryBytes;
  return Status::OK();
}

void ManifestReader::Set(const std::string& value, std::string* text) {
  memory_bytes_ += value.size();
  memory_bytes_ -= text->size();
  *text = value;
}

void ManifestReader::ApplyNumbers(const VersionEdit& edit,
                                  ManifestFamily* family) {
  if (edit.database_id) {
    Set(*edit.database_id, &state_.database_id);
  }
  if (family != nullptr) {
    if (edit.log_number) {
      has_log_number_ = true;
      family->log_number = std::max(family->log_number, *edit.log_number);
    }
    if (edit.comparator) {
      Set(*edit.comparator, &family->comparator);
      family->persists_timestamps = edit.persists_timestamps;
    }
    if (!edit.full_history_ts_low.empty()) {
      Set(edit.full_history_ts_low, &family->full_history_ts_low);
    }
  }
  has_next_file_ = has_next_file_ || edit.next_file.has_value();
  has_last_sequence_ = has_last_sequence_ || edit.last_sequence.has_value();
  state_.prev_log_number =
      edit.prev_log_number.value_or(state_.prev_log_number);
  state_.next_file = edit.next_file.value_or(state_.next_file);
  state_.max_family = edit.max_family.value_or(state_.max_family);
  state_.min_log_number_to_keep =
      std::max(state_.min_log_number_to_keep,
               edit.min_log_number_to_keep.value_or(0));
  state_.last_sequence = edit.last_sequence.value_or(state_.last_sequence);
}

}  // namespace sstferry
