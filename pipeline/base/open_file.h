// Opens files that another account may have replaced. OpenForeign() is for
// files in another account's directory, such as a database; OpenOwn() is for
// files that the operator specifies and whose contents control this process,
// such as a certificate. Both open only regular files and never wait for
// another process.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "format/end_state.h"
#include "rocksdb/status.h"
#include "sstferry/descriptor.h"
#include "sstferry/own_file.h"

namespace sstferry {

// Formats an errno as a message like "cannot read PATH: Permission denied".
// Returns kNoSpace if IsOutOfRoom(error), otherwise `state`.
[[nodiscard]] rocksdb::Status ErrnoStatus(EndState state,
                                          const std::string& what,
                                          const std::string& path, int error);

// Return the directory part of a path and its last name. The directory of a
// plain name is ".".
std::string DirectoryOf(const std::string& path);
std::string NameIn(const std::string& path);

// Opens a file for reading in a directory that another account may own. If the
// file does not exist, returns OK and *out is not open. Never waits for another
// process. Follows no symbolic link, so `path` must not contain one.
//   kSourceError  it is not a regular file, or its owner is another account
//                 than this process's account, root, and the owner of the
//                 directory
[[nodiscard]] rocksdb::Status OpenForeign(const std::string& path,
                                          Descriptor* out);

// Checks a file as OpenForeign() does. `file` is the result of fstat(), and
// `directory` is an open descriptor of the file's directory.
[[nodiscard]] rocksdb::Status CheckForeign(const std::string& path,
                                           int directory,
                                           const struct stat& file);

// Checks the file at `path` as OpenForeign() does, without opening the file.
// Does not follow a symbolic link. `directory` is an open descriptor of the
// file's directory. Sets *found to false if the file does not exist.
[[nodiscard]] rocksdb::Status CheckForeignName(const std::string& path,
                                               int directory, bool* found);

// Opens a file as OpenForeign() does, and reads it. If the file does not exist
// (any process may remove it at any time), returns OK and *found is false.
[[nodiscard]] rocksdb::Status ReadForeign(const std::string& path,
                                          uint64_t max_bytes, bool* found,
                                          std::string* contents);

// Lists the names in a directory, sorted, without "." and "..". `path` must not
// contain a symbolic link.
//   kSourceError  the directory cannot be read
[[nodiscard]] rocksdb::Status ListDirectory(const std::string& path,
                                            std::vector<std::string>* names);

// Returns true for a file or directory with the attribute +i or +a of chattr.
// Such a file cannot be linked, renamed or replaced.
bool IsImmutable(const std::string& path);

// Opens a file that the operator specifies, for reading. ReadOwn() in
// sstferry/own_file.h describes the rules that the file must obey.
//   kRefused  the file is missing or breaks the rules; the message begins with
//             `path`
[[nodiscard]] rocksdb::Status OpenOwn(const std::string& path, uid_t account,
                                      Descriptor* out);

}  // namespace sstferry
