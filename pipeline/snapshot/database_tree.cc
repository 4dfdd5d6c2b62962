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

// Maximum number of directories that one search opens. Protects against a tree
// that does not consist of databases.
constexpr uint64_t kMaxTreeDirectories = 1u << 16;
constexpr size_t kMaxTreeProblems = 20;

// Returns the type of an entry, such as S_IFDIR. Returns 0 if it is unknown;
// errno says why.
mode_t TypeOf(int parent, const dirent& entry) {
  struct stat info;
  if (entry.d_type != DT_UNKNOWN) {
    return DTTOIF(entry.d_type);
  }
  return fstatat(parent, entry.d_name, &info, AT_SYMLINK_NOFOLLOW) == 0
             ? info.st_mode & S_IFMT
             : 0;
}

// Sets *holds to true if the directory has a file that only a database has.
// Returns 0, or the error because of which this is unknown.
int FindDatabase(int directory, bool* holds) {
  *holds = false;
  for (const char* const name : {"CURRENT", kFollowFileName}) {
    struct stat info;
    if (fstatat(directory, name, &info, AT_SYMLINK_NOFOLLOW) == 0) {
      *holds = *holds || S_ISREG(info.st_mode);
    } else if (errno != ENOENT) {
      return errno;
    }
  }
  return 0;
}

class TreeWalk {
 public:
  explicit TreeWalk(DatabaseTree* tree) : tree_(tree) {}

  // Searches the open directory `name`; "" is the top directory. Returns false
  // if a limit has ended the search.
  bool Walk(Descriptor directory, const std::string& name, size_t depth) {
    if (++directories_ > kMaxTreeDirectories) {
      tree_->is_complete = false;
      Problem("more than " + std::to_string(kMaxTreeDirectories) +
              " directories: the rest was not searched");
      return false;
    }
    const int fd = directory.get();
    const DirectoryStream list = NamesIn(fd);
    if (list == nullptr) {
      Overlook(name, errno);
      return true;
    }
    std::vector<std::string> below;
    bool has_manifest = false;
    bool has_lock = false;
    errno = 0;
    while (const dirent* const entry = readdir(list.get())) {
      const std::string child = entry->d_name;
      has_manifest = has_manifest || child.starts_with("MANIFEST-");
      has_lock = has_lock || child == "LOCK";
      if (child != "." && child != ".." && !IsReservedComponent(child)) {
        const mode_t type = TypeOf(fd, *entry);
        const int error = errno;
        if (S_ISDIR(type)) {
          below.push_back(child);
        } else if (type == 0) {
          Overlook(NameBelow(name, child), error);
        } else if (S_ISLNK(type)) {
          AddOther(NameBelow(name, child));
        }
      }
      errno = 0;
    }
    Overlook(name, errno);
    if (has_manifest && has_lock && !name.empty()) {
      return Add(name);  // its CURRENT is lost
    }
    AddOther(name);
    std::sort(below.begin(), below.end());
    for (const std::string& child : below) {
      if (depth < kMaxDatabaseNameComponents &&
          !Enter(fd, child, NameBelow(name, child), depth + 1)) {
        return false;
      }
    }
    return true;
  }

 private:
  static std::string NameBelow(const std::string& name,
                               const std::string& child) {
    return name.empty() ? child : name + "/" + child;
  }

  bool Enter(int parent, const std::string& child, const std::string& name,
             size_t depth) {
    Descriptor directory = OpenDirectoryIn(parent, child);
    if (!directory.is_open()) {
      Overlook(name, errno);
      return true;
    }
    bool holds = false;
    const int error = FindDatabase(directory.get(), &holds);
    if (error != 0) {
      Overlook(name, error);
      return true;
    }
    return holds ? Add(name) : Walk(std::move(directory), name, depth);
  }

  bool Add(const std::string& name) {
    if (!IsValidDatabaseName(name)) {
      Problem(name, std::string("its path is not a valid name, which is ") +
                        kDatabaseNameGrammar);
      return true;
    }
    if (tree_->names.size() == kMaxServedDatabases) {
      tree_->is_complete = false;
      Problem("more than " + std::to_string(kMaxServedDatabases) +
              " databases: the rest is left out");
      return false;
    }
    tree_->names.push_back(name);
    return true;
  }

  void AddOther(const std::string& name) {
    if (tree_->others.size() == kMaxTreeDirectories) {
      tree_->is_complete = false;
    } else if (IsValidDatabaseName(name)) {
      tree_->others.insert(name);
    }
  }

  // Notes that `name` could not be searched. The result is then incomplete,
  // because there may be databases at or below `name`. It stays complete in two
  // cases. First, `name` was removed, or replaced by a link or a file. Second,
  // `name` is not a valid name, so that no path below it is a valid database
  // name.
  void Overlook(const std::string& name, int error) {
    if (error == 0 || error == ENOENT) {
      return;
    }
    if (error == ENOTDIR || error == ELOOP) {
      AddOther(name);
      return;
    }
    if (name.empty() || IsValidDatabaseName(name)) {
      tree_->is_complete = false;
    }
    Problem(name, std::strerror(error));
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

// Returns the id that the file system has. If it has none, returns its device
// number.
uint64_t FileSystemOf(int fd) {
  struct statfs info;
  uint64_t id = 0;
  static_assert(sizeof(info.f_fsid) == sizeof(id));
  if (fstatfs(fd, &info) == 0) {
    std::memcpy(&id, &info.f_fsid, sizeof(id));
  }
  FileId found;  // the inode stays 0 if it is unknown
  if (id == 0) FileIdOf(fd, "", &found).PermitUncheckedError();
  return id != 0 ? id : found.device;
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
  bool holds = false;
  if (const int error = FindDatabase(top.get(), &holds); error != 0) {
    return ErrnoStatus(EndState::kSourceError, "cannot look for databases in",
                       directory, error);
  }
  if (holds) {
    return MakeStatus(EndState::kSourceError,
                      directory + ": expected a directory with databases below "
                                  "it, found a database: serve it with --db, "
                                  "and pull it without --all");
  }
  tree->file_system = FileSystemOf(top.get());
  tree->is_complete = true;
  TreeWalk(tree).Walk(std::move(top), "", 0);
  std::sort(tree->names.begin(), tree->names.end());
  return Status::OK();
}

}  // namespace sstferry
