#include "pipeline/archive/directory_store.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <optional>
#include <queue>

#include "format/end_state.h"
#include "format/printable.h"
#include "pipeline/base/full_disk.h"
#include "pipeline/base/random_id.h"
#include "pipeline/base/stop_signal.h"
#include "sstferry/descriptor.h"

namespace sstferry {
namespace {

using rocksdb::Slice;
using rocksdb::Status;
using std::chrono::milliseconds;

// The directory for files of puts that have no key yet. Listings skip it,
// because no key begins with a dot.
constexpr char kPrivate[] = ".sstferry";
constexpr size_t kFilePieceBytes = 1u << 20;
// Maximum number of attempts of a put. An attempt fails if another process
// removes the directory of the key in between, because the directory was empty.
constexpr int kMaxPutTries = 20;
// Maximum number of entries of a page. For each page, all names in a directory
// are read again, so small pages would make the listing of a large directory
// slow.
constexpr size_t kMaxPage = 1u << 16;
// Prefix of the names of clock files. Each account has one clock file. The time
// that the file system sets on a written clock file is the time of the store.
constexpr char kClock[] = "clock-";

StoreCode CodeOfErrno(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return StoreCode::kAbsent;
    case EEXIST:
      return StoreCode::kExists;
    case EACCES:
    case EPERM:
    case EROFS:
      return StoreCode::kDenied;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return StoreCode::kNoSpace;
    case ESTALE:
    case ETIMEDOUT:
      return StoreCode::kUnreachable;
    default:
      return StoreCode::kInternal;
  }
}

StoreResult FromErrno(const std::string& what, int error) {
  return StoreError(CodeOfErrno(error),
                    what + ": " + std::strerror(error) +
                        (error == ENOSPC ? InodeNote(what) : ""));
}

// Splits a key at its slashes into names of directories and the name of a file.
std::vector<std::string> Split(const std::string& key) {
  std::vector<std::string> parts;
  size_t at = 0;
  while (true) {
    const size_t slash = key.find('/', at);
    parts.push_back(key.substr(at, slash - at));
    if (slash == std::string::npos) {
      return parts;
    }
    at = slash + 1;
  }
}

bool SyncOpen(int fd) {
  while (fsync(fd) != 0) {
    // EINVAL: the file system cannot sync a directory.
    if (errno != EINTR) {
      return errno == EINVAL;
    }
  }
  return true;
}

// Returns true for an error with which link() fails if the file system has no
// hard links, or a sandbox forbids them.
bool HasNoLinks(int error) {
  return error == EPERM || error == EOPNOTSUPP || error == ENOSYS;
}

ObjectInfo InfoOfFile(const std::string& key, const struct stat& info) {
  return {key, static_cast<uint64_t>(info.st_size), info.st_mtim.tv_sec};
}

// An entry of a directory. `order` makes entries sort like the keys below them.
// A listing keeps only the smallest entries that fit on a page.
struct Entry {
  std::string order;  // the name, with '/' at the end for a directory
  bool is_directory = false;
  std::string name() const {
    return order.substr(0, order.size() - (is_directory ? 1 : 0));
  }
  friend bool operator<(const Entry& a, const Entry& b) {
    return a.order < b.order;
  }
};

class DirectoryStore : public ObjectStore {
 public:
  DirectoryStore(const StoreOptions& options, Descriptor root,
                 const struct stat& info)
      : options_(options),
        place_(options.where.directory),
        root_(std::move(root)),
        owner_(info.st_uid),
        group_(info.st_gid),
        directory_mode_(info.st_mode & 07777),
        file_mode_(info.st_mode & 0666) {}

  void Cancel() override { stop_.Stop(); }
  const std::string& place() const override { return place_; }
  StoreResult CheckUnused() override;
  StoreResult Now(UnixSeconds* now) override;
  UnixSeconds SigningTime() const override {
    return static_cast<UnixSeconds>(std::time(nullptr));
  }
  StoreResult Put(const PutRequest& request) override;
  StoreResult GetUnproven(const GetRequest& request,
                          const ObjectSink& sink) override;
  StoreResult HeadUnproven(const std::string& key, ObjectInfo* info) override;
  StoreResult List(const std::string& prefix, const std::string& after,
                   ListPage* page) override;
  StoreResult Delete(const std::vector<std::string>& keys) override;
  StoreResult RemoveUploads(
      UnixSeconds before,
      const std::function<bool(const std::string& key)>& may_remove,
      uint64_t* removed) override;

