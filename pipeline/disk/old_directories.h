// The databases that swaps have taken from TARGET_DIR and kept:
//
//   TARGET_DIR.old-20261125T020003Z/
//     sstferry.old    says that a swap put the directory there, by its inode
//
// A name alone is no reason to delete anything. A directory is one of these
// only if it is a directory (no link), and its record is a plain file of this
// process's account that nobody else may write and that names the directory's
// inode: a copy of such a directory, or another one in its place, is none. Root
// lists those of the directories' owners, too, and deletes none of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pipeline/base/stop_signal.h"
#include "rocksdb/file_system.h"
#include "rocksdb/status.h"
#include "sstferry/status.h"

namespace sstferry {

// Writes the record durably into `dir`, which a swap has taken from its place,
// and sets *path to a name beside `target_dir` that nobody has: of now, with a
// number behind it if it must be.
[[nodiscard]] rocksdb::Status MarkOldDirectory(
    rocksdb::FileSystem* file_system, const std::string& target_dir,
    const std::string& dir, std::string* path);

// Sets *path to a name beside `target_dir` that nobody has, for a database that
// a standby replaces: TARGET_DIR.sstferry-old-DATE. It has no record, and is the
// operator's.
[[nodiscard]] rocksdb::Status NameAdopted(const std::string& target_dir,
                                          std::string* path);

// Lists the adopted databases of `target_dir`, which are known by their names
// alone, then those that swaps have kept; both the newest first. Leaves out what
// it cannot read.
std::vector<OldDirectory> ListOldDirectories(const std::string& target_dir);

// Deletes them but for the newest `keep`, at `bytes_per_sec` (0: no limit), and
// adds their paths to *removed. Deletes none that a process has open as a
// database, or is deleting.
//   kCancelled  `stop` came first; the next call finds the rest
[[nodiscard]] rocksdb::Status RemoveOldDirectories(
    rocksdb::FileSystem* file_system, const std::string& target_dir,
    uint32_t keep, uint64_t bytes_per_sec, StopSignal* stop,
    std::vector<std::string>* removed);

}  // namespace sstferry
