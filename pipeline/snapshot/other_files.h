// The application's own files in a source's directory (format/other_file.h).
// They are read as they are at the time of reading, not as of a snapshot.
#pragma once

#include <string>
#include <vector>

#include "format/other_file.h"
#include "rocksdb/status.h"

namespace sstferry {

// Lists the files by name, at most kMaxOtherFiles; *unlisted is the number of
// files above that limit. Skips directories. kSourceError: the directory cannot
// be read.
[[nodiscard]] rocksdb::Status ListOtherFiles(const std::string& database_dir,
                                             std::vector<OtherFile>* files,
                                             uint64_t* unlisted);

// Reads one file completely. *is_private: fewer accounts can read it than the
// database's CURRENT.
//   kSourceError  the file was removed, grew, belongs to another account or
//                 cannot be read; or it changed during each of several readings
[[nodiscard]] rocksdb::Status ReadOtherFile(const std::string& database_dir,
                                            const std::string& name,
                                            std::string* contents,
                                            bool* is_private);

}  // namespace sstferry
