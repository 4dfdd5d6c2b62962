#include "pipeline/base/open_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <deque>
#include <filesystem>
#include <system_error>
#include <utility>

#include "pipeline/base/descriptor_shortage.h"
#include "pipeline/base/full_disk.h"
#include "pipeline/base/other_accounts.h"

namespace sstferry {
namespace {

using rocksdb::Status;

constexpr int kMostLinks = 40;  // the kernel's limit
// O_NONBLOCK: open() must not wait for the writer of a FIFO.
constexpr int kReadFlags = O_RDONLY | O_NONBLOCK | O_CLOEXEC;
// Directory with the open descriptors of this process.
constexpr char kOpenFiles[] = "/proc/self/fd/";

std::string KindOf(const struct stat& file) {
  switch (file.st_mode & S_IFMT) {
    case S_IFREG:
      return "a file";
    case S_IFLNK:
      return "a symbolic link";
    case S_IFIFO:
      return "a FIFO";
    case S_IFDIR:
      return "a directory";
    case S_IFSOCK:
      return "a socket";
    default:
      return "a device";
  }
}

// Reads an open file from its beginning to its end.
Status ReadWhole(int file, const std::string& path, uint64_t max_bytes,
                 std::string* contents) {
  char buffer[16 << 10];
  for (;;) {
    const ssize_t done = read(file, buffer, sizeof(buffer));
    if (done < 0) {
      if (errno == EINTR) continue;
      return ErrnoStatus(EndState::kSourceError, "cannot read", path, errno);
    }
    if (done == 0) {
      return Status::OK();
    }
    contents->append(buffer, static_cast<size_t>(done));
    if (contents->size() > max_bytes) {
      return MakeStatus(EndState::kSourceError,
                        path + ": expected at most " +
                            std::to_string(max_bytes) + " bytes, found more");
    }
  }
}

// Opens a file that root will read, one component of the path after the other.
// Opens each component relative to the previous one, and checks it after it was
// opened. Another process that renames a directory meanwhile therefore changes
// nothing.
class OwnWay {
 public:
  OwnWay(const std::string& path, uid_t account)
      : path_(path), account_(account) {}

  Status Go(Descriptor* file) {
    std::error_code error;
    const std::string absolute =
        std::filesystem::absolute(path_, error).string();
    if (error) {
      return Refused(error.message());
    }
    RETURN_IF_ERROR(Restart());
    Put(absolute);
    while (!parts_.empty()) {
      const std::string part = parts_.front();
      parts_.pop_front();
      RETURN_IF_ERROR(Enter(part, file));
      if (file->is_open()) {
        return Status::OK();
      }
    }
    return Refused("expected a file, found a directory");
  }

 private:
  Status Refused(const std::string& why) const {
    return MakeStatus(EndState::kRefused, path_ + ": " + why);
  }
  Status Errno() const {
    NoteDescriptorShortage(errno);
    return Refused(strerror(errno));
  }

  // Inserts the components of a path before the remaining ones.
  void Put(const std::string& path) {
    std::deque<std::string> parts;
    for (size_t at = 0; at < path.size();) {
      const size_t end = std::min(path.find('/', at), path.size());
      const std::string part = path.substr(at, end - at);
      if (!part.empty() && part != ".") {
        parts.push_back(part);
      }
      at = end + 1;
    }
    parts_.insert(parts_.begin(), parts.begin(), parts.end());
  }

