#include "pipeline/snapshot/pinned_files.h"

#include <ctime>
#include <utility>

#include "format/end_state.h"

namespace sstferry {

using rocksdb::Status;

PinnedFiles::PinnedFiles(SnapshotOptions options,
                         std::unique_ptr<PrivateDir> dir)
    : options_(std::move(options)),
      dir_(std::move(dir)),
      files_(std::make_unique<SnapshotFiles>(options_, dir_->pinned(),
                                             dir_->db())) {}

Status PinnedFiles::Link(const SnapshotOptions& options,
                         std::unique_ptr<PinnedFiles>* out) {
  SnapshotOptions resolved = options;
  RETURN_IF_ERROR(
      ResolveDatabase(options.database_dir, &resolved.database_dir));
  std::unique_ptr<PrivateDir> dir;
  RETURN_IF_ERROR(MakePrivateDir(resolved, &dir));
  RETURN_IF_ERROR(dir->Clear());
  std::unique_ptr<PinnedFiles> pinned(
      new PinnedFiles(std::move(resolved), std::move(dir)));
  const Status status = pinned->files_->Link();
  if (status.ok()) {
    *out = std::move(pinned);
  }
  return WithContext(status, EndState::kSourceError, options.database_dir);
}

Status PinnedFiles::Confirm() {
  taken_seconds_ = static_cast<uint64_t>(std::time(nullptr));
  return WithContext(files_->Confirm(), EndState::kSourceError,
                     options_.database_dir);
}

Status PinnedFiles::Copy() {
  Status status = files_->Take();
  if (status.ok()) status = files_->ReleasePinned();
  files_->CloseWals();
  return WithContext(status, EndState::kSourceError, options_.database_dir);
}

void PinnedFiles::Forget() {
  options_.cancelled = nullptr;
  options_.log = nullptr;
}

}  // namespace sstferry
