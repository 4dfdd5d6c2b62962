#include "pipeline/target/target_directories.h"

#include "pipeline/directories.h"
#include "pipeline/target/workspace.h"

namespace sstferry {
using rocksdb::Status;

std::vector<std::string> TargetDirectories(const PullOptions& options,
                                           rocksdb::DB* open) {
  const bool stays = options.mode == PullMode::kRefresh && !IsSwap(options);
  std::vector<std::string> dirs =
      open != nullptr ? DirectoriesOf(open)
      : stays         ? DirectoriesOf(options.target_dir)
                      : std::vector<std::string>{options.target_dir};
  dirs.push_back(Workspace::DirOf(dirs.front()));
  return dirs;
}

Status CheckApartFromSource(const PullOptions& options,
                            const std::vector<std::string>& target_dirs) {
  return options.source.is_directory()
             ? CheckApart(DirectoriesOf(options.source.directory),
                          options.snapshot_dir, options.target_dir,
                          target_dirs)
             : Status::OK();
}

Status CheckApartFromPlaces(const PullOptions& options,
                            const std::vector<std::string>& target_dirs,
                            const std::vector<Place>& places) {
  return CheckApart(options.source.ToString(), places, options.target_dir,
                    target_dirs);
}

}  // namespace sstferry
