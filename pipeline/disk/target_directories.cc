#include "pipeline/disk/target_directories.h"

#include "pipeline/disk/workspace.h"
#include "pipeline/options/directories.h"

namespace sstferry {
using rocksdb::Status;

std::vector<std::string> TargetDirectories(const PullOptions& options,
                                           rocksdb::DB* open) {
  if (open == nullptr && options.target_dir.empty()) {
    return {};
  }
  const bool stays = options.mode == PullMode::kRefresh;
  std::vector<std::string> dirs =
      open != nullptr ? DirectoriesOf(open)
      : stays         ? DirectoriesOf(options.target_dir)
                      : std::vector<std::string>{options.target_dir};
  dirs.push_back(Workspace::DirOf(dirs.front()));
  return dirs;
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
  std::vector<std::string> source_dirs =
      DirectoriesOf(options.source.directory);
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
