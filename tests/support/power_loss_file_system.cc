#include "tests/support/power_loss_file_system.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "tests/support/power_loss_files.h"

namespace sstferry {
namespace {

// Returns true if `path` contains `part`, apart from ".sstferry": see
// FailSync().
bool Contains(std::string path, const std::string& part) {
  const std::string end = ".sstferry";
  const size_t at = path.find(end);
  if (at != std::string::npos) {
    path.erase(at, end.size());
  }
  return path.find(part) != std::string::npos;
}

using rocksdb::FileOptions;
using rocksdb::FSDirectory;
using rocksdb::FSRandomRWFile;
using rocksdb::FSWritableFile;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using Id = DurableNames::Id;

constexpr uint64_t kEndOfFile = UINT64_MAX;

IOStatus PowerIsOff() { return IOStatus::IOError("the power is off"); }

void Must(bool received, const std::string& what) {
  if (!received) {
    std::perror(what.c_str());
    std::abort();
  }
}

uint64_t SizeOf(const std::string& path) {
  struct stat info;
  Must(stat(path.c_str(), &info) == 0, "stat " + path);
  return static_cast<uint64_t>(info.st_size);
}

std::string ReadPart(const std::string& path, uint64_t offset,
                     uint64_t bytes) {
  std::string data(bytes, '\0');
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  Must(fd >= 0, "open " + path);
  Must(pread(fd, data.data(), bytes, static_cast<off_t>(offset)) ==
           static_cast<ssize_t>(bytes),
       "read " + path);
  close(fd);
  return data;
}

void WritePart(const std::string& path, uint64_t offset,
               const std::string& bytes) {
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  Must(fd >= 0, "open " + path);
  Must(pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset)) ==
           static_cast<ssize_t>(bytes.size()),
       "write " + path);
  close(fd);
}

// Copies the overlap of two pieces of a file: from `from`, which begins at
// offset `at`, into `to`, which begins at `offset`.
void Overlay(uint64_t at, const std::string& from, uint64_t offset,
             std::string* to) {
  const uint64_t begin = std::max(at, offset);
  const uint64_t end = std::min(at + from.size(), offset + to->size());
  if (begin < end) {
    to->replace(begin - offset, end - begin, from, begin - at, end - begin);
  }
}

bool IsEmptyDirectory(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error) &&
         std::filesystem::is_empty(path, error);
}

void Move(const std::string& from, const std::string& to) {
  Must(rename(from.c_str(), to.c_str()) == 0, "rename " + from);
}

}  // namespace

PowerLossFileSystem::PowerLossFileSystem(const std::string& root)
    : RenamingFileSystem(rocksdb::FileSystem::Default()),
      names_(root, root + ".limbo") {
  for (const Id id : names_.files()) {
    Contents& contents = contents_[id];
    contents.size = contents.synced_size = SizeOf(names_.LimboPath(id));
  }
}

PowerLossFileSystem::~PowerLossFileSystem() = default;

IOStatus PowerLossFileSystem::Check(const std::string& path,
                                    Place* place) const {
  if (lost_) {
    return PowerIsOff();
  }
  return names_.Find(path, place)
             ? IOStatus::OK()
             : IOStatus::PathNotFound(path, "its directory is not known");
}

Id PowerLossFileSystem::Adopt(const Place& place) {
  Id id = names_.At(place);
  if (id == 0) {
    struct stat info;
    if (lstat(names_.PathOf(place).c_str(), &info) != 0) {
      return 0;
    }
    id = names_.Created(place, /*is_dir=*/false);
    contents_[id] = Contents();
  }
  return id;
}

// Remembers the synced bytes of [offset, end), which are about to change.
// Forgets which of these bytes a failed sync lost: the next sync writes the new
// bytes.
void PowerLossFileSystem::KeepSynced(Id file, uint64_t offset, uint64_t end) {
  Contents& contents = contents_[file];
  uint64_t limit = std::min(end, std::min(contents.size,
                                          contents.synced_size));
  if (offset < limit) {
    std::string bytes =
        ReadPart(names_.LimboPath(file), offset, limit - offset);
    for (const auto& [at, lost] : contents.lost) {
      Overlay(at, lost, offset, &bytes);
    }
    contents.overwritten.emplace_back(offset, std::move(bytes));
  }
  Pieces left;
  for (const auto& [at, lost] : contents.lost) {
    if (at < offset) {
      left.emplace_back(at, lost.substr(0, offset - at));
    }
    if (at + lost.size() > end) {
      const uint64_t skipped = end > at ? end - at : 0;
      left.emplace_back(at + skipped, lost.substr(skipped));
    }
  }
  contents.lost = offset < end ? std::move(left) : contents.lost;
}