  // Restarts at the root directory.
  Status Restart() {
    at_ = Descriptor(open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
    where_ = "/";
    struct stat info;
    return at_.is_open() && fstat(at_.get(), &info) == 0
               ? CheckDirectory(info)
               : Errno();
  }

  // Enters the directory `part`, follows the link `part`, or opens the file
  // `part`.
  Status Enter(const std::string& part, Descriptor* file) {
    Descriptor next(
        openat(at_.get(), part.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    struct stat info;
    if (!next.is_open() || fstat(next.get(), &info) != 0) {
      return Errno();
    }
    const std::string name = where_ == "/" ? "/" + part : where_ + "/" + part;
    if (S_ISLNK(info.st_mode)) {
      return Follow(next, name, info);
    }
    if (S_ISDIR(info.st_mode)) {
      at_ = std::move(next);
      where_ = name;
      return CheckDirectory(info);
    }
    if (!parts_.empty()) {
      errno = ENOTDIR;
      return Errno();
    }
    if (!S_ISREG(info.st_mode)) {
      return Refused("expected a file, found " + KindOf(info));
    }
    Descriptor opened(openat(at_.get(), part.c_str(), kReadFlags | O_NOFOLLOW));
    if (!opened.is_open() || fstat(opened.get(), &info) != 0) {
      return Errno();
    }
    RETURN_IF_ERROR(CheckFile(opened, name, info));
    *file = std::move(opened);
    return Status::OK();
  }

  Status Follow(const Descriptor& link, const std::string& name,
                const struct stat& info) {
    char to[PATH_MAX];
    const ssize_t bytes = readlinkat(link.get(), "", to, sizeof(to));
    if (bytes < 0) {
      return Errno();
    }
    if (++links_ > kMostLinks) {
      errno = ELOOP;
      return Errno();
    }
    RETURN_IF_ERROR(CheckOwner(name, info));
    is_led_ = is_led_ || in_theirs_ || info.st_uid != 0;
    const std::string path(to, static_cast<size_t>(bytes));
    if (path.starts_with("/")) {
      RETURN_IF_ERROR(Restart());
    }
    Put(path);
    return Status::OK();
  }

  // Checks that the owner is root or `account_`. If `account_` is kAnyAccount,
  // the first owner other than root becomes `account_`.
  Status CheckOwner(const std::string& name, const struct stat& info) {
    if (info.st_uid == 0) {
      return Status::OK();
    }
    if (account_ == kAnyAccount) {
      account_ = info.st_uid;
    }
    return info.st_uid == account_
               ? Status::OK()
               : OthersMayChange(name, "it belongs to account " +
                                           AccountName(info.st_uid),
                                 "chown it, or name a file elsewhere");
  }

  Status CheckDirectory(const struct stat& info) {
    in_theirs_ = info.st_uid != 0;
    RETURN_IF_ERROR(CheckOwner(where_, info));
    return (info.st_mode & S_ISVTX) != 0 ? Status::OK()
                                         : CheckWriters(at_, where_, info);
  }

  Status CheckWriters(const Descriptor& file, const std::string& name,
                      const struct stat& info) const {
    const std::string writers =
        OtherWriters(info, kOpenFiles + std::to_string(file.get()));
    return writers.empty() ? Status::OK()
                           : OthersMayChange(name, writers + " may write it",
                                             "chmod go-w it");
  }

  Status CheckFile(const Descriptor& file, const std::string& name,
                   const struct stat& info) {
    if (!S_ISREG(info.st_mode)) {
      return Refused("expected a file, found " + KindOf(info));
    }
    RETURN_IF_ERROR(CheckOwner(name, info));
    RETURN_IF_ERROR(CheckWriters(file, name, info));
    // Refuse a file of root to which a link led that `account_` may have made.
    // Otherwise `account_` could choose the file that root reads.
    const bool is_named_by_account =
        is_led_ || (in_theirs_ && info.st_nlink > 1);
    return is_named_by_account && has_account() && info.st_uid != account_
               ? Refused("account " + AccountName(account_) +
                         " can redirect this path with a link, but " + name +
                         " belongs to root; copy the file, or make root the "
                         "owner of the link")
               : Status::OK();
  }

  bool has_account() const { return account_ != 0 && account_ != kAnyAccount; }

  Status OthersMayChange(const std::string& name, const std::string& how,
                         const std::string& next) const {
    const std::string who =
        has_account() ? "only root or account " + AccountName(account_)
                      : "only root";
    return Refused("expected a file that " + who + " may change, found " +
                   name + ", which others may change: " + how + "; " + next);
  }

  const std::string path_;
  uid_t account_;
  std::deque<std::string> parts_;  // the remaining components
  Descriptor at_;
  std::string where_;       // name of at_, for messages
  bool in_theirs_ = false;  // `account_` owns at_
  // True if `account_` may have chosen the destination of a link on the way.
  bool is_led_ = false;
  int links_ = 0;
};

}  // namespace

Status ErrnoStatus(EndState state, const std::string& what,
                   const std::string& path, int error) {
  if (IsOutOfRoom(error)) {
    state = EndState::kNoSpace;
  }
  NoteDescriptorShortage(error);
  return MakeStatus(state,
                    what + " " + ShownPath(path) + ": " + strerror(error));
}

std::string DirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

std::string NameIn(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

// Refuses files of other accounts. The owner of a directory may put a hard link
// to any file into the directory. This process could then read a file that the
// owner of the directory may not read.
Status CheckForeign(const std::string& path, int directory,
                    const struct stat& file) {
  struct stat owned;
  if (fstat(directory, &owned) != 0) {
    return ErrnoStatus(EndState::kSourceError, "cannot look at", path, errno);
  }
  const bool is_owned = file.st_uid == owned.st_uid || file.st_uid == 0 ||
                        file.st_uid == geteuid();
  return S_ISREG(file.st_mode) && is_owned
             ? Status::OK()
             : MakeStatus(EndState::kSourceError,
                          path + ": expected a regular file owned by uid " +
                              std::to_string(owned.st_uid) +
                              ", the directory's owner, or by root, found " +
                              KindOf(file) + " owned by uid " +
                              std::to_string(file.st_uid) +
                              "; remove it, or change its owner to uid " +
                              std::to_string(owned.st_uid));
}

Status CheckForeignName(const std::string& path, int directory, bool* found) {
  struct stat info;
  *found = fstatat(directory, NameIn(path).c_str(), &info,
                   AT_SYMLINK_NOFOLLOW) == 0;
  if (*found) {
    return CheckForeign(path, directory, info);
  }
  return errno == ENOENT ? Status::OK()
                         : ErrnoStatus(EndState::kSourceError,
                                       "cannot look at", path, errno);
}

Status OpenForeign(const std::string& path, Descriptor* out) {
  *out = Descriptor();
  const Descriptor directory = OpenDirectory(DirectoryOf(path));
  if (!directory.is_open()) {
    return errno == ENOENT ? Status::OK()
                           : ErrnoStatus(EndState::kSourceError,
                                         "cannot open the directory of", path,
                                         errno);
  }
  Descriptor file(
      openat(directory.get(), NameIn(path).c_str(), kReadFlags | O_NOFOLLOW));
  if (!file.is_open()) {
    const int error = errno;
    bool found = false;
    const Status status = CheckForeignName(path, directory.get(), &found);
    return error == ENOENT || !status.ok()
               ? status
               : ErrnoStatus(EndState::kSourceError, "cannot open", path,
                             error);
  }
  struct stat info;
  const Status status =
      fstat(file.get(), &info) == 0
          ? CheckForeign(path, directory.get(), info)
          : ErrnoStatus(EndState::kSourceError, "cannot look at", path, errno);
  if (status.ok()) *out = std::move(file);
  return status;
}

Status ReadForeign(const std::string& path, uint64_t max_bytes, bool* found,
                   std::string* contents) {
  contents->clear();
  *found = false;
  Descriptor file;
  const Status status = OpenForeign(path, &file);
  if (!file.is_open()) {
    return status;
  }
  *found = true;
  return ReadWhole(file.get(), path, max_bytes, contents);
}

Status ListDirectory(const std::string& path,
                     std::vector<std::string>* names) {
  names->clear();
  const Descriptor directory = OpenDirectory(path);
  const DirectoryStream dir =
      directory.is_open() ? NamesIn(directory.get()) : nullptr;
  int error = errno;
  if (dir == nullptr) {
    return ErrnoStatus(EndState::kSourceError, "cannot read directory", path,
                       error);
  }
  for (;;) {
    errno = 0;
    const dirent* entry = readdir(dir.get());
    if (entry == nullptr) {
      error = errno;
      break;
    }
    const std::string name(entry->d_name);
    if (name != "." && name != "..") {
      names->push_back(name);
    }
  }
  std::sort(names->begin(), names->end());
  return error == 0 ? Status::OK()
                    : ErrnoStatus(EndState::kSourceError,
                                  "cannot read directory", path, error);
}

bool IsImmutable(const std::string& path) {
  struct statx info;
  return statx(AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW, 0, &info) == 0 &&
         (info.stx_attributes &
          (STATX_ATTR_IMMUTABLE | STATX_ATTR_APPEND)) != 0;
}

Status OpenOwn(const std::string& path, uid_t account, Descriptor* out) {
  *out = Descriptor();
  const bool is_descriptor = path.starts_with(kOpenFiles);
  if (geteuid() == 0 && !is_descriptor) {
    return OwnWay(path, account).Go(out);
  }
  Descriptor file(open(path.c_str(), kReadFlags));
  struct stat info;
  if (!file.is_open() || fstat(file.get(), &info) != 0) {
    NoteDescriptorShortage(errno);
    return MakeStatus(EndState::kRefused, path + ": " + strerror(errno));
  }
  if (!S_ISREG(info.st_mode)) {
    return MakeStatus(EndState::kRefused,
                      path + ": expected a file, found " + KindOf(info));
  }
  *out = std::move(file);
  return Status::OK();
}

Status ReadOwn(const std::string& path, uid_t account, std::string* bytes) {
  bytes->clear();
  Descriptor file;
  RETURN_IF_ERROR(OpenOwn(path, account, &file));
  const Status status =
      ReadWhole(file.get(), path, kMaxOwnFileBytes, bytes);
  return status.ok() ? status
                     : MakeStatus(EndState::kRefused, MessageOf(status));
}

}  // namespace sstferry
