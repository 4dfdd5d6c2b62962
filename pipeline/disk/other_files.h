// Copies the application's own files at the target. Writes them to the
// workspace, and chooses which of them the new database's directory gets.
//
// For a seed, this directory gets the files that the source sent. For a swap,
// TARGET_DIR may also have files of the application. For each name, the new
// directory gets one file:
//
//   only the source has the file                 the source's
//   only TARGET_DIR has the file                 TARGET_DIR's
//   both have it; TARGET_DIR's is unchanged      the source's
//     since the last pull copied it
//   both have it; only TARGET_DIR's has changed  TARGET_DIR's
//     since the last pull copied it
//   both have it; both have changed since then,  TARGET_DIR's, and the caller
//     or no pull has copied it                     reports the name
//
// sstferry.files (format/other_files_record.h) records the copied files.
#pragma once

#include <string>
#include <vector>

#include "format/other_files_record.h"
#include "rocksdb/file_system.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace sstferry {

// Writes one file that only this process's account can use. Makes the contents
// durable, but not the name. REQUIRES: `dir` is in the workspace and has no
// file `name`; MayBeCopied(name).
[[nodiscard]] rocksdb::Status WriteOtherFile(rocksdb::FileSystem* file_system,
                                             const std::string& dir,
                                             const std::string& name,
                                             const rocksdb::Slice& contents);

// Writes sstferry.files durably.
[[nodiscard]] rocksdb::Status WriteCopiedFiles(
    rocksdb::FileSystem* file_system, const std::string& dir,
    const CopiedFiles& files);
// Reads sstferry.files. If the file is missing or damaged, *files is empty.
// Returns the errors of ReadRecord().
[[nodiscard]] rocksdb::Status ReadCopiedFiles(const std::string& dir,
                                              CopiedFiles* files);

// Removes from `db_dir` the names that PlaceOtherFiles() created. Some of them
// may be hard links to files of TARGET_DIR. Such files must not stay, because
// their owner and mode must not change.
[[nodiscard]] rocksdb::Status RemovePlacedFiles(
    rocksdb::FileSystem* file_system, const std::string& db_dir);

// Creates hard links in `db_dir` to files in `from`, and to files in `old_dir`
// (empty: none). A pull has written the files in `from`, together with their
// record. These files get the database's owner and mode, without execute
// permissions. The files of `old_dir` are not changed. May be called again,
// even after a crash during a call. *kept receives the names of files that both
// sides have changed, and of files in old_dir that cannot be read.
//   kRefused  a file of old_dir cannot be hard-linked
[[nodiscard]] rocksdb::Status PlaceOtherFiles(
    rocksdb::FileSystem* file_system, const std::string& from,
    const std::string& old_dir, const std::string& db_dir,
    std::vector<std::string>* kept);

}  // namespace sstferry
