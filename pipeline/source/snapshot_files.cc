#include "pipeline/source/snapshot_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "format/end_state.h"
#include "pipeline/source/options_text.h"
#include "pipeline/source/posix_files.h"
#include "pipeline/source/wal_check.h"

namespace sstferry {
namespace {

using rocksdb::Status;

// CURRENT and IDENTITY are one line.
constexpr uint64_t kMaxSmallFileBytes = 64u << 10;

bool AllDigits(const std::string& text) {
  return !text.empty() &&
         text.find_first_not_of("0123456789") == std::string::npos;
}

// 000123.log and the like: digits, then `extension`.
bool IsNumbered(const std::string& name, const std::string& extension) {
  return name.size() > extension.size() &&
         name.compare(name.size() - extension.size(), extension.size(),
                      extension) == 0 &&
         AllDigits(name.substr(0, name.size() - extension.size()));
}

uint64_t NumberOf(const std::string& name) {
  return strtoull(name.c_str(), nullptr, 10);
}

bool ByNumber(const std::string& a, const std::string& b) {
  return NumberOf(a) < NumberOf(b);
}

std::vector<std::string> WalNames(const std::vector<std::string>& names) {
  std::vector<std::string> wals;
  for (const std::string& name : names) {
    if (IsNumbered(name, ".log")) {
      wals.push_back(name);
    }
  }
  std::sort(wals.begin(), wals.end(), ByNumber);
  return wals;
}

bool Exists(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0;
}

bool SameDirectory(const std::string& a, const std::string& b) {
  std::error_code error;
  return std::filesystem::equivalent(a, b, error) && !error;
}

void StartOver(Attempt* attempt, const std::string& reason) {
  attempt->again = true;
  attempt->reason = reason;
}

// What tells two states of a growing MANIFEST apart.
std::string StateOf(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) {
    return path + " gone";
  }
  return path + " " + std::to_string(info.st_ino) + " " +
         std::to_string(info.st_size) + " " +
         std::to_string(info.st_mtim.tv_sec) + "." +
         std::to_string(info.st_mtim.tv_nsec);
}

}  // namespace

SnapshotFiles::~SnapshotFiles() {
  for (const HeldWal& wal : wals_) {
    close(wal.fd);
  }
}

Status SnapshotFiles::Pin(Attempt* attempt) {
  *attempt = Attempt();
  bool found = false;
  Status status = ReadSmallFile(source_dir_ + "/CURRENT", kMaxSmallFileBytes,
                                &found, &current_);
  std::vector<std::string> names;
  if (status.ok()) {
    status = ListDirectory(source_dir_, &names);
  }
  if (!status.ok()) {
    return status;
  }
  if (!found) {
    return MakeStatus(EndState::kSourceError,
                      "no CURRENT file in " + source_dir_ +
                          ": this is not a RocksDB database");
  }
  if (current_.empty() || current_.back() != '\n' ||
      current_.rfind("MANIFEST-", 0) != 0 ||
      !AllDigits(current_.substr(9, current_.size() - 10))) {
    return MakeStatus(EndState::kCorrupt,
                      source_dir_ + "/CURRENT: expected the name of a "
                      "MANIFEST and a line end, found something else");
  }
  manifest_name_ = current_.substr(0, current_.size() - 1);
  status = FindOptions(names);
  if (status.ok()) status = FindWalDir(names);
  if (status.ok()) status = HoldWals(attempt);
  if (status.ok() && !attempt->again) status = CopyDescriptions(attempt);
  if (status.ok() && !attempt->again) status = LinkTables(attempt);
  if (status.ok() && !attempt->again) status = CheckUnchanged(attempt);
  attempt->fingerprint = source_state_;
  return status;
}

Status SnapshotFiles::FindOptions(const std::vector<std::string>& names) {
  std::string newest;
  uint64_t newest_number = 0;
  for (const std::string& name : names) {
    if (name.rfind("OPTIONS-", 0) != 0 || !AllDigits(name.substr(8))) {
      continue;
    }
    const uint64_t number = NumberOf(name.substr(8));
    if (newest.empty() || number > newest_number) {
      newest = name;
      newest_number = number;
    }
  }
  options_text_.clear();
  options_path_.clear();
  if (newest.empty()) {
    may_recycle_ = true;  // nothing says that it does not
    return Status::OK();
  }
  bool found = false;
  const Status status =
      ReadSmallFile(source_dir_ + "/" + newest, kMaxOptionsFileBytes, &found,
                    &options_text_);
  if (!status.ok()) {
    return status;
  }
  if (found) {
    options_path_ = db_ + "/" + newest;
  }
  may_recycle_ = OptionsText(options_text_)
                     .DatabaseOption("recycle_log_file_num", "1") != "0";
  return Status::OK();
}

