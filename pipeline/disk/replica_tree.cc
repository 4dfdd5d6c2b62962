#include "pipeline/disk/replica_tree.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <set>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "format/end_state.h"
#include "format/limits.h"
#include "pipeline/base/database_name.h"
#include "pipeline/base/file_lock.h"
#include "pipeline/base/full_disk.h"
#include "pipeline/base/last_transfer.h"
#include "pipeline/base/open_file.h"
#include "pipeline/disk/database_files.h"
#include "pipeline/disk/workspace.h"
#include "rocksdb/file_system.h"
#include "sstferry/descriptor.h"

namespace sstferry {
namespace {

using nlohmann::ordered_json;
using rocksdb::Status;

constexpr char kNewRecordName[] = "sstferry.fleet.new";
// Space for kMaxServedDatabases names, plus a few bytes per name.
constexpr off_t kMaxRecordBytes = 4 << 20;
constexpr mode_t kDirectoryMode = 0755;  // less the umask

Status TreeError(const std::string& what, const std::string& path, int error) {
  return MakeStatus(
      IsOutOfRoom(error) ? EndState::kNoSpace : EndState::kRefused,
      what + " " + path + ": " + std::strerror(error));
}

bool HasCurrent(int directory) {
  struct stat info;
  return fstatat(directory, "CURRENT", &info, AT_SYMLINK_NOFOLLOW) == 0;
}

Status DamagedRecord(const std::string& path, const std::string& why) {
  return MakeStatus(EndState::kCorrupt,
                    path + ": expected the record of earlier runs, found " +
                        why + "; remove it: the next run then counts anew in "
                              "how many runs each database was missing");
}

// Returns OK if there was no error, or if the path does not exist.
Status NotSearched(const std::string& path, const std::error_code& error) {
  const int code = error.value();
  if (code == 0 || code == ENOENT || code == ENOTDIR) {
    return Status::OK();
  }
  return MakeStatus(
      code == EACCES || code == EPERM ? EndState::kDenied : EndState::kInternal,
      path + ": cannot be searched: " + error.message());
}

// Finds holders as FindHolders() does, but only below top/NAME. If `name` is
// empty, below `top`.
Status AddHolders(const std::string& top, const std::string& name,
                  const std::vector<std::string>& files,
                  std::set<std::string>* names) {
  namespace fs = std::filesystem;
  const std::string workspace = Workspace::DirOf("");
  const std::string path = name.empty() ? top : top + "/" + name;
  Status status;
  std::error_code error;
  for (fs::directory_iterator at(path, error), end; !error && at != end;
       at.increment(error)) {
    const fs::path& below = at->path();
    std::error_code unknown;
    const bool is_directory = fs::is_directory(at->symlink_status(unknown));
    std::string one = below.filename().string();
    const bool is_workspace = one.ends_with(workspace);
    one.resize(one.size() - (is_workspace ? workspace.size() : 0));
    one = name.empty() ? one : name + "/" + one;
    // A directory whose name CheckReplicaName() refuses, such as lost+found,
    // cannot belong to a replica.
    const bool is_name = is_directory && CheckReplicaName(one).ok();
    const auto is_there = [&](const std::string& file) {
      return fs::exists(below / file, unknown);
    };
    Status searched;
    if (is_name && (is_workspace || std::any_of(files.begin(), files.end(),
                                                is_there))) {
      names->insert(one);
    } else if (is_name && !unknown) {
      searched = AddHolders(top, one, files, names);
    }
    if (searched.ok()) searched = NotSearched(below.string(), unknown);
    status = status.ok() ? searched : status;
  }
  const Status listed = NotSearched(path, error);
  return status.ok() ? listed : status;
}

}  // namespace

Status FindHolders(const std::string& directory,
                   const std::vector<std::string>& files,
                   std::set<std::string>* names) {
  names->clear();
  return AddHolders(directory, "", files, names);
}

Status FindReplicas(const std::string& directory,
                    std::set<std::string>* names) {
  return FindHolders(directory, {"CURRENT", kLastTransferName}, names);
}

ReplicaTree::ReplicaTree(std::string directory, bool is_made, bool is_locked,
                         Descriptor top)
    : directory_([&directory] {
        while (directory.size() > 1 && directory.ends_with('/')) {
          directory.pop_back();
        }
        return directory;
      }()),
      is_made_(is_made),
      is_locked_(is_locked),
      top_(std::move(top)) {}

Status ReplicaTree::Look(const std::string& directory,
                         std::unique_ptr<ReplicaTree>* out) {
  out->reset();
  Descriptor top = OpenLinked(directory, O_RDONLY | O_DIRECTORY);
  if (!top.is_open()) {
    return errno == ENOENT
               ? Status::OK()
               : TreeError("cannot open the directory of replicas", directory,
                           errno);
  }
  out->reset(new ReplicaTree(directory, /*is_made=*/false, /*is_locked=*/false,
                             std::move(top)));
  return Status::OK();
}

void ReplicaTree::RemoveUnused() const {
  if (is_made_) {
    rmdir(directory_.c_str());  // fails if the directory is not empty
  }
}

Status ReplicaTree::Open(const std::string& directory,
                         std::unique_ptr<ReplicaTree>* out) {
  const bool is_made = mkdir(directory.c_str(), kDirectoryMode) == 0;
  if (!is_made && errno != EEXIST) {
    return errno == ENOENT
               ? MakeStatus(EndState::kRefused,
                            "directory of replicas " + directory +
                                ": its parent directory does not exist")
               : TreeError("cannot make", directory, errno);
  }
  Descriptor top = OpenLinked(directory, O_RDONLY | O_DIRECTORY);
  if (!top.is_open()) {
    return TreeError("cannot open the directory of replicas", directory, errno);
  }
  if (HasCurrent(top.get())) {
    return MakeStatus(EndState::kRefused,
                      directory +
                          ": expected a directory with replicas below it, "
                          "found a database; omit --all if it is the replica");
  }
  const Status locked = LockFile(top.get(), directory);
  if (!locked.ok()) {
    return EndStateOf(locked) == EndState::kBusy
               ? MakeStatus(EndState::kBusy,
                            "another process mirrors into " + directory +
                                "; wait until it ends")
               : locked;
  }
  // Syncs the parent even if the directory already existed. An earlier run may
  // have created the directory, and crashed before it synced the parent.
  const Descriptor above =
      OpenLinked(directory + "/..", O_RDONLY | O_DIRECTORY);
  const bool is_synced = above.is_open() && fsync(above.get()) == 0;
  if (is_made && !is_synced) {
    return TreeError("cannot sync the directory of", directory, errno);
  }
  out->reset(
      new ReplicaTree(directory, is_made, /*is_locked=*/true, std::move(top)));
  return Status::OK();
}

Status ReplicaTree::OpenParent(const std::string& name, bool make,
                               Descriptor* parent) const {
  RETURN_IF_ERROR(CheckReplicaName(name));
  const std::vector<std::string> components = ComponentsOf(name);
  *parent = Descriptor(fcntl(top_.get(), F_DUPFD_CLOEXEC, 0));
  std::string path = directory_;
  for (size_t i = 0; i + 1 < components.size(); ++i) {
    const int above = parent->get();
    path += "/" + components[i];
    if (make && mkdirat(above, components[i].c_str(), kDirectoryMode) == 0) {
      if (fsync(above) != 0) {
        return TreeError("cannot sync the directory of", path, errno);
      }
    } else if (make && errno != EEXIST) {
      return TreeError("cannot make", path, errno);
    }
    Descriptor below = OpenDirectoryIn(above, components[i]);
    if (!below.is_open()) {
      const int error = errno;
      *parent = Descriptor();
      return !make && error == ENOENT
                 ? Status::OK()
                 : TreeError("expected a directory and no link in the path of "
                             "a replica, but cannot open",
                             path, error);
    }
    if (HasCurrent(below.get())) {
      *parent = Descriptor();
      return MakeStatus(EndState::kRefused,
                        path + ": expected a directory in the path of the "
                               "replica of " + name +
                            ", found another replica; if the source no longer "
                            "has its database, --delete moves it away");
    }
    *parent = std::move(below);
  }
  return Status::OK();
}

Status ReplicaTree::Prepare(const std::string& name, bool* exists) {
  *exists = false;
  Descriptor parent;
  RETURN_IF_ERROR(OpenParent(name, /*make=*/true, &parent));
  const Descriptor own = OpenDirectoryIn(parent.get(), NameIn(name));
  if (!own.is_open() && errno != ENOENT) {
    return TreeError("expected a directory and no link, but cannot open",
                     PathOf(name), errno);
  }
  *exists = own.is_open() && HasCurrent(own.get());
  return Status::OK();
}

Status ReplicaTree::Has(const std::string& name, bool* has) const {
  *has = false;
  RETURN_IF_ERROR(CheckReplicaName(name));
  const auto unknown = [&](int error) {
    return TreeError("cannot find out if there is a replica", PathOf(name),
                     error);
  };
  const std::vector<std::string> components = ComponentsOf(name);
  Descriptor at(fcntl(top_.get(), F_DUPFD_CLOEXEC, 0));
  struct stat info;
  for (size_t i = 0; at.is_open() && i + 1 < components.size(); ++i) {
    Descriptor below = OpenDirectoryIn(at.get(), components[i]);
    if (!below.is_open()) {
      const int error = errno;
      const bool is_known = fstatat(at.get(), components[i].c_str(), &info,
                                    AT_SYMLINK_NOFOLLOW) == 0;
      const bool is_file =
          error == ENOTDIR && is_known && S_ISREG(info.st_mode);
      // Reports a link as a replica, because it may lead to one. Prepare()
      // later refuses only this replica.
      *has = is_known && S_ISLNK(info.st_mode);
      return error == ENOENT || is_file || *has ? Status::OK() : unknown(error);
    }
    at = std::move(below);
  }
  if (!at.is_open()) {
    return unknown(errno);
  }
  for (const std::string& sign :
       {components.back(), Workspace::DirOf(components.back()) + "/lock"}) {
    *has = *has || fstatat(at.get(), sign.c_str(), &info,
                           AT_SYMLINK_NOFOLLOW) == 0;
    if (!*has && errno != ENOENT && errno != ENOTDIR) {
      return unknown(errno);
    }
  }
  return Status::OK();
}

Status ReplicaTree::ReadRecord(bool* found, FleetRecord* record) {
  *found = false;
  *record = FleetRecord();
  const std::string path = PathOf(kFleetRecordName);
  const Descriptor file = OpenIn(top_.get(), kFleetRecordName, O_RDONLY);
  if (!file.is_open() && errno == EACCES) {
    return MakeStatus(EndState::kDenied, "cannot read " + path + ": " +
                                             std::strerror(EACCES));
  }
  if (!file.is_open()) {
    return errno == ENOENT ? Status::OK()
                           : DamagedRecord(path, std::strerror(errno));
  }
  struct stat info;
  struct stat top;
  // After Look(), the record may also belong to the directory's owner, because
  // this process then changes nothing.
  if (fstat(file.get(), &info) != 0 || fstat(top_.get(), &top) != 0 ||
      !S_ISREG(info.st_mode) ||
      (info.st_uid != geteuid() && info.st_uid != 0 &&
       (is_locked_ || info.st_uid != top.st_uid)) ||
      info.st_size > kMaxRecordBytes) {
    return DamagedRecord(path, "something other than a file of this account");
  }
  std::string text(static_cast<size_t>(info.st_size), '\0');
  size_t got = 0;
  while (got < text.size()) {
    const ssize_t n = read(file.get(), text.data() + got, text.size() - got);
    if (n <= 0) {
      return DamagedRecord(path, "a file that cannot be read");
    }
    got += static_cast<size_t>(n);
  }
  const ordered_json json = ordered_json::parse(text, nullptr, false);
  const auto is_number = [](const ordered_json& one) {
    return one.is_number_unsigned();
  };
  if (!json.is_object() || !json.contains("source") ||
      !json["source"].is_string() || !json.contains("file_system") ||
      !is_number(json["file_system"]) || !json.contains("missed") ||
      !json["missed"].is_object()) {
    return DamagedRecord(path, "other contents");
  }
  record->source = json["source"].get<std::string>();
  record->file_system = json["file_system"].get<uint64_t>();
  for (const auto& [name, missed] : json["missed"].items()) {
    if (!CheckReplicaName(name).ok() || !is_number(missed) ||
        record->missed.size() >= 2 * kMaxServedDatabases) {
      return DamagedRecord(path, "a wrong entry");
    }
    record->missed[name] = missed.get<uint32_t>();
  }
  *found = true;
  return Status::OK();
}

Status ReplicaTree::WriteRecord(const FleetRecord& record) {
  ordered_json json;
  json["source"] = record.source;
  json["file_system"] = record.file_system;
  json["missed"] = ordered_json::object();
  for (const auto& [name, missed] : record.missed) {
    json["missed"][name] = missed;
  }
  const std::string text =
      json.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
  const std::string path = PathOf(kFleetRecordName);
  if (unlinkat(top_.get(), kNewRecordName, 0) != 0 && errno != ENOENT) {
    return TreeError("cannot replace", path, errno);
  }
  const Descriptor file = OpenIn(top_.get(), kNewRecordName,
                                 O_WRONLY | O_CREAT | O_EXCL, 0644);
  if (!file.is_open()) {
    return TreeError("cannot write", path, errno);
  }
  size_t put = 0;
  while (put < text.size()) {
    const ssize_t n = write(file.get(), text.data() + put, text.size() - put);
    if (n < 0) {
      return TreeError("cannot write", path, errno);
    }
    put += static_cast<size_t>(n);
  }
  if (fsync(file.get()) != 0 ||
      renameat(top_.get(), kNewRecordName, top_.get(), kFleetRecordName) != 0 ||
      fsync(top_.get()) != 0) {
    return TreeError("cannot write", path, errno);
  }
  return Status::OK();
}

namespace {

// The database no longer exists, so an unfinished pull of it can never finish.
// Empties the workspace of this pull, and keeps the workspace locked. If there
// is no such pull, *workspace stays null.
Status ClearUnfinished(const std::string& path, bool has_replica,
                       const LogFunction& log,
                       std::unique_ptr<Workspace>* workspace) {
  if (!Workspace::IsOne(Workspace::DirOf(path))) {
    return Status::OK();
  }
  const std::shared_ptr<rocksdb::FileSystem> disk =
      rocksdb::FileSystem::Default();
  RETURN_IF_ERROR(has_replica
                      ? Workspace::OpenBeside(path, /*open_here=*/false, disk,
                                              log, workspace)
                      : Workspace::Open(path, Existing::kRefuse, disk, log,
                                        workspace));
  return (*workspace)->Clear();
}

// Renames the directory of a replica. Returns kBusy if a process has the
// replica open.
Status RenameClosed(const Descriptor& parent, const std::string& path,
                    const std::string& old) {
  DatabaseLock lock;
  const Status taken = lock.Take(path, /*makes=*/true);
  RETURN_IF_ERROR(
      WithContext(taken, EndStateOf(taken), path + " is not moved away"));
  const std::string last = NameIn(path);
  // NFS, 9p and most FUSE file systems do not support flags (EINVAL). So
  // renames without RENAME_NOREPLACE there; the worst case is that an empty
  // directory is replaced.
  bool renamed = syscall(SYS_renameat2, parent.get(), last.c_str(),
                         parent.get(), old.c_str(), RENAME_NOREPLACE) == 0;
  if (!renamed && (errno == EINVAL || errno == ENOSYS)) {
    renamed = renameat(parent.get(), last.c_str(), parent.get(),
                       old.c_str()) == 0;
  }
  if (!renamed || fsync(parent.get()) != 0) {
    return TreeError("cannot move to " + old + ":", path, errno);
  }
  return Status::OK();
}

}  // namespace

Status ReplicaTree::MoveAway(const std::string& name, const std::string& suffix,
                             const LogFunction& log, bool* moved) {
  *moved = false;
  Descriptor parent;
  RETURN_IF_ERROR(OpenParent(name, /*make=*/false, &parent));
  if (!parent.is_open()) {
    return Status::OK();
  }
  const std::string path = PathOf(name);
  const std::string last = NameIn(name);
  const Descriptor own = OpenDirectoryIn(parent.get(), last);
  if (!own.is_open() && errno != ENOENT) {
    return TreeError("expected a directory and no link, but cannot open", path,
                     errno);
  }
  std::unique_ptr<Workspace> unfinished;
  RETURN_IF_ERROR(ClearUnfinished(path, own.is_open(), log, &unfinished));
  if (own.is_open()) {
    RETURN_IF_ERROR(RenameClosed(parent, path, last + suffix));
    *moved = true;
  }
  return unfinished != nullptr ? unfinished->Discard() : Status::OK();
}

}  // namespace sstferry
