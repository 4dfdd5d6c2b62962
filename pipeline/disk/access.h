// Sets the owner, group and permission bits of the files and directories that a
// pull creates.
//
// From the start, only this account can use the workspace (0700 and 0600). A
// finished database gets the owner and mode in the options, or else those of
// the directory that it replaces or fills. If a refresh adds a file to a
// database, the file gets the owner and mode of the database's CURRENT.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <memory>
#include <string>

#include "rocksdb/file_system.h"
#include "rocksdb/status.h"
#include "sstferry/options.h"

namespace sstferry {

// The owner, group and permission bits of a file or directory. Other comments
// call these the "access". Access control lists are not included.
struct Access {
  // SetAccess() does not change an id with this value.
  static constexpr uint32_t kAsMade = UINT32_MAX;
  uint32_t owner = kAsMade;
  uint32_t group = kAsMade;
  uint32_t mode = 0;  // permission bits
  // Mode of the files in the directory. kAsMade: derived from `mode`.
  uint32_t file_mode = kAsMade;
  // Returns the access of files in a directory with this access.
  Access OfFiles() const {
    return {owner, group, file_mode == kAsMade ? mode & 0666 : file_mode};
  }
  friend bool operator==(const Access&, const Access&) = default;
};

// Returns true if a file with this stat() result has `access`.
bool HasAccess(const struct stat& info, const Access& access);

// Chooses the owner, group and mode of a new database's directory. Takes each
// value from the options. Without an option, takes the value of
// options.target_dir; if this directory does not exist, takes what mkdir()
// would set for mode 0755. The files of a standby, or of a database that
// becomes a standby, keep their mode. Creates nothing.
//   kRefused  this process may not set this owner or group, or the owner could
//             not use the directory
[[nodiscard]] rocksdb::Status ChooseAccess(const PullOptions& options,
                                           Access* access);

// Returns true if options.target_dir has the owner, group and mode in the
// options. A value that the options do not contain is ignored.
bool HasAskedAccess(const PullOptions& options);

// Chooses the owner, group and mode of a file that is added to the database in
// `dir`.
//   kRefused  this process may not set them, or the options contain another
//             owner, group or mode than `dir` has
[[nodiscard]] rocksdb::Status ChooseFileAccess(const PullOptions& options,
                                               const std::string& dir,
                                               Access* access);

// Finds the owner, group and mode for a new file in `dir`. Takes them from the
// database's CURRENT. If there is no CURRENT, derives them from the directory.
[[nodiscard]] rocksdb::Status AccessBeside(const std::string& dir,
                                           Access* access);

// Sets the owner, group and mode of a file or directory if they differ. Sets
// *changed to true if they differed. Does not follow links.
[[nodiscard]] rocksdb::Status SetAccess(const std::string& path,
                                        const Access& access,
                                        bool* changed = nullptr);

// Sets the access of a directory and of everything below it. Files get no
// execute permissions. All changes are durable when this returns OK.
[[nodiscard]] rocksdb::Status SetTreeAccess(rocksdb::FileSystem* file_system,
                                            const std::string& dir,
                                            const Access& access);

// Returns a file system that sets the access of each file that it creates. In
// `workspace_dir`, only this account can use the files. Elsewhere, new files
// get the access of the files in the same directory. The umask has no effect.
// A database elsewhere that is opened through this file system is locked by a
// DatabaseLock (database_files.h).
std::shared_ptr<rocksdb::FileSystem> MakeAccessFileSystem(
    std::shared_ptr<rocksdb::FileSystem> base, std::string workspace_dir);

}  // namespace sstferry
