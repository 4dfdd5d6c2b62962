// Old databases that swaps have moved out of TARGET_DIR and kept:
//
//   TARGET_DIR.old-20261125T020003Z/
//     sstferry.old    record of the swap, with the directory's inode number and
//                     name
//
// The name alone does not justify a deletion. A directory counts as an old
// database only if it is a real directory (not a link) and its record is a
// regular file that belongs to this process's account, is writable only by this
// account, and has the directory's inode number and name. So a copy, or another
// directory with this name, does not count, and neither does a database that
// was used again and then got such a name from someone else. If this process
// runs as root, the list also includes directories whose record belongs to the
// directory's owner, but root does not delete these.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pipeline/base/stop_signal.h"
#include "rocksdb/file_system.h"
#include "rocksdb/status.h"
#include "sstferry/status.h"

namespace sstferry {

// Sets *path to an unused name next to `target_dir` for the old database `dir`,
// and writes the record durably into it. The name has the present time, or a
// later one if a kept database has this or a later time in its name, so that
// the names ascend even if the clock goes back.
[[nodiscard]] rocksdb::Status MarkOldDirectory(
    rocksdb::FileSystem* file_system, const std::string& target_dir,
    const std::string& dir, std::string* path);

// Sets *path to an unused name next to `target_dir`, for a database that a
// standby replaces: TARGET_DIR.sstferry-old-DATE. Such a directory has no
// record; only the operator deletes it.
[[nodiscard]] rocksdb::Status NameAdopted(const std::string& target_dir,
                                          std::string* path);

// Lists, next to `target_dir`: the databases that its standby replaced by
// adoption, the directories with records that the standby's source had lost
// (both identified only by their names), and the databases that swaps have
// kept. Each group is sorted newest first. Omits directories that it cannot
// read.
std::vector<OldDirectory> ListOldDirectories(const std::string& target_dir);

// Deletes the kept databases except the newest `keep`, at `bytes_per_sec` (0:
// no limit), and adds their paths to *removed. Skips a directory that a process
// has open as a database, or is deleting.
//   kCancelled  `stop` was raised first; the next call deletes the others
[[nodiscard]] rocksdb::Status RemoveOldDirectories(
    rocksdb::FileSystem* file_system, const std::string& target_dir,
    uint32_t keep, uint64_t bytes_per_sec, StopSignal* stop,
    std::vector<std::string>* removed);

}  // namespace sstferry
