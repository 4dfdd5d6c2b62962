// Owner, group and permission bits of all that a pull makes.
//
// In the workspace: nobody else's, from the first byte on (0700 and 0600). A
// finished database: as the directory that it replaces or fills, or as asked
// for. A file that a refresh adds to a database: as that database's CURRENT.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "rocksdb/file_system.h"
#include "rocksdb/status.h"
#include "sstferry/options.h"

namespace sstferry {

// Access control lists are not looked at.
struct Access {
  static constexpr uint32_t kAsMade = UINT32_MAX;  // what chown() leaves alone
  uint32_t owner = kAsMade;
  uint32_t group = kAsMade;
  uint32_t mode = 0;  // permission bits
  // Of the files in a directory that has this one.
  Access OfFiles() const { return {owner, group, mode & 0666}; }
  friend bool operator==(const Access&, const Access&) = default;
};

// What the directory of a new database gets: what the options say, else what
// options.target_dir has, else what mkdir() would give a directory that only
// its owner may write (0755 without the umask). Makes nothing.
//   kRefused  this process may not set it, or its owner could not use it
[[nodiscard]] rocksdb::Status ChooseAccess(const PullOptions& options,
                                           Access* access);

// What a file gets that is added to the database in `dir`.
//   kRefused  this process may not set it, or the options ask for another
//             owner or mode than `dir` has
[[nodiscard]] rocksdb::Status ChooseFileAccess(const PullOptions& options,
                                               const std::string& dir,
                                               Access* access);

// Of a file or directory, unless it has it already; follows no link.
[[nodiscard]] rocksdb::Status SetAccess(const std::string& path,
                                        const Access& access,
                                        bool* changed = nullptr);

// Of a directory and, without the bits to execute, of all files below it;
// durably.
[[nodiscard]] rocksdb::Status SetTreeAccess(rocksdb::FileSystem* file_system,
                                            const std::string& dir,
                                            const Access& access);

// A file system on which all that is made in `workspace_dir`, and that
// directory itself, is this user's alone, and what is made elsewhere has the
// access of what lies beside it; whatever the umask.
std::shared_ptr<rocksdb::FileSystem> MakeAccessFileSystem(
    std::shared_ptr<rocksdb::FileSystem> base, std::string workspace_dir);

}  // namespace sstferry