 private:
  StoreResult Begin(const std::string& key) const;
  // Checks that the address still leads to the directory that this client has
  // open. If it does not, or cannot be looked up, returns kMoved.
  StoreResult CheckPlace() const;
  // Opens the directory that contains the file of a key. If `make`, creates
  // missing directories.
  StoreResult OpenParent(const std::string& key, bool make,
                         Descriptor* directory, std::string* name) const;
  StoreResult MakeDirectory(const Descriptor& parent, const std::string& name,
                            const std::string& what) const;
  // Sets the mode of a new file or directory. If root created it, and no other
  // account can access it, also makes the owner of the archive's directory its
  // owner.
  bool GiveAway(int fd, mode_t mode) const;
  // Opens .sstferry/.
  StoreResult OpenPrivate(bool make, Descriptor* directory) const;
  StoreResult OpenClock(Descriptor* file) const;
  StoreResult OpenFile(const std::string& key, Descriptor* file,
                       struct stat* info) const;
  // Writes bytes at `offset`, compares them with the digest, and syncs the
  // file.
  StoreResult Write(const std::string& what, const Descriptor& file,
                    uint64_t offset, const ByteSource& bytes,
                    const Sha256Digest& sha256) const;
  // Gives a synced file the name of a key. link() creates a name for the file.
  StoreResult Publish(
      const std::string& key, bool if_absent, const struct stat& info,
      const std::function<int(int directory, const char* name)>& link) const;
  // Creates another name for a file. If the file system has no hard links,
  // renames the file instead, but never replaces an existing file. Returns a
  // result like link(2).
  int LinkNamed(const Descriptor& from, const std::string& old_name,
                int directory, const char* name) const;
  void RemoveEmptyParents(const std::string& key) const;
  StoreResult Walk(const Descriptor& directory, const std::string& path,
                   const std::string& prefix, const std::string& after,
                   ListPage* page) const;

