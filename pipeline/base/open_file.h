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

// Returns "what PATH: reason" with `state`, or with kNoSpace if IsOutOfRoom().
[[nodiscard]] rocksdb::Status ErrnoStatus(EndState state,
                                          const std::string& what,
                                          const std::string& path, int error);

// Return the directory of a path, "." for a plain name, and its last name.
std::string DirectoryOf(const std::string& path);
std::string NameIn(const std::string& path);

// Opens a file for reading in a directory that another account may own. If the
// file does not exist, returns OK and *out is not open. Never waits for another
// process. Follows no symbolic link, so `path` must not contain one.
//   kSourceError  it is not a regular file, or its owner is not the directory's
//                 owner, root, or this process's account.
[[nodiscard]] rocksdb::Status OpenForeign(const std::string& path,
                                          Descriptor* out);

// Checks an open file by the rules of OpenForeign(). `directory` is an open
// descriptor.
[[nodiscard]] rocksdb::Status CheckForeign(const std::string& path,
                                           int directory,
                                           const struct stat& file);

// Checks the name `path` itself in its open directory by the same rules; does
// not follow a symbolic link. *found is false if the name does not exist.
[[nodiscard]] rocksdb::Status CheckForeignName(const std::string& path,
                                               int directory, bool* found);

// Reads a file by the rules of OpenForeign(). Another process may remove the
// file at any time; if it does not exist, returns OK and *found is false.
[[nodiscard]] rocksdb::Status ReadForeign(const std::string& path,
                                          uint64_t max_bytes, bool* found,
                                          std::string* contents);

// Lists the names in a directory except "." and "..", sorted. `path` is a real
// path. kSourceError: the directory cannot be read.
[[nodiscard]] rocksdb::Status ListDirectory(const std::string& path,
                                            std::vector<std::string>* names);

// Returns true for a file or directory with chattr +i or +a. It cannot be
// linked, renamed or replaced.
bool IsImmutable(const std::string& path);

// Opens a file that the operator specifies, for reading; see
// sstferry/own_file.h for the rules.
//   kRefused  it is missing or violates the rules; the message begins with
//             `path`
[[nodiscard]] rocksdb::Status OpenOwn(const std::string& path, uid_t account,
                                      Descriptor* out);

}  // namespace sstferry
