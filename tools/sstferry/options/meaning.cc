// Turns the texts of each command into the options of the public API, and
// checks every bound.
#include <algorithm>
#include <cctype>
#include <set>

#include "format/limits.h"
#include "format/record/lease.h"
#include "tools/sstferry/options/access_arguments.h"
#include "tools/sstferry/options/command_arguments.h"
#include "tools/sstferry/options/commands.h"
#include "tools/sstferry/options/method_arguments.h"
#include "tools/sstferry/options/metrics_arguments.h"
#include "tools/sstferry/options/refresh_arguments.h"
#include "tools/sstferry/options/serve_arguments.h"

namespace sstferry {
namespace {

using rocksdb::Status;

constexpr uint64_t kMaxConnections = 65536;

Status Read(const std::string& name,
            const std::vector<std::string>& arguments, OptionTexts* texts) {
  const Command* command = FindCommand(name);
  return ReadOptions(ReadableOptions(*command), command->operands, arguments,
                     texts);
}

Status ReadCommon(const OptionTexts& texts, CommonArguments* out) {
  out->json = texts.IsSet("json");
  const std::string progress = texts.Get("progress", "auto");
  if (progress == "auto") {
    out->progress = ProgressMode::kAuto;
  } else if (progress == "always") {
    out->progress = ProgressMode::kAlways;
  } else if (progress == "never") {
    out->progress = ProgressMode::kNever;
  } else if (progress == "json") {
    out->progress = ProgressMode::kJson;
  } else {
    return Wrong("--progress", "auto, always, never or json", progress);
  }
  const std::string level = texts.Get("log-level", "info");
  if (level == "error") {
    out->log_level = LogLevel::kError;
  } else if (level == "warning") {
    out->log_level = LogLevel::kWarning;
  } else if (level == "info") {
    out->log_level = LogLevel::kInfo;
  } else if (level == "debug") {
    out->log_level = LogLevel::kDebug;
  } else {
    return Wrong("--log-level", "error, warning, info or debug", level);
  }
  const std::string format = texts.Get("log-format", "text");
  if (format != "text" && format != "json") {
    return Wrong("--log-format", "text or json", format);
  }
  out->log_format = format == "json" ? LogFormat::kJson : LogFormat::kText;
  return ParseDuration("--progress-interval",
                       texts.Get("progress-interval", "10s"),
                       &out->progress_interval);
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

Status ReadCount(const OptionTexts& texts, const std::string& name,
                 uint64_t least, uint64_t most, uint32_t* out) {
  if (!texts.Has(name)) {
    return Status::OK();
  }
  uint64_t number = 0;
  const Status status =
      ParseNumber("--" + name, texts.Get(name), least, most, &number);
  *out = static_cast<uint32_t>(number);
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

Status ReadBytes(const OptionTexts& texts, const std::string& name,
                 uint64_t* out) {
  return texts.Has(name)
             ? ParseByteCount("--" + name, texts.Get(name), out)
             : Status::OK();
}

Status ReadDuration(const OptionTexts& texts, const std::string& name,
                    std::chrono::milliseconds* out) {
  return texts.Has(name)
             ? ParseDuration("--" + name, texts.Get(name), out)
             : Status::OK();
}

// Whole seconds: leases are counted in them.
Status ReadSeconds(const OptionTexts& texts, const std::string& name,
                   std::chrono::seconds* out) {
  if (texts.Get(name) == "0") {
    *out = std::chrono::seconds(0);
    return Status::OK();
  }
  std::chrono::milliseconds ttl = *out;
  const Status status = ReadDuration(texts, name, &ttl);
  if (status.ok() && (ttl < std::chrono::seconds(1) ||
                      ttl > std::chrono::seconds(kMaxLeaseSeconds))) {
    return Wrong("--" + name, "0, or 1s to 31d", texts.Get(name));
  }
  *out = std::chrono::duration_cast<std::chrono::seconds>(ttl);
  return status;
}

// A path given as an option may not be empty: it would mean the default.
Status ReadPath(const OptionTexts& texts, const std::string& name,
                std::string* out) {
  if (texts.Has(name)) {
    *out = texts.Get(name);
    if (out->empty()) {
      return Wrong("--" + name, "a path", "");
    }
  }
  return Status::OK();
}

Status ReadWalDir(const OptionTexts& texts, const SourceAddress& source,
                  std::string* out) {
  const Status status = ReadPath(texts, "wal-dir", out);
  return status.ok() && !out->empty() && !source.is_directory()
             ? Wrong("--wal-dir",
                     "a source directory (serve has a --wal-dir of its own)",
                     source.ToString())
             : status;
}

Status ReadTls(const OptionTexts& texts, TlsFiles* out) {
  Status status = ReadPath(texts, "tls-cert", &out->cert);
  if (status.ok()) {
    status = ReadPath(texts, "tls-key", &out->key);
  }
  if (status.ok()) {
    status = ReadPath(texts, "tls-ca", &out->ca);
  }
  if (status.ok() && !out->empty() &&
      (out->cert.empty() || out->key.empty() || out->ca.empty())) {
    return Status::InvalidArgument(
        "--tls-cert, --tls-key, --tls-ca: expected all three or none");
  }
  return status;
}

Status ReadAddress(const OptionTexts& texts, const std::string& operand,
                   bool name_needed, SourceAddress* out) {
  if (!texts.Has(operand)) {
    return Status::InvalidArgument(
        operand + ": expected a directory or sst://HOST[:PORT]/NAME, found "
        "nothing");
  }
  const Status status = ParseSourceAddress(texts.Get(operand), out);
  if (status.ok() && name_needed && !out->is_directory() &&
      out->name.empty()) {
    return Wrong(operand,
                 "sst://HOST[:PORT]/NAME (sstferry plan lists the names)",
                 texts.Get(operand));
  }
  return status;
}

// SOURCE of pull, which may be several.
Status ReadSources(const OptionTexts& texts, PullOptions* out) {
  std::vector<SourceAddress> sources;
  Status status = ParseSourceAddresses(texts.Get("source"), &sources);
  if (!status.ok() || sources.size() < 2) {
    return ReadAddress(texts, "source", true, &out->source);
  }
  out->source = sources.front();
  out->more_sources.assign(sources.begin() + 1, sources.end());
  return status;
}

Status ReadCarry(const OptionTexts& texts, CarryMode* out) {
  const std::string carry = texts.Get("carry", "auto");
  if (carry != "auto" && carry != "never" && carry != "only") {
    return Wrong("--carry", "auto, never or only", carry);
  }
  *out = carry == "auto"    ? CarryMode::kAuto
         : carry == "never" ? CarryMode::kNever
                            : CarryMode::kOnly;
  return Status::OK();
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
  out->replace = texts.IsSet("replace");
  out->restart = texts.IsSet("restart");
  out->verify = texts.IsSet("verify");
  const std::string durability = texts.Get("durability", "chunk");
  if (durability != "chunk" && durability != "none") {
    return Wrong("--durability", "chunk or none", durability);
  }
  out->durability =
      durability == "chunk" ? Durability::kChunk : Durability::kNone;
  Status status = ReadCarry(texts, &out->carry);
  if (status.ok()) {
    status = ReadCount(texts, "lanes", 1, kMaxLanes, &out->lanes);
  }
  if (status.ok()) {
    status = ReadBytes(texts, "chunk-bytes", &out->chunk_bytes);
  }
  if (status.ok() && (out->chunk_bytes < kMinChunkBytes ||
                      out->chunk_bytes > kMaxChunkBytes)) {
    return Wrong("--chunk-bytes", "64Ki to 4Gi", texts.Get("chunk-bytes"));
  }
  if (status.ok()) {
    status = ReadBytes(texts, "max-rate", &out->max_rate_bytes_per_sec);
  }
  if (status.ok()) {
    status = ReadCompression(texts, out);
  }
  if (status.ok()) {
    status = ReadCount(texts, "format-version", 2, 255, &out->format_version);
  }
  if (status.ok()) {
    status = ReadPath(texts, "timeline", &out->timeline_file);
  }
  if (status.ok()) {
    status = ReadPath(texts, "snapshot-dir", &out->snapshot_dir);
  }
  if (status.ok()) {
    status = ReadSnapshotChoice(texts, out);
  }
  if (status.ok()) {
    status = ReadWalDir(texts, out->source, &out->wal_dir);
  }
  if (status.ok()) {
    status = ReadDuration(texts, "stall-timeout", &out->stall_timeout);
  }
  if (status.ok() && texts.Has("wait-for-source")) {
    status = ReadDuration(texts, "wait-for-source",
                          &out->wait_for_source.emplace());
  }
  if (status.ok()) {
    status = ReadDuration(texts, "retry-for", &out->retry_for);
  }
  if (status.ok()) {
    status = ReadDuration(texts, "deadline", &out->deadline);
  }
  if (status.ok()) {
    std::chrono::milliseconds max_age = out->max_age;
    status = ReadDuration(texts, "max-age", &max_age);
    out->max_age = std::chrono::ceil<std::chrono::seconds>(max_age);
  }
  if (status.ok()) {
    status = ReadSeconds(texts, "snapshot-ttl", &out->snapshot_ttl);
  }
  if (status.ok()) {
    status = ReadTls(texts, &out->tls);
  }
  return status.ok() ? ReadSelection(texts, &out->selection) : status;
}

Status ReadListen(const OptionTexts& texts, ServeArguments* out) {
  const std::string text = texts.Get("listen", "127.0.0.1:7420");
  const Status status = ParseHostPort(text, &out->listen);
  if (!status.ok()) {
    return Status::InvalidArgument("--listen", MessageOf(status));
  }
  out->insecure = texts.IsSet("insecure");
  if (out->tls.empty() && !out->insecure && !IsLoopback(out->listen.host)) {
    return Wrong("--listen",
                 "an address of this machine only, such as 127.0.0.1:7420, or "
                 "--tls-cert, --tls-key and --tls-ca (--insecure allows others "
                 "without: anyone who reaches the port can read the "
                 "databases)",
                 text);
  }
  return Status::OK();
}

// Reads TARGET_DIR and all options that pull and plan share.
Status ReadTransfer(const OptionTexts& texts, PullArguments* out) {
  out->options.target_dir = texts.Get("target");
  Status status = ReadPullOptions(texts, &out->options);
  if (status.ok()) {
    status = ReadRefresh(texts, out);
  }
  if (status.ok()) {
    status = ReadMethod(texts, &out->options);
  }
  if (status.ok()) {
    status = ReadMetrics(texts, &out->metrics);
  }
  return status.ok() ? ReadTargetAccess(texts, &out->options) : status;
}

// Reads all options that status and ls share.
Status ReadQuery(const OptionTexts& texts, StatusArguments* out) {
  Status status = ReadCommon(texts, &out->common);
  if (status.ok()) {
    status = ReadDuration(texts, "stall-timeout",
                          &out->options.stall_timeout);
  }
  return status.ok() ? ReadTls(texts, &out->options.tls) : status;
}

Status CheckLocal(const OptionTexts& texts) {
  return texts.Get("target").find("://") == std::string::npos
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
  Status status = Read("serve", arguments, &texts);
  if (status.ok()) {
    status = ReadCommon(texts, &out->common);
  }
  if (status.ok()) {
    status = ReadDatabases(texts, &out->options);
  }
  if (status.ok()) {
    status = ReadCount(texts, "max-lanes", 1, kMaxLanes,
                       &out->options.max_lanes);
  }
  if (status.ok()) {
    status = ReadCount(texts, "max-transfers", 1, kMaxConnections,
                       &out->options.max_transfers);
  }
  if (status.ok()) {
    status = ReadSeconds(texts, "share-snapshots",
                         &out->options.share_snapshots);
  }
  if (status.ok()) {
    status = ReadBytes(texts, "chunk-cache", &out->options.chunk_cache_bytes);
  }
  if (status.ok()) {
    status = ReadBytes(texts, "memory", &out->options.memory_bytes);
  }
  if (status.ok()) {
    status = ReadBytes(texts, "max-rate",
                       &out->options.max_rate_bytes_per_sec);
  }
  if (status.ok()) {
    status = ReadPath(texts, "snapshot-dir", &out->options.snapshot_dir);
  }
  if (status.ok()) {
    status = ReadDuration(texts, "stall-timeout",
                          &out->options.stall_timeout);
  }
  if (status.ok()) {
    status = ReadSeconds(texts, "snapshot-ttl", &out->options.snapshot_ttl);
  }
  if (status.ok() && texts.Has("min-free")) {
    status = ParsePercent("--min-free", texts.Get("min-free"),
                          &out->options.min_free_percent);
  }
  if (status.ok()) {
    status = ReadCount(texts, "max-connections", 1, kMaxConnections,
                       &out->options.max_connections);
  }
  if (status.ok()) {
    status = ReadCount(texts, "max-per-address", 1, kMaxConnections,
                       &out->options.max_connections_per_address);
  }
  if (status.ok()) {
    status = ReadTls(texts, &out->tls);
  }
  if (status.ok()) {
    status = ReadAllowed(texts, !out->tls.empty(), &out->options);
  }
  if (status.ok()) {
    status = ReadWalDirs(texts, &out->options);
  }
  if (status.ok()) {
    status = ReadMetrics(texts, &out->metrics);
  }
  out->once = texts.IsSet("once");
  out->allow_missing = texts.IsSet("allow-missing");
  return status.ok() ? ReadListen(texts, out) : status;
}

Status ParsePull(const std::vector<std::string>& arguments,
                 PullArguments* out) {
  OptionTexts texts;
  Status status = Read("pull", arguments, &texts);
  if (status.ok()) {
    status = ReadCommon(texts, &out->common);
  }
  if (status.ok()) {
    status = ReadSources(texts, &out->options);
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
  Status status = Read("plan", arguments, &texts);
  if (status.ok()) {
    status = ReadCommon(texts, &out->common);
  }
  if (status.ok()) {
    status = ReadAddress(texts, "source", false, &out->options.source);
  }
  if (status.ok() && texts.Has("target") && texts.Get("target").empty()) {
    status = Wrong("target", "a directory TARGET_DIR", "");
  }
  if (status.ok()) {
    status = CheckLocal(texts);
  }
  out->summary_only = texts.IsSet("summary");
  return status.ok() ? ReadTransfer(texts, out) : status;
}

Status ParseVerify(const std::vector<std::string>& arguments,
                   VerifyArguments* out) {
  OptionTexts texts;
  Status status = Read("verify", arguments, &texts);
  if (status.ok()) {
    status = ReadCommon(texts, &out->common);
  }
  if (status.ok()) {
    status = ReadAddress(texts, "left", true, &out->options.left);
  }
  if (status.ok()) {
    status = ReadAddress(texts, "right", true, &out->options.right);
  }
  if (status.ok()) {
    status = ReadCount(texts, "lanes", 1, kMaxLanes, &out->options.lanes);
  }
  if (status.ok() && texts.Has("snapshot")) {
    status = ReadTransferId("--snapshot", texts.Get("snapshot"),
                            &out->options.left_snapshot.emplace());
  }
  if (status.ok()) {
    status = ReadCount(texts, "show", 0, kMaxDifferencesShown,
                       &out->options.max_differences_shown);
  }
  if (status.ok()) {
    status = ReadPath(texts, "snapshot-dir", &out->options.snapshot_dir);
  }
  if (status.ok()) {
    status = ReadWalDir(texts, out->options.left, &out->options.wal_dir);
  }
  if (status.ok()) {
    status = ReadDuration(texts, "stall-timeout",
                          &out->options.stall_timeout);
  }
  if (status.ok()) {
    status = ReadTls(texts, &out->options.tls);
  }
  return status.ok() ? ReadSelection(texts, &out->options.selection) : status;
}

Status ParseStatus(const std::vector<std::string>& arguments,
                   StatusArguments* out) {
  OptionTexts texts;
  Status status = Read("status", arguments, &texts);
  if (status.ok()) {
    status = ReadAddress(texts, "place", false, &out->options.where);
  }
  if (status.ok()) {
    status = ReadPath(texts, "snapshot-dir", &out->options.snapshot_dir);
  }
  return status.ok() ? ReadQuery(texts, out) : status;
}

Status ParseLs(const std::vector<std::string>& arguments,
               StatusArguments* out) {
  OptionTexts texts;
  Status status = Read("ls", arguments, &texts);
  if (status.ok()) {
    status = ReadAddress(texts, "source", false, &out->options.where);
  }
  if (status.ok() && out->options.where.is_directory()) {
    status = Wrong("source", "sst://HOST[:PORT][/NAME]", texts.Get("source"));
  }
  return status.ok() ? ReadQuery(texts, out) : status;
}

Status ParseRelease(const std::vector<std::string>& arguments,
                    ReleaseArguments* out) {
  OptionTexts texts;
  Status status = Read("release", arguments, &texts);
  if (status.ok()) {
    status = ReadCommon(texts, &out->common);
  }
  out->directory = texts.Get("source");
  if (status.ok() && (out->directory.empty() ||
                      out->directory.find("://") != std::string::npos)) {
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
  return status.ok() ? ReadPath(texts, "snapshot-dir", &out->snapshot_dir)
                     : status;
}

Status ParseInspect(const std::vector<std::string>& arguments,
                    InspectArguments* out) {
  OptionTexts texts;
  Status status = Read("inspect", arguments, &texts);
  if (status.ok()) {
    status = ReadCommon(texts, &out->common);
  }
  if (status.ok() && texts.Get("file").empty()) {
    status = Status::InvalidArgument(
        "file: expected a journal or an SST file, found nothing");
  }
  out->file = texts.Get("file");
  return status;
}

}  // namespace sstferry