  const StoreOptions options_;
  const std::string place_;
  const Descriptor root_;
  const uid_t owner_;
  const gid_t group_;
  const mode_t directory_mode_;
  const mode_t file_mode_;
  mutable StopSignal stop_;
  // False after link() failed with HasNoLinks(). After that, puts rename their
  // files.
  mutable std::atomic<bool> has_links_{true};
};

// Ignores lost+found, which a new file system contains. Ignores objects that an
// earlier attempt to create an archive left.
StoreResult DirectoryStore::CheckUnused() {
  const DirectoryStream names = NamesIn(root_.get());
  if (names == nullptr) {
    return FromErrno(place_, errno);
  }
  std::string found;
  while (const dirent* entry = readdir(names.get())) {
    const std::string name = entry->d_name;
    if (name == ".." || name == "." || name == kPrivate || name == "init" ||
        name == "lost+found") {
      continue;
    }
    // Reports CURRENT rather than another file, because CURRENT shows that the
    // directory contains a database.
    if (found.empty() || name == "CURRENT") {
      found = name;
    }
  }
  return found.empty()
             ? StoreResult{}
             : StoreError(StoreCode::kExists,
                          place_ + ": expected an empty directory for an "
                                   "archive, found " +
                              (found == "CURRENT" ? "a database"
                                                  : "'" + Printable(found) +
                                                        "'") +
                              ": make one for it");
}

StoreResult DirectoryStore::Begin(const std::string& key) const {
  if (stop_.stopped()) {
    return StoreError(StoreCode::kCancelled, place_ + ": cancelled");
  }
  if (Clock::now() >= options_.until) {
    return {StoreCode::kUnreachable,
            MakeStatus(EndState::kDeadline,
                       Describe(key) + ": not done in the time allowed")};
  }
  return IsStoreKey(key) ? StoreResult{}
                         : StoreError(StoreCode::kInternal,
                                      "not a valid key of a "
                                      "store: " + Printable(key));
}

StoreResult DirectoryStore::CheckPlace() const {
  struct stat own = {};
  struct stat found = {};
  // Follows symbolic links in the address, like OpenDirectoryStore().
  const bool is_known = fstat(root_.get(), &own) == 0 &&
                        fstatat(AT_FDCWD, place_.c_str(), &found, 0) == 0;
  const int error = is_known ? 0 : errno;
  if (is_known && own.st_dev == found.st_dev && own.st_ino == found.st_ino) {
    return {};
  }
  const StoreCode code = is_known ? StoreCode::kMoved : CodeOfErrno(error);
  return {StoreCode::kMoved,
          StoreError(code,
                     place_ + ": expected the directory that was there when "
                              "this command began, found " +
                         (is_known ? std::string("another one")
                                   : std::string("none: ") +
                                         std::strerror(error)) +
                         "; it may have been moved, unmounted or replaced. "
                         "Make it available again, or make a new archive with "
                         "`sstferry archive init " + place_ +
                         "`; then start this command again")
              .status};
}

// If root has put a file or directory, makes the archive's owner its owner, so
// that the owner can prune it. Changes the owner only if no other account can
// access the file or directory. The archive's owner cannot have moved such a
// directory of root's here from another directory, because that requires write
// permission for the moved directory. (The archive's owner can exchange it with
// another directory of root's that has the same parent, such as lost+found, and
// then owns the other one.)
bool DirectoryStore::GiveAway(int fd, mode_t mode) const {
  struct stat info = {};
  if (fstat(fd, &info) != 0) {
    return false;
  }
  const bool gives = geteuid() == 0 && owner_ != 0 && info.st_uid == 0 &&
                     (info.st_mode & (S_ISUID | S_ISVTX | S_IRWXG | S_IRWXO)) ==
                         0;
  return (!gives || fchown(fd, owner_, group_) == 0) && fchmod(fd, mode) == 0;
}

StoreResult DirectoryStore::MakeDirectory(const Descriptor& parent,
                                          const std::string& name,
                                          const std::string& what) const {
  if (mkdirat(parent.get(), name.c_str(), 0700) != 0) {
    return errno == EEXIST ? StoreResult{} : FromErrno(what, errno);
  }
  const Descriptor made = OpenDirectoryIn(parent.get(), name);
  if (!made.is_open() || !GiveAway(made.get(), directory_mode_) ||
      !SyncOpen(made.get()) || !SyncOpen(parent.get())) {
    return FromErrno(what, errno);
  }
  return {};
}

StoreResult DirectoryStore::OpenParent(const std::string& key, bool make,
                                       Descriptor* directory,
                                       std::string* name) const {
  const std::vector<std::string> parts = Split(key);
  *name = parts.back();
  Descriptor at = OpenDirectoryIn(root_.get(), ".");
  for (size_t i = 0; i + 1 < parts.size() && at.is_open(); ++i) {
    Descriptor next = OpenDirectoryIn(at.get(), parts[i]);
    if (!next.is_open() && errno == ENOENT && make) {
      if (StoreResult made = MakeDirectory(at, parts[i], Describe(key));
          !made.ok()) {
        return made;
      }
      next = OpenDirectoryIn(at.get(), parts[i]);
    }
    // Syncs the parent even if the directory exists. The process that created
    // the directory may have been killed before it synced the name.
    if (next.is_open() && make && !SyncOpen(at.get())) {
      return FromErrno(Describe(key), errno);
    }
    at = std::move(next);
  }
  if (!at.is_open()) {
    return FromErrno(Describe(key), errno);
  }
  *directory = std::move(at);
  return {};
}

StoreResult DirectoryStore::OpenPrivate(bool make,
                                        Descriptor* directory) const {
  const std::string what = Describe(kPrivate);
  if (make) {
    if (StoreResult made = MakeDirectory(root_, kPrivate, what); !made.ok()) {
      return made;
    }
  }
  *directory = OpenDirectoryIn(root_.get(), kPrivate);
  return directory->is_open() ? StoreResult{} : FromErrno(what, errno);
}

StoreResult DirectoryStore::OpenFile(const std::string& key, Descriptor* file,
                                     struct stat* info) const {
  Descriptor directory;
  std::string name;
  if (StoreResult opened = OpenParent(key, false, &directory, &name);
      !opened.ok()) {
    return opened;
  }
  *file = OpenIn(directory.get(), name, O_RDONLY);
  if (!file->is_open() || fstat(file->get(), info) != 0) {
    return FromErrno(Describe(key), errno);
  }
  return S_ISREG(info->st_mode)
             ? StoreResult{}
             : StoreError(StoreCode::kAbsent,
                          Describe(key) +
                              ": expected a file, found something else");
}

// Opens a file for Now(), which writes to it and reads the modification time
// that the file system sets. The file belongs to this account, so no other
// account except root can set a false time on it. Prefers the file that an
// earlier call left, because a full disk may have no room for a new one.
StoreResult DirectoryStore::OpenClock(Descriptor* file) const {
  Descriptor directory;
  if (StoreResult opened = OpenPrivate(true, &directory); !opened.ok()) {
    return opened;
  }
  const std::string own = kClock + std::to_string(geteuid());
  struct stat info = {};
  *file = OpenIn(directory.get(), own, O_WRONLY | O_CREAT, 0644);
  if (file->is_open() && fstat(file->get(), &info) == 0 &&
      S_ISREG(info.st_mode) && info.st_uid == geteuid() &&
      info.st_nlink == 1 && info.st_size <= 1) {
    return {};
  }
  const std::string name = "time-" + ToHex(RandomId());
  *file = OpenIn(directory.get(), name, O_WRONLY | O_CREAT | O_EXCL, 0600);
  if (!file->is_open()) {
    return FromErrno(Describe(kPrivate), errno);
  }
  unlinkat(directory.get(), name.c_str(), 0);
  return {};
}

StoreResult DirectoryStore::Now(UnixSeconds* now) {
  if (StoreResult begun = Begin("time"); !begun.ok()) {
    return begun;
  }
  Descriptor file;
  if (StoreResult opened = OpenClock(&file); !opened.ok()) {
    return opened;
  }
  // Uses the time that the file system or the NFS server sets on a written
  // file. If the disk is full, requests the current time with futimens(),
  // without a write.
  struct stat info = {};
  constexpr timespec kNow[2] = {{0, UTIME_NOW}, {0, UTIME_NOW}};
  bool worked = pwrite(file.get(), "t", 1, 0) == 1 && SyncOpen(file.get());
  if (!worked && CodeOfErrno(errno) == StoreCode::kNoSpace) {
    worked = futimens(file.get(), kNow) == 0;
  }
  if (!worked || fstat(file.get(), &info) != 0) {
    return FromErrno(Describe(kPrivate), errno);
  }
  *now = info.st_mtim.tv_sec;
  return {};
}

StoreResult DirectoryStore::Write(const std::string& what,
                                  const Descriptor& file, uint64_t offset,
                                  const ByteSource& bytes,
                                  const Sha256Digest& sha256) const {
  Sha256 digest;
  std::string scratch;
  for (uint64_t at = 0; at < bytes.size();) {
    if (stop_.stopped()) {
      return StoreError(StoreCode::kCancelled, what + ": cancelled");
    }
    Slice piece;
    const Status read =
        bytes.Read(at, std::min<uint64_t>(kFilePieceBytes, bytes.size() - at),
                   &scratch, &piece);
    if (!read.ok()) {
      return {StoreCode::kCaller, read};
    }
    digest.Update(piece);
    while (!piece.empty()) {
      const ssize_t n = pwrite(file.get(), piece.data(), piece.size(),
                               static_cast<off_t>(offset + at));
      if (n < 0 && errno == EINTR) {
        continue;
      }
      if (n <= 0) {
        return FromErrno(what, errno);
      }
      at += static_cast<uint64_t>(n);
      piece.remove_prefix(static_cast<size_t>(n));
    }
  }
  if (digest.Finish() != sha256) {
    return StoreError(StoreCode::kDamaged,
                      what + ": expected SHA-256 " + ToHex(sha256) +
                          ", found other bytes");
  }
  return SyncOpen(file.get()) ? StoreResult{} : FromErrno(what, errno);
}

StoreResult DirectoryStore::Publish(
    const std::string& key, bool if_absent, const struct stat& info,
    const std::function<int(int directory, const char* name)>& link) const {
  const std::string what = Describe(key);
  for (int i = 0; i < kMaxPutTries; ++i) {
    Descriptor directory;
    std::string name;
    if (StoreResult opened = OpenParent(key, true, &directory, &name);
        !opened.ok()) {
      return opened;
    }
    bool is_there = link(directory.get(), name.c_str()) == 0;
    int error = is_there ? 0 : errno;
    if (error == EEXIST) {
      // On NFS, the server may have created the link, but its reply was lost.
      struct stat found = {};
      is_there = fstatat(directory.get(), name.c_str(), &found,
                         AT_SYMLINK_NOFOLLOW) == 0 &&
                 found.st_ino == info.st_ino && found.st_dev == info.st_dev;
    }
    if (!is_there && error == EEXIST && !if_absent) {
      // Links the file under a temporary name, and renames the temporary name
      // to the name of the old file.
      Descriptor spare;
      if (StoreResult opened = OpenPrivate(true, &spare); !opened.ok()) {
        return opened;
      }
      const std::string other = "new-" + ToHex(RandomId());
      is_there = link(spare.get(), other.c_str()) == 0 &&
                 renameat(spare.get(), other.c_str(), directory.get(),
                          name.c_str()) == 0;
      error = is_there ? 0 : errno;
      if (!is_there) {
        unlinkat(spare.get(), other.c_str(), 0);
      }
    }
    if (is_there) {
      return SyncOpen(directory.get()) ? CheckPlace() : FromErrno(what, errno);
    }
    if (!has_links_ && (error == EINVAL || HasNoLinks(error))) {
      return StoreError(
          StoreCode::kUnsupported,
          what + ": this file system has neither hard links nor a rename that "
                 "fails if the new name exists (" + std::strerror(error) +
              "), and an archive needs one of them; choose another file "
              "system");
    }
    // Syncs the name of the existing object, because the caller relies on the
    // object. The process that put it may have been killed before it synced the
    // name.
    if (error == EEXIST && !SyncOpen(directory.get())) {
      return FromErrno(what, errno);
    }
    if (error != ENOENT) {
      return FromErrno(what, error);
    }
    // The directory was empty, and another process removed it.
  }
  return StoreError(StoreCode::kInternal,
                    what + ": its directory was removed at each attempt");
}

StoreResult DirectoryStore::Put(const PutRequest& request) {
  if (StoreResult begun = Begin(request.key); !begun.ok()) {
    return begun;
  }
  if (StoreResult checked = CheckPlace(); !checked.ok()) {
    return checked;
  }
  const std::string what = Describe(request.key);
  Descriptor file = has_links_
                        ? OpenIn(root_.get(), ".", O_TMPFILE | O_WRONLY, 0600)
                        : Descriptor();
  Descriptor spare;
  std::string spare_name;
  if (!file.is_open()) {
    if (has_links_ && errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT &&
        errno != EINVAL) {
      return FromErrno(what, errno);
    }
    // Creates a named file. NFS has no unnamed files. Without hard links, an
    // unnamed file cannot get a name later.
    if (StoreResult opened = OpenPrivate(true, &spare); !opened.ok()) {
      return opened;
    }
    spare_name = "put-" + ToHex(RandomId());
    file = OpenIn(spare.get(), spare_name, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (!file.is_open()) {
      return FromErrno(what, errno);
    }
  }
  const bool is_named = spare.is_open();
  bool has_no_links = false;
  struct stat info = {};
  std::vector<Sha256Digest> digests;
  StoreResult result =
      GiveAway(file.get(), file_mode_) && fstat(file.get(), &info) == 0
          ? PutPieces(request,
                      [&](uint64_t offset, const ByteSource& piece,
                          const Sha256Digest& sha256) {
                        digests.push_back(sha256);
                        return Write(what, file, offset, piece, sha256);
                      })
          : FromErrno(what, errno);
  if (result.ok()) {
    const std::string path = "/proc/self/fd/" + std::to_string(file.get());
    result = Publish(
        request.key, request.if_absent, info,
        [&](int directory, const char* name) {
          if (is_named) {
            return LinkNamed(spare, spare_name, directory, name);
          }
          const int linked = linkat(AT_FDCWD, path.c_str(), directory, name,
                                    AT_SYMLINK_FOLLOW);
          has_no_links |= linked != 0 && HasNoLinks(errno);
          return linked;
        });
  }
  if (is_named) {
    if (!result.ok() && fstat(file.get(), &info) == 0 && info.st_nlink == 0) {
      return StoreError(StoreCode::kAbsent,
                        what + ": a prune removed the unfinished file");
    }
    // If unlinkat() fails, a prune removes the file later.
    unlinkat(spare.get(), spare_name.c_str(), 0);
    return result;
  }
  if (!has_no_links) {
    return result;
  }
  // Writes the bytes again into a named file, because the unnamed file cannot
  // get a name.
  has_links_ = false;
  PutRequest again = request;
  again.digest = [&, next = size_t{0}](uint64_t, uint64_t,
                                       Sha256Digest* sha256) mutable {
    *sha256 = digests[next++];
    return Status::OK();
  };
  return Put(again);
}

int DirectoryStore::LinkNamed(const Descriptor& from,
                              const std::string& old_name, int directory,
                              const char* name) const {
  if (has_links_) {
    const int linked =
        linkat(from.get(), old_name.c_str(), directory, name, 0);
    if (linked == 0 || !HasNoLinks(errno)) {
      return linked;
    }
    has_links_ = false;
  }
  return renameat2(from.get(), old_name.c_str(), directory, name,
                   RENAME_NOREPLACE);
}

StoreResult DirectoryStore::GetUnproven(const GetRequest& request,
                                        const ObjectSink& sink) {
  if (StoreResult begun = Begin(request.key); !begun.ok()) {
    return begun;
  }
  const std::string what = Describe(request.key);
  Descriptor file;
  struct stat found = {};
  if (StoreResult opened = OpenFile(request.key, &file, &found);
      !opened.ok()) {
    return opened;
  }
  const auto object_bytes = static_cast<uint64_t>(found.st_size);
  const uint64_t left = object_bytes - std::min(object_bytes, request.offset);
  const uint64_t n = request.bytes.value_or(left);
  if (n > left || (!request.bytes.has_value() && n > request.max_bytes)) {
    return StoreError(
        StoreCode::kDamaged,
        what + ": expected a file of " +
            (request.bytes.has_value()
                 ? std::to_string(request.offset + n) + " bytes or more"
                 : "at most " + std::to_string(request.max_bytes) + " bytes") +
            ", found one of " + std::to_string(object_bytes));
  }
  std::string buffer(std::min<uint64_t>(n, kFilePieceBytes), '\0');
  for (uint64_t at = 0; at < n;) {
    if (stop_.stopped()) {
      return StoreError(StoreCode::kCancelled, what + ": cancelled");
    }
    const ssize_t got =
        pread(file.get(), buffer.data(),
              std::min<uint64_t>(buffer.size(), n - at),
              static_cast<off_t>(request.offset + at));
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      return FromErrno(what, errno);
    }
    if (got == 0) {
      return StoreError(StoreCode::kDamaged, what + ": it was truncated while "
                                                    "it was read");
    }
    const Status taken = sink(Slice(buffer.data(), static_cast<size_t>(got)));
    if (!taken.ok()) {
      return {StoreCode::kCaller, taken};
    }
    at += static_cast<uint64_t>(got);
  }
  return {};
}

StoreResult DirectoryStore::HeadUnproven(const std::string& key,
                                         ObjectInfo* info) {
  if (StoreResult begun = Begin(key); !begun.ok()) {
    return begun;
  }
  Descriptor directory;
  std::string name;
  struct stat found = {};
  if (StoreResult opened = OpenParent(key, false, &directory, &name);
      !opened.ok()) {
    return opened;
  }
  if (fstatat(directory.get(), name.c_str(), &found, AT_SYMLINK_NOFOLLOW) !=
      0) {
    return FromErrno(Describe(key), errno);
  }
  if (!S_ISREG(found.st_mode)) {
    return StoreError(StoreCode::kAbsent,
                      Describe(key) + ": expected a file, found something else");
  }
  *info = InfoOfFile(key, found);
  return {};
}

// Visits the keys below a directory in order. Keeps and looks up only as many
// names of the directory as fit on a page.
StoreResult DirectoryStore::Walk(const Descriptor& directory,
                                 const std::string& path,
                                 const std::string& prefix,
                                 const std::string& after,
                                 ListPage* page) const {
  const DirectoryStream names = NamesIn(directory.get());
  if (names == nullptr) {
    // The directory was removed after its name was read.
    return errno == ENOENT ? StoreResult{}
                           : FromErrno(place_ + "/" + path, errno);
  }
  std::priority_queue<Entry> smallest;
  errno = 0;
  while (const dirent* found = readdir(names.get())) {
    Entry entry;
    entry.order = found->d_name;
    const std::string key = path + entry.order;
    const std::string below = key + "/";
    // Skips an entry that has no requested key after `after`, neither as a file
    // nor below it as a directory.
    const size_t n = std::min(key.size(), prefix.size());
    if (entry.order[0] == '.' || key.compare(0, n, prefix, 0, n) != 0 ||
        (below < after && !after.starts_with(below))) {
      continue;
    }
    entry.is_directory = found->d_type == DT_DIR;
    if (found->d_type == DT_UNKNOWN) {  // some file systems do not report it
      struct stat info = {};
      if (fstatat(directory.get(), found->d_name, &info,
                  AT_SYMLINK_NOFOLLOW) != 0) {
        if (errno != ENOENT) {
          return FromErrno(Describe(key), errno);
        }
        errno = 0;
        continue;  // it was deleted after readdir()
      }
      entry.is_directory = S_ISDIR(info.st_mode);
    }
    if (entry.is_directory) {
      if (below.size() <= prefix.size() && !prefix.starts_with(below)) {
        continue;
      }
      entry.order += '/';
    } else if (key <= after || !key.starts_with(prefix)) {
      continue;
    }
    if (smallest.size() <= kMaxPage) {
      smallest.push(std::move(entry));
    } else if (entry < smallest.top()) {
      smallest.pop();
      smallest.push(std::move(entry));
    }
    errno = 0;
  }
  if (errno != 0) {
    return FromErrno(place_ + "/" + path, errno);
  }
  std::vector<Entry> entries;
  for (; !smallest.empty(); smallest.pop()) {
    entries.push_back(smallest.top());
  }
  std::reverse(entries.begin(), entries.end());
  const bool is_cut = entries.size() > kMaxPage;
  for (const Entry& entry : entries) {
    if (page->more) {
      return {};
    }
    const std::string key = path + entry.name();
    if (entry.is_directory) {
      const Descriptor below = OpenDirectoryIn(directory.get(), entry.name());
      if (!below.is_open()) {
        if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP) {
          continue;
        }
        return FromErrno(place_ + "/" + key, errno);
      }
      if (key.size() >= kMaxStoreKeyBytes) {
        page->foreign++;  // sstferry writes no key of this length
        continue;
      }
      if (StoreResult walked = Walk(below, key + "/", prefix, after, page);
          !walked.ok()) {
        return walked;
      }
      continue;
    }
    if (page->objects.size() + page->foreign == kMaxPage) {
      page->more = true;
      return {};
    }
    struct stat info = {};
    if (fstatat(directory.get(), entry.order.c_str(), &info,
                AT_SYMLINK_NOFOLLOW) != 0) {
      if (errno == ENOENT) {
        continue;  // deleted meanwhile
      }
      return FromErrno(Describe(key), errno);
    }
    page->next = key;
    if (S_ISREG(info.st_mode) && IsStoreKey(key)) {
      page->objects.push_back(InfoOfFile(key, info));
    } else {
      page->foreign++;
    }
  }
  if (is_cut && !page->more) {
    // `smallest` dropped names that sort after the last entry. The entries did
    // not fill the page, because some were empty directories or were deleted.
    // So the next page begins after the last entry.
    page->more = true;
    page->next = path + entries.back().order;
  }
  return {};
}

