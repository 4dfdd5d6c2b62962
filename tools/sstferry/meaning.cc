// Turns the texts of each command into the options of the public API: rows of
// the table set one member each, and what several options say together, or one
// in a form of its own, is read here.
#include <algorithm>
#include <cctype>
#include <set>

#include "format/limits.h"
#include "tools/sstferry/access_arguments.h"
#include "tools/sstferry/command_arguments.h"
#include "tools/sstferry/commands.h"
#include "tools/sstferry/metrics_arguments.h"
#include "tools/sstferry/refresh_arguments.h"
#include "tools/sstferry/serve_arguments.h"

namespace sstferry {
namespace {

using rocksdb::Status;

// Sets the members that rows of the table bind.
Status ApplyRows(const std::vector<OptionSpec>& specs, const OptionTexts& texts,
                 void* arguments) {
  for (const OptionSpec& spec : specs) {
    const bool given = spec.value == nullptr ? texts.IsSet(spec.name)
                                             : texts.Has(spec.name);
    RETURN_IF_ERROR(given && spec.read
                        ? spec.read(texts.Get(spec.name), arguments)
                        : Status::OK());
  }
  return Status::OK();
}

// Sets *out to what the rows of the command say. `Arguments` are those that its
// table binds (commands.cc).
template <typename Arguments>
Status Read(const std::string& name, const std::vector<std::string>& arguments,
            OptionTexts* texts, Arguments* out) {
  *out = Arguments();
  const Command* command = FindCommand(name);
  RETURN_IF_ERROR(ReadOptions(ReadableOptions(*command), command->operands,
                              arguments, texts));
  RETURN_IF_ERROR(ApplyRows(CommonOptions(), *texts, &out->common));
  RETURN_IF_ERROR(ApplyRows(command->options, *texts, out));
  return ApplyRows(command->unlisted, *texts, out);
}

Status ReadSelection(const OptionTexts& texts, Selection* out) {
  std::set<std::string> seen;
  for (const std::string& family : texts.GetAll("cf")) {
    if (family.empty() || family.size() > kMaxFamilyNameBytes) {
      return Wrong("--cf",
                   "a name of 1 to " + std::to_string(kMaxFamilyNameBytes) +
                       " bytes",
                   family);
    }
    if (!seen.insert(family).second) {
      return Wrong("--cf", "each column family once", family);
    }
    out->families.push_back(family);
  }
  Status status;
  if (texts.Has("begin")) {
    out->interval.begin.emplace();
    status = ParseKey("--begin", texts.Get("begin"), &*out->interval.begin);
  }
  if (status.ok() && texts.Has("end")) {
    out->interval.end.emplace();
    status = ParseKey("--end", texts.Get("end"), &*out->interval.end);
  }
  return status;
}

Status ReadTransferId(const std::string& what, const std::string& text,
                      TransferId* id) {
  std::string bytes;
  if (!ParseKey(what, "0x" + text, &bytes).ok() || bytes.size() != id->size()) {
    return Wrong(what, "32 hex digits", text);
  }
  std::copy(bytes.begin(), bytes.end(), id->begin());
  return Status::OK();
}

Status ReadSnapshotChoice(const OptionTexts& texts, PullOptions* out) {
  const std::string text = texts.Get("snapshot");
  out->latest_snapshot = text == "latest";
  if (!texts.Has("snapshot") || text == "new" || text == "latest") {
    return Status::OK();
  }
  return ReadTransferId("--snapshot (new, latest or a transfer's id)", text,
                        &out->snapshot_of.emplace());
}

Status CheckWalDir(const SourceAddress& source, const std::string& wal_dir) {
  return wal_dir.empty() || source.is_directory()
             ? Status::OK()
             : Wrong("--wal-dir",
                     "a source directory (serve has a --wal-dir of its own)",
                     source.ToString());
}

// `host`: of the only address that TLS can be for.
Status CheckTls(const TlsFiles& tls, const std::string& host) {
  if (tls.empty()) {
    return Status::OK();
  }
  if (HostPort{host}.is_unix()) {
    return Wrong("--tls-cert, --tls-key, --tls-ca",
                 "none of them with a Unix socket, which has no TLS",
                 kUnixScheme + host);
  }
  return !tls.cert.empty() && !tls.key.empty() && !tls.ca.empty()
             ? Status::OK()
             : Status::InvalidArgument(
                   "--tls-cert, --tls-key, --tls-ca: expected all three or "
                   "none");
}

Status ReadAddress(const OptionTexts& texts, const std::string& operand,
                   bool name_needed, SourceAddress* out) {
  if (!texts.Has(operand)) {
    return Status::InvalidArgument(
        operand + ": expected a directory, sst://HOST[:PORT]/NAME or "
        "unix:/PATH:NAME, found nothing");
  }
  const Status status = ParseSourceAddress(texts.Get(operand), out);
  if (status.ok() && name_needed && !out->is_directory() &&
      out->name.empty()) {
    return Wrong(operand,
                 (HostPort{out->host}.is_unix()
                      ? std::string("unix:/PATH:NAME")
                      : std::string("sst://HOST[:PORT]/NAME")) +
                     " (sstferry plan lists the names)",
                 texts.Get(operand));
  }
  return status;
}

Status ReadCompression(const OptionTexts& texts, PullOptions* out) {
  const std::string text = texts.Get("compress", "auto");
  const size_t colon = text.find(':');
  const std::string name = text.substr(0, colon);
  const bool has_level = colon != std::string::npos;
  if (name == "zstd") {
    out->compression = WireCompression::kZstd;
  } else if (name == "auto" && !has_level) {
    out->compression = WireCompression::kAuto;
  } else if (name == "none" && !has_level) {
    out->compression = WireCompression::kNone;
  } else {
    return Wrong("--compress", "auto, none, zstd or zstd:LEVEL", text);
  }
  uint64_t level = 0;
  const Status status =
      has_level ? ParseNumber("--compress zstd", text.substr(colon + 1), 1,
                              kMaxCompressionLevel, &level)
                : Status::OK();
  out->compression_level = static_cast<uint32_t>(level);
  return status;
}

Status ReadPullOptions(const OptionTexts& texts, PullOptions* out) {
  RETURN_IF_ERROR(ReadCompression(texts, out));
  RETURN_IF_ERROR(ReadSnapshotChoice(texts, out));
  RETURN_IF_ERROR(CheckWalDir(out->source, out->wal_dir));
  RETURN_IF_ERROR(CheckTls(out->tls, out->source.host));
  return ReadSelection(texts, &out->selection);
}

Status CheckListen(const OptionTexts& texts, const ServeArguments& serve) {
  return !serve.tls.empty() || serve.insecure || IsLoopback(serve.listen.host)
             ? Status::OK()
             : Wrong("--listen",
                     "an address of this machine only, such as "
                     "127.0.0.1:7420 or unix:/run/sstferry-serve/socket, or "
                     "--tls-cert, --tls-key and --tls-ca "
                     "(--insecure allows others without: anyone who reaches "
                     "the port can read the databases)",
                     texts.Get("listen"));
}

// Reads TARGET_DIR and all options that pull and plan share.
Status ReadTransfer(const OptionTexts& texts, PullArguments* out) {
  out->options.target_dir = texts.Get("target");
  RETURN_IF_ERROR(ReadPullOptions(texts, &out->options));
  RETURN_IF_ERROR(ReadRefresh(texts, out));
  RETURN_IF_ERROR(ReadMetrics(texts, &out->metrics));
  return ReadTargetAccess(texts, &out->options);
}

// sst://, a misspelled scheme, or unix:, where a directory is expected.
bool IsOfServer(const std::string& text) {
  return text.find("://") != std::string::npos || text.starts_with(kUnixScheme);
}

Status CheckLocal(const OptionTexts& texts) {
  return !IsOfServer(texts.Get("target"))
             ? Status::OK()
             : Wrong("target",
                     "a directory of this machine: pull runs at the target, "
                     "and serve at the source",
                     texts.Get("target"));
}

}  // namespace

Status ParseServe(const std::vector<std::string>& arguments,
                  ServeArguments* out) {
  OptionTexts texts;
  RETURN_IF_ERROR(Read("serve", arguments, &texts, out));
  RETURN_IF_ERROR(ReadDatabases(texts, &out->options));
  RETURN_IF_ERROR(CheckTls(out->tls, out->listen.host));
  RETURN_IF_ERROR(ReadAllowed(texts, !out->tls.empty(), &out->options));
  RETURN_IF_ERROR(
      ReadAllowedUids(texts, out->listen.is_unix(), &out->allowed_uids));
  RETURN_IF_ERROR(ReadWalDirs(texts, &out->options));
  RETURN_IF_ERROR(ReadMetrics(texts, &out->metrics));
  return CheckListen(texts, *out);
}

Status ParsePull(const std::vector<std::string>& arguments,
                 PullArguments* out) {
  OptionTexts texts;
  Status status = Read("pull", arguments, &texts, out);
  if (status.ok()) {
    status = ReadAddress(texts, "source", true, &out->options.source);
  }
  if (status.ok() && texts.Get("target").empty()) {
    status = Status::InvalidArgument(
        "target: expected a directory TARGET_DIR, found nothing");
  }
  if (status.ok()) {
    status = CheckLocal(texts);
  }
  return status.ok() ? ReadTransfer(texts, out) : status;
}

Status ParsePlan(const std::vector<std::string>& arguments,
                 PullArguments* out) {
  OptionTexts texts;
  Status status = Read("plan", arguments, &texts, out);
  if (status.ok()) {
    status = ReadAddress(texts, "source", false, &out->options.source);
  }
  if (status.ok() && texts.Has("target") && texts.Get("target").empty()) {
    status = Wrong("target", "a directory TARGET_DIR", "");
  }
  if (status.ok()) {
    status = CheckLocal(texts);
  }
  return status.ok() ? ReadTransfer(texts, out) : status;
}

Status ParseVerify(const std::vector<std::string>& arguments,
                   VerifyArguments* out) {
  OptionTexts texts;
  Status status = Read("verify", arguments, &texts, out);
  if (status.ok()) {
    status = ReadAddress(texts, "left", true, &out->options.left);
  }
  if (status.ok()) {
    status = ReadAddress(texts, "right", true, &out->options.right);
  }
  if (status.ok() && texts.Has("snapshot")) {
    status = ReadTransferId("--snapshot", texts.Get("snapshot"),
                            &out->options.left_snapshot.emplace());
  }
  if (status.ok()) {
    status = CheckWalDir(out->options.left, out->options.wal_dir);
  }
  if (status.ok()) {
    const SourceAddress& left = out->options.left;
    const SourceAddress& right = out->options.right;
    status = CheckTls(out->options.tls,
                      HostPort{left.host}.is_unix() && !right.is_directory()
                          ? right.host
                          : left.host);
  }
  return status.ok() ? ReadSelection(texts, &out->options.selection) : status;
}

Status ParseStatus(const std::vector<std::string>& arguments,
                   StatusArguments* out) {
  OptionTexts texts;
  Status status = Read("status", arguments, &texts, out);
  if (status.ok()) {
    status = ReadAddress(texts, "place", false, &out->options.where);
  }
  return status.ok() ? CheckTls(out->options.tls, out->options.where.host)
                     : status;
}

Status ParseLs(const std::vector<std::string>& arguments,
               StatusArguments* out) {
  OptionTexts texts;
  Status status = Read("ls", arguments, &texts, out);
  if (status.ok()) {
    status = ReadAddress(texts, "source", false, &out->options.where);
  }
  if (status.ok() && out->options.where.is_directory()) {
    status = Wrong("source", "sst://HOST[:PORT][/NAME] or unix:/PATH[:NAME]",
                   texts.Get("source"));
  }
  return status.ok() ? CheckTls(out->options.tls, out->options.where.host)
                     : status;
}

Status ParseRelease(const std::vector<std::string>& arguments,
                    ReleaseArguments* out) {
  OptionTexts texts;
  const Status status = Read("release", arguments, &texts, out);
  out->directory = texts.Get("source");
  if (status.ok() &&
      (out->directory.empty() || IsOfServer(out->directory))) {
    return Wrong("source", "a database directory of this machine",
                 out->directory);
  }
  out->id = texts.Get("id");
  std::transform(out->id.begin(), out->id.end(), out->id.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  if (status.ok() &&
      (out->id.size() < 8 || out->id.size() > 2 * sizeof(TransferId) ||
       out->id.find_first_not_of("0123456789abcdef") != std::string::npos)) {
    return Wrong("id", "8 to 32 hex digits of a transfer's id",
                 texts.Get("id"));
  }
  return status;
}

}  // namespace sstferry
