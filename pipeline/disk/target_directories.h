// Checks that no directory of a target equals, contains or is inside a
// directory of its source.
#pragma once

#include <string>
#include <vector>

#include "format/messages.h"
#include "rocksdb/db.h"
#include "rocksdb/status.h"
#include "sstferry/options.h"

namespace sstferry {

// Finds all directories to which a pull may write. `open`: the target database
// that an application has open; null: the target is options.target_dir.
//   kRefused  the OPTIONS of options.target_dir do not say where its WALs are
[[nodiscard]] rocksdb::Status TargetDirectories(const PullOptions& options,
                                                rocksdb::DB* open,
                                                std::vector<std::string>* dirs);

// Checks a directory source, before anything is opened or created. Returns OK
// for a server.
//   kRefused  source and target share a directory, under any name
[[nodiscard]] rocksdb::Status CheckApartFromSource(
    const PullOptions& options, const std::vector<std::string>& target_dirs);

// Checks the directories (`places`) that a connected source reported; they may
// be on this machine. Returns the same errors.
[[nodiscard]] rocksdb::Status CheckApartFromPlaces(
    const PullOptions& options, const std::vector<std::string>& target_dirs,
    const std::vector<Place>& places);

}  // namespace sstferry
