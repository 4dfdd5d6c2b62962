#include "pipeline/snapshot/lease_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

#include "format/sealed_file.h"
#include "pipeline/snapshot/posix_files.h"
#include "sstferry/descriptor.h"

namespace sstferry {
namespace {

using rocksdb::Status;

bool IsOurs(const struct stat& info) {
  return info.st_uid == geteuid() && (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

// Reads a file. Stops after more bytes than a lease can have. Returns false if
// a read fails.
bool ReadWhole(int fd, std::string* contents) {
  char buffer[16 << 10];
  for (;;) {
    const ssize_t done = read(fd, buffer, sizeof(buffer));
    if (done < 0 && errno == EINTR) {
      continue;
    }
    if (done <= 0) {
      return done == 0;
    }
    contents->append(buffer, static_cast<size_t>(done));
    if (contents->size() > kSealedHeaderBytes + kMaxLeasePayloadBytes) {
      return true;
    }
  }
}

Status SyncPath(const std::string& path, int flags) {
  const Descriptor file = OpenPath(path, flags);
  return file.get() >= 0 && fsync(file.get()) == 0
             ? Status::OK()
             : ErrnoStatus(EndState::kSourceError, "cannot sync", path, errno);
}

}  // namespace

LeaseState ReadLease(const std::string& path, Lease* lease) {
  const Descriptor dir = OpenOwnDirectory(path);
  if (!dir.is_open()) {
    return LeaseState::kForeign;
  }
  const Descriptor file = OpenIn(dir.get(), "lease", O_RDONLY);
  if (file.get() < 0) {
    return errno == ENOENT                     ? LeaseState::kNone
           : errno == ELOOP || errno == ENXIO ? LeaseState::kBad  // not regular
                                              : LeaseState::kUnknown;
  }
  struct stat info;
  if (fstat(file.get(), &info) != 0) {
    return LeaseState::kUnknown;
  }
  if (!S_ISREG(info.st_mode) || !IsOurs(info)) {
    return LeaseState::kBad;
  }
  std::string contents;
  if (!ReadWhole(file.get(), &contents)) {
    return LeaseState::kUnknown;
  }
  return DecodeLease(contents, lease).ok() ? LeaseState::kGood
                                           : LeaseState::kBad;
}

Status WriteLease(const std::string& named, const Lease& lease) {
  // Works in the open directory, because another account may give the path
  // `named` to another directory meanwhile.
  const Descriptor dir = OpenOwnDirectory(named);
  if (!dir.is_open()) {
    return ErrnoStatus(EndState::kSourceError, "cannot open directory", named,
                       errno);
  }
  const std::string path = PathOfOpen(dir);
  std::string contents;
  Status status = EncodeLease(lease, &contents);
  const std::string young = path + "/lease.new";
  const std::string name = path + "/lease";
  unlink(young.c_str());
  if (status.ok()) status = WriteSmallFile(young, contents);
  if (status.ok()) status = SyncPath(young, O_RDONLY);
  if (status.ok() && rename(young.c_str(), name.c_str()) != 0) {
    status = ErrnoStatus(EndState::kSourceError, "cannot rename", young, errno);
  }
  if (status.ok()) status = SyncPath(path, O_RDONLY | O_DIRECTORY);
  return WithContext(status, EndState::kSourceError, named);
}

void RemoveLease(const std::string& path) {
  const Descriptor dir = OpenOwnDirectory(path);
  if (dir.is_open()) {
    unlinkat(dir.get(), "lease", 0);
  }
}

bool HoldsOnlyFiles(const std::string& path) {
  const Descriptor opened = OpenPath(path, O_RDONLY | O_DIRECTORY);
  struct stat info;
  if (!opened.is_open() || fstat(opened.get(), &info) != 0 || !IsOurs(info)) {
    return false;
  }
  const DirectoryStream names = NamesIn(opened.get());
  if (names == nullptr) {
    return false;
  }
  bool only_files = true;
  while (const dirent* entry = readdir(names.get())) {
    const std::string name(entry->d_name);
    if (name == "." || name == "..") {
      continue;
    }
    // A table in db/ is a link to the source's file, which may belong to any
    // user. LinkFile() makes a hard link or a symbolic link.
    only_files =
        only_files &&
        fstatat(opened.get(), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
        (S_ISREG(info.st_mode) ||
         (S_ISLNK(info.st_mode) &&
          IsOnReadOnlyFileSystem(path + "/" + name) &&
          fstatat(opened.get(), entry->d_name, &info, 0) == 0 &&
          S_ISREG(info.st_mode)));
  }
  return only_files;
}

uint64_t LeaseRules::Now() const {
  return wall_seconds
             ? wall_seconds()
             : static_cast<uint64_t>(
                   std::chrono::duration_cast<std::chrono::seconds>(
                       std::chrono::system_clock::now().time_since_epoch())
                       .count());
}

uint64_t LeaseRules::Left(const Lease& lease) const {
  return LeaseSecondsLeft(lease, Now(),
                          max_ttl ? max_ttl(lease) : lease.ttl_seconds);
}

}  // namespace sstferry