StoreResult DirectoryStore::List(const std::string& prefix,
                                 const std::string& after, ListPage* page) {
  *page = {};
  if (StoreResult begun = Begin("list"); !begun.ok()) {
    return begun;
  }
  StoreResult walked = Walk(root_, "", prefix, after, page);
  if (!page->more) {
    page->next.clear();
  }
  return walked;
}

void DirectoryStore::RemoveEmptyParents(const std::string& key) const {
  std::string path = key;
  for (size_t slash = path.rfind('/'); slash != std::string::npos;
       slash = path.rfind('/')) {
    path.resize(slash);
    Descriptor directory;
    std::string name;
    if (!OpenParent(path, false, &directory, &name).ok() ||
        unlinkat(directory.get(), name.c_str(), AT_REMOVEDIR) != 0) {
      return;  // not empty, or already removed
    }
  }
}

StoreResult DirectoryStore::Delete(const std::vector<std::string>& keys) {
  if (keys.size() > kMaxStorePage) {
    return StoreError(StoreCode::kInternal,
                      "delete: more keys than fit on one page");
  }
  for (const std::string& key : keys) {
    if (StoreResult begun = Begin(key); !begun.ok()) {
      return begun;
    }
    Descriptor directory;
    std::string name;
    StoreResult opened = OpenParent(key, false, &directory, &name);
    if (opened.code == StoreCode::kAbsent) {
      continue;
    }
    if (!opened.ok()) {
      return opened;
    }
    if (unlinkat(directory.get(), name.c_str(), 0) != 0 && errno != ENOENT) {
      return FromErrno(Describe(key), errno);
    }
    if (!SyncOpen(directory.get())) {
      return FromErrno(Describe(key), errno);
    }
    RemoveEmptyParents(key);
  }
  return {};
}

