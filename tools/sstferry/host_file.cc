#include "tools/sstferry/host_file.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <optional>
#include <set>
#include <sstream>
#include <system_error>
#include <utility>

#include "format/end_state.h"
#include "sstferry/own_file.h"
#include "tools/sstferry/commands.h"
#include "tools/sstferry/find_databases.h"
#include "tools/sstferry/host_values.h"

namespace sstferry {
namespace {

using rocksdb::Status;
using Strings = std::vector<std::string>;

struct JobForm {
  JobKind kind;
  const char* name;
  const char* action;  // of archive; null: a command of this name
  bool runs_forever;
};
constexpr JobForm kForms[] = {
    {JobKind::kServe, "serve", nullptr, true},
    {JobKind::kFollow, "follow", nullptr, true},
    {JobKind::kPush, "push", "push", false},
    {JobKind::kCheck, "check", "check", false},
    {JobKind::kDrill, "drill", "check", false},
    {JobKind::kPrune, "prune", "prune", false},
    {JobKind::kRefresh, "refresh", nullptr, false},
    {JobKind::kSwap, "swap", nullptr, false},
};
const JobForm& FormOf(JobKind kind) {
  return kForms[static_cast<size_t>(kind)];
}

std::vector<OptionSpec> OptionsOf(const JobForm& form) {
  return AllOptions(form.action == nullptr
                        ? *FindCommand(form.name)
                        : *FindArchiveAction(form.action));
}

// The keys of a [[database]], and its jobs.
struct DatabaseTable {
  std::string path;
  std::string name;
  std::string source;
  std::string archive;
  std::string account;
  std::string environment_file;
  const toml::table* table = nullptr;
  std::string where;
};

class Reader {
 public:
  Reader(const std::string& path, HostFile* out) : out_(out) {
    out_->path = path;
  }

  Status Read(const toml::table& root);

 private:
  Status ReadKubernetes(const toml::node& node);
  Status ReadServe(const toml::node& node);
  Status ReadDatabase(const toml::table& table);
  Status AddDatabase(const DatabaseTable& database);
  Status AddServed(const DatabaseTable& database, const toml::node& node);
  Status AddJob(const JobForm& form, const DatabaseTable& database,
                const toml::node& node);
  Status SetOperands(const JobForm& form, const DatabaseTable& database,
                     HostJob* job);
  Status FinishServe();

