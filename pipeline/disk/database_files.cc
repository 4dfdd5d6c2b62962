#include "pipeline/disk/database_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "format/end_state.h"
#include "format/follow_file.h"
#include "pipeline/base/database_open.h"
#include "pipeline/base/last_transfer.h"
#include "pipeline/base/open_file.h"
#include "pipeline/base/standby_record.h"
#include "pipeline/disk/access.h"
#include "pipeline/disk/durable.h"
#include "pipeline/options/directories.h"
#include "sstferry/descriptor.h"

namespace sstferry {
namespace {

namespace fs = std::filesystem;
using rocksdb::Status;

constexpr char kManifestPrefix[] = "MANIFEST-";  // prefix of CURRENT's contents

// Returns true for the directories that RocksDB creates in a database. One
// contains archived WALs, the other contains files that a repair moved away.
bool IsDatabaseDirectory(const std::string& name) {
  return name == "archive" || name == "lost";
}

Status Refused(const std::string& dir, const std::string& what,
               const std::string& next = "") {
  return MakeStatus(EndState::kRefused, "target " + dir + what, next);
}

// Refuses a database whose WALs are in another directory, because the new
// database would replay them. Ignores the WAL directory in OPTIONS if no
// process has ever opened the database. Such a database may be a copy, and its
// OPTIONS may name the original's WAL directory. It either has no LOCK file, or
// is a standby; RocksDB creates a LOCK file in a standby although it then
// refuses to open it.
Status CheckWals(const std::string& dir) {
  std::error_code error;
  std::string wal_dir;
  const bool was_opened = !IsStandby(dir) && fs::exists(dir + "/LOCK", error);
  if (error) {
    return Refused(dir, ": cannot find out if it has a LOCK: " +
                            error.message());
  }
  if (was_opened) {
    RETURN_IF_ERROR(FindNamedWalDir(dir, &wal_dir));
  }
  if (wal_dir.empty() || IsSameDirectory(wal_dir, dir)) {
    return Status::OK();
  }
  // Refuses a missing directory, too, because it may exist again when the new
  // database opens. For example, its volume may be mounted later.
  const bool is_missing = !fs::exists(wal_dir, error) && !error;
  return Refused(dir, " has its write-ahead log in " + wal_dir +
                          (is_missing ? ", which is missing (is its volume "
                                        "mounted?), and"
                                      : ",") +
                          " which a new database in its place would "
                          "replay; keep the log in the directory itself, or "
                          "name another TARGET_DIR");
}

}  // namespace

// Takes an open file description lock (F_OFD_SETLK). It conflicts with
// RocksDB's lock even if the same process has that lock. Closing another
// descriptor of the file does not release it.
Status DatabaseLock::Take(const std::string& dir, bool makes) {
  const std::string path = dir + "/LOCK";
  const std::string user = DatabaseUser(dir);
  const Status busy =
      MakeStatus(EndState::kBusy,
                 "target " + dir + ": " + (user.empty() ? "a process" : user) +
                     " holds its LOCK, and sstferry never replaces or "
                     "changes an open database");
  const auto unknown = [&dir, &path](int error) {
    return ErrnoStatus(EndState::kRefused,
                       "target " + dir + ": cannot find out whether a process "
                       "has it open:",
                       path, error);
  };
  if (!user.empty()) {
    return busy;
  }
  // Creates LOCK only if the OPTIONS are complete and name no other WAL
  // directory. With a LOCK file, sstferry would take these OPTIONS for the
  // database's own. The new LOCK file stays even if the exchange fails.
  std::string wal_dir;
  const bool may_make = makes && HasCurrent(dir) &&
                        FindNamedWalDir(dir, &wal_dir, /*as_opened=*/true)
                            .ok() &&
                        (wal_dir.empty() || IsSameDirectory(wal_dir, dir));
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  Descriptor file = OpenPath(path, O_RDWR);
  if (!file.is_open() && errno == EACCES) {
    // A read lock also conflicts with RocksDB's lock.
    file = OpenPath(path, O_RDONLY);
    lock.l_type = F_RDLCK;
  }
  const bool is_made = !file.is_open() && errno == ENOENT;
  if (is_made && !may_make) {
    return Status::OK();
  }
  if (is_made) {
    file = OpenPath(path, O_RDWR | O_CREAT | O_EXCL, 0600);
  }
  if (!file.is_open()) {
    return errno == EEXIST ? busy : unknown(errno);
  }
  if (fcntl(file.get(), F_OFD_SETLK, &lock) != 0) {
    const int error = errno;
    if (error != EAGAIN && error != EACCES) {
      file_ = std::move(file);
      return unknown(error);
    }
    // Keeps the descriptor open forever. A thread of this process may just have
    // opened the database. It would lose its lock if this process closed any
    // descriptor of the file.
    file.Release();
    return busy;
  }
  struct stat held;
  struct stat named;
  if (fstat(file.get(), &held) != 0 || lstat(path.c_str(), &named) != 0 ||
      held.st_dev != named.st_dev || held.st_ino != named.st_ino) {
    return busy;  // another process has replaced the file
  }
  Status status;
  if (is_made) {
    Access access;
    status = AccessBeside(dir, &access);
    access.mode |= S_IRUSR | S_IWUSR;  // RocksDB must write it
    if (status.ok()) status = SetAccess(path, access);
    // Removes the new LOCK file. The file still has mode 0600, so other
    // accounts could not open the database.
    if (!status.ok()) unlink(path.c_str());
  }
  if (status.ok()) file_ = std::move(file);
  is_held_ = status.ok();
  return status;
}

bool HoldsDatabase(const std::string& dir) {
  std::error_code error;
  for (fs::directory_iterator it(dir, error), end; !error && it != end;
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name == "CURRENT" || name == kLastTransferName ||
        name.starts_with("MANIFEST-") || name.ends_with(".sst") ||
        name.ends_with(".ldb")) {
      return true;
    }
  }
  return false;
}

