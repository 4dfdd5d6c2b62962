// Lists and deletes old databases. A swap may move the old database out of
// TARGET_DIR and keep it:
//
//   TARGET_DIR.old-20261125T020003Z/
//     sstferry.old    record of the swap, with the directory's inode number and
//                     name
//
// A directory is not deleted because of its name alone. It must be a real
// directory (not a link). Its record must be a regular file that belongs to
// this process's account and that only this account can write. The record must
// contain the directory's inode number and name. So a copy of an old database
// is never deleted, and neither is another directory with such a name. The same
// is true for a database that was used again and later renamed to such a name.
//
// If root runs this process, the list also includes directories whose record
// belongs to the directory's owner. Root does not delete these directories.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pipeline/base/stop_signal.h"
#include "rocksdb/file_system.h"
#include "rocksdb/status.h"
#include "sstferry/status.h"

namespace sstferry {

// Sets *path to an unused name next to `target_dir` for the old database in
// `dir`, and durably writes the record into `dir`. The name contains the
// present time. If the newest kept database has this or a later time in its
// name, the new name contains a still later time. So the names ascend even if
// the clock is set back.
[[nodiscard]] rocksdb::Status MarkOldDirectory(
    rocksdb::FileSystem* file_system, const std::string& target_dir,
    const std::string& dir, std::string* path);

// Sets *path to an unused name next to `target_dir`,
// TARGET_DIR.sstferry-old-DATE, for a database that a standby replaces. Such a
// directory gets no record, and sstferry never deletes it; only the operator
// does.
[[nodiscard]] rocksdb::Status NameAdopted(const std::string& target_dir,
                                          std::string* path);

// Lists three groups of directories next to `target_dir`: the databases that
// the standby replaced by adoption, the directories with records that the
// standby's source had lost, and the databases that swaps have kept. The first
// two groups are recognized only by their names. Each group begins with the
// newest directory. Omits directories that cannot be read.
std::vector<OldDirectory> ListOldDirectories(const std::string& target_dir);

// Deletes the kept databases except the newest `keep`, and adds the deleted
// paths to *removed. `bytes_per_sec` limits the rate; 0 means no limit. Skips a
// directory that a process has open as a database, and a directory that another
// process is deleting.
//   kCancelled  `stop` was raised first; the next call deletes the others
[[nodiscard]] rocksdb::Status RemoveOldDirectories(
    rocksdb::FileSystem* file_system, const std::string& target_dir,
    uint32_t keep, uint64_t bytes_per_sec, StopSignal* stop,
    std::vector<std::string>* removed);

}  // namespace sstferry
