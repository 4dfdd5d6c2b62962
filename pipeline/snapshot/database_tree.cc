#include "pipeline/snapshot/database_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "format/end_state.h"
#include "format/follow_file.h"
#include "format/limits.h"
#include "format/printable.h"
#include "pipeline/base/database_name.h"
#include "pipeline/snapshot/posix_files.h"
#include "pipeline/snapshot/retained_snapshots.h"
#include "sstferry/descriptor.h"
#include "sstferry/options.h"

namespace sstferry {
namespace {

using rocksdb::Status;

// Maximum number of directories that one search opens. Ends the search in a
// tree that does not consist of databases.
constexpr uint64_t kMaxTreeDirectories = 1u << 16;
constexpr size_t kMaxTreeProblems = 20;

bool IsDirectoryIn(int parent, const dirent& entry) {
  struct stat info;
  return entry.d_type == DT_DIR ||
         (entry.d_type == DT_UNKNOWN &&
          fstatat(parent, entry.d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
          S_ISDIR(info.st_mode));
}

bool HoldsDatabase(int directory) {
  const auto has = [directory](const char* name) {
    struct stat info;
    return fstatat(directory, name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISREG(info.st_mode);
  };
  return has("CURRENT") || has(kFollowFileName);
}

class TreeWalk {
 public:
  explicit TreeWalk(DatabaseTree* tree) : tree_(tree) {}

  // Searches the open directory `name` ("" for the top). Returns false if a
  // limit ends the search.
  bool Walk(Descriptor directory, const std::string& name, size_t depth) {
    if (++directories_ > kMaxTreeDirectories) {
      Problem("more than " + std::to_string(kMaxTreeDirectories) +
              " directories: the rest was not searched");
      return false;
    }
    const int fd = directory.get();
    const DirectoryStream list = NamesIn(fd);
    if (list == nullptr) {
      Problem(name, std::strerror(errno));
      return true;
    }
    std::vector<std::string> below;
    while (const dirent* const entry = readdir(list.get())) {
      const std::string child = entry->d_name;
      if (child != "." && child != ".." && !IsReservedComponent(child) &&
          IsDirectoryIn(fd, *entry)) {
        below.push_back(child);
      }
    }
    std::sort(below.begin(), below.end());
    for (const std::string& child : below) {
      if (!Enter(fd, child, name.empty() ? child : name + "/" + child,
                 depth + 1)) {
        return false;
      }
    }
    return true;
  }

 private:
  bool Enter(int parent, const std::string& child, const std::string& name,
             size_t depth) {
    Descriptor directory = OpenDirectoryIn(parent, child);
    if (!directory.is_open()) {
      // Ignores a directory that was removed or replaced by a link meanwhile.
      if (errno != ENOENT && errno != ENOTDIR && errno != ELOOP) {
        Problem(name, std::strerror(errno));
      }
      return true;
    }
    if (HoldsDatabase(directory.get())) {
      return Add(name);
    }
    if (depth >= kMaxDatabaseNameComponents) {
      return true;
    }
    return Walk(std::move(directory), name, depth);
  }

  bool Add(const std::string& name) {
    if (!IsValidDatabaseName(name)) {
      Problem(name, std::string("its path is not a valid name, which is ") +
                        kDatabaseNameGrammar);
      return true;
    }
    if (tree_->names.size() == kMaxServedDatabases) {
      Problem("more than " + std::to_string(kMaxServedDatabases) +
              " databases: the rest is left out");
      return false;
    }
    tree_->names.push_back(name);
    return true;
  }

  void Problem(const std::string& name, const std::string& why) {
    Problem((name.empty() ? "" : Printable(name) + ": ") + why);
  }
  void Problem(const std::string& sentence) {
    if (tree_->problems.size() < kMaxTreeProblems) {
      tree_->problems.push_back(sentence);
    }
  }

  DatabaseTree* const tree_;
  uint64_t directories_ = 0;
};

// Returns the file system's own id; if it has none, its device number.
uint64_t FileSystemOf(int fd) {
  struct statfs info;
  uint64_t id = 0;
  static_assert(sizeof(info.f_fsid) == sizeof(id));
  if (fstatfs(fd, &info) == 0) {
    std::memcpy(&id, &info.f_fsid, sizeof(id));
  }
  return id != 0 ? id : FileIdOf(fd).device;
}

}  // namespace

Status FindDatabases(const std::string& directory, DatabaseTree* tree) {
  *tree = DatabaseTree();
  tree->directory = RealPath(directory);
  Descriptor top = OpenLinked(tree->directory, O_RDONLY | O_DIRECTORY);
  if (!top.is_open()) {
    return ErrnoStatus(EndState::kSourceError, "cannot look for databases in",
                       directory, errno);
  }
  if (HoldsDatabase(top.get())) {
    return MakeStatus(EndState::kSourceError,
                      directory + ": expected a directory with databases below "
                                  "it, found a database: serve it with --db, "
                                  "and pull it without --all");
  }
  tree->file_system = FileSystemOf(top.get());
  TreeWalk(tree).Walk(std::move(top), "", 0);
  std::sort(tree->names.begin(), tree->names.end());
  return Status::OK();
}

}  // namespace sstferry
