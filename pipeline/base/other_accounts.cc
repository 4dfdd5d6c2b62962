#include "pipeline/base/other_accounts.h"

#include <pwd.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include "format/end_state.h"

namespace sstferry {
namespace {

namespace fs = std::filesystem;
using rocksdb::Status;

constexpr int kMaxLinks = 40;  // the kernel's limit
constexpr char kAccessList[] = "system.posix_acl_access";

Status Refused(const std::string& what) {
  return MakeStatus(EndState::kRefused, what);
}

// Walks along the components of a path, and along the paths of its links.
class Way {
 public:
  explicit Way(std::optional<uid_t>* account) : account_(account) {}

  // Checks all components of a path except the last one. If the last component
  // is a link, checks the path of the link, too.
  Status Go(const fs::path& path) {
    const fs::path relative = path.relative_path();
    const std::vector<fs::path> parts(relative.begin(), relative.end());
    fs::path at = "/";  // the checked path, without links
    Status status = LookAt(at);
    for (size_t i = 0; status.ok() && i < parts.size(); ++i) {
      if (parts[i].empty() || parts[i] == ".") {
        continue;  // names the directory that was just checked
      }
      if (parts[i] == "..") {
        at = at.parent_path();
        continue;
      }
      const bool is_last = i + 1 == parts.size();
      at /= parts[i];
      struct stat info;
      if (lstat(at.c_str(), &info) != 0) {
        return errno == ENOENT && !GoesUp(parts, i) ? Status::OK()
                                                    : Missing(at);
      }
      if (S_ISLNK(info.st_mode)) {
        return Follow(at, Rest(parts, i));
      }
      status = is_last ? Status::OK() : LookAt(at);
    }
    return status;
  }

 private:
  // Returns the components after the one at `i`, as a path.
  static fs::path Rest(const std::vector<fs::path>& parts, size_t i) {
    fs::path rest;
    for (++i; i < parts.size(); ++i) {
      rest /= parts[i];
    }
    return rest;
  }

  // Returns true if a component after the one at `i` is "..". If the component
  // at `i` does not exist yet, it is unknown to which directory such a path
  // will lead.
  static bool GoesUp(const std::vector<fs::path>& parts, size_t i) {
    for (++i; i < parts.size(); ++i) {
      if (parts[i] == "..") {
        return true;
      }
    }
    return false;
  }

  static Status Missing(const fs::path& path) {
    return Refused(path.string() + ": " + strerror(errno));
  }

  // Continues at a link's destination. The link's directory has already been
  // checked.
  Status Follow(const fs::path& link, const fs::path& rest) {
    std::error_code error;
    const fs::path to = fs::read_symlink(link, error);
    if (error || ++links_ > kMaxLinks) {
      return Refused(link.string() +
                     ": expected a link to an existing path, found " +
                     (error ? error.message() : "too many links"));
    }
    return Go((link.parent_path() / to) / rest);
  }

  Status LookAt(const fs::path& dir) {
    struct stat info;
    if (lstat(dir.c_str(), &info) != 0) {
      return Missing(dir);
    }
    const std::string writers = OtherWriters(info, dir);
    if (!writers.empty() && (info.st_mode & S_ISVTX) == 0) {
      return Refused("expected that only its owner may write in " +
                     dir.string() + ", found it writable by " + writers);
    }
    if (info.st_uid == 0) {
      return Status::OK();
    }
    if (account_->has_value() && **account_ != info.st_uid) {
      return Refused("expected a path of root and one account only, found " +
                     dir.string() + ", which belongs to " +
                     AccountName(info.st_uid) +
                     ", and another directory, which belongs to " +
                     AccountName(**account_));
    }
    *account_ = info.st_uid;
    return Status::OK();
  }

  std::optional<uid_t>* const account_;
  int links_ = 0;
};

}  // namespace

std::string AccountName(uid_t uid) {
  struct passwd entry;
  struct passwd* found = nullptr;
  std::vector<char> room(1 << 16);
  const bool known = getpwuid_r(uid, &entry, room.data(), room.size(),
                                &found) == 0 && found != nullptr;
  return known ? std::string(entry.pw_name) : std::to_string(uid);
}

std::string OtherWriters(const struct stat& info, const std::string& path) {
  if ((info.st_mode & S_IWOTH) != 0) {
    return "everybody";
  }
  if ((info.st_mode & S_IWGRP) == 0) {
    return "";
  }
  if (info.st_gid != 0) {
    return "group " + std::to_string(info.st_gid);
  }
  const bool has_no_list =
      getxattr(path.c_str(), kAccessList, nullptr, 0) < 0 &&
      (errno == ENODATA || errno == EOPNOTSUPP);
  return has_no_list ? "" : "the accounts of its access control list";
}

Status FindOtherAccount(const std::string& dir, std::optional<uid_t>* account) {
  account->reset();
  std::error_code error;
  fs::path path = fs::absolute(dir, error);
  if (path.has_parent_path() && path.filename().empty()) {
    path = path.parent_path();  // removes the last slash of "dir/"
  }
  return error ? Refused(dir + ": " + error.message())
               : Way(account).Go(path);
}

Status CheckOnlyRoot(const std::string& target_dir, bool in_place) {
  if (geteuid() != 0) {
    return Status::OK();
  }
  std::optional<uid_t> account;
  const Status status = FindOtherAccount(target_dir, &account);
  if (!status.ok()) {
    return Refused("target " + target_dir + ": as root, " + MessageOf(status) +
                   "; choose a path that only root and one account may change, "
                   "or run as that account");
  }
  struct stat info;
  if (!account.has_value() && in_place &&
      stat(target_dir.c_str(), &info) == 0 && info.st_uid != 0) {
    // Do not advise to run as the owner: only root can create the workspace in
    // this parent directory.
    return Refused("target " + target_dir + " belongs to account " +
                   AccountName(info.st_uid) +
                   ", and root does not open another account's database; only "
                   "a swap, which builds a new one, can replace it here");
  }
  return !account.has_value()
             ? Status::OK()
             : Refused("target " + target_dir + ": account " +
                       AccountName(*account) +
                       " may change what root would write there; run as that "
                       "account (User= in the unit, or `setpriv --reuid " +
                       AccountName(*account) + " --regid $(id -g " +
                       AccountName(*account) + ") --init-groups`)");
}

Status CheckOwnDirectory(const std::string& dir) {
  struct stat info;
  if (lstat(dir.c_str(), &info) != 0) {
    return Status::OK();
  }
  if (!S_ISDIR(info.st_mode)) {
    return Refused(dir + " exists and was not made by sstferry: expected a "
                         "directory, found a link or a file; move it away");
  }
  if (info.st_uid != geteuid()) {
    return Refused(dir + ": expected a workspace of this user, found one of " +
                   AccountName(info.st_uid) +
                   "; run the same command as that user, or move the workspace "
                   "away");
  }
  return (info.st_mode & (S_IWGRP | S_IWOTH)) == 0
             ? Status::OK()
             : Refused(dir + ": expected a workspace that is writable by its "
                             "owner only, found it writable by others");
}

}  // namespace sstferry
