#include "tools/sstferry/find_databases.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <system_error>

#include "format/end_state.h"
#include "format/follow_file.h"
#include "sstferry/descriptor.h"
#include "sstferry/options.h"

namespace sstferry {

using rocksdb::Status;
using Strings = std::vector<std::string>;

bool IsPattern(const std::string& text) {
  return text.find_first_of("*?[") != std::string::npos;
}

bool IsNameOfDatabase(const std::string& name) {
  return IsValidDatabaseName(name) && name[0] != '.' && name[0] != '-' &&
         name.find(".old-") == std::string::npos &&
         name.find(".sstferry") == std::string::npos;
}

namespace {

bool IsDatabase(const Descriptor& directory) {
  struct stat info;
  return fstatat(directory.get(), "CURRENT", &info, AT_SYMLINK_NOFOLLOW) == 0 ||
         fstatat(directory.get(), kFollowFileName, &info,
                 AT_SYMLINK_NOFOLLOW) == 0;
}

Status CannotRead(const std::string& path) {
  return MakeStatus(EndState::kRefused, "path: cannot read " + path + ": " +
                                            std::strerror(errno));
}

// Adds the databases below an open directory. `parts`: the components of the
// pattern after it. Follows no link.
Status FindBelow(const Descriptor& directory, const std::string& path,
                 const Strings& parts, Strings* found) {
  if (parts.empty()) {
    if (IsDatabase(directory)) {
      found->push_back(path);
    }
    return Status::OK();
  }
  Strings names = {parts[0]};
  if (IsPattern(parts[0])) {
    const DirectoryStream stream = NamesIn(directory.get());
    if (stream == nullptr) {
      return CannotRead(path);
    }
    names.clear();
    errno = 0;
    for (const dirent* entry = readdir(stream.get()); entry != nullptr;
         entry = readdir(stream.get())) {
      const std::string name = entry->d_name;
      if (IsNameOfDatabase(name) &&
          fnmatch(parts[0].c_str(), name.c_str(), FNM_PERIOD) == 0) {
        names.push_back(name);
      }
      errno = 0;
    }
    if (errno != 0) {
      return CannotRead(path);
    }
    std::sort(names.begin(), names.end());
  }
  for (const std::string& name : names) {
    const std::string below = path + "/" + name;
    const Descriptor child = OpenDirectoryIn(directory.get(), name);
    if (!child.is_open()) {
      if (errno == ENOTDIR || errno == ENOENT || errno == ELOOP) {
        continue;
      }
      return CannotRead(below);
    }
    RETURN_IF_ERROR(
        FindBelow(child, below, {parts.begin() + 1, parts.end()}, found));
  }
  return Status::OK();
}

}  // namespace

Status FindDatabases(const std::string& pattern, Strings* found) {
  std::string fixed;
  Strings parts;
  std::istringstream stream(pattern);
  for (std::string part; std::getline(stream, part, '/');) {
    if (part.empty()) {
      continue;
    }
    if (parts.empty() && !IsPattern(part)) {
      fixed += "/" + part;
    } else {
      parts.push_back(part);
    }
  }
  std::error_code error;
  const std::filesystem::path real =
      std::filesystem::canonical(fixed.empty() ? "/" : fixed, error);
  errno = error.value();
  const Descriptor directory =
      error ? Descriptor() : OpenDirectory(real.string());
  if (!directory.is_open()) {
    return CannotRead(fixed);
  }
  RETURN_IF_ERROR(FindBelow(directory, fixed, parts, found));
  return !found->empty()
             ? Status::OK()
             : MakeStatus(EndState::kRefused,
                          "path: expected a database at " + pattern +
                              ", found none: is its file system mounted?");
}

}  // namespace sstferry
