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

// Returns true if `path` is the directory of a database or standby. From the
// pattern's first wildcard on, the path must contain no link and no directory
// that sstferry made.
bool IsDatabase(const std::string& path, const fs::path& pattern) {
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
  return fs::is_regular_file(fs::symlink_status(at / "CURRENT", error)) ||
         fs::exists(fs::symlink_status(at / kFollowFileName, error));
}

}  // namespace

Status FindDatabases(const std::string& pattern,
                     std::vector<std::string>* found) {
  glob_t matches;
  errno = 0;
  const int failed = glob(pattern.c_str(), GLOB_ERR, nullptr, &matches);
  const int error = errno;
  const fs::path normal = fs::path(pattern).lexically_normal();
  for (size_t i = 0; failed == 0 && i < matches.gl_pathc; ++i) {
    const std::string path =
        fs::path(matches.gl_pathv[i]).lexically_normal().string();
    if (IsDatabase(path, normal)) {
      found->push_back(path);
    }
  }
  globfree(&matches);
  if (failed != 0 && failed != GLOB_NOMATCH) {
    return MakeStatus(EndState::kRefused, "path: cannot read what " + pattern +
                                              " names: " +
                                              std::strerror(error));
  }
  return !found->empty()
             ? Status::OK()
             : MakeStatus(EndState::kRefused,
                          "path: expected a database at " + pattern +
                              ", found none: is its file system mounted?");
}

}  // namespace sstferry
