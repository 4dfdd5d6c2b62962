// The application's own files in a source's directory (format/other_file.h).
// They are read as they are at that moment, not as of a snapshot.
#pragma once

#include <string>
#include <vector>

#include "format/other_file.h"
#include "rocksdb/status.h"

namespace sstferry {

// Lists them by name, at most kMaxOtherFiles; *unlisted counts those beyond.
// Directories are not looked at. kSourceError: the directory cannot be read.
[[nodiscard]] rocksdb::Status ListOtherFiles(const std::string& database_dir,
                                             std::vector<OtherFile>* files,
                                             uint64_t* unlisted);

// Reads one whole. *is_private: fewer accounts can read it than the database's
// CURRENT.
//   kSourceError  it is gone, grew, is of another account or cannot be read; or
//                 it changed during each of several readings
[[nodiscard]] rocksdb::Status ReadOtherFile(const std::string& database_dir,
                                            const std::string& name,
                                            std::string* contents,
                                            bool* is_private);

}  // namespace sstferry
