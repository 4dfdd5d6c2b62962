#include "pipeline/disk/access.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <vector>

#include "format/end_state.h"
#include "format/follow_file.h"
#include "pipeline/disk/database_files.h"
#include "pipeline/disk/durable.h"
#include "sstferry/descriptor.h"

namespace sstferry {
namespace {

namespace fs = std::filesystem;
using rocksdb::FileOptions;
using rocksdb::FSWritableFile;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Status;

constexpr uint32_t kOwnerMayAll = 0700;
constexpr uint32_t kOwnerReadsAndWrites = 0600;
constexpr Access kPrivateDirectory{Access::kAsMade, Access::kAsMade, 0700};
constexpr Access kPrivateFile{Access::kAsMade, Access::kAsMade, 0600};

std::string Octal(uint32_t mode) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "%04o", mode);
  return text.data();
}

std::string ParentOf(std::string path) {
  while (path.size() > 1 && path.back() == '/') {
    path.pop_back();
  }
  const std::string parent = fs::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

bool Exists(const std::string& path) {
  struct stat info;
  return lstat(path.c_str(), &info) == 0;
}

// Returns this process's umask. Linux before 4.7 does not report it; then
// returns a umask that removes all permissions except the owner's.
uint32_t Umask() {
  std::istringstream status(ReadProc("self/status"));
  std::string line;
  while (std::getline(status, line)) {
    unsigned mask = 0;
    if (std::sscanf(line.c_str(), "Umask: %o", &mask) == 1) {
      return mask;
    }
  }
  return 077;
}

Access AccessOf(const struct stat& info) {
  return {info.st_uid, info.st_gid, info.st_mode & 07777};
}

// Returns what mkdir() sets for a directory that only its owner may write.
Access OrdinaryDirectory(const std::string& parent) {
  Access access;
  access.mode = kOwnerMayAll | (0055 & ~Umask());
  struct stat info;
  if (stat(parent.c_str(), &info) == 0 && (info.st_mode & S_ISGID) != 0) {
    access.group = info.st_gid;
    access.mode |= S_ISGID;
  }
  return access;
}

// Returns true if this process may give files in `parent` this owner and group.
// Tries it with an unnamed temporary file. If the file system does not support
// such files, compares ids.
bool MayGive(const std::string& parent, const Access& access) {
  const Descriptor file = OpenLinked(parent, O_TMPFILE | O_RDWR, 0600);
  if (file.is_open()) {
    return fchown(file.get(), access.owner, access.group) == 0;
  }
  if (geteuid() == 0) {
    return true;
  }
  std::vector<gid_t> groups(static_cast<size_t>(
      std::max(0, getgroups(0, nullptr))));
  groups.resize(static_cast<size_t>(std::max(
      0, getgroups(static_cast<int>(groups.size()), groups.data()))));
  groups.push_back(getegid());
  return (access.owner == Access::kAsMade || access.owner == geteuid()) &&
         (access.group == Access::kAsMade ||
          std::find(groups.begin(), groups.end(), access.group) !=
              groups.end());
}

std::string IdText(uint32_t id) {
  return id == Access::kAsMade ? "as it is" : std::to_string(id);
}

std::string Text(const Access& access) {
  return IdText(access.owner) + ":" + IdText(access.group) + " " +
         Octal(access.mode);
}

Status CheckMayGive(const std::string& target, const std::string& parent,
                    const Access& access, const std::string& what_to_do) {
  if (MayGive(parent, access)) {
    return Status::OK();
  }
  const bool has_owner = access.owner != Access::kAsMade;
  std::string files = "files";
  if (has_owner) {
    files += " of owner " + std::to_string(access.owner);
  }
  if (access.group != Access::kAsMade) {
    files += (has_owner ? " and group " : " of group ") +
             std::to_string(access.group);
  }
  return MakeStatus(
      EndState::kRefused,
      "target " + target + ": user " + std::to_string(geteuid()) +
          " may not create " + files + "; run the command as root or as " +
          (has_owner && access.owner != geteuid() ? "that owner"
                                                  : "a member of that group") +
          what_to_do);
}

// A lock of AccessFileSystem on a LOCK file.
struct HeldLock : rocksdb::FileLock {
  DatabaseLock database;
  rocksdb::FileLock* base = nullptr;  // null: `database` holds the lock
};

// Sets owner, group and mode of each new file and directory immediately after
// creating it. Locks a database so that no open under another spelling of its
// path succeeds.
//
// Threads: any.
class AccessFileSystem : public rocksdb::FileSystemWrapper {
 public:
  AccessFileSystem(std::shared_ptr<rocksdb::FileSystem> base,
                   std::string workspace_dir)
      : FileSystemWrapper(std::move(base)),
        workspace_dir_(std::move(workspace_dir)) {}
  const char* Name() const override { return "sstferry.Access"; }

  IOStatus NewWritableFile(const std::string& name, const FileOptions& options,
                           std::unique_ptr<FSWritableFile>* file,
                           IODebugContext* dbg) override {
    const bool admits = !Exists(name) || IsPrivate(name);
    const IOStatus status = target()->NewWritableFile(name, options, file, dbg);
    return status.ok() && admits ? AdmitFile(name, file) : status;
  }
  IOStatus ReopenWritableFile(const std::string& name,
                              const FileOptions& options,
                              std::unique_ptr<FSWritableFile>* file,
                              IODebugContext* dbg) override {
    const bool is_new = !Exists(name);
    const IOStatus status =
        target()->ReopenWritableFile(name, options, file, dbg);
    return status.ok() && is_new ? AdmitFile(name, file) : status;
  }
  IOStatus CreateDir(const std::string& name, const IOOptions& options,
                     IODebugContext* dbg) override {
    const IOStatus status = target()->CreateDir(name, options, dbg);
    return status.ok() ? AdmitDirectory(name) : status;
  }
  IOStatus CreateDirIfMissing(const std::string& name,
                              const IOOptions& options,
                              IODebugContext* dbg) override {
    const bool is_new = !Exists(name);
    const IOStatus status = target()->CreateDirIfMissing(name, options, dbg);
    return status.ok() && (is_new || IsPrivate(name)) ? AdmitDirectory(name)
                                                      : status;
  }
  // Creates the LOCK file first, and locks it afterwards: closing any
  // descriptor of a locked file would release the lock.
  //
  // RocksDB's own lock does not keep another thread of this process from
  // opening the database by another spelling of its path. DatabaseLock does. In
  // the workspace, uses RocksDB's lock, because nothing else opens a database
  // there. A pull closes this database and at once opens it again. DatabaseLock
  // could then fail: a child process that is just being started still holds the
  // lock.
  IOStatus LockFile(const std::string& name, const IOOptions& options,
                    rocksdb::FileLock** lock, IODebugContext* dbg) override {
    if (!Exists(name)) {
      std::unique_ptr<FSWritableFile> file;
      IOStatus status = ReopenWritableFile(name, FileOptions(), &file, dbg);
      if (status.ok()) {
        status = file->Close(options, dbg);
      }
      if (!status.ok()) {
        return status;
      }
    }
    auto held = std::make_unique<HeldLock>();
    // If this account may not write LOCK, DatabaseLock would take a read lock.
    // RocksDB's own lock fails instead, which is right for a database that is
    // opened for writing.
    if (!IsPrivate(name) &&
        faccessat(AT_FDCWD, name.c_str(), W_OK, AT_EACCESS) == 0) {
      Status status = held->database.Take(ParentOf(name), /*makes=*/false);
      if (status.ok() && held->database.is_held()) {
        *lock = held.release();
        return IOStatus::OK();
      }
      if (EndStateOf(status) == EndState::kBusy) {
        return rocksdb::status_to_io_status(std::move(status));
      }
      // Tries RocksDB's kind of lock, because the kernel or the file system may
      // not have DatabaseLock's kind.
    }
    const IOStatus status =
        target()->LockFile(name, options, &held->base, dbg);
    if (status.ok()) {
      *lock = held.release();
    }
    return status;
  }
  IOStatus UnlockFile(rocksdb::FileLock* lock, const IOOptions& options,
                      IODebugContext* dbg) override {
    const std::unique_ptr<HeldLock> held(static_cast<HeldLock*>(lock));
    return held->base != nullptr
               ? target()->UnlockFile(held->base, options, dbg)
               : IOStatus::OK();
  }

 private:
  bool IsPrivate(const std::string& path) const {
    return path.compare(0, workspace_dir_.size(), workspace_dir_) == 0 &&
           (path.size() == workspace_dir_.size() ||
            path[workspace_dir_.size()] == '/');
  }

  // Sets owner, group and mode of a new file while the file is still empty.
  IOStatus AdmitFile(const std::string& name,
                     std::unique_ptr<FSWritableFile>* file) const {
    Access access = kPrivateFile;
    Status status = IsPrivate(name) ? Status::OK()
                                    : AccessBeside(ParentOf(name), &access);
    if (status.ok()) {
      status = SetAccess(name, access);
    }
    if (!status.ok()) {
      file->reset();
    }
    return rocksdb::status_to_io_status(std::move(status));
  }

  IOStatus AdmitDirectory(const std::string& name) const {
    if (IsPrivate(name)) {
      return rocksdb::status_to_io_status(SetAccess(name, kPrivateDirectory));
    }
    struct stat info;
    const std::string parent = ParentOf(name);
    return stat(parent.c_str(), &info) == 0
               ? rocksdb::status_to_io_status(SetAccess(name, AccessOf(info)))
               : IOStatus::IOError(parent, strerror(errno));
  }

  const std::string workspace_dir_;
};

}  // namespace