// Loses the bytes that are not synced, but leaves them in the page cache.
void PowerLossFileSystem::LoseUnsynced(Contents* contents) {
  for (auto it = contents->overwritten.rbegin();
       it != contents->overwritten.rend(); ++it) {
    const auto& [offset, bytes] = *it;
    if (offset < contents->size) {
      contents->lost.emplace_back(
          offset, bytes.substr(0, contents->size - offset));
    }
  }
  if (contents->size > contents->synced_size) {
    contents->lost.emplace_back(
        contents->synced_size,
        std::string(contents->size - contents->synced_size, '\0'));
  }
}

void PowerLossFileSystem::ShowLost(Id file) {
  const auto found = contents_.find(file);
  if (found == contents_.end()) {
    return;  // a directory
  }
  for (const auto& [offset, bytes] : found->second.lost) {
    WritePart(names_.LimboPath(file), offset, bytes);
  }
  found->second.lost.clear();
}

void PowerLossFileSystem::DropCache(Id file) {
  std::lock_guard<std::mutex> lock(mu_);
  if (!lost_) {
    ShowLost(file);
  }
}

void PowerLossFileSystem::FailSync(const std::string& part, uint64_t nth,
                                   const IOStatus& status) {
  std::lock_guard<std::mutex> lock(mu_);
  failing_ = part;
  syncs_to_fail_ = nth;
  failure_ = status;
}

IOStatus PowerLossFileSystem::Change(
    Id file, uint64_t offset, uint64_t end,
    const std::function<IOStatus()>& change) {
  std::lock_guard<std::mutex> lock(mu_);
  if (lost_) {
    return PowerIsOff();
  }
  KeepSynced(file, offset, end);
  const IOStatus status = change();
  contents_[file].size = SizeOf(names_.LimboPath(file));
  return status;
}

IOStatus PowerLossFileSystem::SyncFile(Id file) {
  std::lock_guard<std::mutex> lock(mu_);
  if (lost_) {
    return PowerIsOff();
  }
  Contents& contents = contents_[file];
  const bool fails = syncs_to_fail_ > 0 &&
                     Contains(contents.path, failing_) &&
                     --syncs_to_fail_ == 0;
  if (fails) {
    LoseUnsynced(&contents);
  }
  contents.synced_size = contents.size;
  contents.overwritten.clear();
  return fails ? failure_ : IOStatus::OK();
}

IOStatus PowerLossFileSystem::SyncNames(Id dir) {
  std::lock_guard<std::mutex> lock(mu_);
  if (lost_) {
    return PowerIsOff();
  }
  names_.Synced(dir);
  return IOStatus::OK();
}

IOStatus PowerLossFileSystem::OpenForWriting(
    const std::string& name, const FileOptions& options, bool truncate,
    std::unique_ptr<FSWritableFile>* file, IODebugContext* dbg) {
  std::lock_guard<std::mutex> lock(mu_);
  Place place;
  IOStatus status = Check(name, &place);
  if (!status.ok()) {
    return status;
  }
  if (truncate && names_.At(place) != 0) {
    KeepSynced(names_.At(place), 0, kEndOfFile);
  }
  status = truncate ? target()->NewWritableFile(name, options, file, dbg)
                    : target()->ReopenWritableFile(name, options, file, dbg);
  // An open that fails may still have made the file, as O_DIRECT does on some
  // systems.
  const Id id = Adopt(place);
  if (status.ok()) {
    contents_[id].path = name;
    contents_[id].size = SizeOf(names_.LimboPath(id));
    contents_[id].is_manifest = name.find("/MANIFEST-") != std::string::npos;
    *file = WatchFile(std::move(*file), id, this);
  }
  return status;
}

IOStatus PowerLossFileSystem::NewWritableFile(
    const std::string& name, const FileOptions& options,
    std::unique_ptr<FSWritableFile>* file, IODebugContext* dbg) {
  return names_.IsBelowRoot(name)
             ? OpenForWriting(name, options, true, file, dbg)
             : target()->NewWritableFile(name, options, file, dbg);
}

IOStatus PowerLossFileSystem::ReopenWritableFile(
    const std::string& name, const FileOptions& options,
    std::unique_ptr<FSWritableFile>* file, IODebugContext* dbg) {
  return names_.IsBelowRoot(name)
             ? OpenForWriting(name, options, false, file, dbg)
             : target()->ReopenWritableFile(name, options, file, dbg);
}

