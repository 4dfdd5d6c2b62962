#include "pipeline/disk/attributes.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/xattr.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <vector>

#include "format/end_state.h"
#include "format/printable.h"
#include "sstferry/descriptor.h"

namespace sstferry {
namespace {

using rocksdb::Status;

constexpr char kAccessList[] = "system.posix_acl_access";
constexpr char kDefaultList[] = "system.posix_acl_default";
constexpr char kLabels[] = "security.";
// Not copied: the kernel computes this digest for each inode.
constexpr char kOfTheInode[] = "security.evm";
// The kernel's limits.
constexpr size_t kMaxNamesBytes = 64u << 10;
constexpr size_t kMaxValueBytes = 64u << 10;
// Only these flags of chattr(1) are copied to the new directory. Other flags
// make no sense there. For example, an immutable directory could not be
// exchanged.
constexpr int kKeptFlags = FS_COMPR_FL | FS_NOCOMP_FL | FS_NOCOW_FL |
                           FS_NOATIME_FL | FS_NODUMP_FL | FS_SYNC_FL |
                           FS_DIRSYNC_FL;

enum class Kept { kAll, kInherited };

bool IsInherited(const std::string& name) {
  return name == kDefaultList || name.starts_with(kLabels);
}

// Returns true if the error means that the file system does not support such
// attributes.
bool HasNone(int error) {
  return error == ENOTSUP || error == ENOTTY;
}

// Copies the attributes of one open directory to another one.
class Copier {
 public:
  Copier(int from, int to, Kept kept)
      : from_(from), to_(to), kept_(kept) {}

  [[nodiscard]] Status Run() const {
    RETURN_IF_ERROR(CopyValues());
    RETURN_IF_ERROR(CopyFlags());
    return CopyProject();
  }

 private:
  using Values = std::map<std::string, std::string>;

  [[nodiscard]] Status Refused(const std::string& what, const char* may_not,
                               int error) const {
    return MakeStatus(EndState::kRefused,
                      "its " + what + " cannot be " + may_not + " (" +
                          strerror(error) + "), so a directory that replaces "
                          "it would differ");
  }

  [[nodiscard]] Status Read(int directory, Values* values) const {
    std::vector<char> names(kMaxNamesBytes);
    const ssize_t bytes = flistxattr(directory, names.data(), names.size());
    if (bytes < 0) {
      return HasNone(errno) ? Status::OK()
                            : Refused("extended attributes", "listed", errno);
    }
    const std::string list(names.data(), static_cast<size_t>(bytes));
    std::vector<char> value(kMaxValueBytes);
    for (size_t at = 0; at < list.size(); at = list.find('\0', at) + 1) {
      const std::string name = list.c_str() + at;
      if (name == kOfTheInode ||
          (kept_ == Kept::kInherited && !IsInherited(name))) {
        continue;
      }
      const ssize_t found =
          fgetxattr(directory, name.c_str(), value.data(), value.size());
      // Removed since the names were listed.
      if (found < 0 && errno == ENODATA) continue;
      if (found < 0) {
        return Refused("attribute " + Printable(name), "read", errno);
      }
      (*values)[name].assign(value.data(), static_cast<size_t>(found));
    }
    return Status::OK();
  }

  [[nodiscard]] Status CopyValues() const {
    Values wanted;
    Values present;
    RETURN_IF_ERROR(Read(from_, &wanted));
    RETURN_IF_ERROR(Read(to_, &present));
    for (const auto& [name, value] : wanted) {
      const auto same = present.find(name);
      if ((same == present.end() || same->second != value) &&
          fsetxattr(to_, name.c_str(), value.data(), value.size(), 0) != 0) {
        return Refused("attribute " + Printable(name), "copied", errno);
      }
    }
    for (const char* const list : {kAccessList, kDefaultList}) {
      if (!wanted.contains(list) && present.contains(list) &&
          fremovexattr(to_, list) != 0 && errno != ENODATA) {
        return Refused("replacement's inherited " + std::string(list),
                       "removed", errno);
      }
    }
    return Status::OK();
  }

  [[nodiscard]] Status CopyFlags() const {
    int wanted = 0;
    int present = 0;
    if (ioctl(from_, FS_IOC_GETFLAGS, &wanted) != 0) {
      return HasNone(errno) ? Status::OK()
                            : Refused("flags of chattr", "read", errno);
    }
    if (ioctl(to_, FS_IOC_GETFLAGS, &present) != 0) {
      return Refused("flags of chattr", "copied", errno);
    }
    int flags = (present & ~kKeptFlags) | (wanted & kKeptFlags);
    return flags == present || ioctl(to_, FS_IOC_SETFLAGS, &flags) == 0
               ? Status::OK()
               : Refused("flags of chattr", "copied", errno);
  }

  [[nodiscard]] Status CopyProject() const {
    fsxattr wanted{};
    fsxattr present{};
    if (ioctl(from_, FS_IOC_FSGETXATTR, &wanted) != 0) {
      return HasNone(errno) ? Status::OK() : Refused("project", "read", errno);
    }
    const std::string what = "project " + std::to_string(wanted.fsx_projid);
    if (ioctl(to_, FS_IOC_FSGETXATTR, &present) != 0) {
      return Refused(what, "copied", errno);
    }
    fsxattr project = present;
    project.fsx_projid = wanted.fsx_projid;
    project.fsx_xflags = (present.fsx_xflags & ~FS_XFLAG_PROJINHERIT) |
                         (wanted.fsx_xflags & FS_XFLAG_PROJINHERIT);
    return (project.fsx_projid == present.fsx_projid &&
            project.fsx_xflags == present.fsx_xflags) ||
                   ioctl(to_, FS_IOC_FSSETXATTR, &project) == 0
               ? Status::OK()
               : Refused(what, "copied", errno);
  }

  const int from_;
  const int to_;
  const Kept kept_;
};

Status Copy(const std::string& from, const std::string& to, Kept kept) {
  constexpr int kFlags = O_RDONLY | O_DIRECTORY;
  const Descriptor source = OpenPath(from, kFlags);
  if (!source.is_open()) {
    return errno == ENOENT
               ? Status::OK()
               : MakeStatus(EndState::kRefused,
                            std::string("its attributes cannot be read: ") +
                                strerror(errno));
  }
  const Descriptor made = OpenPath(to, kFlags);
  return made.is_open()
             ? Copier(source.get(), made.get(), kept).Run()
             : MakeStatus(EndState::kInternal, to + ": " + strerror(errno));
}

}  // namespace

Status CopyAttributes(const std::string& from, const std::string& to) {
  return Copy(from, to, Kept::kAll);
}

Status CopyInherited(const std::string& from, const std::string& to) {
  return Copy(from, to, Kept::kInherited);
}

}  // namespace sstferry
