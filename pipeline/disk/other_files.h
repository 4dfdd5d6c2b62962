// The application's own files at the target: how they are written to the
// workspace, and which of them the new database's directory gets.
//
// A seed gets the files that the source sent. At a swap, TARGET_DIR may also
// have such files. For each name, the new directory gets this file:
//
//   only the source has a file                   the source's
//   only TARGET_DIR has a file                   TARGET_DIR's
//   both; TARGET_DIR's is unchanged since a      the source's
//     pull copied it
//   both; the source's is unchanged since then   TARGET_DIR's
//   both; both have changed since, or no pull    TARGET_DIR's, and the caller
//     copied a file of that name                 reports this
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

// Writes one file, private to this process's account. Its contents are durable,
// but its name is not. REQUIRES: `dir` is in the workspace and does not contain
// the name, and MayBeCopied().
[[nodiscard]] rocksdb::Status WriteOtherFile(rocksdb::FileSystem* file_system,
                                             const std::string& dir,
                                             const std::string& name,
                                             const rocksdb::Slice& contents);

// Writes sstferry.files durably.
[[nodiscard]] rocksdb::Status WriteCopiedFiles(
    rocksdb::FileSystem* file_system, const std::string& dir,
    const CopiedFiles& files);
// Reads sstferry.files; a missing or damaged file counts as empty. Returns the
// errors of ReadRecord().
[[nodiscard]] rocksdb::Status ReadCopiedFiles(const std::string& dir,
                                              CopiedFiles* files);

// Removes from `db_dir` the names that PlaceOtherFiles() made. Some may be hard
// links to files of TARGET_DIR, whose owner and mode must not change.
[[nodiscard]] rocksdb::Status RemovePlacedFiles(
    rocksdb::FileSystem* file_system, const std::string& db_dir);

// Creates names in `db_dir` for the files in `from`, where a pull wrote them
// with their record, and for the files of `old_dir` (empty: not given).
// Files of `from` get the database's owner and mode, without execute
// permissions; files of `old_dir` are not changed. May be called again, also
// after a crash during a call. *kept receives the names of files that both
// sides have changed, and of files in old_dir that cannot be read.
//   kRefused  a file of old_dir cannot be hard-linked
[[nodiscard]] rocksdb::Status PlaceOtherFiles(
    rocksdb::FileSystem* file_system, const std::string& from,
    const std::string& old_dir, const std::string& db_dir,
    std::vector<std::string>* kept);

}  // namespace sstferry