IOStatus PowerLossFileSystem::ReuseWritableFile(
    const std::string& name, const std::string& old_name,
    const FileOptions& options, std::unique_ptr<FSWritableFile>* file,
    IODebugContext* dbg) {
  const IOStatus status = RenameFile(old_name, name, IOOptions(), dbg);
  return status.ok() ? NewWritableFile(name, options, file, dbg) : status;
}

IOStatus PowerLossFileSystem::NewRandomRWFile(
    const std::string& name, const FileOptions& options,
    std::unique_ptr<FSRandomRWFile>* file, IODebugContext* dbg) {
  if (!names_.IsBelowRoot(name)) {
    return target()->NewRandomRWFile(name, options, file, dbg);
  }
  std::lock_guard<std::mutex> lock(mu_);
  Place place;
  IOStatus status = Check(name, &place);
  if (status.ok()) {
    status = target()->NewRandomRWFile(name, options, file, dbg);
  }
  if (status.ok()) {
    const Id id = Adopt(place);
    contents_[id].path = name;
    *file = WatchRandomRWFile(std::move(*file), id, this);
  }
  return status;
}

IOStatus PowerLossFileSystem::NewRandomAccessFile(
    const std::string& name, const FileOptions& options,
    std::unique_ptr<rocksdb::FSRandomAccessFile>* file, IODebugContext* dbg) {
  std::lock_guard<std::mutex> lock(mu_);
  const Id id = lost_ ? 0 : names_.At(name);
  if (id != 0 && options.use_direct_reads) {
    ShowLost(id);
  }
  const IOStatus status =
      target()->NewRandomAccessFile(name, options, file, dbg);
  if (status.ok() && id != 0) {
    *file = WatchRandomAccessFile(std::move(*file), id, this);
  }
  return status;
}

IOStatus PowerLossFileSystem::NewDirectory(
    const std::string& name, const IOOptions& options,
    std::unique_ptr<FSDirectory>* directory, IODebugContext* dbg) {
  std::lock_guard<std::mutex> lock(mu_);
  if (lost_) {
    return PowerIsOff();
  }
  const Id id = names_.At(name);
  if (!names_.IsDir(id)) {
    return names_.IsBelowRoot(name)
               ? IOStatus::PathNotFound(name, "no directory")
               : target()->NewDirectory(name, options, directory, dbg);
  }
  *directory = WatchDirectory(id, this);
  return IOStatus::OK();
}

IOStatus PowerLossFileSystem::MakeDir(const std::string& name, bool may_exist,
                                      const IOOptions& options,
                                      IODebugContext* dbg) {
  std::lock_guard<std::mutex> lock(mu_);
  if (names_.IsDir(names_.At(name)) && may_exist && !lost_) {
    return IOStatus::OK();
  }
  Place place;
  IOStatus status = Check(name, &place);
  if (status.ok()) {
    status = target()->CreateDir(name, options, dbg);
  }
  if (status.ok()) {
    names_.Created(place, /*is_dir=*/true);
  }
  return status;
}

IOStatus PowerLossFileSystem::CreateDir(const std::string& name,
                                        const IOOptions& options,
                                        IODebugContext* dbg) {
  return names_.IsBelowRoot(name) ? MakeDir(name, false, options, dbg)
                                  : target()->CreateDir(name, options, dbg);
}

IOStatus PowerLossFileSystem::CreateDirIfMissing(const std::string& name,
                                                 const IOOptions& options,
                                                 IODebugContext* dbg) {
  return names_.IsBelowRoot(name)
             ? MakeDir(name, true, options, dbg)
             : target()->CreateDirIfMissing(name, options, dbg);
}

IOStatus PowerLossFileSystem::DeleteFile(const std::string& name,
                                         const IOOptions& options,
                                         IODebugContext* dbg) {
  if (!names_.IsBelowRoot(name)) {
    return target()->DeleteFile(name, options, dbg);
  }
  std::lock_guard<std::mutex> lock(mu_);
  Place place;
  IOStatus status = Check(name, &place);
  if (status.ok()) {
    status = target()->DeleteFile(name, options, dbg);
  }
  if (status.ok()) {
    names_.Removed(place);
  }
  return status;
}

