#include "tools/sstferry/find_databases.h"

#include <glob.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "format/end_state.h"
#include "format/follow_file.h"
#include "sstferry/options.h"

namespace sstferry {

namespace fs = std::filesystem;
using rocksdb::Status;

bool IsPattern(const std::string& text) {
  return text.find_first_of("*?[") != std::string::npos;
}

bool IsNameOfDatabase(const std::string& name) {
  return IsValidDatabaseName(name) && name[0] != '.' && name[0] != '-' &&
         name.find(".old-") == std::string::npos &&
         name.find(".sstferry") == std::string::npos;
}

namespace {

// Returns true if `path`, which matches the pattern, may be the directory of a
// database. Checks the components of `path` from the pattern's first wildcard
// on. Each must be a directory, not a symbolic link, and IsNameOfDatabase()
// must be true for its name.
bool IsPlace(const std::string& path, const fs::path& pattern) {
  std::error_code error;
  fs::path at;
  auto part = pattern.begin();
  bool is_fixed = true;
  for (const fs::path& name : fs::path(path)) {
    at /= name;
    is_fixed = is_fixed && !IsPattern((part++)->string());
    if (!is_fixed && (!IsNameOfDatabase(name.string()) ||
                      !fs::is_directory(fs::symlink_status(at, error)))) {
      return false;
    }
  }
  return true;
}

// Sets *is_database to true if the directory has a database or a standby.
// Returns an error if the directory cannot be read. Otherwise the caller would
// believe that the database was removed.
Status LookForDatabase(const std::string& path, bool* is_database) {
  *is_database = false;
  for (const char* const name : {"CURRENT", kFollowFileName}) {
    std::error_code error;
    const fs::file_type type =
        fs::symlink_status(path + "/" + name, error).type();
    *is_database = *is_database || type == fs::file_type::regular;
    if (type == fs::file_type::none) {
      return MakeStatus(EndState::kRefused,
                        "path: cannot find out if " + path +
                            " has a database: " + error.message());
    }
  }
  return Status::OK();
}

}  // namespace

Status FindDatabases(const std::string& pattern,
                     std::vector<std::string>* found,
                     std::vector<std::string>* others) {
  glob_t matches;
  errno = 0;
  const int failed = glob(pattern.c_str(), GLOB_ERR, nullptr, &matches);
  const int error = errno;
  const fs::path normal = fs::path(pattern).lexically_normal();
  Status looked;
  for (size_t i = 0; failed == 0 && i < matches.gl_pathc; ++i) {
    const std::string path =
        fs::path(matches.gl_pathv[i]).lexically_normal().string();
    bool is_database = false;
    if (looked.ok() && IsPlace(path, normal)) {
      looked = LookForDatabase(path, &is_database);
      (is_database ? found : others)->push_back(path);
    }
  }
  globfree(&matches);
  RETURN_IF_ERROR(looked);
  if (failed != 0 && failed != GLOB_NOMATCH) {
    return MakeStatus(EndState::kRefused,
                      "path: cannot read a directory on the way to " +
                          pattern + ": " + std::strerror(error));
  }
  return !found->empty()
             ? Status::OK()
             : MakeStatus(EndState::kRefused,
                          "path: expected a database at " + pattern +
                              ", found none: is its file system mounted?");
}

}  // namespace sstferry
