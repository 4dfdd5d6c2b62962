// The databases that swaps have removed from TARGET_DIR and kept:
//
//   TARGET_DIR.old-20261125T020003Z/
//     sstferry.old    record of the swap, with the directory's inode number
//
// A name alone does not allow a deletion. A directory counts as such a database
// only if it is a directory (no link), and its record is a regular file of this
// process's account that no other account may write and that has the
// directory's inode number: a copy, or another directory with this name, does
// not count. For root, the list includes records of the directories' owners,
// but root does not delete those.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pipeline/base/stop_signal.h"
#include "rocksdb/file_system.h"
#include "rocksdb/status.h"
#include "sstferry/status.h"

namespace sstferry {

// Writes the record durably into `dir`, which a swap has removed from
// TARGET_DIR, and sets *path to an unused name beside `target_dir`: with the
// present time, and if needed a number after it.
[[nodiscard]] rocksdb::Status MarkOldDirectory(
    rocksdb::FileSystem* file_system, const std::string& target_dir,
    const std::string& dir, std::string* path);

// Sets *path to an unused name beside `target_dir`, for a database that a
// standby replaces: TARGET_DIR.sstferry-old-DATE. Such a directory has no
// record and belongs to the operator.
[[nodiscard]] rocksdb::Status NameAdopted(const std::string& target_dir,
                                          std::string* path);

// Lists the adopted databases of `target_dir`, which only their names identify,
// then those that swaps have kept; both the newest first. Omits what it cannot
// read.
std::vector<OldDirectory> ListOldDirectories(const std::string& target_dir);

// Deletes the kept databases except the newest `keep`, at `bytes_per_sec` (0:
// no limit), and adds their paths to *removed. Skips a directory that a process
// has open as a database, or is deleting.
//   kCancelled  `stop` was raised first; the next call finds the rest
[[nodiscard]] rocksdb::Status RemoveOldDirectories(
    rocksdb::FileSystem* file_system, const std::string& target_dir,
    uint32_t keep, uint64_t bytes_per_sec, StopSignal* stop,
    std::vector<std::string>* removed);

}  // namespace sstferry