IOStatus PowerLossFileSystem::DeleteDir(const std::string& name,
                                        const IOOptions& options,
                                        IODebugContext* dbg) {
  if (!names_.IsBelowRoot(name)) {
    return target()->DeleteDir(name, options, dbg);
  }
  std::lock_guard<std::mutex> lock(mu_);
  Place place;
  IOStatus status = Check(name, &place);
  if (!status.ok()) {
    return status;
  }
  if (!IsEmptyDirectory(name)) {
    return target()->DeleteDir(name, options, dbg);  // returns why not
  }
  // Keeps the directory itself, so that an undo brings back the same inode.
  Move(name, names_.LimboPath(names_.At(place)));
  names_.Removed(place);
  return IOStatus::OK();
}

IOStatus PowerLossFileSystem::Truncate(const std::string& name, size_t size,
                                       const IOOptions& options,
                                       IODebugContext* dbg) {
  if (!names_.IsBelowRoot(name)) {
    return target()->Truncate(name, size, options, dbg);
  }
  Id id = 0;
  {
    std::lock_guard<std::mutex> lock(mu_);
    id = names_.At(name);
  }
  if (id == 0) {
    return IOStatus::PathNotFound(name);
  }
  return Change(id, size, kEndOfFile, [&] {
    return target()->Truncate(name, size, options, dbg);
  });
}

// Calls `rename` after it has found both places, and after it has moved a
// directory that is replaced to limbo.
IOStatus PowerLossFileSystem::Rename(const std::string& from,
                                     const std::string& to,
                                     const std::function<IOStatus()>& rename) {
  std::lock_guard<std::mutex> lock(mu_);
  Place from_place;
  Place to_place;
  IOStatus status = Check(from, &from_place);
  if (status.ok()) {
    status = Check(to, &to_place);
  }
  if (!status.ok()) {
    return status;
  }
  const std::string limbo = names_.LimboPath(names_.At(to_place));
  const bool replaces_dir =
      names_.IsDir(names_.At(to_place)) && IsEmptyDirectory(to);
  if (replaces_dir) {
    Move(to, limbo);
  }
  status = rename();
  if (status.ok()) {
    names_.Renamed(from_place, to_place);
  } else if (replaces_dir) {
    Move(limbo, to);
  }
  return status;
}

IOStatus PowerLossFileSystem::RenameFile(const std::string& from,
                                         const std::string& to,
                                         const IOOptions& options,
                                         IODebugContext* dbg) {
  const auto rename = [&] {
    return target()->RenameFile(from, to, options, dbg);
  };
  return names_.IsBelowRoot(from) ? Rename(from, to, rename) : rename();
}

IOStatus PowerLossFileSystem::RenameToNew(const std::string& from,
                                          const std::string& to) {
  const auto rename = [&] {
    return RenamingFileSystem::RenameToNew(from, to);
  };
  return names_.IsBelowRoot(from) ? Rename(from, to, rename) : rename();
}

IOStatus PowerLossFileSystem::LinkSymbolically(const std::string& to,
                                               const std::string& path) {
  if (!names_.IsBelowRoot(path)) {
    return RenamingFileSystem::LinkSymbolically(to, path);
  }
  std::lock_guard<std::mutex> lock(mu_);
  Place place;
  IOStatus status = Check(path, &place);
  if (status.ok()) {
    status = RenamingFileSystem::LinkSymbolically(to, path);
  }
  if (status.ok()) {
    contents_[names_.Created(place, /*is_dir=*/false)] = Contents();
  }
  return status;
}

IOStatus PowerLossFileSystem::ExchangeNames(const std::string& a,
                                            const std::string& b) {
  if (!names_.IsBelowRoot(a)) {
    return RenamingFileSystem::ExchangeNames(a, b);
  }
  std::lock_guard<std::mutex> lock(mu_);
  Place place_a;
  Place place_b;
  IOStatus status = Check(a, &place_a);
  if (status.ok()) {
    status = Check(b, &place_b);
  }
  if (status.ok()) {
    status = RenamingFileSystem::ExchangeNames(a, b);
  }
  if (status.ok()) {
    names_.Exchanged(place_a, place_b);
  }
  return status;
}

IOStatus PowerLossFileSystem::LinkFile(const std::string& from,
                                       const std::string& to,
                                       const IOOptions& options,
                                       IODebugContext* dbg) {
  if (!names_.IsBelowRoot(to)) {
    return target()->LinkFile(from, to, options, dbg);
  }
  std::lock_guard<std::mutex> lock(mu_);
  Place from_place;
  Place to_place;
  IOStatus status = Check(from, &from_place);
  if (status.ok()) {
    status = Check(to, &to_place);
  }
  if (status.ok()) {
    status = target()->LinkFile(from, to, options, dbg);
  }
  if (status.ok()) {
    names_.Linked(to_place, names_.At(from_place));
  }
  return status;
}

