// Parses the arguments of each command into options of the public API. The rows
// of the tables (option_rows.h) read simple options. This file reads options
// that depend on each other or have a special form.
#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "format/limits.h"
#include "format/printable.h"
#include "tools/sstferry/command_arguments.h"
#include "tools/sstferry/commands.h"
#include "tools/sstferry/job_arguments.h"
#include "tools/sstferry/moment.h"
#include "tools/sstferry/serve_arguments.h"

namespace sstferry {
namespace {

using rocksdb::Status;

// Reads the given options that have a row with a `read` function. Each row sets
// a member of the struct at `arguments`.
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

// Refuses an option that `command` does not have although pull, refresh or swap
// has it. The error names the commands that have the option.
Status CheckOwnOptions(const Command& command,
                       const std::vector<std::string>& arguments) {
  const auto has = [](const Command& one, const std::string& name) {
    return std::any_of(
        one.options.begin(), one.options.end(),
        [&](const OptionSpec& spec) { return spec.name == name; });
  };
  for (const std::string& word : arguments) {
    const std::string name =
        word.starts_with("--") ? word.substr(2, word.find('=') - 2) : "";
    if (name.empty() || has(command, name)) {
      continue;
    }
    std::string others;
    for (const PullMode mode :
         {PullMode::kPull, PullMode::kRefresh, PullMode::kSwap}) {
      if (has(*FindCommand(PullModeName(mode)), name)) {
        others += std::string(others.empty() ? "sstferry " : " or sstferry ") +
                  PullModeName(mode);
      }
    }
    if (!others.empty()) {
      return OnlyWith("--" + name, others,
                      std::string("sstferry ") + command.name);
    }
  }
  return Status::OK();
}

// Reads the arguments of `archive`. The operands depend on the action, but a
// word such as "push" may be the action or the value of an option. Therefore
// tries each word that may be the action.
Status ReadArchiveTexts(const Command& command,
                        const std::vector<std::string>& arguments,
                        OptionTexts* texts) {
  Status first;
  for (const std::string& word : arguments) {
    const std::optional<Command> action = FindArchiveAction(word);
    if (!action.has_value()) {
      continue;
    }
    std::vector<std::string> operands = action->operands;
    operands.insert(operands.begin(), "action");
    const Status status =
        ReadOptions(AllOptions(command), operands, arguments, texts);
    if (status.ok() && texts->Get("action") == word) {
      return status;
    }
    first = first.ok() ? status : first;
  }
  return first.ok() ? ReadOptions(AllOptions(command), command.operands,
                                  arguments, texts)
                    : first;
}

Status ReadTexts(const Command& command,
                 const std::vector<std::string>& arguments,
                 OptionTexts* texts) {
  return std::string(command.name) == "archive"
             ? ReadArchiveTexts(command, arguments, texts)
             : ReadOptions(AllOptions(command), command.operands, arguments,
                           texts);
}

// Reads `arguments`, and sets the members of *out that have a row in the table
// of the command. `Arguments` is the type for which the table was made.
template <typename Arguments>
Status Read(const Command& command, const std::vector<std::string>& arguments,
            OptionTexts* texts, Arguments* out) {
  *out = Arguments();
  RETURN_IF_ERROR(ReadTexts(command, arguments, texts));
  RETURN_IF_ERROR(ApplyRows(CommonOptions(), *texts, &out->common));
  return ApplyRows(command.options, *texts, out);
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
  return wal_dir.empty() || source.is_directory() || source.is_ssh()
             ? Status::OK()
             : Wrong("--wal-dir",
                     "a source directory (serve has a --wal-dir of its own)",
                     source.ToString());
}

// Sets the TLS files from --tls, except files that --tls-cert, --tls-key or
// --tls-ca names. Returns an error if only some of the files are known, or if
// `host` is a Unix socket, which cannot use TLS.
Status ReadTls(const OptionTexts& texts, const std::string& host,
               TlsFiles* files) {
  const std::string dir = texts.Get("tls");
  if (texts.Has("tls") && dir.empty()) {
    return Wrong("--tls", "a directory", "");
  }
  for (const auto& [file, name] :
       {std::pair(&files->cert, "/cert.pem"),
        std::pair(&files->key, "/key.pem"), std::pair(&files->ca, "/ca.pem")}) {
    if (!dir.empty() && file->empty()) {
      *file = dir + name;
    }
  }
  const TlsFiles& tls = *files;
  if (tls.empty()) {
    return Status::OK();
  }
  if (HostPort{host}.is_unix()) {
    return Wrong("--tls, --tls-cert, --tls-key, --tls-ca",
                 "none of them with a Unix socket, which has no TLS",
                 kUnixScheme + host);
  }
  return !tls.cert.empty() && !tls.key.empty() && !tls.ca.empty()
             ? Status::OK()
             : Status::InvalidArgument(
                   "--tls-cert, --tls-key, --tls-ca: expected all three or "
                   "none");
}

bool HasServer(const SourceAddress& source) {
  return !source.is_directory() && !source.is_archive();
}

Status ReadTls(const OptionTexts& texts, const SourceAddress& source,
               TlsFiles* files) {
  RETURN_IF_ERROR(ReadTls(texts, source.host, files));
  constexpr char kNames[] = "--tls, --tls-cert, --tls-key, --tls-ca";
  if (!files->empty() && source.is_ssh()) {
    return Wrong(kNames, "none of them with ssh, which encrypts the connection "
                         "itself",
                 source.ToString());
  }
  // --metrics runs its own server, which uses TLS whatever the source is.
  return !files->empty() && !HasServer(source) && !texts.Has("metrics")
             ? OnlyWith("--tls", "a server as source, or --metrics",
                        source.ToString())
             : Status::OK();
}

// Returns the absolute form of a relative path. Keeps "..": after a symbolic
// link, ".." does not lead back to the directory that has the link.
std::string AbsolutePath(const std::string& text) {
  std::error_code error;
  const std::filesystem::path full = std::filesystem::absolute(text, error);
  if (error || std::filesystem::path(text).is_absolute() ||
      std::find(full.begin(), full.end(), std::filesystem::path("..")) !=
          full.end()) {
    return error ? text : full.string();
  }
  const std::filesystem::path normal = full.lexically_normal();
  return normal.has_filename() ? normal.string()
                               : normal.parent_path().string();
}

Status ReadAddress(const OptionTexts& texts, const std::string& operand,
                   bool name_needed, SourceAddress* out) {
  if (!texts.Has(operand)) {
    return Status::InvalidArgument(
        operand +
        ": expected a directory, HOST:/DIR, "
        "ssh://HOST[:PORT]/DIR, sst://HOST[:PORT]/NAME, unix:/PATH:NAME or "
        "s3://BUCKET[/PREFIX][@SET], found nothing");
  }
  std::string address = texts.Get(operand);
  std::string local;
  const auto now =
      static_cast<uint64_t>(std::max<std::time_t>(std::time(nullptr), 0));
  RETURN_IF_ERROR(ResolveMoment(now, &address, &local));
  if (!local.empty()) {
    // Prints the exact time: if the operator runs a command with "-2h" again,
    // it means a later time.
    std::fprintf(stderr, "note: %s is %s; to resume, use %s\n",
                 Printable(texts.Get(operand)).c_str(), local.c_str(),
                 Printable(address).c_str());
  }
  const Status status = ParseSourceAddress(address, out);
  if (status.ok() && out->is_directory()) {
    // Records and offered commands contain the address, and are read in other
    // working directories. Keeps "db1:users" if no directory has this name:
    // the error of the source tells how to name another machine.
    const std::string& text = out->directory;
    std::error_code error;
    if (text.find('/') <= text.find(':') ||
        std::filesystem::exists(text, error)) {
      out->directory = AbsolutePath(text);
    }
  }
  if (status.ok() && name_needed && !out->is_directory() &&
      !out->is_archive() && out->name.empty()) {
    return Wrong(operand,
                 (HostPort{out->host}.is_unix()
                      ? std::string("unix:/PATH:NAME")
                      : std::string("sst://HOST[:PORT]/NAME")) +
                     " (sstferry ls lists the names)",
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

// Reads --timeout, and uses it as the limit for every wait for the source.
Status ReadTimeout(const OptionTexts& texts, Timeouts* out) {
  if (!texts.Has("timeout")) {
    return Status::OK();
  }
  RETURN_IF_ERROR(
      ParseDuration("--timeout", texts.Get("timeout"), &out->stall));
  out->first_answer = out->retry = out->stall;
  return Status::OK();
}

// Refuses options such as --key-file if the source is not an archive. A
// directory with an @, as in DIR@SET, may be an archive.
Status CheckStoreOptions(const OptionTexts& texts,
                         const SourceAddress& source) {
  if (source.is_archive() ||
      (source.is_directory() &&
       (source.directory.find('@') != std::string::npos ||
        IsArchiveDirectory(source.directory)))) {
    return Status::OK();
  }
  for (const char* name : {"endpoint", "region", "ca-file",
                           "credentials-command", "key-file"}) {
    if (texts.Has(name) || texts.IsSet(name)) {
      return OnlyWith(std::string("--") + name, "an archive as source",
                      source.ToString());
    }
  }
  return Status::OK();
}

Status ReadPullOptions(const OptionTexts& texts, PullOptions* out) {
  RETURN_IF_ERROR(ReadTimeout(texts, &out->timeouts));
  RETURN_IF_ERROR(ReadCompression(texts, out));
  RETURN_IF_ERROR(ReadSnapshotChoice(texts, out));
  RETURN_IF_ERROR(CheckWalDir(out->source, out->wal_dir));
  RETURN_IF_ERROR(CheckStoreOptions(texts, out->source));
  RETURN_IF_ERROR(ReadTls(texts, out->source, &out->tls));
  return ReadSelection(texts, &out->selection);
}

Status CheckListen(const OptionTexts& texts, const ServeArguments& serve) {
  return !serve.tls.empty() || serve.insecure || IsLoopback(serve.listen.host)
             ? Status::OK()
             : Wrong("--listen",
                     "a loopback address, such as 127.0.0.1:7420 or "
                     "unix:/run/sstferry-serve/socket, or --tls DIR "
                     "(--insecure allows other addresses without TLS: anyone "
                     "who reaches the port can read the databases)",
                     texts.Get("listen"));
}

// Reads TARGET_DIR and all options that pull and plan share.
Status ReadTransfer(const OptionTexts& texts, PullArguments* out) {
  out->options.target_dir = texts.Get("target");
  RETURN_IF_ERROR(ReadPullOptions(texts, &out->options));
  RETURN_IF_ERROR(ReadJob(texts, out));
  RETURN_IF_ERROR(ReadMetrics(texts, out->options.tls, &out->metrics));
  return ReadTargetAccess(texts, &out->options);
}

// Returns true if the text is an address and not a directory: HOST:/DIR, unix:
// or any scheme with "://". The scheme may be misspelled.
bool IsOfServer(const std::string& text) {
  SourceAddress address;
  return text.find("://") != std::string::npos ||
         text.starts_with(kUnixScheme) ||
         (ParseSourceAddress(text, &address).ok() && address.is_ssh());
}

Status CheckLocal(const OptionTexts& texts) {
  return !IsOfServer(texts.Get("target"))
             ? Status::OK()
             : Wrong("target",
                     "a directory of this machine: pull runs at the target, "
                     "and serve at the source",
                     texts.Get("target"));
}

// Checks --all. If it was given, refuses options and addresses that select one
// database. Otherwise refuses options that need --all, such as --jobs. `sides`
// contains the names of the operands and their addresses.
Status CheckAll(
    const OptionTexts& texts, bool all,
    const std::vector<std::pair<const char*, const SourceAddress*>>& sides) {
  if (!all) {
    for (const char* const option : {"jobs", "delete"}) {
      if (texts.Has(option) || texts.IsSet(option)) {
        return OnlyWith(std::string("--") + option, "--all");
      }
    }
    return Status::OK();
  }
  for (const auto& [operand, side] : sides) {
    if (side->is_archive() ||
        (!side->is_directory() && !side->is_ssh() && !side->name.empty())) {
      return Wrong("--all",
                   "a server without a NAME (sst://HOST[:PORT], unix:/PATH), a "
                   "directory or HOST:/DIR, whose databases are all used",
                   texts.Get(operand));
    }
  }
  for (const char* const option :
       {"cf", "begin", "end", "snapshot", "source-id", "wal-dir", "reuse"}) {
    if (texts.Has(option)) {
      return Wrong(std::string("--") + option,
                   "none with --all, because it applies to one database",
                   texts.Get(option));
    }
  }
  return Status::OK();
}

}  // namespace

Status ParseEndCommands(const std::string& command,
                        const std::vector<std::string>& arguments,
                        EndCommands* out) {
  *out = EndCommands();
  const Command& found = *FindCommand(command);
  if (std::none_of(found.options.begin(), found.options.end(),
                   [](const OptionSpec& spec) {
                     return std::string(spec.name) == "on-success";
                   })) {
    return Status::OK();
  }
  OptionTexts texts;
  RETURN_IF_ERROR(ReadTexts(found, arguments, &texts));
  RETURN_IF_ERROR(ApplyRows(CommonOptions(), texts, &out->common));
  out->on_success = texts.Get("on-success");
  out->on_failure = texts.Get("on-failure");
  out->job = command + (command == "archive" ? " " + texts.Get("action") : "");
  return Status::OK();
}

Status ParseServe(const std::vector<std::string>& arguments,
                  ServeArguments* out) {
  OptionTexts texts;
  RETURN_IF_ERROR(Read(*FindCommand("serve"), arguments, &texts, out));
  RETURN_IF_ERROR(ReadStdio(texts, out));
  RETURN_IF_ERROR(ReadDatabases(texts, &out->options));
  RETURN_IF_ERROR(ReadTls(texts, out->listen.host, &out->tls));
  RETURN_IF_ERROR(ReadAllowed(texts, !out->tls.empty(), &out->options));
  RETURN_IF_ERROR(
      ReadAllowedUids(texts, out->listen.is_unix(), &out->allowed_uids));
  RETURN_IF_ERROR(ReadWalDirs(texts, &out->options));
  RETURN_IF_ERROR(ReadMetrics(texts, out->tls, &out->metrics));
  return CheckListen(texts, *out);
}

Status ParsePull(PullMode mode, const std::vector<std::string>& arguments,
                 PullArguments* out) {
  const Command& command = *FindCommand(PullModeName(mode));
  OptionTexts texts;
  RETURN_IF_ERROR(CheckOwnOptions(command, arguments));
  RETURN_IF_ERROR(Read(command, arguments, &texts, out));
  out->options.mode = mode;
  RETURN_IF_ERROR(
      ReadAddress(texts, "source", !out->all, &out->options.source));
  if (texts.Get("target").empty()) {
    return Status::InvalidArgument(
        "target: expected a directory TARGET_DIR, found nothing");
  }
  RETURN_IF_ERROR(CheckLocal(texts));
  RETURN_IF_ERROR(
      CheckAll(texts, out->all, {{"source", &out->options.source}}));
  return ReadTransfer(texts, out);
}

Status ParsePlan(const std::vector<std::string>& arguments,
                 PullArguments* out) {
  PullMode mode = PullMode::kPull;
  bool is_named = false;
  for (const PullMode each :
       {PullMode::kPull, PullMode::kRefresh, PullMode::kSwap}) {
    if (!arguments.empty() && arguments[0] == PullModeName(each)) {
      mode = each;
      is_named = true;
    }
  }
  const std::string first = arguments.empty() ? "" : arguments[0];
  std::error_code error;
  if (!is_named && (first == "push" || FindCommand(first) != nullptr) &&
      !std::filesystem::exists(first, error)) {
    return Wrong("action", "pull, refresh or swap, or a SOURCE", first);
  }
  const std::vector<std::string> words(arguments.begin() + (is_named ? 1 : 0),
                                       arguments.end());
  const Command command = Planned(*FindCommand(PullModeName(mode)));
  OptionTexts texts;
  RETURN_IF_ERROR(CheckOwnOptions(command, words));
  RETURN_IF_ERROR(Read(command, words, &texts, out));
  out->options.mode = mode;
  RETURN_IF_ERROR(ReadAddress(texts, "source", false, &out->options.source));
  RETURN_IF_ERROR(
      CheckAll(texts, out->all, {{"source", &out->options.source}}));
  if (texts.Has("target") && texts.Get("target").empty()) {
    return Wrong("target", "a directory TARGET_DIR", "");
  }
  RETURN_IF_ERROR(CheckLocal(texts));
  return ReadTransfer(texts, out);
}

Status ParseVerify(const std::vector<std::string>& arguments,
                   VerifyArguments* out) {
  OptionTexts texts;
  RETURN_IF_ERROR(Read(*FindCommand("verify"), arguments, &texts, out));
  RETURN_IF_ERROR(
      ReadAddress(texts, "left", !out->all, &out->options.left));
  RETURN_IF_ERROR(
      ReadAddress(texts, "right", !out->all, &out->options.right));
  RETURN_IF_ERROR(CheckAll(texts, out->all,
                           {{"left", &out->options.left},
                            {"right", &out->options.right}}));
  if (texts.Has("snapshot")) {
    RETURN_IF_ERROR(ReadTransferId("--snapshot", texts.Get("snapshot"),
                                   &out->options.left_snapshot.emplace()));
  }
  RETURN_IF_ERROR(CheckWalDir(out->options.left, out->options.wal_dir));
  const SourceAddress& left = out->options.left;
  const SourceAddress& right = out->options.right;
  const bool left_without = HostPort{left.host}.is_unix() || left.is_ssh();
  RETURN_IF_ERROR(ReadTls(
      texts,
      !HasServer(left) || (left_without && HasServer(right)) ? right : left,
      &out->options.tls));
  return ReadSelection(texts, &out->options.selection);
}

namespace {

Status CheckStatusOfAll(const OptionTexts& texts,
                        const StatusArguments& status) {
  if (status.host_file.empty()) {
    return Wrong("--config", "the file that sstferry units reads, with --all",
                 "");
  }
  if (!status.metrics_file.empty() && !status.metrics_file.ends_with(".prom")) {
    return Wrong("--metrics-file", "a file whose name ends with .prom",
                 status.metrics_file);
  }
  return texts.Has("place") ? Wrong("place", "none with --all",
                                    texts.Get("place"))
                            : Status::OK();
}

}  // namespace

Status ParseStatus(const std::vector<std::string>& arguments,
                   StatusArguments* out) {
  const bool all = std::find(arguments.begin(), arguments.end(), "--all") !=
                   arguments.end();
  OptionTexts texts;
  RETURN_IF_ERROR(Read(all ? StatusOfAll() : *FindCommand("status"), arguments,
                       &texts, out));
  if (out->all) {
    return CheckStatusOfAll(texts, *out);
  }
  if (texts.Has("metrics-file")) {
    return Status::InvalidArgument("--metrics-file: needs --all");
  }
  RETURN_IF_ERROR(ReadAddress(texts, "place", false, &out->options.where));
  if (out->options.where.is_archive()) {
    return Wrong("place",
                 "a directory or a server ('sstferry archive list' shows an "
                 "archive)",
                 texts.Get("place"));
  }
  return ReadTls(texts, out->options.where, &out->options.tls);
}

Status ParseLs(const std::vector<std::string>& arguments,
               StatusArguments* out) {
  OptionTexts texts;
  RETURN_IF_ERROR(Read(*FindCommand("ls"), arguments, &texts, out));
  RETURN_IF_ERROR(ReadAddress(texts, "source", false, &out->options.where));
  if (out->options.where.is_archive()) {
    return Wrong("source",
                 "sst://HOST[:PORT][/NAME], unix:/PATH[:NAME], HOST:/DIR or a "
                 "directory ('sstferry archive list' lists an archive)",
                 texts.Get("source"));
  }
  return ReadTls(texts, out->options.where, &out->options.tls);
}

namespace {

// Parses an archive's address: s3://BUCKET[/PREFIX], file:///DIR or a
// directory.
Status ReadArchivePlace(const std::string& operand, const std::string& text,
                        StoreAddress* out) {
  const std::string meant = MeantBucket(text);
  if (!meant.empty()) {
    return Status::InvalidArgument(operand + ": expected an archive, found \"" +
                                   text + "\"; did you mean " + meant + "?");
  }
  std::string place = text;
  if (place.starts_with(kFileScheme)) {
    place = place.substr(sizeof(kFileScheme) - 1);
  } else if (!place.empty() && !place.starts_with(kS3Scheme)) {
    std::error_code error;
    place = std::filesystem::absolute(place, error).string();
  }
  return place.empty() || !ParseStoreAddress(place, out).ok()
             ? Wrong(operand,
                     "an archive: s3://BUCKET[/PREFIX], file:///DIR or a "
                     "directory",
                     text)
             : Status::OK();
}

// Reads the operand `archive`, the address of an archive.
Status ReadArchivePlace(const OptionTexts& texts, StoreAddress* out) {
  return ReadArchivePlace("archive", texts.Get("archive"), out);
}

// Refuses an option of archive that `action` does not use.
Status CheckActionOptions(const OptionTexts& texts, ArchiveAction action) {
  for (const auto& [option, actions] : ArchiveOptionUses()) {
    if ((texts.Has(option) || texts.IsSet(option)) &&
        actions.count(action) == 0) {
      std::string names;
      for (const ArchiveAction each : actions) {
        names += (names.empty() ? "" : " or ") +
                 std::string("archive ") + ArchiveActionName(each);
      }
      return OnlyWith(std::string("--") + option, names,
                      std::string("archive ") + ArchiveActionName(action));
    }
  }
  return Status::OK();
}

}  // namespace

Status ParseArchive(const std::vector<std::string>& arguments,
                    ArchiveArguments* out) {
  OptionTexts texts;
  RETURN_IF_ERROR(Read(*FindCommand("archive"), arguments, &texts, out));
  ArchiveOptions& options = out->options;
  const std::string action = texts.Get("action");
  bool is_known = false;
  for (const ArchiveAction each :
       {ArchiveAction::kInit, ArchiveAction::kPush, ArchiveAction::kList,
        ArchiveAction::kCheck, ArchiveAction::kPrune,
        ArchiveAction::kRemove, ArchiveAction::kRepair}) {
    if (action == ArchiveActionName(each)) {
      options.action = each;
      is_known = true;
    }
  }
  if (!is_known) {
    return Wrong("action", "init, push, list, check, prune, remove or repair",
                 action);
  }
  RETURN_IF_ERROR(CheckActionOptions(texts, options.action));
  RETURN_IF_ERROR(ReadMetrics(texts, options.tls, &out->metrics));
  RETURN_IF_ERROR(ReadTimeout(texts, &options.timeouts));
  if (texts.Has("timeout")) {
    options.store.timeouts.retry = options.timeouts.retry;
  }
  if (options.action == ArchiveAction::kRemove) {
    options.set = texts.Get("set");
    return options.set.empty()
               ? Wrong("set", "the set to remove, as 'archive list' names it",
                       "none")
               : ReadArchivePlace(texts, &options.store.where);
  }
  if (options.action == ArchiveAction::kRepair) {
    options.set = texts.Get("set");
    if (texts.Has("from")) {
      RETURN_IF_ERROR(ReadAddress(texts, "from", true, &options.source));
      RETURN_IF_ERROR(CheckWalDir(options.source, options.wal_dir));
      RETURN_IF_ERROR(ReadTls(texts, options.source, &options.tls));
    }
    return ReadArchivePlace(texts, &options.store.where);
  }
  if (options.action != ArchiveAction::kPush) {
    return ReadArchivePlace(texts, &options.store.where);
  }
  RETURN_IF_ERROR(ReadAddress(texts, "source", !out->all, &options.source));
  RETURN_IF_ERROR(CheckAll(texts, out->all, {{"source", &options.source}}));
  RETURN_IF_ERROR(CheckWalDir(options.source, options.wal_dir));
  RETURN_IF_ERROR(ReadTls(texts, options.source, &options.tls));
  return ReadArchivePlace(texts, &options.store.where);
}

namespace {

// Sets *out to an operand that must be a directory on this machine. Removes
// slashes from its end.
Status ReadDirectory(const OptionTexts& texts, const std::string& operand,
                     const char* expected, std::string* out) {
  const std::string text = texts.Get(operand);
  if (text.empty() || IsOfServer(text)) {
    return Wrong(operand, expected, text);
  }
  *out = text;
  while (out->size() > 1 && out->back() == '/') {
    out->pop_back();
  }
  return Status::OK();
}

// The defaults of --cut-every and --max-replay for a follower into an archive.
// They are larger than the defaults for a standby. Here a cut pushes a set, and
// uploads all files that compactions have written since the last push.
constexpr std::chrono::milliseconds kArchiveCutEvery{std::chrono::hours(1)};
constexpr uint64_t kArchiveMaxReplayBytes = 4'000'000'000;

// Refuses options that only the other kind of follower uses: a follower into an
// archive, or one into a standby.
Status CheckFollowOptions(const OptionTexts& texts, bool into_archive) {
  const auto is_given = [&texts](const char* option) {
    return texts.Has(option) || texts.IsSet(option);
  };
  for (const char* const option : {"durable", "keep-identity", "max-audit",
                                   "view-every", "keep-views"}) {
    if (into_archive && is_given(option)) {
      return OnlyWith(std::string("--") + option, "a standby as DIR",
                      "an archive");
    }
  }
  for (const char* const option :
       {"segment", "segment-bytes", "label", "key-file"}) {
    if (!into_archive && is_given(option)) {
      return OnlyWith(std::string("--") + option, "an archive as DIR",
                      "a standby");
    }
  }
  return Status::OK();
}

}  // namespace

Status ParseFollow(const std::vector<std::string>& arguments,
                   FollowArguments* out) {
  OptionTexts texts;
  RETURN_IF_ERROR(Read(*FindCommand("follow"), arguments, &texts, out));
  FollowOptions& options = out->options;
  PullOptions& pull = options.pull;
  RETURN_IF_ERROR(ReadAddress(texts, "source", true, &pull.source));
  const std::string place = texts.Get("dir");
  options.into_archive = place.starts_with(kS3Scheme) ||
                         place.starts_with(kFileScheme) ||
                         IsArchiveDirectory(place);
  RETURN_IF_ERROR(CheckFollowOptions(texts, options.into_archive));
  RETURN_IF_ERROR(
      options.into_archive
          ? ReadArchivePlace("dir", place, &options.store.where)
          : ReadDirectory(texts, "dir",
                          "a directory of this machine, or an archive: follow "
                          "runs at the standby",
                          &pull.target_dir));
  if (options.into_archive && !texts.Has("cut-every")) {
    options.cut_every = kArchiveCutEvery;
  }
  if (options.into_archive && !texts.Has("max-replay")) {
    options.max_replay_bytes = kArchiveMaxReplayBytes;
  }
  RETURN_IF_ERROR(ReadTimeout(texts, &pull.timeouts));
  RETURN_IF_ERROR(CheckWalDir(pull.source, pull.wal_dir));
  RETURN_IF_ERROR(ReadTls(texts, pull.source, &pull.tls));
  return ReadMetrics(texts, pull.tls, &out->metrics);
}

Status ParsePromote(const std::vector<std::string>& arguments,
                    PromoteArguments* out) {
  OptionTexts texts;
  RETURN_IF_ERROR(Read(*FindCommand("promote"), arguments, &texts, out));
  if (texts.Has("wait") && !out->options.after_source_closed) {
    return OnlyWith("--wait", "--after-source-closed");
  }
  if (out->options.source_is_down && out->options.after_source_closed) {
    return Wrong("--source-is-down",
                 "only one of --source-is-down and "
                 "--after-source-closed", "both");
  }
  return ReadDirectory(texts, "dir", "the directory of a standby",
                       &out->options.dir);
}

Status ParseView(const std::vector<std::string>& arguments,
                 ViewArguments* out) {
  OptionTexts texts;
  RETURN_IF_ERROR(Read(*FindCommand("view"), arguments, &texts, out));
  RETURN_IF_ERROR(ReadDirectory(texts, "dir", "the directory of a standby",
                                &out->options.dir));
  return ReadDirectory(texts, "view", "a directory that is missing or empty",
                       &out->options.view_dir);
}

Status ParseUnits(const std::vector<std::string>& arguments,
                  UnitsArguments* out) {
  OptionTexts texts;
  RETURN_IF_ERROR(Read(*FindCommand("units"), arguments, &texts, out));
  if (out->config.empty()) {
    return Wrong("--config", "a file with the jobs of this host", "");
  }
  if (out->cron && out->kubernetes) {
    return Wrong("--cron", "only one of --cron and --kubernetes", "both");
  }
  if (out->start && (out->cron || out->kubernetes || out->check)) {
    return Wrong("--start", "none of --check, --cron and --kubernetes with it",
                 out->check ? "--check" : out->cron ? "--cron" : "--kubernetes");
  }
  if (out->directory.empty()) {
    if (out->kubernetes) {
      return Wrong("--directory", "a directory, required with --kubernetes",
                   "");
    }
    out->directory = out->cron ? "/etc/cron.d" : "/etc/systemd/system";
  }
  return Status::OK();
}

Status ParseCert(const std::vector<std::string>& arguments,
                 CertArguments* out) {
  OptionTexts texts;
  RETURN_IF_ERROR(Read(*FindCommand("cert"), arguments, &texts, out));
  const std::string action = texts.Get("action");
  if (action != "init" && action != "issue") {
    return Wrong("action", "init or issue", action);
  }
  out->dir = texts.Get("directory");
  if (out->dir.empty()) {
    return Wrong("directory", "the directory of the CA", "");
  }
  while (out->dir.size() > 1 && out->dir.back() == '/') {
    out->dir.pop_back();
  }
  if (texts.Has("host")) {
    out->hosts.push_back(texts.Get("host"));
  }
  for (const std::string& name : texts.GetAll("also")) {
    out->hosts.push_back(name);
  }
  if (action == "init" && !out->hosts.empty()) {
    return Wrong("host", "none with init", out->hosts.front());
  }
  return action == "issue" && !texts.Has("host")
             ? Wrong("host", "the DNS name or IP address of a host", "")
             : Status::OK();
}

Status ParseRelease(const std::vector<std::string>& arguments,
                    ReleaseArguments* out) {
  OptionTexts texts;
  const Status status = Read(*FindCommand("release"), arguments, &texts, out);
  const std::string source = texts.Get("source");
  if (status.ok() && (!ParseSourceAddress(source, &out->source).ok() ||
                      out->source.directory.empty())) {
    return Wrong("source", "a database directory of this machine, or HOST:/DIR",
                 source);
  }
  out->id = texts.Get("id");
  std::transform(out->id.begin(), out->id.end(), out->id.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  if (status.ok() &&
      (out->id.size() < 8 || out->id.size() > 2 * sizeof(TransferId) ||
       out->id.find_first_not_of("0123456789abcdef") != std::string::npos)) {
    return Wrong("id", "8 to 32 hex digits of a transfer's id, as sstferry "
                       "status shows it",
                 texts.Get("id"));
  }
  return status;
}

}  // namespace sstferry