StoreResult DirectoryStore::RemoveUploads(
    UnixSeconds before,
    const std::function<bool(const std::string& key)>& /*may_remove*/,
    uint64_t* removed) {
  if (StoreResult begun = Begin("uploads"); !begun.ok()) {
    return begun;
  }
  Descriptor directory;
  StoreResult opened = OpenPrivate(false, &directory);
  if (!opened.ok()) {
    return opened.code == StoreCode::kAbsent ? StoreResult{}
                                             : std::move(opened);
  }
  const DirectoryStream names = NamesIn(directory.get());
  if (names == nullptr) {
    return FromErrno(Describe(kPrivate), errno);
  }
  const std::string clock = kClock;
  while (const dirent* found = readdir(names.get())) {
    struct stat info = {};
    // Keeps clock files, because a full disk has no room for new ones.
    if (clock.compare(0, clock.size(), found->d_name, 0, clock.size()) == 0 ||
        fstatat(directory.get(), found->d_name, &info, AT_SYMLINK_NOFOLLOW) !=
            0 ||
        !S_ISREG(info.st_mode) || info.st_mtim.tv_sec >= before) {
      continue;
    }
    if (unlinkat(directory.get(), found->d_name, 0) != 0 && errno != ENOENT) {
      return FromErrno(Describe(kPrivate), errno);
    }
    ++*removed;
  }
  return {};
}

}  // namespace

Status OpenDirectoryStore(const StoreOptions& options,
                          std::unique_ptr<ObjectStore>* store) {
  const std::string& place = options.where.directory;
  // Follows symbolic links in the path of the directory, because the operator
  // chose this path. Follows no links below the directory.
  const std::unique_ptr<char, decltype(&std::free)> real(
      realpath(place.c_str(), nullptr), &std::free);
  Descriptor root;
  struct stat info = {};
  if (real != nullptr) {
    // Opens the directory a second time, because the first descriptor has
    // O_PATH, which cannot be synced.
    root = OpenDirectoryIn(OpenDirectory(real.get()).get(), ".");
  }
  if (!root.is_open() || fstat(root.get(), &info) != 0) {
    return MakeStatus(EndState::kRefused,
                      place + ": expected a directory, found none: " +
                          std::strerror(errno));
  }
  *store = std::make_unique<DirectoryStore>(options, std::move(root),
                                            info);
  return Status::OK();
}

}  // namespace sstferry
