#include "pipeline/snapshot/snapshot_place.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "format/end_state.h"
#include "pipeline/snapshot/posix_files.h"
#include "pipeline/snapshot/private_dir.h"
#include "sstferry/options.h"

namespace sstferry {
namespace {

namespace fs = std::filesystem;
using rocksdb::Status;

constexpr char kOwnName[] = "/.sstferry";

struct MountOf {
  explicit MountOf(const std::string& path) {
    struct statx info;
    is_known = statx(AT_FDCWD, path.c_str(), 0, STATX_MNT_ID, &info) == 0;
    if (is_known) {
      major = info.stx_dev_major;
      minor = info.stx_dev_minor;
      has_id = (info.stx_mask & STATX_MNT_ID) != 0;  // since Linux 5.8
      id = info.stx_mnt_id;
      return;
    }
    // Old container runtimes deny system calls that they do not know, such as
    // statx().
    struct stat old;
    is_known = stat(path.c_str(), &old) == 0;
    if (is_known) {
      major = gnu_dev_major(old.st_dev);
      minor = gnu_dev_minor(old.st_dev);
    }
  }
  bool is_known = false;
  uint32_t major = 0;
  uint32_t minor = 0;
  bool has_id = false;
  uint64_t id = 0;
};

Status NoRoom(const std::string& directory, const std::string& parent,
              const std::string& snapshot_dir, const std::string& command) {
  const std::string works =
      " --snapshot-dir " + ShellWord(directory + kOwnName);
  const bool has_command = !command.empty() && snapshot_dir.empty();
  return MakeStatus(
      EndState::kRefused,
      directory + ": cannot link its files " +
          (snapshot_dir.empty() ? "beside it, because " + parent
                                : "into --snapshot-dir, because " +
                                      snapshot_dir) +
          " is another mount or file system" +
          (has_command ? "" : "; give" + works) +
          " (sstferry removes the links when the files were read, or at its "
          "next start)",
      has_command ? command + works : "");
}

}  // namespace

bool AreOnOneMount(const std::string& a, const std::string& b) {
  const MountOf one(a);
  const MountOf other(b);
  return one.is_known && other.is_known && one.major == other.major &&
         one.minor == other.minor &&
         (!one.has_id || !other.has_id || one.id == other.id);
}

Status CheckSnapshotPlace(const std::string& directory,
                          const std::string& parent,
                          const std::string& snapshot_dir,
                          const std::string& command) {
  std::error_code error;
  const std::string there = !snapshot_dir.empty() && !fs::exists(parent, error)
                                ? fs::path(parent).parent_path().string()
                                : parent;
  if (fs::exists(there, error) && !IsOnReadOnlyFileSystem(directory) &&
      !AreOnOneMount(there, directory)) {
    return NoRoom(directory, parent, snapshot_dir, command);
  }
  return PrivateDir::CheckParent(there);
}

Status MakeSnapshotParent(const std::string& snapshot_dir) {
  if (mkdir(snapshot_dir.c_str(), 0700) == 0 || errno == EEXIST) {
    return Status::OK();
  }
  return ErrnoStatus(EndState::kSourceError, "cannot make", snapshot_dir,
                     errno);
}

}  // namespace sstferry