Status AccessBeside(const std::string& dir, Access* access) {
  struct stat info;
  const std::string current = dir + "/CURRENT";
  if (lstat(current.c_str(), &info) == 0 && S_ISREG(info.st_mode)) {
    *access = AccessOf(info);
    access->mode &= 0777;
    return Status::OK();
  }
  if (stat(dir.c_str(), &info) != 0) {
    return MakeStatus(EndState::kInternal, dir + ": " + strerror(errno));
  }
  *access = AccessOf(info).OfFiles();
  return Status::OK();
}

Status ChooseAccess(const PullOptions& options, Access* access) {
  const std::string& target = options.target_dir;
  struct stat info;
  const bool is_there =
      lstat(target.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
  *access = is_there ? AccessOf(info) : OrdinaryDirectory(ParentOf(target));
  access->owner = options.target_owner.value_or(access->owner);
  access->group = options.target_group.value_or(access->group);
  access->mode = options.target_mode.value_or(access->mode);
  // Keeps the mode of existing files, because it can differ from the
  // directory's mode. For example, many applications have files with 0644 in a
  // directory with 0700.
  const std::string file =
      target + "/" + (options.adopts_old ? "CURRENT" : kFollowFileName);
  if (is_there && !options.target_mode &&
      lstat(file.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
      (info.st_mode & kOwnerReadsAndWrites) == kOwnerReadsAndWrites) {
    access->file_mode = info.st_mode & 0666;
  }
  if ((access->mode & kOwnerMayAll) != kOwnerMayAll ||
      (access->mode & ~07777u) != 0) {
    return MakeStatus(EndState::kRefused,
                      "target " + target + ": expected permissions that let "
                      "its owner read, write and enter it (07xx), found " +
                          Octal(access->mode) +
                          "; --permissions sets others");
  }
  return CheckMayGive(target, ParentOf(target), *access,
                      ", or name others with --owner (pull, refresh, swap)");
}

bool HasAskedAccess(const PullOptions& options) {
  struct stat info;
  return lstat(options.target_dir.c_str(), &info) == 0 &&
         options.target_owner.value_or(info.st_uid) == info.st_uid &&
         options.target_group.value_or(info.st_gid) == info.st_gid &&
         options.target_mode.value_or(info.st_mode & 07777) ==
             (info.st_mode & 07777);
}

Status ChooseFileAccess(const PullOptions& options, const std::string& dir,
                        Access* access) {
  struct stat info;
  if (stat(dir.c_str(), &info) != 0) {
    return MakeStatus(EndState::kInternal, dir + ": " + strerror(errno));
  }
  const Access found = AccessOf(info);
  const Access asked{options.target_owner.value_or(found.owner),
                     options.target_group.value_or(found.group),
                     options.target_mode.value_or(found.mode)};
  if (!(asked == found)) {
    return MakeStatus(EndState::kRefused,
                      "target " + dir + ": expected owner, group and "
                      "permissions " + Text(asked) + ", found " + Text(found) +
                          ", which a refresh in place keeps; change them on "
                          "the directory and its files first, or omit "
                          "--owner and --permissions");
  }
  const Status status = AccessBeside(dir, access);
  return status.ok() ? CheckMayGive(dir, dir, *access, "") : status;
}

bool HasAccess(const struct stat& info, const Access& access) {
  return (access.owner == Access::kAsMade || access.owner == info.st_uid) &&
         (access.group == Access::kAsMade || access.group == info.st_gid) &&
         access.mode == (info.st_mode & 07777);
}

Status SetAccess(const std::string& path, const Access& access,
                 bool* changed) {
  const Descriptor file = OpenPath(path, O_RDONLY);
  struct stat info;
  bool done = file.is_open() && fstat(file.get(), &info) == 0;
  bool differs = false;
  if (done) {
    const bool owned =
        (access.owner == Access::kAsMade || access.owner == info.st_uid) &&
        (access.group == Access::kAsMade || access.group == info.st_gid);
    differs = !owned || access.mode != (info.st_mode & 07777);
    // Sets the mode last, because fchown() clears some bits of it.
    done = (owned || fchown(file.get(), access.owner, access.group) == 0) &&
           (!differs || fchmod(file.get(), access.mode) == 0);
  }
  const int error = errno;
  if (changed != nullptr) {
    *changed = differs;
  }
  return done ? Status::OK()
              : MakeStatus(error == EPERM ? EndState::kRefused
                                          : EndState::kInternal,
                           "cannot set owner and permissions of " + path +
                               ": " + strerror(error));
}

Status SetTreeAccess(rocksdb::FileSystem* file_system, const std::string& dir,
                     const Access& access) {
  std::error_code error;
  for (fs::directory_iterator it(dir, error), end; !error && it != end;
       it.increment(error)) {
    const std::string path = it->path().string();
    bool changed = false;
    std::error_code unknown;
    Status status;
    if (it->symlink_status(unknown).type() == fs::file_type::directory) {
      status = SetTreeAccess(file_system, path, access);
    } else {
      status = SetAccess(path, access.OfFiles(), &changed);
    }
    if (status.ok() && changed) {
      status = SyncFile(file_system, path);
    }
    if (!status.ok()) {
      return status;
    }
  }
  if (error) {
    return MakeStatus(EndState::kInternal,
                      "list " + dir + ": " + error.message());
  }
  const Status status = SetAccess(dir, access);
  return status.ok() ? SyncDirectory(file_system, dir) : status;
}

std::shared_ptr<rocksdb::FileSystem> MakeAccessFileSystem(
    std::shared_ptr<rocksdb::FileSystem> base, std::string workspace_dir) {
  return std::make_shared<AccessFileSystem>(std::move(base),
                                            std::move(workspace_dir));
}

}  // namespace sstferry
