// Owner, group and permission bits of the files and directories that a pull
// creates.
//
// The workspace is private from the start (0700 and 0600). A finished database
// gets the owner and mode of the directory that it replaces or fills, or those
// in the options. A file that a refresh adds to a database gets the owner and
// mode of that database's CURRENT.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <memory>
#include <string>

#include "rocksdb/file_system.h"
#include "rocksdb/status.h"
#include "sstferry/options.h"

namespace sstferry {

// Owner, group and permission bits; called "access" below. Does not include
// access control lists.
struct Access {
  static constexpr uint32_t kAsMade = UINT32_MAX;  // chown() keeps the id
  uint32_t owner = kAsMade;
  uint32_t group = kAsMade;
  uint32_t mode = 0;  // permission bits
  uint32_t file_mode = kAsMade;  // of the directory's files; kAsMade: from
                                 // `mode`
  // Returns the access of files in a directory with this access.
  Access OfFiles() const {
    return {owner, group, file_mode == kAsMade ? mode & 0666 : file_mode};
  }
  friend bool operator==(const Access&, const Access&) = default;
};

// Returns true if a file with this stat() has the access.
bool HasAccess(const struct stat& info, const Access& access);

// Chooses the access of a new database's directory: each value comes from the
// options, else from options.target_dir, else from what mkdir() gives a
// directory that only its owner may write (0755 less the umask). In a standby,
// or in a database that becomes one, files keep their mode. Creates nothing.
//   kRefused  this process may not set it, or its owner could not use it
[[nodiscard]] rocksdb::Status ChooseAccess(const PullOptions& options,
                                           Access* access);

// Returns true if options.target_dir has the access that the options specify.
bool HasAskedAccess(const PullOptions& options);

// Chooses the access of a file that is added to the database in `dir`.
//   kRefused  this process may not set it, or the options specify another owner
//             or mode than `dir` has
[[nodiscard]] rocksdb::Status ChooseFileAccess(const PullOptions& options,
                                               const std::string& dir,
                                               Access* access);

// Finds the access for a new file in `dir`: that of the database's CURRENT, or
// else the access for files in this directory.
[[nodiscard]] rocksdb::Status AccessBeside(const std::string& dir,
                                           Access* access);

// Sets the access of a file or directory if it differs; *changed is then true.
// Does not follow links.
[[nodiscard]] rocksdb::Status SetAccess(const std::string& path,
                                        const Access& access,
                                        bool* changed = nullptr);

// Sets the access of a directory and, without execute permissions, of all files
// below it. The changes are durable when this returns OK.
[[nodiscard]] rocksdb::Status SetTreeAccess(rocksdb::FileSystem* file_system,
                                            const std::string& dir,
                                            const Access& access);

// Returns a file system that makes `workspace_dir` and everything in it private
// to this user. Files that it creates elsewhere get the access of the files in
// the same directory, regardless of the umask.
std::shared_ptr<rocksdb::FileSystem> MakeAccessFileSystem(
    std::shared_ptr<rocksdb::FileSystem> base, std::string workspace_dir);

}  // namespace sstferry