Status CheckOutsideOfDatabases(const std::string& target_dir) {
  std::error_code error;
  fs::path path = fs::weakly_canonical(fs::absolute(target_dir, error), error);
  while (!error && path.has_relative_path()) {
    path = path.parent_path();
    std::error_code unknown;
    if (fs::exists(path / kLastTransferName, unknown) ||
        fs::exists(path / kFollowFileName, unknown) ||
        ReadStart((path / "CURRENT").string(), sizeof(kManifestPrefix) - 1) ==
            kManifestPrefix) {
      return Refused(target_dir,
                     ": expected a directory outside of databases, found it "
                     "inside the database " + path.string() +
                         "; choose another TARGET_DIR");
    }
  }
  return Status::OK();
}

Status CheckReplaceable(const std::string& target_dir,
                        const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    if (IsImmutable(path)) {
      return MakeStatus(EndState::kRefused,
                        "target " + target_dir + ": " + path +
                            " is immutable or append-only (chattr +i, +a), so "
                            "it cannot be replaced",
                        "chattr -i -a " + ShellWord(path));
    }
  }
  return Status::OK();
}

Status CheckExchangeable(const std::string& dir, const std::string& in_place) {
  RETURN_IF_ERROR(CheckReplaceable(dir, {dir}));
  std::error_code error;
  bool has_current = false;
  for (fs::directory_iterator it(dir, error), end; !error && it != end;
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    std::error_code unknown;
    const fs::file_type type = it->symlink_status(unknown).type();
    if (type != fs::file_type::regular &&
        !(type == fs::file_type::directory && IsDatabaseDirectory(name)) &&
        type != fs::file_type::not_found) {
      return Refused(dir, " holds " + name + ", which is neither a file nor "
                          "part of a database, and would be removed with the "
                          "old database; move it elsewhere",
                     in_place);
    }
    has_current = has_current || name == "CURRENT";
  }
  LastTransfer last;  // a replica may have lost its CURRENT
  has_current = has_current || ReadLastTransfer(dir, &last);
  if (error) {
    return Refused(dir, ": " + error.message());
  }
  if (!has_current) {
    return Refused(dir, ": expected a database, found none (no CURRENT)");
  }
  const Status mounted = CheckNothingMounted(dir);
  if (EndStateOf(mounted) == EndState::kRefused) {
    return MakeStatus(EndState::kRefused, "target " + SentenceOf(mounted),
                      in_place);
  }
  RETURN_IF_ERROR(mounted);
  return CheckWals(dir);
}

}  // namespace sstferry
