// Opens files. Every file that somebody else may have put where it lies is
// opened by one of two functions: OpenForeign() for a file in a directory of
// another account, a database's for example, and OpenOwn() for a file that the
// operator names and whose bytes this process acts on, a certificate's for
// example. Neither waits for anybody, and both give regular files only.
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
// there is no such file, returns OK and *out is not open. Waits for nobody, and
// follows no symbolic link: `path` is a real one.
//   kSourceError  it is no regular file, or not of the account that owns its
//                 directory, of root or of this process.
[[nodiscard]] rocksdb::Status OpenForeign(const std::string& path,
                                          Descriptor* out);

// Checks a file by the rules of OpenForeign(). `directory` is open.
[[nodiscard]] rocksdb::Status CheckForeign(const std::string& path,
                                           int directory,
                                           const struct stat& file);

// Reads a file that OpenForeign() opens, and that another process may remove at
// any moment. If it does not exist, returns OK and *found is false.
[[nodiscard]] rocksdb::Status ReadForeign(const std::string& path,
                                          uint64_t max_bytes, bool* found,
                                          std::string* contents);

// Opens a file that the operator names for reading; sstferry/own_file.h has the
// rules.
//   kRefused  it is missing or does not keep them; the message begins with
//             `path`
[[nodiscard]] rocksdb::Status OpenOwn(const std::string& path, uid_t account,
                                      Descriptor* out);

}  // namespace sstferry
