// The application's own files in a source's directory (format/other_file.h).
// They are read in their current state, not in a snapshot's.
#pragma once

#include <string>
#include <vector>

#include "format/other_file.h"
#include "rocksdb/status.h"

namespace sstferry {

// Lists the files, sorted by name, at most kMaxOtherFiles; *unlisted is the
// number of further files. Skips directories. kSourceError: the directory
// cannot be read.
[[nodiscard]] rocksdb::Status ListOtherFiles(const std::string& database_dir,
                                             std::vector<OtherFile>* files,
                                             uint64_t* unlisted);

// Reads one file completely. *is_private: fewer accounts can read the file than
// can read the database's CURRENT.
//   kSourceError  the file was removed, grew, belongs to another account or
//                 cannot be read; or it changed each time it was read
[[nodiscard]] rocksdb::Status ReadOtherFile(const std::string& database_dir,
                                            const std::string& name,
                                            std::string* contents,
                                            bool* is_private);

}  // namespace sstferry
