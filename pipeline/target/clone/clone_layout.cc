#include "pipeline/target/clone/clone_layout.h"

#include <utility>

#include "format/end_state.h"

namespace sstferry {

using rocksdb::IOOptions;
using rocksdb::Status;

Status CloneLayout::Make(const ClonePlan& clone, size_t ranges,
                         std::string db_dir, std::string staging_dir,
                         std::unique_ptr<CloneLayout>* layout) {
  std::unique_ptr<CloneLayout> made(
      new CloneLayout(clone, std::move(db_dir), std::move(staging_dir)));
  Status status = CheckCloneFiles(clone.files);
  if (status.ok()) {
    status = CutIntoUnits(clone.files, clone.set.unit_bytes, &made->units_);
  }
  if (status.ok() && made->units_.size() != ranges) {
    status = MakeStatus(EndState::kCorrupt,
                        "files of the clone: expected " +
                            std::to_string(ranges) + " units, found " +
                            std::to_string(made->units_.size()));
  }
  if (!status.ok()) {
    return status;
  }
  made->units_left_.resize(clone.files.size());
  for (const CloneUnit& unit : made->units_) {
    made->units_left_[unit.file]++;
  }
  *layout = std::move(made);
  return Status::OK();
}

std::string CloneLayout::PathOf(const CloneFile& file) const {
  const bool stays = file.kind == CloneFileKind::kTable ||
                     file.kind == CloneFileKind::kBlob ||
                     file.kind == CloneFileKind::kWal;
  return (stays ? db_dir_ : staging_dir_) + "/" + CloneFileName(file);
}

const CloneFile* CloneLayout::Find(CloneFileKind kind) const {
  for (const CloneFile& file : files_) {
    if (file.kind == kind) {
      return &file;
    }
  }
  return nullptr;
}

// What is there stays: an earlier run may have written to it.
Status CloneLayout::MakeFiles(rocksdb::FileSystem* file_system) const {
  std::vector<uint32_t> units(files_.size());
  for (const CloneUnit& unit : units_) {
    units[unit.file]++;
  }
  Status status;
  for (size_t i = 0; i < files_.size() && status.ok(); ++i) {
    const std::string path = PathOf(files_[i]);
    if (units[i] == 1 ||
        file_system->FileExists(path, IOOptions(), nullptr).ok()) {
      continue;
    }
    std::unique_ptr<rocksdb::FSWritableFile> file;
    status = file_system->NewWritableFile(path, rocksdb::FileOptions(), &file,
                                          nullptr);
    if (status.ok()) status = file->Fsync(IOOptions(), nullptr);
    if (status.ok()) status = file->Close(IOOptions(), nullptr);
    status = WithContext(status, EndStateOf(status), "create " + path);
  }
  return status;
}

bool CloneLayout::CompleteUnit(uint32_t range_id) {
  std::lock_guard<std::mutex> lock(mu_);
  return --units_left_[unit(range_id).file] == 0;
}

}  // namespace sstferry
