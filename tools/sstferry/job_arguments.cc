#include "tools/sstferry/job_arguments.h"

#include <grp.h>
#include <pwd.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "format/end_state.h"
#include "format/limits.h"

namespace sstferry {
namespace {

using rocksdb::Status;

Status ReadCompaction(const OptionTexts& texts, bool* out) {
  const std::string text = texts.Get("compact", "auto");
  *out = text != "none";
  return text == "auto" || text == "none"
             ? Status::OK()
             : Wrong("--compact", "auto or none", text);
}

// Refuses --drop-missing together with --cf, --begin or --end. The source then
// sends only the selected column families, so the target cannot know which
// other families the source has dropped.
Status CheckDropMissing(const OptionTexts& texts, const PullOptions& options) {
  const bool part = texts.Has("cf") || texts.Has("begin") || texts.Has("end");
  return options.drop_missing && part
             ? Status::InvalidArgument(
                   "--drop-missing: not possible together with --cf, --begin "
                   "or --end")
             : Status::OK();
}

Status ReadSourceId(const OptionTexts& texts, std::string* out) {
  if (!texts.Has("source-id")) {
    return Status::OK();
  }
  *out = texts.Get("source-id");
  return out->empty() || out->size() > kMaxIdentifierBytes
             ? Wrong("--source-id",
                     "1 to " + std::to_string(kMaxIdentifierBytes) + " bytes",
                     *out)
             : Status::OK();
}

// Refuses options that the method cannot use. --keep-identity, --reuse and
// --always-swap need a clone. A clone copies complete files, so it refuses
// --begin and --end. If a clone has --cf, the families must include "default".
Status CheckMethod(const OptionTexts& texts, const PullOptions& options) {
  if (options.method != PullMethod::kClone) {
    for (const char* name : {"keep-identity", "reuse", "always-swap"}) {
      if (texts.Has(name) || texts.IsSet(name)) {
        return OnlyWith(std::string("--") + name, "--method clone");
      }
    }
    return Status::OK();
  }
  for (const char* name : {"begin", "end"}) {
    if (texts.Has(name)) {
      return OnlyWith(std::string("--") + name, "--method ingest",
                      "--method clone");
    }
  }
  const std::vector<std::string>& families = options.selection.families;
  return families.empty() || std::find(families.begin(), families.end(),
                                       "default") != families.end()
             ? Status::OK()
             : Wrong("--cf",
                     "default among them, because a clone always has it, or "
                     "--method ingest",
                     families.front());
}

// The largest id. chown() uses the next number, the largest uint32_t, for "no
// change".
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
  if (!user.empty()) {
    RETURN_IF_ERROR(ReadUser(user, &options->target_owner));
  }
  return colon < text.size()
             ? ReadGroup(text.substr(colon + 1), &options->target_group)
             : Status::OK();
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

// Returns true if the address has a port. --metrics has no default port, so an
// address without a port is an error.
bool HasPort(const std::string& text) {
  const size_t colon = text.rfind(':');
  return colon != std::string::npos &&
         text.find(']', colon) == std::string::npos;
}

}  // namespace

Status ReadJob(const OptionTexts& texts, PullArguments* out) {
  PullOptions* options = &out->options;
  RETURN_IF_ERROR(ReadSourceId(texts, &options->source_id));
  RETURN_IF_ERROR(CheckDropMissing(texts, *options));
  RETURN_IF_ERROR(ReadCompaction(texts, &options->compact));
  return CheckMethod(texts, *options);
}

Status ReadTargetAccess(const OptionTexts& texts, PullOptions* options) {
  if (texts.Has("owner")) {
    RETURN_IF_ERROR(ReadOwner(texts.Get("owner"), options));
  }
  return texts.Has("permissions")
             ? ReadPermissions(texts.Get("permissions"), options)
             : Status::OK();
}

Status ReadMetrics(const OptionTexts& texts, const TlsFiles& tls,
                   MetricsArguments* out) {
  if (texts.Has("metrics")) {
    const std::string text = texts.Get("metrics");
    const Status status = ParseHostPort(text, &out->listen.emplace());
    if (!status.ok()) {
      return Status::InvalidArgument("--metrics", MessageOf(status));
    }
    if (!HasPort(text) || out->listen->is_unix()) {
      return Wrong("--metrics", "an address and a port such as 127.0.0.1:9420",
                   text);
    }
    if (tls.empty() && !out->insecure && !IsLoopback(out->listen->host)) {
      return Wrong("--metrics",
                   "a loopback address, such as 127.0.0.1:9420, or --tls DIR "
                   "(--metrics-insecure allows other addresses without TLS: "
                   "anyone who reaches the port can read names and sizes)",
                   text);
    }
  }
  if (texts.Has("metrics-file")) {
    out->file = texts.Get("metrics-file");
    if (!out->file.ends_with(".prom") || out->file.ends_with("/.prom")) {
      return Wrong("--metrics-file",
                   "a file name that ends in .prom, which node_exporter's "
                   "textfile collector reads",
                   out->file);
    }
  }
  return Status::OK();
}

}  // namespace sstferry
