#include "pipeline/snapshot/posix_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <set>
#include <system_error>
#include <utility>

#include "format/follow_file.h"
#include "pipeline/base/last_transfer.h"
#include "sstferry/descriptor.h"

namespace sstferry {
namespace {

using rocksdb::Status;

constexpr size_t kCopyBufferBytes = 1 << 20;

Status WriteAll(int fd, const char* data, size_t size,
                const std::string& path) {
  while (size > 0) {
    const ssize_t done = write(fd, data, size);
    if (done < 0) {
      if (errno == EINTR) continue;
      return ErrnoStatus(EndState::kSourceError, "cannot write", path, errno);
    }
    data += done;
    size -= static_cast<size_t>(done);
  }
  return Status::OK();
}

// Converts a time to nanoseconds. For a time before 1970, returns 0, which
// means unknown.
uint64_t NanosOf(int64_t seconds, int64_t nanos) {
  return static_cast<uint64_t>(
      std::max<int64_t>(seconds * 1'000'000'000 + nanos, 0));
}

// Looks up a file like fstatat(). On a network file system, also asks the
// server, because the client may answer fstatat() for seconds from its cache,
// even for an open file.
Status FindFile(int at, const std::string& name, int flags,
                const std::string& path, FileId* id) {
  *id = FileId();
  struct statx now;
  if (statx(at, name.c_str(), flags | AT_STATX_FORCE_SYNC, STATX_BASIC_STATS,
            &now) == 0) {
    *id = {static_cast<uint64_t>(
               makedev(now.stx_dev_major, now.stx_dev_minor)),
           now.stx_ino, now.stx_size,
           NanosOf(now.stx_mtime.tv_sec, now.stx_mtime.tv_nsec)};
    return Status::OK();
  }
  int error = errno;
  // Old container runtimes deny system calls that they do not know, such as
  // statx().
  if (error == EPERM || error == ENOSYS) {
    struct stat info;
    if (fstatat(at, name.c_str(), &info, flags) == 0) {
      *id = {static_cast<uint64_t>(info.st_dev), info.st_ino,
             static_cast<uint64_t>(info.st_size),
             NanosOf(info.st_mtim.tv_sec, info.st_mtim.tv_nsec)};
      return Status::OK();
    }
    error = errno;
  }
  return error == ENOENT || error == ENOTDIR
             ? Status::OK()
             : ErrnoStatus(EndState::kSourceError, "cannot look at", path,
                           error);
}

}  // namespace

Status OpenPrivate(const std::string& path, Descriptor* out) {
  *out = OpenLinked(path, O_RDONLY);  // LinkFile() makes symbolic links, too
  return out->is_open()
             ? Status::OK()
             : ErrnoStatus(EndState::kSourceError, "cannot open", path, errno);
}

Descriptor OpenOwnDirectory(const std::string& path) {
  const Descriptor parent = OpenDirectory(DirectoryOf(path));
  return parent.is_open() ? OpenOwnDirectoryIn(parent, NameIn(path))
                          : Descriptor();
}

Descriptor OpenOwnDirectoryIn(const Descriptor& parent,
                              const std::string& name) {
  Descriptor directory = OpenDirectoryIn(parent.get(), name);
  struct stat info;
  if (directory.is_open() &&
      (fstat(directory.get(), &info) != 0 || info.st_uid != geteuid() ||
       (info.st_mode & (S_IWGRP | S_IWOTH)) != 0)) {
    directory = Descriptor();
    errno = EPERM;
  }
  return directory;
}

Status RemoveFile(const std::string& path) {
  return unlink(path.c_str()) == 0 || errno == ENOENT
             ? Status::OK()
             : ErrnoStatus(EndState::kSourceError, "cannot remove", path,
                           errno);
}

Status EmptyDirectory(int directory, const std::string& path) {
  const DirectoryStream dir = NamesIn(directory);
  if (dir == nullptr) {
    return ErrnoStatus(EndState::kSourceError, "cannot read directory", path,
                       errno);
  }
  std::vector<std::string> names;
  while (const dirent* entry = readdir(dir.get())) {
    names.emplace_back(entry->d_name);
  }
  Status status;
  for (const std::string& name : names) {
    if (status.ok() && name != "." && name != "..") {
      status = RemoveIn(directory, name, path);
    }
  }
  return status;
}

Status RemoveIn(int directory, const std::string& name,
                const std::string& path) {
  const std::string shown = path + "/" + name;
  if (unlinkat(directory, name.c_str(), 0) == 0 || errno == ENOENT) {
    return Status::OK();
  }
  int error = errno;
  if (error == EISDIR || error == EPERM) {
    const Descriptor below = OpenDirectoryIn(directory, name);
    if (below.is_open()) {
      const Status status = EmptyDirectory(below.get(), shown);
      if (!status.ok() ||
          unlinkat(directory, name.c_str(), AT_REMOVEDIR) == 0 ||
          errno == ENOENT) {
        return status;
      }
      error = errno;
    } else if (errno == EMFILE || errno == ENFILE) {
      error = errno;  // this error says more than that of unlinkat()
    }
  }
  return ErrnoStatus(EndState::kSourceError, "cannot remove", shown, error);
}

std::string RenamePath(std::string text, const std::string& from,
                       const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

Status InDatabaseNames(const Status& status, const std::string& own,
                       const std::string& dir) {
  if (status.ok()) {
    return status;
  }
  const bool is_corrupt = EndStateOf(status) == EndState::kCorrupt;
  std::string text = SentenceOf(status);
  const bool names_own = !own.empty() && text.find(own) != std::string::npos;
  if (!names_own && !is_corrupt) {
    return status;
  }
  if (names_own) text = RenamePath(std::move(text), own, dir + "/");
  if (is_corrupt && text.find(dir) == std::string::npos) {
    text = dir + ": " + text;
  }
  return MakeStatus(EndStateOf(status), text, NextOf(status));
}

Status OwnerOf(const std::string& directory, uint32_t* uid) {
  const Descriptor opened = OpenDirectory(directory);
  struct stat info;
  if (!opened.is_open() && errno == ENOTDIR) {
    return MakeStatus(EndState::kSourceError,
                      "cannot open directory " + directory +
                          ": Not a directory; expected the directory of a "
                          "database, found a file");
  }
  if (!opened.is_open() || fstat(opened.get(), &info) != 0) {
    return ErrnoStatus(EndState::kSourceError, "cannot open directory",
                       directory, errno);
  }
  *uid = info.st_uid;
  return Status::OK();
}

namespace {

// Returns true for a directory of Pebble, another key-value store. Its files
// have the same names as RocksDB's.
bool IsOfPebble(const std::string& directory,
                const std::vector<std::string>& names) {
  std::string newest;
  for (const std::string& name : names) {
    if (name.starts_with("marker.format-version.")) {
      return true;
    }
    if (name.starts_with("OPTIONS-") && !name.ends_with(".dbtmp")) {
      newest = std::max(newest, name);
    }
  }
  constexpr size_t kHeadBytes = 1024;  // the first section has pebble_version
  return !newest.empty() &&
         ReadStart(directory + "/" + newest, kHeadBytes)
                 .find("\n  pebble_version=") != std::string::npos;
}

// Checks that the directory belongs neither to Pebble nor to LevelDB. LevelDB
// has no OPTIONS file, and its tables have another suffix.
Status CheckIsRocksDb(const std::string& directory) {
  std::vector<std::string> names;
  RETURN_IF_ERROR(ListDirectory(directory, &names));
  const auto any = [&names](auto matches) {
    return std::any_of(names.begin(), names.end(), matches);
  };
  const auto has = [&](const char* suffix) {
    return any([&](const std::string& name) { return name.ends_with(suffix); });
  };
  if (IsOfPebble(directory, names)) {
    return MakeStatus(EndState::kSourceError,
                      directory +
                          " is a Pebble database, and sstferry reads those of "
                          "RocksDB only");
  }
  // A standby made by an earlier version has only its own record, and no
  // CURRENT.
  if (!any([](const std::string& name) {
        return name == "CURRENT" || name == kFollowFileName;
      })) {
    return MakeStatus(
        EndState::kSourceError,
        "no CURRENT file in " + directory + ": this is not a RocksDB database");
  }
  return has(".ldb") && !has(".sst") && !any([](const std::string& name) {
           return name.starts_with("OPTIONS-");
         })
             ? MakeStatus(EndState::kSourceError,
                          directory +
                              " is a LevelDB database: its tables are "
                              ".ldb files, and sstferry reads tables of "
                              "RocksDB only")
             : Status::OK();
}

}  // namespace

namespace {

// Returns advice for a directory that does not exist. For "db1:users", the user
// may have meant the database "users" of another machine.
std::string WayTo(const std::string& given) {
  const size_t colon = given.find(':');
  if (colon == 0 || colon == std::string::npos ||
      given.find('/') < colon) {
    return "; expected the directory of a database";
  }
  const std::string host = given.substr(0, colon);
  // For example, "db1:7420/users" has a port, and "db1:users" has none.
  const size_t slash = given.find_first_not_of("0123456789", colon + 1);
  const bool has_port = slash != std::string::npos && slash > colon + 1 &&
                        given[slash] == '/';
  return "; name a database of a server sst://" + host +
         (has_port ? ":" : "/") + given.substr(colon + 1) +
         ", and a directory of that machine " + host + ":/DIR";
}

}  // namespace

Status ResolveDatabase(const std::string& given, std::string* real) {
  namespace fs = std::filesystem;
  constexpr int kMaxLinks = 40;
  std::error_code error;
  fs::path rest = fs::absolute(given, error);
  fs::path at;
  std::set<uid_t> owners;  // owners of the symbolic links
  int links = 0;
  int fault = error.value();
  for (auto part = rest.begin(); fault == 0 && part != rest.end();) {
    struct stat info;
    if (part->empty() || *part == "." || *part == "..") {
      at = *part == ".." ? at.parent_path() : at;  // `at` contains no link
      ++part;
      continue;
    }
    const fs::path next = at / *part++;
    if (lstat(next.c_str(), &info) != 0) {
      fault = errno;
    } else if (!S_ISLNK(info.st_mode)) {
      at = next;
    } else {
      owners.insert(info.st_uid);
      fs::path target = at / fs::read_symlink(next, error);
      fault = ++links > kMaxLinks ? ELOOP : error.value();
      for (; part != rest.end(); ++part) {
        target /= *part;
      }
      rest = target;
      at.clear();
      part = rest.begin();
    }
  }
  if (fault != 0) {
    const Status status = ErrnoStatus(EndState::kSourceError,
                                      "cannot open database", given, fault);
    const std::string way = fault == ENOENT ? WayTo(given) : "";
    return MakeStatus(EndStateOf(status), MessageOf(status) + way);
  }
  *real = at.string();
  uint32_t owner = 0;
  RETURN_IF_ERROR(OwnerOf(*real, &owner));
  for (const uid_t of : owners) {
    if (of != 0 && of != geteuid() && of != owner) {
      return MakeStatus(EndState::kSourceError,
                        given + " leads to " + *real + " of uid " +
                            std::to_string(owner) +
                            ": expected symbolic links of that account or of "
                            "root, found one of uid " + std::to_string(of));
    }
  }
  return CheckIsRocksDb(*real);
}

Status FileIdOf(const std::string& path, FileId* id) {
  return FindFile(AT_FDCWD, path, 0, path, id);
}

Status FileIdOfName(const std::string& path, FileId* id) {
  return FindFile(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, path, id);
}

Status FileIdOfNameIn(const Descriptor& parent, const std::string& name,
                      FileId* id) {
  return FindFile(parent.get(), name, AT_SYMLINK_NOFOLLOW, name, id);
}

Status FileIdOf(int fd, const std::string& path, FileId* id) {
  return FindFile(fd, "", AT_EMPTY_PATH, path, id);
}

Status IsNamed(int fd, const std::string& path, bool* is_named) {
  *is_named = false;
  FileId named;
  FileId opened;
  RETURN_IF_ERROR(FileIdOfName(path, &named));
  RETURN_IF_ERROR(FileIdOf(fd, path, &opened));
  *is_named = opened.IsSameFile(named);
  return Status::OK();
}

Status DescriptorSource::Read(uint64_t offset, size_t n, std::string* scratch,
                              rocksdb::Slice* out) const {
  scratch->resize(n);
  size_t have = 0;
  while (have < n) {
    const ssize_t done = pread(fd_, scratch->data() + have, n - have,
                               static_cast<off_t>(offset + have));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) {
      return ErrnoStatus(EndState::kSourceError, "cannot read", name_, errno);
    }
    if (done == 0) {
      return Status::TryAgain(name_ + ": expected " + std::to_string(n) +
                              " bytes at offset " + std::to_string(offset) +
                              ", found " + std::to_string(have));
    }
    have += static_cast<size_t>(done);
  }
  *out = rocksdb::Slice(scratch->data(), n);
  return Status::OK();
}

Status CopyPrefix(int from_fd, const std::string& from, const std::string& to,
                  uint64_t bytes, uint64_t* copied) {
  *copied = 0;
  const Descriptor target =
      OpenPath(to, O_WRONLY | O_CREAT | O_EXCL, 0600);
  if (!target.is_open()) {
    return ErrnoStatus(EndState::kSourceError, "cannot create", to, errno);
  }
  const std::unique_ptr<char[]> buffer(new char[kCopyBufferBytes]);
  while (*copied < bytes) {
    const size_t want = static_cast<size_t>(
        std::min<uint64_t>(kCopyBufferBytes, bytes - *copied));
    const ssize_t done =
        pread(from_fd, buffer.get(), want, static_cast<off_t>(*copied));
    if (done < 0) {
      if (errno == EINTR) continue;
      return ErrnoStatus(EndState::kSourceError, "cannot read", from, errno);
    }
    if (done == 0) {
      break;  // the owner truncated it; the caller checks the length
    }
    RETURN_IF_ERROR(
        WriteAll(target.get(), buffer.get(), static_cast<size_t>(done), to));
    *copied += static_cast<uint64_t>(done);
  }
  return Status::OK();
}

bool IsOnReadOnlyFileSystem(const std::string& path) {
  struct statvfs info;
  return statvfs(path.c_str(), &info) == 0 && (info.f_flag & ST_RDONLY) != 0;
}

Status LinkFile(const std::string& from, const std::string& to, bool* found) {
  *found = true;
  const Descriptor directory = OpenDirectory(DirectoryOf(from));
  int error = errno;
  if (directory.is_open()) {
    error = linkat(directory.get(), NameIn(from).c_str(), AT_FDCWD, to.c_str(),
                   0) == 0
                ? 0
                : errno;
  }
  if (error == ENOENT) {
    *found = false;
    return Status::OK();
  }
  if (error == 0) {
    struct stat info;
    const Status status =
        lstat(to.c_str(), &info) == 0
            ? CheckForeign(from, directory.get(), info)
            : ErrnoStatus(EndState::kSourceError, "cannot look at", to, errno);
    if (!status.ok()) {
      unlink(to.c_str());
    }
    return status;
  }
  if (directory.is_open()) {
    const Status named = CheckForeignName(from, directory.get(), found);
    if (!named.ok() || !*found) {
      return named;
    }
  }
  if (error == EXDEV && IsOnReadOnlyFileSystem(from)) {
    const std::unique_ptr<char, void (*)(void*)> real(
        realpath(from.c_str(), nullptr), free);
    struct stat info;
    if (real != nullptr && stat(real.get(), &info) == 0 &&
        symlink(real.get(), to.c_str()) == 0) {
      const timespec times[2] = {{0, UTIME_OMIT}, info.st_mtim};
      if (utimensat(AT_FDCWD, to.c_str(), times, AT_SYMLINK_NOFOLLOW) == 0) {
        return Status::OK();
      }
    }
    error = errno;
  }
  const Status status =
      ErrnoStatus(EndState::kSourceError, "cannot link", from, error);
  const std::string parent = to.substr(0, to.rfind('/'));
  if (error == EXDEV) {
    return WithContext(status, EndState::kSourceError,
                       ShownPath(parent) +
                           " is on another mount or file system than the "
                           "source's files, so they cannot be hard-linked "
                           "there; set --snapshot-dir to a directory on the "
                           "same mount");
  }
  if (error == EPERM && IsImmutable(from)) {
    return WithContext(status, EndState::kSourceError,
                       "expected a file that may get a hard link, found an "
                       "immutable or append-only one (chattr -i -a makes it an "
                       "ordinary one)");
  }
  if (error == EPERM || error == EACCES) {
    return WithContext(status, EndState::kSourceError,
                       "this account may not hard-link the source's files "
                       "(fs.protected_hardlinks allows it only to their owner, "
                       "to root, and to accounts that may read and write "
                       "them), or the file system has no hard links");
  }
  return status;
}

Status CheckLinkedFiles(const std::string& directory) {
  std::vector<std::string> names;
  Status status = ListDirectory(directory, &names);
  for (const std::string& name : names) {
    const std::string path = directory + "/" + name;
    struct stat link_info;
    if (!status.ok() || lstat(path.c_str(), &link_info) != 0 ||
        !S_ISLNK(link_info.st_mode)) {
      continue;
    }
    struct stat info;
    const bool found = stat(path.c_str(), &info) == 0;
    const timespec& linked = link_info.st_mtim;
    // Some file systems store a symbolic link's time only in whole seconds.
    if (found && info.st_mtim.tv_sec == linked.tv_sec &&
        (info.st_mtim.tv_nsec == linked.tv_nsec || linked.tv_nsec == 0)) {
      continue;
    }
    status = MakeStatus(
        EndState::kSourceError,
        name + " of a source that is mounted read-only: expected the file as "
               "of the snapshot, found " +
            (found ? "another one" : "none") +
            "; the database is written through another mount: serve it where "
            "it is written");
  }
  return status;
}

Status WriteSmallFile(const std::string& path, const std::string& contents) {
  const Descriptor file =
      OpenPath(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
  if (file.get() < 0) {
    return ErrnoStatus(EndState::kSourceError, "cannot create", path, errno);
  }
  return WriteAll(file.get(), contents.data(), contents.size(), path);
}

uint64_t FreeBytesAbove(const std::string& path, double kept_percent) {
  struct statvfs info;
  // ramfs and some FUSE file systems do not report a size.
  if (statvfs(path.c_str(), &info) != 0 || info.f_blocks == 0) {
    return UINT64_MAX;
  }
  const double kept = static_cast<double>(info.f_blocks) * kept_percent / 100;
  const double free = static_cast<double>(info.f_bavail) - kept;
  return static_cast<uint64_t>(std::max(free, 0.0)) * info.f_frsize;
}

}  // namespace sstferry
