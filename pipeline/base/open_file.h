// Opens files that another account may have put in their place. OpenForeign()
// is for files in a directory of another account, such as a database's;
// OpenOwn() is for files that the operator names and whose content this process
// acts on, such as a certificate's. Both open only regular files and never wait
// for another process.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <string>

#include "format/end_state.h"
#include "rocksdb/status.h"
#include "sstferry/descriptor.h"
#include "sstferry/own_file.h"

namespace sstferry {

// Returns "what PATH: reason" with `state`, or kNoSpace if it IsOutOfRoom().
[[nodiscard]] rocksdb::Status ErrnoStatus(EndState state,
                                          const std::string& what,
                                          const std::string& path, int error);

// Opens a file for reading in a directory that another account may own. If
// there is no such file, returns OK and *out is not open. Never waits for
// another process, and follows no symbolic link: `path` must have none.
//   kSourceError  it is no regular file, or its owner is not the account that
//                 owns its directory, root, or this process's account.
[[nodiscard]] rocksdb::Status OpenForeign(const std::string& path,
                                          Descriptor* out);

// Checks a file by the rules of OpenForeign(). `directory` is an open
// descriptor.
[[nodiscard]] rocksdb::Status CheckForeign(const std::string& path,
                                           int directory,
                                           const struct stat& file);

// Reads a file by the rules of OpenForeign(); another process may remove it at
// any time. If it does not exist, returns OK and *found is false.
[[nodiscard]] rocksdb::Status ReadForeign(const std::string& path,
                                          uint64_t max_bytes, bool* found,
                                          std::string* contents);

// Returns true for a file or directory of chattr +i or +a: it gets no link and
// no other name, and nothing takes its place.
bool IsImmutable(const std::string& path);

// Opens a file that the operator names, for reading; sstferry/own_file.h has
// the rules.
//   kRefused  it is missing or violates the rules; the message begins with
//             `path`
[[nodiscard]] rocksdb::Status OpenOwn(const std::string& path, uid_t account,
                                      Descriptor* out);

}  // namespace sstferry
