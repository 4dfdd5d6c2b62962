#include "pipeline/snapshot/retained_snapshots.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <system_error>
#include <thread>

#include "pipeline/base/file_lock.h"
#include "pipeline/base/other_accounts.h"
#include "pipeline/snapshot/posix_files.h"
#include "sstferry/options.h"

namespace sstferry {
namespace {

namespace fs = std::filesystem;
using rocksdb::Status;

constexpr std::chrono::milliseconds kBetweenLooks{50};

// Returns true if no process can take over the directory any more, because it
// has no lease. Its files may still exist: an owner removes the lease first,
// then the files.
bool IsGivenUp(const std::string& path) {
  Lease lease;
  const LeaseState state = ReadLease(path, &lease);
  return state != LeaseState::kGood && state != LeaseState::kUnknown;
}

// Waits until the owner has removed a directory that it has agreed to release,
// but not longer than `until`. In most cases the disk space is then free when
// the command ends. Otherwise the owner removes the remaining files later.
void AwaitRemoval(const std::string& path,
                  std::chrono::steady_clock::time_point until) {
  std::error_code error;
  while (fs::exists(path, error) && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(kBetweenLooks);
  }
}

// Asks the owner to release the snapshot, and waits for the answer. To agree,
// the owner removes the lease. To refuse, it removes the request file.
Status AskOwner(const LeasedDir& dir,
                std::chrono::steady_clock::time_point until) {
  const std::string what =
      "the snapshot of transfer " + ToHex(dir.lease.transfer_id);
  const Status asked = AskForRelease(dir.path);
  if (!asked.ok()) {
    return IsGivenUp(dir.path) ? Status::OK() : asked;
  }
  while (std::chrono::steady_clock::now() < until) {
    if (IsGivenUp(dir.path)) {
      return Status::OK();
    }
    if (!IsReleaseAsked(dir.path)) {
      return IsGivenUp(dir.path)
                 ? Status::OK()
                 : MakeStatus(EndState::kBusy,
                              what + " is in use: a target is connected to "
                                     "it; stop that pull first");
    }
    std::this_thread::sleep_for(kBetweenLooks);
  }
  ForgetRelease(dir.path);
  return IsGivenUp(dir.path)
             ? Status::OK()
             : MakeStatus(EndState::kBusy,
                          what + " is in use by a process that does not "
                                 "answer; stop that process or try again");
}

// Releases the snapshot. If a process has it open, asks that process. Otherwise
// takes the directory's lock and removes the directory.
Status Release(const LeasedDir& dir, std::chrono::milliseconds deadline) {
  std::unique_ptr<PrivateDir> adopted;
  RETURN_IF_ERROR(PrivateDir::Adopt(dir.path, &adopted));
  if (adopted == nullptr) {
    const auto until = std::chrono::steady_clock::now() + deadline;
    if (!IsGivenUp(dir.path)) {
      RETURN_IF_ERROR(AskOwner(dir, until));
    }
    AwaitRemoval(dir.path, until);
    return Status::OK();
  }
  adopted->Keep(false);
  adopted.reset();
  std::error_code error;
  return !fs::exists(dir.path, error)
             ? Status::OK()
             : MakeStatus(EndState::kInternal,
                          "expected " + dir.path +
                              " to be removed, but it is still there");
}

}  // namespace

std::string RealPath(const std::string& path) {
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  return error ? fs::absolute(path, error).lexically_normal().string()
               : real.string();
}

std::string SnapshotParent(const std::string& real_directory,
                           const std::string& snapshot_dir) {
  if (!snapshot_dir.empty()) {
    return RealPath(snapshot_dir);
  }
  const std::string beside = fs::path(real_directory).parent_path().string();
  if (!IsOnReadOnlyFileSystem(real_directory) ||
      access((beside + "/").c_str(), W_OK | X_OK) == 0) {
    return beside;
  }
  std::error_code error;
  const std::string scratch = fs::temp_directory_path(error).string();
  return error ? beside : RealPath(scratch);
}

Status ListLeasedDirs(const std::string& parent,
                      const std::function<bool(const Lease&)>& wanted,
                      LeasedDirs* out) {
  std::vector<std::string> paths;
  const Status status = ListPrivateDirs(parent, &paths);
  for (const std::string& path : paths) {
    LeasedDir dir;
    const LeaseState state = ReadLease(path, &dir.lease);
    struct stat info;
    if (state == LeaseState::kForeign && lstat(path.c_str(), &info) == 0) {
      out->foreign++;
      out->foreign_owner = AccountName(info.st_uid);
    }
    if (state == LeaseState::kGood && wanted(dir.lease)) {
      dir.path = path;
      const Descriptor own = OpenOwnDirectory(path);
      dir.open = own.is_open() && IsFileLocked(PathOfOpen(own) + "/lock");
      out->dirs.push_back(std::move(dir));
    }
  }
  std::stable_sort(out->dirs.begin(), out->dirs.end(),
                   [](const LeasedDir& a, const LeasedDir& b) {
                     return a.lease.created_seconds < b.lease.created_seconds;
                   });
  return status;
}

std::string ShownTarget(const std::string& said, const std::string& subject) {
  return subject.empty() ? said
         : said.empty()  ? subject
                         : said + " (" + subject + ")";
}

RetainedSnapshot DescribeLeased(const LeasedDir& dir, const LeaseRules& rules) {
  RetainedSnapshot retained;
  retained.transfer_id = dir.lease.transfer_id;
  retained.database = dir.lease.database;
  retained.snapshot_sequence = dir.lease.snapshot_sequence;
  const uint64_t now = rules.Now();
  retained.age_seconds = now - std::min(now, dir.lease.created_seconds);
  // If the process that had the snapshot open has ended, the lease's number of
  // readers is wrong.
  retained.readers = dir.open ? dir.lease.readers : 0;
  retained.ttl_left_seconds =
      retained.readers > 0 ? dir.lease.ttl_seconds : rules.Left(dir.lease);
  retained.pinned_bytes = dir.lease.pinned_bytes;
  retained.target =
      ShownTarget(dir.lease.request.target, dir.lease.owner_subject);
  return retained;
}

LeasedDirs ListSnapshotsOf(const std::string& directory,
                           const std::string& snapshot_dir) {
  const std::string real = RealPath(directory);
  LeasedDirs found;
  ListLeasedDirs(
      SnapshotParent(real, snapshot_dir),
      [&real](const Lease& lease) { return lease.directory == real; }, &found)
      .PermitUncheckedError();
  return found;
}

Status ReleaseSnapshotOf(const std::string& directory,
                         const std::string& snapshot_dir,
                         const std::string& id,
                         std::chrono::milliseconds deadline,
                         RetainedSnapshot* released) {
  const LeasedDirs found = ListSnapshotsOf(directory, snapshot_dir);
  std::vector<const LeasedDir*> meant;
  std::string retained;
  for (const LeasedDir& dir : found.dirs) {
    const std::string hex = ToHex(dir.lease.transfer_id);
    retained += (retained.empty() ? "" : ", ") + hex;
    if (hex.rfind(id, 0) == 0) {
      meant.push_back(&dir);
    }
  }
  if (meant.size() != 1) {
    std::string text = directory + ": expected one retained snapshot " + id +
                       ", found " + std::to_string(meant.size());
    text += retained.empty() ? "; none is retained" : "; retained: " + retained;
    if (found.foreign > 0) {
      text += "; other accounts have " + std::to_string(found.foreign) +
              ", such as " + found.foreign_owner;
    }
    return MakeStatus(EndState::kRefused, text,
                      found.foreign == 0
                          ? ""
                          : "sudo -u " + ShellWord(found.foreign_owner) +
                                " sstferry release " + ShellWord(directory) +
                                " " + ShellWord(id));
  }
  *released = DescribeLeased(*meant[0], LeaseRules());
  return Release(*meant[0], deadline);
}

}  // namespace sstferry