  HostFile* const out_;
  std::string metrics_dir_;
  std::set<std::string> names_;
  std::optional<HostJob> serve_;
  const toml::table* serve_table_ = nullptr;
  bool is_served_ = false;
};

Status Reader::ReadKubernetes(const toml::node& node) {
  const toml::table* table = nullptr;
  RETURN_IF_ERROR(ReadTable("kubernetes", node, &table));
  KubernetesPlace& place = out_->kubernetes;
  place.is_given = true;
  const std::vector<std::pair<std::string, std::string*>> members = {
      {"image", &place.image},
      {"namespace", &place.space},
      {"node", &place.node},
      {"service-account", &place.service_account}};
  Strings known;
  for (const auto& [name, member] : members) {
    known.push_back(name);
    if (const toml::node* const value = table->get(name)) {
      RETURN_IF_ERROR(ReadText(name, *value, member));
    }
  }
  for (const auto& [key, value] : *table) {
    if (std::find(known.begin(), known.end(), key.str()) == known.end()) {
      return UnknownKey(key, "[kubernetes]", known);
    }
  }
  return !place.image.empty()
             ? Status::OK()
             : WithPlace(PositionOf(node.source()),
                  Wrong("image", "an image of sstferry", ""));
}

Status Reader::ReadServe(const toml::node& node) {
  RETURN_IF_ERROR(ReadTable("serve", node, &serve_table_));
  HostJob& job = serve_.emplace();
  job.unit = "sstferry-server";
  job.words = {"serve"};
  job.where = PositionOf(node.source());
  if (const toml::node* const account = serve_table_->get("account")) {
    RETURN_IF_ERROR(ReadAccount(*account, &job.account));
  }
  return Status::OK();
}

// Adds a database to those that the server serves.
Status Reader::AddServed(const DatabaseTable& database,
                         const toml::node& node) {
  const std::string where = PositionOf(node.source());
  const toml::table* table = nullptr;
  RETURN_IF_ERROR(ReadTable("serve", node, &table));
  if (!serve_.has_value() || database.path.empty()) {
    return WithPlace(where, Status::InvalidArgument(
                         !serve_.has_value()
                             ? "serve: expected a table [serve] with listen, "
                               "found none"
                             : "serve: expected path with it, found none"));
  }
  serve_->words.push_back("--db=" + database.name + "=" + database.path);
  serve_->paths.push_back({database.path, true});
  is_served_ = true;
  static const Strings known = {"allow", "wal-dir"};
  for (const auto& [key, value] : *table) {
    const std::string name(key.str());
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      return UnknownKey(key, "serve of a database", known);
    }
    const toml::array* const array = value.as_array();
    for (size_t i = 0; i < (array != nullptr ? array->size() : 1); ++i) {
      std::string text;
      RETURN_IF_ERROR(
          ReadText(name, array != nullptr ? *array->get(i) : value, &text));
      text = Named(text, database.name);
      serve_->words.push_back("--" + name + "=" + database.name + "=" + text);
      if (name == "wal-dir") {
        serve_->paths.push_back({text, true});
      }
    }
  }
  return Status::OK();
}

Status Reader::FinishServe() {
  if (!serve_.has_value()) {
    return Status::OK();
  }
  if (!is_served_) {
    return WithPlace(serve_->where,
              Status::InvalidArgument("[serve]: expected a database with "
                                      "serve.allow, found none"));
  }
  RETURN_IF_ERROR(ReadJobOptions(OptionsOf(FormOf(JobKind::kServe)),
                                 *serve_table_, {"account"}, &*serve_));
  out_->jobs.insert(out_->jobs.begin(), *serve_);
  return Status::OK();
}

// Sets the command and its operands.
Status Reader::SetOperands(const JobForm& form, const DatabaseTable& database,
                           HostJob* job) {
  const std::string& source =
      database.source.empty() ? database.path : database.source;
  const bool into_path = !database.source.empty() && !database.path.empty();
  Strings missing;
  const auto need = [&](const char* key, const std::string& value) {
    if (value.empty()) {
      missing.push_back(key);
    }
  };
  switch (form.kind) {
    case JobKind::kServe:
      break;
    case JobKind::kFollow:
      need("source", source);
      if (!into_path) {
        need("archive", database.archive);
      }
      // A directory that is no archive yet is not taken for a standby.
      job->words = {"follow", source,
                    into_path ? database.path
                    : database.archive.starts_with("/")
                        ? "file://" + database.archive
                        : database.archive};
      break;
    case JobKind::kPush:
      need("path", source);
      need("archive", database.archive);
      job->words = {"archive", "push",
                    database.path.empty() ? source : database.path,
                    database.archive};
      break;
    case JobKind::kCheck:
    case JobKind::kDrill:
    case JobKind::kPrune:
      need("archive", database.archive);
      job->words = {"archive", form.action, database.archive};
      break;
    case JobKind::kRefresh:
    case JobKind::kSwap:
      need("source", database.source);
      need("path", database.path);
      job->words = {form.name, database.source, database.path};
      break;
  }
  const bool uses_path = std::count(job->words.begin() + 1, job->words.end(),
                                    database.path) != 0;
  if (uses_path) {
    job->paths.push_back({database.path, true});
  }
  const std::string& archive = database.archive;
  if (job->words.back().ends_with(archive) && archive.starts_with("/")) {
    job->paths.push_back({archive, true});
  }
  return missing.empty()
             ? Status::OK()
             : WithPlace(job->where,
                  Status::InvalidArgument(std::string(form.name) +
                                          ": expected " + missing.front() +
                                          " of the database, found none"));
}

Status Reader::AddJob(const JobForm& form, const DatabaseTable& database,
                      const toml::node& node) {
  const toml::table* table = nullptr;
  RETURN_IF_ERROR(ReadTable(form.name, node, &table));
  HostJob job;
  job.kind = form.kind;
  job.database = database.name;
  job.unit = "sstferry-" + database.name + "-" + form.name;
  job.account = database.account;
  job.environment_file = database.environment_file;
  job.where = PositionOf(node.source());
  const toml::node* const when = table->get("when");
  if ((when != nullptr) == form.runs_forever) {
    return WithPlace(when != nullptr ? PositionOf(when->source()) : job.where,
              Status::InvalidArgument(
                  std::string(form.name) +
                  (form.runs_forever ? ": expected no when: it always runs"
                                     : ": expected when = \"02:00\" or another "
                                       "time, found none")));
  }
  if (when != nullptr) {
    RETURN_IF_ERROR(ReadText("when", *when, &job.when));
    const Status status = Calendar::Parse("when", job.when, &job.calendar);
    if (!status.ok()) {
      return WithPlace(PositionOf(when->source()), status);
    }
  }
  RETURN_IF_ERROR(SetOperands(form, database, &job));
  const std::vector<OptionSpec> specs = OptionsOf(form);
  const bool has_metrics = std::any_of(
      specs.begin(), specs.end(), [](const OptionSpec& spec) {
        return std::string(spec.name) == "metrics-file";
      });
  AddPackagedOptions(*table, &job);
  if (has_metrics && !metrics_dir_.empty() &&
      table->get("metrics-file") == nullptr) {
    // push, check and drill may share a file.
    job.metrics_file =
        metrics_dir_ + "/sstferry-" + database.name +
        (form.action != nullptr ? "-archive" : std::string("-") + form.name) +
        ".prom";
    job.words.push_back("--metrics-file=" + job.metrics_file);
    job.paths.push_back({job.metrics_file, true});
  }
  RETURN_IF_ERROR(ReadJobOptions(specs, *table, {"when"}, &job));
  const auto has = [&](const std::string& prefix) {
    return std::any_of(
        job.words.begin(), job.words.end(),
        [&](const std::string& word) { return word.starts_with(prefix); });
  };
  if (form.kind == JobKind::kPrune && !has("--keep-")) {
    return WithPlace(job.where,
              Status::InvalidArgument("prune: expected a retention, such as "
                                      "keep-daily = 14, found none"));
  }
  if (form.kind == JobKind::kDrill && !has("--drill=")) {
    return WithPlace(job.where,
              Status::InvalidArgument("drill: expected drill = \"DIR\", a "
                                      "directory to restore beside, found "
                                      "none"));
  }
  out_->jobs.push_back(std::move(job));
  return Status::OK();
}

Status Reader::AddDatabase(const DatabaseTable& database) {
  if (!names_.insert(database.name).second) {
    return WithPlace(database.where, Wrong("name", "each name once", database.name));
  }
  DatabaseTable named = database;
  named.source = Named(database.source, database.name);
  named.archive = Named(database.archive, database.name);
  named.environment_file = Named(database.environment_file, database.name);
  for (const JobForm& form : kForms) {
    if (const toml::node* const node = database.table->get(form.name)) {
      RETURN_IF_ERROR(form.kind == JobKind::kServe
                          ? AddServed(named, *node)
                          : AddJob(form, named, *node));
    }
  }
  return Status::OK();
}

Status Reader::ReadDatabase(const toml::table& table) {
  DatabaseTable database;
  database.table = &table;
  database.where = PositionOf(table.source());
  Strings known = {"path",    "name",    "source",
                   "archive", "account", "environment-file"};
  size_t jobs = 0;
  for (const JobForm& form : kForms) {
    known.push_back(form.name);
    jobs += table.contains(form.name) ? 1 : 0;
  }
  for (const auto& [key, node] : table) {
    const std::string name(key.str());
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      return UnknownKey(key, "[[database]]", known);
    }
    if (name == "path") {
      RETURN_IF_ERROR(ReadPath(name, node, &database.path));
    } else if (name == "environment-file") {
      RETURN_IF_ERROR(ReadPath(name, node, &database.environment_file));
      // systemd reads the line without quotes.
      const auto is_plain = [](unsigned char c) {
        return std::isalnum(c) || std::strchr("/._@+=,:{}-", c) != nullptr;
      };
      if (!std::all_of(database.environment_file.begin(),
                       database.environment_file.end(), is_plain)) {
        return WithPlace(PositionOf(node.source()),
                  Wrong(name, "a path of letters, digits and /._@+=,:-",
                        database.environment_file));
      }
    } else if (name == "account") {
      RETURN_IF_ERROR(ReadAccount(node, &database.account));
    } else if (name == "name" || name == "source" || name == "archive") {
      std::string* const text = name == "name"     ? &database.name
                                : name == "source" ? &database.source
                                                   : &database.archive;
      RETURN_IF_ERROR(ReadText(name, node, text));
      // A unit runs in the directory /.
      const bool is_relative = text->find(':') == std::string::npos &&
                               (*text)[0] != '/';
      if ((name != "name" && is_relative) || (*text)[0] == '-') {
        return WithPlace(PositionOf(node.source()),
                  Wrong(name, "an address, or a path that begins with /",
                        *text));
      }
    }
  }
  if (jobs == 0) {
    return WithPlace(database.where,
              Status::InvalidArgument("[[database]]: expected a job, such as "
                                      "[database.push], found none"));
  }
  if (!IsPattern(database.path)) {
    if (database.name.empty()) {
      database.name =
          database.path.substr(database.path.find_last_of('/') + 1);
    }
    return IsNameOfDatabase(database.name) &&
                   database.name.find('/') == std::string::npos
               ? AddDatabase(database)
               : WithPlace(database.where,
                    Wrong("name",
                          "a name of A-Z a-z 0-9 . _ - that begins with a "
                          "letter or a digit, or path with such a last part",
                          database.name));
  }
  const toml::source_region& at = table.get("path")->source();
  if (!database.name.empty()) {
    return WithPlace(PositionOf(table.get("name")->source()),
              Wrong("name", "none with a pattern: each directory's name counts",
                    database.name));
  }
  for (const char* const key : {"source", "archive"}) {
    const toml::node* const node = table.get(key);
    if (node != nullptr &&
        node->value_or(std::string()).find("{name}") == std::string::npos) {
      return WithPlace(PositionOf(node->source()),
                Wrong(key, "{name} in it, because path is a pattern",
                      node->value_or(std::string())));
    }
  }
  Strings paths;
  const Status status = FindDatabases(database.path, &paths);
  if (!status.ok()) {
    return MakeStatus(EndStateOf(status),
                      PositionOf(at) + ": " + MessageOf(status));
  }
  for (const std::string& path : paths) {
    database.path = path;
    database.name = path.substr(path.find_last_of('/') + 1);
    RETURN_IF_ERROR(AddDatabase(database));
  }
  return Status::OK();
}

