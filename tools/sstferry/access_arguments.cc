#include "tools/sstferry/access_arguments.h"

#include <grp.h>
#include <pwd.h>

#include <algorithm>
#include <limits>

namespace sstferry {
namespace {

using rocksdb::Status;

// The largest uint32_t means "no change" to chown().
constexpr uint64_t kMaxId = std::numeric_limits<uint32_t>::max() - 1;

bool IsNumber(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return c >= '0' && c <= '9';
  });
}

Status ReadNumber(const std::string& text, std::optional<uint32_t>* id) {
  uint64_t number = 0;
  const Status status = ParseNumber("--owner", text, 0, kMaxId, &number);
  *id = static_cast<uint32_t>(number);
  return status;
}

Status ReadUser(const std::string& text, std::optional<uint32_t>* id) {
  if (IsNumber(text)) {
    return ReadNumber(text, id);
  }
  const passwd* const user = getpwnam(text.c_str());
  if (user == nullptr) {
    return Wrong("--owner", "a user that this machine knows, or a user id",
                 text);
  }
  *id = user->pw_uid;
  return Status::OK();
}

Status ReadGroup(const std::string& text, std::optional<uint32_t>* id) {
  if (IsNumber(text)) {
    return ReadNumber(text, id);
  }
  const group* const found = getgrnam(text.c_str());
  if (found == nullptr) {
    return Wrong("--owner", "a group that this machine knows, or a group id",
                 text);
  }
  *id = found->gr_gid;
  return Status::OK();
}

Status ReadOwner(const std::string& text, PullOptions* options) {
  const size_t colon = std::min(text.find(':'), text.size());
  const std::string user = text.substr(0, colon);
  if (text.empty() || colon + 1 == text.size()) {
    return Wrong("--owner", "USER, USER:GROUP or :GROUP", text);
  }
  Status status;
  if (!user.empty()) {
    status = ReadUser(user, &options->target_owner);
  }
  if (status.ok() && colon < text.size()) {
    status = ReadGroup(text.substr(colon + 1), &options->target_group);
  }
  return status;
}

Status ReadPermissions(const std::string& text, PullOptions* options) {
  const bool octal =
      text.size() >= 3 && text.size() <= 4 &&
      text.find_first_not_of("01234567") == std::string::npos;
  options->target_mode =
      octal ? static_cast<uint32_t>(std::stoul(text, nullptr, 8)) : 0;
  return (*options->target_mode & 0700) == 0700
             ? Status::OK()
             : Wrong("--permissions",
                     "octal permissions that let the owner read, write and "
                     "enter, such as 0750",
                     text);
}

}  // namespace

Status ReadTargetAccess(const OptionTexts& texts, PullOptions* options) {
  Status status = texts.Has("owner") ? ReadOwner(texts.Get("owner"), options)
                                     : Status::OK();
  if (status.ok() && texts.Has("permissions")) {
    status = ReadPermissions(texts.Get("permissions"), options);
  }
  return status;
}

}  // namespace sstferry
