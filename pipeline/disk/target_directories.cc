#include "pipeline/disk/target_directories.h"

#include "format/end_state.h"
#include "pipeline/disk/workspace.h"
#include "pipeline/options/directories.h"

namespace sstferry {
using rocksdb::Status;

Status TargetDirectories(const PullOptions& options, rocksdb::DB* open,
                         std::vector<std::string>* dirs) {
  dirs->clear();
  if (open != nullptr) {
    *dirs = DirectoriesOf(open);
  } else if (options.target_dir.empty()) {
    return Status::OK();
  } else if (options.mode == PullMode::kRefresh) {
    RETURN_IF_ERROR(DirectoriesOf(options.target_dir, dirs));
  } else {
    dirs->push_back(options.target_dir);
  }
  dirs->push_back(Workspace::DirOf(dirs->front()));
  return Status::OK();
}

Status CheckApartFromSource(const PullOptions& options,
                            const std::vector<std::string>& target_dirs) {
  const std::optional<StoreAddress>& archive = options.source.archive;
  if (archive.has_value() && archive->is_directory()) {
    return CheckApart({archive->directory}, options.snapshot_dir,
                      options.target_dir, target_dirs);
  }
  if (!options.source.is_directory()) {
    return Status::OK();
  }
  std::vector<std::string> source_dirs;
  // Ignores an error. If OPTIONS do not say where the WALs are, a snapshot uses
  // only the WALs in the directory itself.
  DirectoriesOf(options.source.directory, &source_dirs).PermitUncheckedError();
  if (!options.wal_dir.empty()) {
    source_dirs.push_back(options.wal_dir);
  }
  return CheckApart(source_dirs, options.snapshot_dir, options.target_dir,
                    target_dirs);
}

Status CheckApartFromPlaces(const PullOptions& options,
                            const std::vector<std::string>& target_dirs,
                            const std::vector<Place>& places) {
  return CheckApart(options.source.ToString(), places, options.target_dir,
                    target_dirs);
}

}  // namespace sstferry
