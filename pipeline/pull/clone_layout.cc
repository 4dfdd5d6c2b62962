#include "pipeline/pull/clone_layout.h"

#include <sys/stat.h>

#include <utility>

#include "format/end_state.h"
#include "pipeline/base/file_source.h"

namespace sstferry {

using rocksdb::IOOptions;
using rocksdb::Status;

namespace {

// Maximum number of units of a table that are checked while they arrive. The
// check of each unit reads the table's index, so a table with more units is
// read and checked when it is complete.
constexpr uint64_t kMaxUnitsWithCheck = 8;

}  // namespace

CloneLayout::CloneLayout(const FileSet& clone, std::vector<Part> units,
                         std::string db_dir, std::string staging_dir)
    : files_(clone.files),
      unit_bytes_(clone.unit_bytes),
      db_dir_(std::move(db_dir)),
      staging_dir_(std::move(staging_dir)),
      units_(std::move(units)),
      last_units_(files_.size()),
      units_left_(files_.size()),
      has_tail_(files_.size()),
      checked_(files_.size()) {
  for (const Part& unit : units_) {
    units_left_[unit.file]++;
    last_units_[unit.file] = unit.id;
  }
}

std::string CloneLayout::PathOf(const CloneFile& file) const {
  const bool stays = IsDataFile(file) || file.kind == CloneFileKind::kWal;
  return (stays ? db_dir_ : staging_dir_) + "/" + CloneFileName(file);
}

uint64_t CloneLayout::reused_bytes() const {
  uint64_t bytes = 0;
  for (const CloneFile& file : files_) {
    bytes += IsReused(file) ? file.bytes : 0;
  }
  return bytes;
}

bool CloneLayout::FindLink(const CloneFile& file, std::string* path) const {
  for (const std::string& place : {LinkPathOf(file), PathOf(file)}) {
    struct stat info;
    if (lstat(place.c_str(), &info) == 0) {
      *path = place;
      return S_ISREG(info.st_mode) &&
             static_cast<uint64_t>(info.st_size) == file.bytes;
    }
  }
  return false;
}

const CloneFile* CloneLayout::Find(CloneFileKind kind) const {
  for (const CloneFile& file : files_) {
    if (file.kind == kind) {
      return &file;
    }
  }
  return nullptr;
}

// Keeps existing files: an earlier run may have written to them.
Status CloneLayout::MakeFiles(rocksdb::FileSystem* file_system) const {
  std::vector<uint32_t> units(files_.size());
  for (const Part& unit : units_) {
    units[unit.file]++;
  }
  Status status;
  for (size_t i = 0; i < files_.size() && status.ok(); ++i) {
    const std::string path = PathOf(files_[i]);
    if (units[i] == 1 || IsReused(files_[i]) ||
        file_system->FileExists(path, IOOptions(), nullptr).ok()) {
      continue;
    }
    std::unique_ptr<rocksdb::FSWritableFile> file;
    status = file_system->NewWritableFile(path, rocksdb::FileOptions(), &file,
                                          nullptr);
    // Sync empty files here. A file with units is synced together with its
    // units, and its name is synced before a unit is recorded.
    if (status.ok() && units[i] == 0) {
      status = file->Fsync(IOOptions(), nullptr);
    }
    if (status.ok()) status = file->Close(IOOptions(), nullptr);
    status = WithContext(status, EndStateOf(status), "create " + path);
  }
  return status;
}

bool CloneLayout::IsTail(uint32_t part_id) const {
  return file_of(part_id).kind == CloneFileKind::kTable &&
         last_units_[unit(part_id).file] == part_id &&
         PartAt(part_id).has_value();
}

std::unique_ptr<SstPartCheck> CloneLayout::StartCheck(
    uint32_t part_id, rocksdb::FileSystem* file_system) const {
  const Part& part = unit(part_id);
  const Part& tail = units_[last_units_[part.file]];
  if (file_of(part_id).kind != CloneFileKind::kTable || IsTail(part_id) ||
      tail.offset / kMaxUnitsWithCheck > unit_bytes_) {
    return nullptr;
  }
  {
    std::lock_guard<std::mutex> lock(mu_);
    if (!has_tail_[part.file]) {
      return nullptr;
    }
  }
  std::unique_ptr<FileSource> source;
  const Status status =
      FileSource::Open(file_system, PathOf(file_of(part_id)), &source);
  return status.ok() ? SstPartCheck::Make(*source, tail.offset,
                                          {part.offset,
                                           part.offset + part.bytes})
                     : nullptr;
}

void CloneLayout::SetUnchecked(uint32_t part_id) {
  std::lock_guard<std::mutex> lock(mu_);
  if (IsDataFile(file_of(part_id))) {
    unchecked_.insert(file_of(part_id).number);
  }
}

bool CloneLayout::IsUnchecked(const CloneFile& file) const {
  std::lock_guard<std::mutex> lock(mu_);
  return unchecked_.count(file.number) != 0;
}

bool CloneLayout::CompleteUnit(uint32_t part_id, const ByteSpan& blocks,
                               std::vector<ByteSpan>* checked) {
  const uint32_t file = unit(part_id).file;
  std::lock_guard<std::mutex> lock(mu_);
  if (IsTail(part_id)) {
    has_tail_[file] = true;
  }
  if (blocks.end != 0) {
    checked_[file].push_back(blocks);
  }
  const bool is_whole = --units_left_[file] == 0;
  if (is_whole) {
    *checked = std::move(checked_[file]);
  }
  return is_whole;
}

}  // namespace sstferry
