#include "pipeline/source/directory/posix_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

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

FileId FromStat(const struct stat& info) {
  // A time before 1970 counts as not known.
  const int64_t modified_ns =
      int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
  return {static_cast<uint64_t>(info.st_dev), info.st_ino,
          static_cast<uint64_t>(info.st_size),
          static_cast<uint64_t>(std::max<int64_t>(modified_ns, 0))};
}

}  // namespace

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

Descriptor::~Descriptor() {
  if (fd_ >= 0) close(fd_);
}

Status OpenToRead(const std::string& path, Descriptor* out) {
  Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const int error = errno;
  *out = std::move(file);
  return out->is_open() || error == ENOENT
             ? Status::OK()
             : ErrnoStatus(EndState::kSourceError, "cannot open", path, error);
}

FileId FileIdOf(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 ? FromStat(info) : FileId();
}

FileId FileIdOf(int fd) {
  struct stat info;
  return fstat(fd, &info) == 0 ? FromStat(info) : FileId();
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

Status ErrnoStatus(EndState state, const std::string& what,
                   const std::string& path, int error) {
  if (error == ENOSPC || error == EDQUOT) {
    state = EndState::kNoSpace;
  }
  return MakeStatus(state, what + " " + path + ": " + strerror(error));
}

Status ListDirectory(const std::string& path,
                     std::vector<std::string>* names) {
  names->clear();
  DIR* dir = opendir(path.c_str());
  if (dir == nullptr) {
    return ErrnoStatus(EndState::kSourceError, "cannot read directory", path,
                       errno);
  }
  int error = 0;
  for (;;) {
    errno = 0;
    const dirent* entry = readdir(dir);
    if (entry == nullptr) {
      error = errno;
      break;
    }
    const std::string name(entry->d_name);
    if (name != "." && name != "..") {
      names->push_back(name);
    }
  }
  closedir(dir);
  std::sort(names->begin(), names->end());
  return error == 0 ? Status::OK()
                    : ErrnoStatus(EndState::kSourceError,
                                  "cannot read directory", path, error);
}

Status ReadSmallFile(const std::string& path, uint64_t max_bytes, bool* found,
                     std::string* contents) {
  contents->clear();
  *found = false;
  Descriptor file;
  const Status status = OpenToRead(path, &file);
  if (!file.is_open()) {
    return status;
  }
  *found = true;
  char buffer[16 << 10];
  for (;;) {
    const ssize_t done = read(file.get(), buffer, sizeof(buffer));
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

Status CopyPrefix(int from_fd, const std::string& from, const std::string& to,
                  uint64_t bytes, uint64_t* copied) {
  *copied = 0;
  const Descriptor target(
      open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
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
      break;  // the owner truncated it meanwhile: the callers check the length
    }
    const Status status =
        WriteAll(target.get(), buffer.get(), static_cast<size_t>(done), to);
    if (!status.ok()) {
      return status;
    }
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
  if (link(from.c_str(), to.c_str()) == 0) {
    return Status::OK();
  }
  int error = errno;
  if (error == ENOENT) {
    *found = false;
    return Status::OK();
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
                       "--snapshot-dir must be on the same file system as "
                       "the source (hard links are made in " + parent + ")");
  }
  if (error == EPERM || error == EACCES) {
    return WithContext(status, EndState::kSourceError,
                       "run as the owner of the source's files or as root "
                       "(fs.protected_hardlinks forbids links to files of "
                       "others), on a file system that has hard links");
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
    // Where links have whole seconds only, these must do.
    if (found && info.st_mtim.tv_sec == linked.tv_sec &&
        (info.st_mtim.tv_nsec == linked.tv_nsec || linked.tv_nsec == 0)) {
      continue;
    }
    status = MakeStatus(
        EndState::kSourceError,
        name + " of a source that is mounted read-only: expected the file of "
               "when the snapshot was taken, found " +
            (found ? "another one" : "none") +
            "; somebody writes there through another mount: serve the "
            "database where it is written");
  }
  return status;
}

Status WriteSmallFile(const std::string& path, const std::string& contents) {
  const Descriptor file(
      open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (file.get() < 0) {
    return ErrnoStatus(EndState::kSourceError, "cannot create", path, errno);
  }
  return WriteAll(file.get(), contents.data(), contents.size(), path);
}

uint64_t FreeBytes(const std::string& path) {
  struct statvfs info;
  return statvfs(path.c_str(), &info) == 0
             ? static_cast<uint64_t>(info.f_bavail) * info.f_frsize
             : UINT64_MAX;
}

}  // namespace sstferry
