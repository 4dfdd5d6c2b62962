// Checks that no directory of a target is the same as a directory of its
// source, contains one, or is inside one.
#pragma once

#include <string>
#include <vector>

#include "format/messages.h"
#include "rocksdb/db.h"
#include "rocksdb/status.h"
#include "sstferry/options.h"

namespace sstferry {

// Finds all directories to which a pull may write. If an application has the
// target database open, `open` is this database. If `open` is null, the target
// is options.target_dir.
//   kRefused  the OPTIONS of options.target_dir do not say where its WALs are
[[nodiscard]] rocksdb::Status TargetDirectories(const PullOptions& options,
                                                rocksdb::DB* open,
                                                std::vector<std::string>* dirs);

// Checks the target against a local source, before anything is opened or
// created. Returns OK if the source is a server.
//   kRefused  source and target have a directory in common, under any name
[[nodiscard]] rocksdb::Status CheckApartFromSource(
    const PullOptions& options, const std::vector<std::string>& target_dirs);

// Checks the target against the directories in `places`, which a connected
// source has reported. They may be on this machine. Returns the errors of
// CheckApartFromSource().
[[nodiscard]] rocksdb::Status CheckApartFromPlaces(
    const PullOptions& options, const std::vector<std::string>& target_dirs,
    const std::vector<Place>& places);

}  // namespace sstferry
