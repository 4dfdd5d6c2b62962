// Reads the application's own files in a source's directory, for example a
// config file next to the database (see format/other_file.h). A snapshot does
// not include these files. They are read as they are at the time of the call.
#pragma once

#include <string>
#include <vector>

#include "format/other_file.h"
#include "rocksdb/status.h"

namespace sstferry {

// Lists the application's files, sorted by name. Lists at most kMaxOtherFiles
// files; *unlisted is the number of files beyond this limit. Skips directories.
//   kSourceError  the directory cannot be read
[[nodiscard]] rocksdb::Status ListOtherFiles(const std::string& database_dir,
                                             std::vector<OtherFile>* files,
                                             uint64_t* unlisted);

// Reads one file completely. Sets *is_private to true if fewer accounts can
// read this file than can read the database's CURRENT.
//   kSourceError  the file was removed, grew, belongs to another account or
//                 cannot be read; or it changed each time it was read
[[nodiscard]] rocksdb::Status ReadOtherFile(const std::string& database_dir,
                                            const std::string& name,
                                            std::string* contents,
                                            bool* is_private);

}  // namespace sstferry