Status Reader::Read(const toml::table& root) {
  static const Strings known = {"metrics-dir", "rescan", "serve", "kubernetes",
                                "database"};
  for (const auto& [key, node] : root) {
    if (std::find(known.begin(), known.end(), key.str()) == known.end()) {
      return UnknownKey(key, "a file of a host", known);
    }
  }
  if (const toml::node* const node = root.get("metrics-dir")) {
    RETURN_IF_ERROR(ReadPath("metrics-dir", *node, &metrics_dir_));
  }
  if (const toml::node* const node = root.get("rescan")) {
    RETURN_IF_ERROR(ReadText("rescan", *node, &out_->rescan));
    Calendar unused;
    const Status status = Calendar::Parse("rescan", out_->rescan, &unused);
    if (!status.ok()) {
      return WithPlace(PositionOf(node->source()), status);
    }
  }
  if (const toml::node* const node = root.get("kubernetes")) {
    RETURN_IF_ERROR(ReadKubernetes(*node));
  }
  if (const toml::node* const node = root.get("serve")) {
    RETURN_IF_ERROR(ReadServe(*node));
  }
  const toml::node* const node = root.get("database");
  const toml::array* const tables = node != nullptr ? node->as_array() : nullptr;
  if (tables == nullptr || tables->empty() ||
      !tables->is_homogeneous<toml::table>()) {
    return WithPlace(node != nullptr ? PositionOf(node->source())
                              : std::string("line 1, column 1"),
              Wrong("database", "[[database]]", node != nullptr ? "another value"
                                                                : ""));
  }
  for (const toml::node& one : *tables) {
    RETURN_IF_ERROR(ReadDatabase(*one.as_table()));
  }
  return FinishServe();
}

}  // namespace

