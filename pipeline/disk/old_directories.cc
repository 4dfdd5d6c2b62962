#include "pipeline/disk/old_directories.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <system_error>

#include "format/end_state.h"
#include "pipeline/base/database_name.h"
#include "pipeline/base/database_open.h"
#include "pipeline/disk/durable.h"
#include "pipeline/disk/exchange_record.h"
#include "pipeline/disk/paced_removal.h"
#include "sstferry/descriptor.h"
#include "sstferry/options.h"

namespace sstferry {
namespace {

namespace fs = std::filesystem;
using rocksdb::IOOptions;
using rocksdb::Status;

constexpr char kOldRecordName[] = "sstferry.old";
constexpr char kOldRecordMark[] = "sstferry old database 1\n";
constexpr size_t kMaxOldRecordBytes = 512;
constexpr char kInfix[] = ".old-";
constexpr char kDateFormat[] = "%Y%m%dT%H%M%SZ";
constexpr size_t kDateBytes = 16;  // "20261125T020003Z"
constexpr int kMostOfOneSecond = 1000;

// TARGET_DIR without trailing slashes, and its parent directory.
struct OldPlace {
  explicit OldPlace(std::string target_dir) : target(std::move(target_dir)) {
    while (target.size() > 1 && target.back() == '/') {
      target.pop_back();
    }
    parent = fs::path(target).parent_path().string();
    parent = parent.empty() ? "." : parent;
  }
  std::string prefix(const char* infix = kInfix) const {
    return fs::path(target).filename().string() + infix;
  }
  std::string target;
  std::string parent;
};

// Parses a name such as "orders.old-20261125T020003Z" or
// "orders.old-20261125T020003Z-2". Sets *date to the date in the name, in RFC
// 3339 format.
bool ParseOldName(const std::string& name, const std::string& prefix,
               std::string* date) {
  if (!name.starts_with(prefix)) {
    return false;
  }
  const std::string rest = name.substr(prefix.size());
  struct tm time {};
  const char* const end = strptime(rest.c_str(), kDateFormat, &time);
  if (end == nullptr || end != rest.c_str() + kDateBytes ||
      (*end != '\0' && *end != '-')) {
    return false;
  }
  char text[32];
  strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &time);
  *date = text;
  return true;
}

std::string OldRecordOf(ino_t inode, const std::string& path) {
  return kOldRecordMark + std::to_string(inode) + "\n" +
         fs::path(path).filename().string() + "\n";
}

// Returns true if the open directory at `path` has a record that can be
// trusted. The record must belong to this process's account. If `of_owner` is
// true, it may also belong to the directory's owner.
bool HasOldRecord(const Descriptor& dir, const std::string& path,
                  bool of_owner) {
  struct stat info;
  if (fstat(dir.get(), &info) != 0) {
    return false;
  }
  const Descriptor file = OpenIn(dir.get(), kOldRecordName, O_RDONLY);
  struct stat record;
  if (!file.is_open() || fstat(file.get(), &record) != 0 ||
      !S_ISREG(record.st_mode) || (record.st_uid != geteuid() &&
                                 !(of_owner && record.st_uid == info.st_uid)) ||
      (record.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return false;
  }
  char text[kMaxOldRecordBytes];
  const ssize_t bytes = pread(file.get(), text, sizeof(text), 0);
  return bytes > 0 && std::string(text, static_cast<size_t>(bytes)) ==
                          OldRecordOf(info.st_ino, path);
}

Descriptor OpenOld(const std::string& path, bool of_owner) {
  Descriptor dir = OpenPath(path, O_RDONLY | O_DIRECTORY);
  return dir.is_open() && HasOldRecord(dir, path, of_owner) ? std::move(dir)
                                                            : Descriptor();
}

// Deletes the directory. Uses its descriptor, so that the right files are
// deleted even if the path is renamed meanwhile. Removes the record last,
// because the next call recognizes a partly deleted directory by its record.
Status RemoveOldOne(rocksdb::FileSystem* file_system, const std::string& path,
                    uint64_t bytes_per_sec, StopSignal* stop, bool* removed) {
  *removed = false;
  const Descriptor dir = OpenOld(path, /*of_owner=*/false);
  if (!dir.is_open() || IsDatabaseOpen(path) ||
      flock(dir.get(), LOCK_EX | LOCK_NB) != 0) {
    return Status::OK();
  }
  const std::string own = PathOfOpen(dir);
  RETURN_IF_ERROR(EmptyDirectoryPaced(file_system, own, kOldRecordName,
                                      bytes_per_sec, stop));
  if (unlinkat(dir.get(), kOldRecordName, 0) != 0 ||
      // Fails if the path now leads to another directory that is not empty.
      rmdir(path.c_str()) != 0) {
    return MakeStatus(EndState::kInternal,
                      "remove " + path + ": " + strerror(errno));
  }
  *removed = true;
  return Status::OK();
}

// Sets *path to an unused name next to `target_dir`. The name is TARGET_DIR
// with `suffix`. If this name is in use, adds a number, as in "-2".
Status FindNewName(const std::string& target_dir, const std::string& suffix,
                   std::string* path) {
  const OldPlace place(target_dir);
  for (int i = 1; i <= kMostOfOneSecond; ++i) {
    *path = place.target + suffix +
            (i == 1 ? "" : "-" + std::to_string(i));
    struct stat taken;
    if (lstat(path->c_str(), &taken) != 0 && errno == ENOENT) {
      return Status::OK();
    }
  }
  return MakeStatus(EndState::kInternal, *path + " exists already");
}

// Lists directories next to a target, newest first. Their names must consist of
// `prefix` and a date, and is_one(path) must return true.
template <typename IsOne>
std::vector<OldDirectory> ListNamed(const OldPlace& place,
                                    const std::string& prefix,
                                    const IsOne& is_one) {
  const std::string before = place.target.substr(
      0, place.target.size() -
             fs::path(place.target).filename().string().size());
  std::vector<OldDirectory> found;
  std::error_code error;
  for (fs::directory_iterator it(place.parent, error), end;
       !error && it != end; it.increment(error)) {
    OldDirectory old;
    const std::string name = it->path().filename();
    old.path = before + name;
    if (ParseOldName(name, prefix, &old.replaced_at) && is_one(old.path)) {
      found.push_back(std::move(old));
    }
  }
  // If two names have the same date, the higher number comes first: -10 before
  // -2.
  std::sort(found.begin(), found.end(),
            [](const OldDirectory& a, const OldDirectory& b) {
              return a.path.size() != b.path.size() &&
                             a.replaced_at == b.replaced_at
                         ? a.path.size() > b.path.size()
                         : a.path > b.path;
            });
  return found;
}

std::vector<OldDirectory> List(const std::string& target_dir, bool of_owner) {
  const OldPlace place(target_dir);
  return ListNamed(place, place.prefix(), [of_owner](const std::string& path) {
    return OpenOld(path, of_owner).is_open();
  });
}

// Lists the directories next to a standby whose names contain `infix`. sstferry
// never deletes these directories.
std::vector<OldDirectory> ListOfStandby(const std::string& target_dir,
                                        const char* infix) {
  const OldPlace place(target_dir);
  return ListNamed(
      place, place.prefix(infix), [](const std::string& path) {
        std::error_code error;
        return fs::symlink_status(path, error).type() ==
               fs::file_type::directory;
      });
}

// Returns the time for the name of the next old database, in seconds since
// 1970. This is the present time, or a later one if the newest old database has
// this or a later time. So the names sort in the order of the swaps, even if
// the clock was set back.
uint64_t NextOldTime(const std::string& target_dir) {
  const auto now = static_cast<uint64_t>(time(nullptr));
  const std::vector<OldDirectory> found = List(target_dir, /*of_owner=*/false);
  uint64_t newest = 0;
  const bool has_newest =
      !found.empty() && ParseRfc3339(found.front().replaced_at, &newest);
  return has_newest ? std::max(now, newest + 1) : now;
}

uint64_t OwnBytesOf(const std::string& dir) {
  uint64_t bytes = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator it(dir, error), end;
       !error && it != end; it.increment(error)) {
    struct stat info;
    if (lstat(it->path().c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
        info.st_nlink == 1) {
      bytes += static_cast<uint64_t>(info.st_size);
    }
  }
  return bytes;
}

}  // namespace

Status MarkOldDirectory(rocksdb::FileSystem* file_system,
                        const std::string& target_dir, const std::string& dir,
                        std::string* path) {
  struct stat info;
  if (lstat(dir.c_str(), &info) != 0) {
    return MakeStatus(EndState::kInternal, dir + ": " + strerror(errno));
  }
  RETURN_IF_ERROR(FindNewName(
      target_dir, OldDirectorySuffix(NextOldTime(target_dir)), path));
  return WriteDurably(file_system, dir + "/" + kOldRecordName,
                      OldRecordOf(info.st_ino, *path));
}

Status NameAdopted(const std::string& target_dir, std::string* path) {
  return FindNewName(
      target_dir,
      kAdoptedInfix + DateInName(static_cast<uint64_t>(time(nullptr))), path);
}

std::vector<OldDirectory> ListOldDirectories(const std::string& target_dir) {
  std::vector<OldDirectory> found;
  for (const std::vector<OldDirectory>& some :
       {ListOfStandby(target_dir, kAdoptedInfix),
        ListOfStandby(target_dir, kLostInfix),
        List(target_dir, /*of_owner=*/geteuid() == 0)}) {
    found.insert(found.end(), some.begin(), some.end());
  }
  for (OldDirectory& old : found) {
    old.own_bytes = OwnBytesOf(old.path);
  }
  return found;
}

Status RemoveOldDirectories(rocksdb::FileSystem* file_system,
                            const std::string& target_dir, uint32_t keep,
                            uint64_t bytes_per_sec, StopSignal* stop,
                            std::vector<std::string>* removed) {
  const std::vector<OldDirectory> found = List(target_dir, /*of_owner=*/false);
  for (size_t i = keep; i < found.size(); ++i) {
    bool gone = false;
    RETURN_IF_ERROR(RemoveOldOne(file_system, found[i].path, bytes_per_sec,
                                 stop, &gone));
    if (gone) {
      removed->push_back(found[i].path);
    }
  }
  return SyncDirectory(file_system, OldPlace(target_dir).parent);
}

}  // namespace sstferry
