// The application's own files at the target: how they are written in the
// workspace, and which of them the new database's directory gets.
//
// A seed gets what came from the source. At a swap, TARGET_DIR has such files
// as well. Of each name the new directory gets:
//
//   only the source has it                       the source's
//   only TARGET_DIR has it                       TARGET_DIR's
//   both; TARGET_DIR's is as a pull copied it    the source's
//   both; the source's is as it was copied then  TARGET_DIR's
//   both; both have changed since, or no pull    TARGET_DIR's, and the caller
//     copied one of that name                    names it
//
// sstferry.files (format/other_files_record.h) says what was copied.
#pragma once

#include <string>
#include <vector>

#include "format/other_files_record.h"
#include "rocksdb/file_system.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace sstferry {

// Writes one file durably but for its name, private to this process's account.
// REQUIRES: `dir` is in the workspace and has no such name, and MayBeCopied().
[[nodiscard]] rocksdb::Status WriteOtherFile(rocksdb::FileSystem* file_system,
                                             const std::string& dir,
                                             const std::string& name,
                                             const rocksdb::Slice& contents);

// Writes sstferry.files durably.
[[nodiscard]] rocksdb::Status WriteCopiedFiles(
    rocksdb::FileSystem* file_system, const std::string& dir,
    const CopiedFiles& files);
// Reads it; none and a damaged one count as empty.
CopiedFiles ReadCopiedFiles(const std::string& dir);

// Removes from `db_dir` the names that PlaceOtherFiles() made: some may be
// those of files that TARGET_DIR has, too, whose access must stay.
[[nodiscard]] rocksdb::Status RemovePlacedFiles(
    rocksdb::FileSystem* file_system, const std::string& db_dir);

// Makes names in `db_dir` for the files of `from`, where a pull wrote them with
// their record, and of `old_dir` (empty: there is none), with the access of the
// database and without the bits to execute. Those of `old_dir` stay as they
// are. May be called again, also after a crash in between. *kept gets the names
// of files that both sides have changed.
//   kRefused  a file of old_dir cannot get a second name
[[nodiscard]] rocksdb::Status PlaceOtherFiles(
    rocksdb::FileSystem* file_system, const std::string& from,
    const std::string& old_dir, const std::string& db_dir,
    std::vector<std::string>* kept);

}  // namespace sstferry