const char* JobKindName(JobKind kind) { return FormOf(kind).name; }

bool RunsForever(JobKind kind) { return FormOf(kind).runs_forever; }

std::string PackagedUnit(JobKind kind, bool has_account,
                         const std::string& suffix) {
  const JobForm& form = FormOf(kind);
  return std::string("sstferry-") + (form.action != nullptr ? "archive-" : "") +
         form.name +
         (kind == JobKind::kServe && !has_account ? "." : "@.") + suffix;
}

Status ParseHostFile(const std::string& path, const std::string& text,
                     HostFile* out) {
  *out = HostFile();
  std::istringstream stream(text);
  const toml::parse_result parsed = toml::parse(stream);
  Status status;
  if (!parsed) {
    status = WithPlace(PositionOf(parsed.error().source()),
                Status::InvalidArgument(
                    "not TOML: " + std::string(parsed.error().description())));
  } else {
    status = Reader(path, out).Read(parsed.table());
  }
  if (status.ok()) {
    return status;
  }
  *out = HostFile();
  return status.IsInvalidArgument()
             ? WithPlace("--config " + path, status)
             : MakeStatus(EndStateOf(status), "--config " + path + ": " + MessageOf(status));
}

Status ReadHostFile(const std::string& path, HostFile* out) {
  std::error_code error;
  const std::string absolute =
      std::filesystem::absolute(path, error).lexically_normal().string();
  std::string text;
  // Root runs the commands that the file contains.
  const Status status = ReadOwn(path, /*account=*/0, &text);
  if (!status.ok()) {
    return Status::InvalidArgument("--config " + MessageOf(status));
  }
  if (HasControl(absolute)) {
    return Wrong("--config", "a path without control characters", "one with "
                                                                  "them");
  }
  return ParseHostFile(absolute, text, out);
}

}  // namespace sstferry