// OPTIONS may name another directory for the WALs. It is the truth only for a
// directory that RocksDB opened as a database (it left a LOCK there); in a
// checkpoint or copy it is what the origin used, and the origin's WALs hold
// later writes.
Status SnapshotFiles::FindWalDir(const std::vector<std::string>& names) {
  wal_dir_ = source_dir_;
  const std::string named =
      OptionsText(options_text_).DatabaseOption("wal_dir", "");
  if (named.empty() || SameDirectory(named, source_dir_) ||
      !WalNames(names).empty() || !Exists(source_dir_ + "/LOCK")) {
    return Status::OK();
  }
  const std::string where = "wal_dir of " + source_dir_ + " is " + named;
  if (named.front() != '/') {
    return MakeStatus(EndState::kRefused,
                      where + ": a relative path cannot be resolved here");
  }
  if (!Exists(named)) {
    return MakeStatus(EndState::kRefused,
                      where + ", which does not exist: files elsewhere that "
                      "cannot be read are refused");
  }
  if (Exists(named + "/CURRENT")) {
    return MakeStatus(EndState::kRefused,
                      where + ", which is another database's directory: it is "
                      "not certain whose WALs are there");
  }
  wal_dir_ = named;
  return Status::OK();
}

Status SnapshotFiles::HoldWals(Attempt* attempt) {
  std::vector<std::string> names;
  Status status = ListDirectory(wal_dir_, &names);
  if (!status.ok()) {
    return status;
  }
  source_state_ = current_;
  for (const std::string& name : WalNames(names)) {
    const std::string from = wal_dir_ + "/" + name;
    const std::string to = held_ + "/" + name;
    source_state_ += name + " ";
    bool found = false;
    status = LinkFile(from, to, &found);
    // A WAL directory may lie on another file system: there an open descriptor
    // alone keeps the file alive.
    const bool elsewhere = !status.ok() && wal_dir_ != source_dir_;
    if (!status.ok() && !elsewhere) {
      return status;
    }
    const std::string& held = elsewhere ? from : to;
    const int fd =
        elsewhere || found ? open(held.c_str(), O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0 && found && errno != ENOENT) {
      return ErrnoStatus(EndState::kSourceError, "cannot open", held, errno);
    }
    if (fd < 0) {
      StartOver(attempt, name + " vanished");
      return Status::OK();
    }
    wals_.push_back({name, fd});
  }
  return Status::OK();
}

Status SnapshotFiles::CopyDescriptions(Attempt* attempt) {
  const std::string manifest = source_dir_ + "/" + manifest_name_;
  source_state_ += StateOf(manifest);
  bool found = false;
  uint64_t bytes = 0;
  Status status =
      CopyFile(manifest, db_ + "/" + manifest_name_, &found, &bytes);
  if (status.ok() && !found) {
    StartOver(attempt, manifest + " is missing");
    return Status::OK();
  }
  if (status.ok()) {
    status = WriteSmallFile(db_ + "/CURRENT", current_);
  }
  if (status.ok() && !options_path_.empty()) {
    status = WriteSmallFile(options_path_, options_text_);
  }
  if (status.ok()) {
    status = CopyFile(source_dir_ + "/IDENTITY", db_ + "/IDENTITY",
                      &has_identity_, &bytes);
  }
  return status;
}

Status SnapshotFiles::LinkTables(Attempt* attempt) {
  std::vector<std::string> names;
  Status status = ListDirectory(source_dir_, &names);
  linked_ = 0;
  for (const std::string& name : names) {
    if (!IsNumbered(name, ".sst") && !IsNumbered(name, ".blob")) {
      continue;
    }
    // One that vanishes here may be one the MANIFEST does not name any more:
    // Place() decides.
    bool found = false;
    status = LinkFile(source_dir_ + "/" + name, held_ + "/" + name, &found);
    if (!status.ok()) {
      return status;
    }
    linked_ += found ? 1 : 0;
  }
  return status;
}

