#include "pipeline/snapshot/other_files.h"

#include <sys/stat.h>

#include <cerrno>

#include "pipeline/snapshot/posix_files.h"

namespace sstferry {
namespace {

using rocksdb::Slice;
using rocksdb::Status;

constexpr int kReadings = 3;

KeptBack JudgeFile(const std::string& name, const struct stat& file,
                   uint32_t owner, uint64_t bytes_left) {
  const KeptBack by_name = JudgeOtherName(name);
  if (!S_ISREG(file.st_mode)) {
    return KeptBack::kKind;
  }
  if (by_name != KeptBack::kNo) {
    return by_name;
  }
  if (file.st_uid != owner) {
    return KeptBack::kAccount;
  }
  const auto bytes = static_cast<uint64_t>(file.st_size);
  return bytes > kMaxOtherFileBytes || bytes > bytes_left ? KeptBack::kSize
                                                          : KeptBack::kNo;
}

Status CannotRead(const std::string& path, const std::string& why) {
  return MakeStatus(EndState::kSourceError, path + ": " + why);
}

bool IsUnchanged(const struct stat& a, const struct stat& b) {
  return a.st_size == b.st_size && a.st_mtim.tv_sec == b.st_mtim.tv_sec &&
         a.st_mtim.tv_nsec == b.st_mtim.tv_nsec &&
         a.st_ctim.tv_sec == b.st_ctim.tv_sec &&
         a.st_ctim.tv_nsec == b.st_ctim.tv_nsec;
}

// Reads the file once. If another process has written to it meanwhile, returns
// TryAgain.
Status ReadOnce(const std::string& path, uint32_t owner, std::string* contents,
                mode_t* mode) {
  Descriptor file;
  RETURN_IF_ERROR(OpenForeign(path, &file));
  struct stat before;
  struct stat after;
  if (!file.is_open()) {
    return CannotRead(path, "it no longer exists");
  }
  if (fstat(file.get(), &before) != 0) {
    return ErrnoStatus(EndState::kSourceError, "cannot look at", path, errno);
  }
  // OpenForeign() also accepts files of root. But the application's directory
  // may have a link to a file that only root may read.
  if (before.st_uid != owner) {
    return CannotRead(path, KeptBackName(KeptBack::kAccount));
  }
  const auto bytes = static_cast<uint64_t>(before.st_size);
  if (bytes > kMaxOtherFileBytes) {
    return CannotRead(path, KeptBackName(KeptBack::kSize));
  }
  Slice read;
  RETURN_IF_ERROR(
      DescriptorSource(file.get(), path, bytes)
          .Read(0, static_cast<size_t>(bytes), contents, &read));
  *mode = before.st_mode;
  return read.size() == bytes && fstat(file.get(), &after) == 0 &&
                 IsUnchanged(before, after)
             ? Status::OK()
             : Status::TryAgain("changed");
}

}  // namespace

Status ListOtherFiles(const std::string& database_dir,
                      std::vector<OtherFile>* files, uint64_t* unlisted) {
  files->clear();
  *unlisted = 0;
  std::string dir;
  std::vector<std::string> names;
  uint32_t owner = 0;
  RETURN_IF_ERROR(ResolveDatabase(database_dir, &dir));
  RETURN_IF_ERROR(OwnerOf(dir, &owner));
  RETURN_IF_ERROR(ListDirectory(dir, &names));
  uint64_t bytes = 0;
  for (const std::string& name : names) {
    struct stat file;
    if (IsDatabaseFileName(name) ||
        lstat((dir + "/" + name).c_str(), &file) != 0 ||
        S_ISDIR(file.st_mode)) {
      continue;
    }
    if (files->size() == kMaxOtherFiles) {
      ++*unlisted;
      continue;
    }
    OtherFile listed{name, static_cast<uint64_t>(file.st_size),
                     JudgeFile(name, file, owner,
                               kMaxOtherFilesBytes - bytes)};
    files->push_back(listed);
    // The target's file system may treat two names as equal that are different
    // here.
    if (listed.kept_back == KeptBack::kNo && !CheckOtherFiles(*files).ok()) {
      files->back().kept_back = KeptBack::kName;
    } else if (listed.kept_back == KeptBack::kNo) {
      bytes += listed.bytes;
    }
  }
  return Status::OK();
}

Status ReadOtherFile(const std::string& database_dir, const std::string& name,
                     std::string* contents, bool* is_private) {
  std::string dir;
  uint32_t owner = 0;
  mode_t mode = 0;
  RETURN_IF_ERROR(ResolveDatabase(database_dir, &dir));
  RETURN_IF_ERROR(OwnerOf(dir, &owner));
  Status status = Status::TryAgain("not read yet");
  for (int i = 0; i < kReadings && status.IsTryAgain(); ++i) {
    status = ReadOnce(dir + "/" + name, owner, contents, &mode);
  }
  if (status.IsTryAgain()) {
    return CannotRead(dir + "/" + name,
                      "it changed during each of " +
                          std::to_string(kReadings) + " readings");
  }
  constexpr mode_t kReadByOthers = S_IRGRP | S_IROTH;
  struct stat current;
  *is_private = lstat((dir + "/CURRENT").c_str(), &current) == 0 &&
                (current.st_mode & kReadByOthers & ~mode) != 0;
  return status;
}

}  // namespace sstferry
