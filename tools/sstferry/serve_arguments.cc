#include "tools/sstferry/serve_arguments.h"

#include <pwd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <set>
#include <system_error>

#include "format/follow_file.h"
#include "format/limits.h"

namespace sstferry {

using rocksdb::Status;

namespace {

// The id that the kernel reports for accounts outside of this process's user
// namespace (overflowuid). All these accounts have the same id.
constexpr uint64_t kUnknownUid = 65534;

// The NAME in --allow NAME=SUBJECT that stands for all databases of --db-dir.
constexpr char kWholeTree[] = "*";

}  // namespace

Status ReadStdio(const OptionTexts& texts, ServeArguments* out) {
  if (!texts.Has("stdio")) {
    return Status::OK();
  }
  for (const char* const option : {"db", "db-dir", "listen",
                                   "tls", "tls-cert", "tls-key",
                                   "tls-ca", "allow", "allow-uid"}) {
    if (texts.Has(option)) {
      return Status::InvalidArgument(
          std::string("--stdio: not possible together with --") + option);
    }
  }
  for (const char* const option : {"insecure", "once", "json"}) {
    if (texts.IsSet(option)) {
      return Status::InvalidArgument(
          std::string("--stdio: not possible together with --") + option);
    }
  }
  ServedDatabase database;
  database.name = kStdioDatabase;
  database.directory = out->stdio_directory;
  out->options.databases.push_back(database);
  std::error_code error;
  if (!std::filesystem::exists(database.directory + "/CURRENT", error) &&
      !std::filesystem::exists(database.directory + "/" + kFollowFileName,
                               error) &&
      std::filesystem::is_directory(database.directory, error)) {
    out->options.tree.directory = database.directory;
  }
  if (!texts.Has("log-level")) {
    // Logs only errors. The pull that started this process over ssh prints to
    // the same terminal, and this process sends all failures to the pull.
    out->common.log_level = LogLevel::kError;
  }
  return Status::OK();
}

Status ReadDatabases(const OptionTexts& texts, ServeOptions* out) {
  std::set<std::string> names;
  for (const std::string& text : texts.GetAll("db")) {
    NamedDirectory named;
    RETURN_IF_ERROR(ParseNamedDirectory("--db", text, &named));
    if (!names.insert(named.name).second) {
      return Wrong("--db", "each NAME once (--db NAME=DIR sets another name)",
                   named.name);
    }
    ServedDatabase database;
    database.name = named.name;
    database.directory = named.directory;
    out->databases.push_back(database);
  }
  if (out->databases.empty() && out->tree.directory.empty()) {
    return Status::InvalidArgument(
        "--db: expected at least one [NAME=]DIR, or --db-dir DIR, or --stdio "
        "DIR, found none");
  }
  if (out->databases.size() > kMaxServedDatabases) {
    return Wrong("--db",
                 "at most " + std::to_string(kMaxServedDatabases) +
                     " databases",
                 std::to_string(out->databases.size()));
  }
  return Status::OK();
}

// Splits "NAME=SUBJECT" at the first '=', because a name never contains one.
Status ReadAllowed(const OptionTexts& texts, bool tls, ServeOptions* out) {
  for (const std::string& text : texts.GetAll("allow")) {
    const size_t equals = std::min(text.find('='), text.size());
    const std::string name = text.substr(0, equals);
    if (equals + 1 >= text.size()) {
      return Wrong("--allow", "NAME=SUBJECT", text);
    }
    if (!tls) {
      return OnlyWith("--allow",
                      "--tls DIR, because only a certificate names a target");
    }
    const auto database =
        std::find_if(out->databases.begin(), out->databases.end(),
                     [&](const ServedDatabase& d) { return d.name == name; });
    if (name == kWholeTree && !out->tree.directory.empty()) {
      out->tree.allowed.push_back(text.substr(equals + 1));
      continue;
    }
    if (database == out->databases.end()) {
      return Wrong("--allow",
                   "a NAME that --db serves, or * for all of --db-dir", name);
    }
    database->allowed.push_back(text.substr(equals + 1));
  }
  return Status::OK();
}

Status ReadAllowedUids(const OptionTexts& texts, bool is_unix,
                       std::vector<uint32_t>* uids) {
  for (const std::string& text : texts.GetAll("allow-uid")) {
    if (!is_unix) {
      return OnlyWith("--allow-uid",
                      "--listen unix:/PATH, because only there the system "
                      "reports a peer's account");
    }
    const bool is_number =
        !text.empty() &&
        text.find_first_not_of("0123456789") == std::string::npos;
    uint64_t uid = 0;
    if (is_number) {
      // The largest uint32_t is not a user id: the kernel uses it for "no
      // change".
      RETURN_IF_ERROR(
          ParseNumber("--allow-uid", text, 0, UINT32_MAX - 1, &uid));
    } else if (const struct passwd* const entry = getpwnam(text.c_str());
               entry != nullptr) {
      uid = entry->pw_uid;
    } else {
      return Wrong("--allow-uid",
                   "a user's number, or a name that this machine "
                   "knows",
                   text);
    }
    if (uid == kUnknownUid) {
      return Wrong("--allow-uid",
                   "an account other than " + std::to_string(kUnknownUid) +
                       ", which the kernel reports for every account outside "
                       "this user namespace",
                   text);
    }
    uids->push_back(static_cast<uint32_t>(uid));
  }
  return Status::OK();
}

// Splits "NAME=DIR" at the first '=', because a name never contains one.
Status ReadWalDirs(const OptionTexts& texts, ServeOptions* out) {
  for (const std::string& text : texts.GetAll("wal-dir")) {
    const size_t equals = std::min(text.find('='), text.size());
    const std::string name = text.substr(0, equals);
    if (equals + 1 >= text.size()) {
      return Wrong("--wal-dir", "NAME=DIR", text);
    }
    const auto database =
        std::find_if(out->databases.begin(), out->databases.end(),
                     [&](const ServedDatabase& d) { return d.name == name; });
    if (database == out->databases.end()) {
      return Wrong("--wal-dir", "a NAME that --db serves", name);
    }
    database->wal_dir = text.substr(equals + 1);
  }
  return Status::OK();
}

}  // namespace sstferry