IOStatus PowerLossFileSystem::LockFile(const std::string& name,
                                       const IOOptions& options,
                                       rocksdb::FileLock** lock,
                                       IODebugContext* dbg) {
  if (!names_.IsBelowRoot(name)) {
    return target()->LockFile(name, options, lock, dbg);
  }
  std::lock_guard<std::mutex> guard(mu_);
  Place place;
  IOStatus status = Check(name, &place);
  if (status.ok()) {
    status = target()->LockFile(name, options, lock, dbg);
    Adopt(place);
  }
  return status;
}

std::vector<std::string> PowerLossFileSystem::Strangers() const {
  std::lock_guard<std::mutex> lock(mu_);
  std::vector<std::string> found = names_.Differences();
  for (const auto& [id, contents] : contents_) {
    const uint64_t size = SizeOf(names_.LimboPath(id));
    if (size != contents.size) {
      found.push_back("file " + std::to_string(id) + ": expected " +
                      std::to_string(contents.size) + " bytes, found " +
                      std::to_string(size));
    }
  }
  return found;
}

size_t PowerLossFileSystem::unsynced_names() const {
  std::lock_guard<std::mutex> lock(mu_);
  return names_.unsynced();
}

size_t PowerLossFileSystem::unsynced_files() const {
  std::lock_guard<std::mutex> lock(mu_);
  size_t found = 0;
  for (const auto& [id, contents] : contents_) {
    found += contents.is_synced() ? 0 : 1;
  }
  return found;
}

std::vector<std::string> PowerLossFileSystem::LosePower(Survival survival,
                                                        uint64_t seed) {
  std::lock_guard<std::mutex> lock(mu_);
  return Lose(survival, seed);
}

void PowerLossFileSystem::LosePowerAndExit(Survival survival, uint64_t seed,
                                           int code) {
  std::lock_guard<std::mutex> lock(mu_);
  for (const std::string& line : Lose(survival, seed)) {
    fprintf(stderr, "%s\n", line.c_str());
  }
  std::error_code error;
  std::filesystem::remove_all(names_.limbo(), error);
  _exit(code);
}

std::vector<std::string> PowerLossFileSystem::Lose(Survival survival,
                                                   uint64_t seed) {
  lost_ = true;
  std::mt19937_64 random(seed);
  std::vector<std::string> lines;
  for (auto& [id, contents] : contents_) {
    ShowLost(id);
    if (!contents.is_synced()) {
      lines.push_back(LoseContents(id, survival, &random));
    }
  }
  // The number of names, of ten, that survive: from none to nearly all.
  const uint64_t of_ten = survival == Survival::kNothing ? 0 : random() % 10;
  for (const std::string& line :
       names_.Undo([&] { return random() % 10 < of_ten; })) {
    lines.push_back(line);
  }
  return lines;
}

std::string PowerLossFileSystem::LoseContents(Id file, Survival survival,
                                              std::mt19937_64* random) {
  Contents& contents = contents_[file];
  const std::string path = names_.LimboPath(file);
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  Must(fd >= 0, "open " + path);
  const bool all = survival == Survival::kNothing || (*random)() % 2 == 0;
  uint64_t size = contents.size;
  // Restores overwritten bytes, newest first.
  for (auto it = contents.overwritten.rbegin();
       it != contents.overwritten.rend() && (all || (*random)() % 2 == 0);
       ++it) {
    const auto& [offset, bytes] = *it;
    Must(pwrite(fd, bytes.data(), bytes.size(),
                static_cast<off_t>(offset)) ==
             static_cast<ssize_t>(bytes.size()),
         "write " + path);
    size = std::max<uint64_t>(size, offset + bytes.size());
  }
  const uint64_t least = std::min(contents.synced_size, size);
  uint64_t tear = least;
  if (survival == Survival::kRandom) {
    tear += (*random)() % (size - least + 1);
  }
  // A file's new length may be durable before its bytes are.
  const bool zeros = survival == Survival::kRandom && (*random)() % 3 == 0 &&
                     !contents.is_manifest;
  Must(ftruncate(fd, static_cast<off_t>(tear)) == 0, "truncate " + path);
  Must(!zeros || ftruncate(fd, static_cast<off_t>(size)) == 0,
       "truncate " + path);
  close(fd);
  return "tear file " + std::to_string(file) + " of " +
         std::to_string(contents.size) + " bytes, " +
         std::to_string(contents.synced_size) + " synced, at " +
         std::to_string(tear) + (zeros ? ", then zeros" : "");
}

}  // namespace sstferry
