// A target is never a directory of its source, nor holds one or lies in one.
#pragma once

#include <string>
#include <vector>

#include "format/message/messages.h"
#include "rocksdb/db.h"
#include "rocksdb/status.h"
#include "sstferry/options.h"

namespace sstferry {

// All that a pull may write to. `open` is what an application has open as the
// target; null: options.target_dir.
std::vector<std::string> TargetDirectories(const PullOptions& options,
                                           rocksdb::DB* open);

// Before anything is opened or made, where the source is a directory.
//   kRefused  one directory as both ends, by whatever name
[[nodiscard]] rocksdb::Status CheckApartFromSource(
    const PullOptions& options, const std::vector<std::string>& target_dirs);

// The same of a source that was asked, and may be on this machine.
[[nodiscard]] rocksdb::Status CheckApartFromPlaces(
    const PullOptions& options, const std::vector<std::string>& target_dirs,
    const std::vector<Place>& places);

}  // namespace sstferry