Status SnapshotFiles::CheckUnchanged(Attempt* attempt) {
  std::vector<std::string> names;
  Status status = ListDirectory(wal_dir_, &names);
  bool found = false;
  std::string current;
  if (status.ok()) {
    status = ReadSmallFile(source_dir_ + "/CURRENT", kMaxSmallFileBytes,
                           &found, &current);
  }
  if (!status.ok()) {
    return status;
  }
  if (!found || current != current_) {
    StartOver(attempt, "CURRENT changed");
    return status;
  }
  const std::vector<std::string> now = WalNames(names);
  const bool same =
      now.size() == wals_.size() &&
      std::equal(now.begin(), now.end(), wals_.begin(),
                 [](const std::string& name, const HeldWal& wal) {
                   return name == wal.name;
                 });
  if (!same) {
    StartOver(attempt, "the set of WALs changed");
  }
  return status;
}

Status SnapshotFiles::CopyWals(Attempt* attempt) {
  wal_bytes_ = 0;
  for (auto wal = wals_.rbegin(); wal != wals_.rend(); ++wal) {
    uint64_t bytes = 0;
    Status status = CheckStopped();
    if (!status.ok()) {
      return status;
    }
    status =
        CopyDescriptor(wal->fd, wal_dir_ + "/" + wal->name,
                       db_ + "/" + wal->name, &bytes);
    if (!status.ok()) {
      return status;
    }
    wal_bytes_ += bytes;
  }
  const Status status =
      may_recycle_ ? CheckNotRecycled(attempt) : Status::OK();
  return status.ok() && !attempt->again ? CheckCopiedWals() : status;
}

Status SnapshotFiles::CheckStopped() const {
  return cancelled_ && cancelled_()
             ? MakeStatus(EndState::kCancelled, "while copying WALs")
             : Status::OK();
}

Status SnapshotFiles::CheckCopiedWals() {
  for (const HeldWal& wal : wals_) {
    Status status = CheckStopped();
    if (!status.ok()) {
      return status;
    }
    status = CheckWal(db_ + "/" + wal.name, NumberOf(wal.name),
                                   wal_dir_ + "/" + wal.name);
    if (!status.ok()) {
      return status;
    }
  }
  return Status::OK();
}

// A recycled WAL is renamed and then written from its start: the held file
// would change under the copy. Names never come back, so a WAL that still has
// its name and inode was not recycled while it was copied.
Status SnapshotFiles::CheckNotRecycled(Attempt* attempt) {
  for (const HeldWal& wal : wals_) {
    const std::string path = wal_dir_ + "/" + wal.name;
    struct stat held;
    struct stat named;
    if (fstat(wal.fd, &held) != 0) {
      return ErrnoStatus(EndState::kSourceError, "cannot stat", path, errno);
    }
    if (stat(path.c_str(), &named) != 0 || held.st_ino != named.st_ino ||
        held.st_dev != named.st_dev) {
      StartOver(attempt, wal.name + " may have been recycled");
      return Status::OK();
    }
  }
  return Status::OK();
}

Status SnapshotFiles::Place(const std::vector<LiveFile>& files,
                            Attempt* attempt) {
  std::string missing;
  size_t found = 0;
  for (const LiveFile& file : files) {
    const std::string from = held_ + "/" + file.name;
    struct stat info;
    if (stat(from.c_str(), &info) != 0) {
      missing = missing.empty() ? file.name : missing;
      continue;
    }
    found++;
    // A file is complete before the MANIFEST names it.
    if (static_cast<uint64_t>(info.st_size) != file.size_bytes) {
      return MakeStatus(EndState::kCorrupt,
                        source_dir_ + "/" + file.name + ": expected " +
                            std::to_string(file.size_bytes) +
                            " bytes as " + manifest_name_ + " says, found " +
                            std::to_string(info.st_size));
    }
    if (rename(from.c_str(), (db_ + "/" + file.name).c_str()) != 0) {
      return ErrnoStatus(EndState::kSourceError, "cannot move", from, errno);
    }
  }
  nothing_found_ = found == 0 && !files.empty();
  if (!missing.empty()) {
    StartOver(attempt, source_dir_ + "/" + missing + ", which " +
                           manifest_name_ + " names, is missing");
  }
  return Status::OK();
}

Status SnapshotFiles::ReleaseHeld() {
  for (const HeldWal& wal : wals_) {
    close(wal.fd);
  }
  wals_.clear();
  std::vector<std::string> names;
  const Status status = ListDirectory(held_, &names);
  for (const std::string& name : names) {
    if (unlink((held_ + "/" + name).c_str()) != 0) {
      return ErrnoStatus(EndState::kSourceError, "cannot remove",
                         held_ + "/" + name, errno);
    }
  }
  return status;
}

}  // namespace sstferry
