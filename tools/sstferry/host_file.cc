#include "tools/sstferry/host_file.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <sstream>
#include <system_error>
#include <tuple>

#include "format/end_state.h"
#include "sstferry/own_file.h"
#include "tools/sstferry/commands.h"
#include "tools/sstferry/find_databases.h"
#include "tools/sstferry/host_values.h"

namespace sstferry {
namespace {

using rocksdb::Status;

// The properties of one kind of job.
struct JobForm {
  const char* name;
  const char* action;  // action of archive; null if `name` is the command
  bool runs_forever;
  const char* required = nullptr;  // prefix of an option that the job must have
  const char* example = nullptr;   // example of that option
};
constexpr JobForm kForms[] = {  // by JobKind
    {"serve", nullptr, true},
    {"follow", nullptr, true},
    {"push", "push", false},
    {"check", "check", false},
    {"drill", "check", false, "--drill=",
     "drill = \"DIR\", a directory beside which a set is restored"},
    {"prune", "prune", false, "--keep-",
     "a retention, such as keep-daily = 14"},
    {"refresh", nullptr, false},
    {"swap", nullptr, false},
};
const JobForm& FormOf(JobKind kind) {
  return kForms[static_cast<size_t>(kind)];
}

std::vector<OptionSpec> OptionsOf(const JobForm& form) {
  return AllOptions(form.action == nullptr
                        ? *FindCommand(form.name)
                        : *FindArchiveAction(form.action));
}

Status Missing(const std::string& where, const std::string& what,
               const std::string& expected) {
  return WithPlace(where, Status::InvalidArgument(what + ": expected " +
                                                  expected + ", found none"));
}

// The values of a table [[database]]. `table` also contains the jobs.
struct Database {
  std::string path;
  std::string name;
  std::string source;
  std::string archive;
  std::string account;
  std::string environment_file;
  const toml::table* table = nullptr;
};

class Reader {
 public:
  explicit Reader(HostFile* out) : out_(out) {}

  Status Read(const toml::table& root);

 private:
  Status ReadDatabase(const toml::table& table);
  Status AddDatabase(const Database& database);
  Status AddServed(const Database& database, const toml::node& node);
  Status AddJob(JobKind kind, const Database& database,
                const toml::node& node);
  static Status SetOperands(const Database& database, HostJob* job);
  Status FinishServe(const toml::node& node);

  HostFile* const out_;
  std::string metrics_dir_;
  std::set<std::string> names_;
  std::optional<HostJob> serve_;
};

// Adds a database to the job of the server. `node` is the database's key serve.
Status Reader::AddServed(const Database& database, const toml::node& node) {
  const toml::table* table = nullptr;
  RETURN_IF_ERROR(ReadTable("serve", node, &table));
  if (!serve_.has_value() || database.path.empty()) {
    return Missing(PositionOf(node), "serve",
                   !serve_.has_value() ? "a table [serve] with listen"
                                       : "the key path in its [[database]]");
  }
  RETURN_IF_ERROR(
      ReadKeys("serve of a database", *table, {{"allow"}, {"wal-dir"}}));
  serve_->words.push_back("--db=" + database.name + "=" + database.path);
  serve_->paths.push_back({database.path, true});
  for (const auto& [key, value] : *table) {
    const std::string name(key.str());
    const toml::array* const array = value.as_array();
    const size_t count = array != nullptr ? array->size() : 1;
    const Status some = CheckAllowsSome(name, count);
    if (!some.ok()) {
      return WithPlace(PositionOf(value), some);
    }
    for (size_t i = 0; i < count; ++i) {
      std::string text;
      RETURN_IF_ERROR(
          ReadValue(name, array != nullptr ? *array->get(i) : value, kTextForm,
                    &text));
      text = Named(text, database.name);
      serve_->words.push_back("--" + name + "=" + database.name + "=" + text);
      if (name == "wal-dir") {
        serve_->paths.push_back({text, true});
      }
    }
  }
  return Status::OK();
}

Status Reader::FinishServe(const toml::node& node) {
  if (serve_->paths.empty()) {
    return Missing(serve_->where, "[serve]", "a database with a key serve, "
                                             "such as serve.allow");
  }
  RETURN_IF_ERROR(ReadJobOptions(OptionsOf(FormOf(JobKind::kServe)),
                                 *node.as_table(), {"account"}, &*serve_));
  out_->jobs.insert(out_->jobs.begin(), *serve_);
  return Status::OK();
}

// Sets the first words of the job's command line: the command and its operands.
Status Reader::SetOperands(const Database& database, HostJob* job) {
  const JobForm& form = FormOf(job->kind);
  const auto& [path, source, archive] =
      std::tie(database.path, database.source, database.archive);
  const bool is_replica = !path.empty() && !source.empty();
  job->words = {form.name};
  if (form.action != nullptr) {
    job->words = {"archive", form.action};
  }
  std::vector<std::pair<std::string, std::string>> operands = {
      {"archive", archive}};
  if (job->kind == JobKind::kFollow) {
    operands.insert(operands.begin(),
                    {"source", source.empty() ? path : source});
    if (is_replica) {
      operands[1] = {"path", path};
    } else if (archive.starts_with("/")) {
      // Adds file://, because sstferry follow would otherwise make a standby of
      // a directory that is not an archive yet.
      operands[1].second = kFileScheme + archive;
      job->paths.push_back({archive, true});
    }
  } else if (job->kind == JobKind::kPush) {
    operands.insert(operands.begin(), {"path", path.empty() ? source : path});
  } else if (form.action == nullptr) {
    operands = {{"source", source}, {"path", path}};
  }
  for (const auto& [key, value] : operands) {
    if (value.empty()) {
      return Missing(job->where, form.name,
                     "the key " + key + " in its [[database]]");
    }
    if (value[0] == '/') {
      job->paths.push_back({value, true});
    }
    job->words.push_back(value);
  }
  return Status::OK();
}

Status Reader::AddJob(JobKind kind, const Database& database,
                      const toml::node& node) {
  const JobForm& form = FormOf(kind);
  const std::string name = form.name;
  const toml::table* table = nullptr;
  RETURN_IF_ERROR(ReadTable(name, node, &table));
  HostJob job;
  job.kind = kind;
  job.database = database.name;
  job.unit = "sstferry-" + database.name + "-" + name;
  job.account = database.account;
  job.environment_file = database.environment_file;
  job.where = PositionOf(node);
  const toml::node* const when = table->get("when");
  if (when == nullptr && !form.runs_forever) {
    return Missing(job.where, name, "when = \"02:00\" or another time");
  }
  if (when != nullptr) {
    std::string text;
    RETURN_IF_ERROR(ReadValue("when", *when, kTextForm, &text));
    const Status status =
        form.runs_forever
            ? Status::InvalidArgument(name +
                                      ": expected no key 'when', because this "
                                      "job runs all the time")
            : ParseCalendar("when", text, &job.calendar);
    if (!status.ok()) {
      return WithPlace(PositionOf(*when), status);
    }
  }
  RETURN_IF_ERROR(SetOperands(database, &job));
  const std::vector<OptionSpec> specs = OptionsOf(form);
  AddPackagedOptions(*table, &job);
  if (!metrics_dir_.empty() && table->get("metrics-file") == nullptr) {
    // The jobs push, check, drill and prune share one metrics file.
    job.metrics_file = metrics_dir_ + "/sstferry-" + database.name + "-" +
                       (form.action != nullptr ? "archive" : name) + ".prom";
    job.words.push_back("--metrics-file=" + job.metrics_file);
    job.paths.push_back({job.metrics_file, true});
  }
  RETURN_IF_ERROR(ReadJobOptions(specs, *table, {"when"}, &job));
  if (form.required != nullptr &&
      std::none_of(job.words.begin(), job.words.end(),
                   [&](const std::string& word) {
                     return word.starts_with(form.required);
                   })) {
    return Missing(job.where, name, form.example);
  }
  out_->jobs.push_back(std::move(job));
  return Status::OK();
}

Status Reader::AddDatabase(const Database& database) {
  if (!names_.insert(database.name).second) {
    return WithPlace(PositionOf(*database.table),
                     Wrong("name", "each name once", database.name));
  }
  Database named = database;
  for (std::string* const text :
       {&named.source, &named.archive, &named.environment_file}) {
    *text = Named(*text, database.name);
  }
  for (size_t i = 0; i < std::size(kForms); ++i) {
    if (const toml::node* const node = database.table->get(kForms[i].name)) {
      RETURN_IF_ERROR(i == 0 ? AddServed(named, *node)
                             : AddJob(static_cast<JobKind>(i), named, *node));
    }
  }
  return Status::OK();
}

Status Reader::ReadDatabase(const toml::table& table) {
  Database database;
  database.table = &table;
  std::vector<HostKey> keys = {
      {"path", &database.path, kPathForm},
      {"name", &database.name},
      {"source", &database.source, kPlaceForm},
      {"archive", &database.archive, kPlaceForm},
      {"account", &database.account, kAccountForm},
      {"environment-file", &database.environment_file, kPlainPathForm}};
  size_t jobs = 0;
  for (const JobForm& form : kForms) {
    keys.push_back({form.name});
    jobs += table.contains(form.name) ? 1 : 0;
  }
  RETURN_IF_ERROR(ReadKeys("[[database]]", table, keys));
  if (jobs == 0) {
    return Missing(PositionOf(table), "[[database]]",
                   "a job, such as [database.push]");
  }
  const auto at = [&](const char* key, const Status& status) {
    return WithPlace(PositionOf(*table.get(key)), status);
  };
  if (!IsPattern(database.path)) {
    if (database.name.empty()) {
      database.name =
          database.path.substr(database.path.find_last_of('/') + 1);
    }
    return IsNameOfDatabase(database.name) &&
                   database.name.find('/') == std::string::npos
               ? AddDatabase(database)
               : WithPlace(PositionOf(table),
                           Wrong("name",
                                 "a name of A-Z a-z 0-9 . _ - that begins with "
                                 "a letter or a digit, or path with such a "
                                 "last part",
                                 database.name));
  }
  if (!database.name.empty()) {
    return at("name", Wrong("name",
                            "no name if path is a pattern: each database is "
                            "named after its directory",
                            database.name));
  }
  for (const auto& [key, text] :
       {std::pair("source", database.source),
        std::pair("archive", database.archive)}) {
    if (!text.empty() && text.find("{name}") == std::string::npos) {
      return at(key, Wrong(key, "{name} in it, because path is a pattern",
                           text));
    }
  }
  std::vector<std::string> paths;
  const Status status = FindDatabases(
      database.path, &paths, &out_->without_database);
  if (!status.ok()) {
    return MakeStatus(EndStateOf(status), PositionOf(*table.get("path")) +
                                              ": " + MessageOf(status));
  }
  for (const std::string& path : paths) {
    database.path = path;
    database.name = path.substr(path.find_last_of('/') + 1);
    RETURN_IF_ERROR(AddDatabase(database));
  }
  return Status::OK();
}

Status Reader::Read(const toml::table& root) {
  RETURN_IF_ERROR(ReadKeys("a file of a host", root,
                           {{"metrics-dir", &metrics_dir_, kPathForm},
                            {"serve"},
                            {"kubernetes"},
                            {"database"}}));
  const toml::table* table = nullptr;
  if (const toml::node* const node = root.get("kubernetes")) {
    KubernetesPlace& place = out_->kubernetes;
    RETURN_IF_ERROR(ReadTable("kubernetes", *node, &table));
    RETURN_IF_ERROR(
        ReadKeys("[kubernetes]", *table,
                 {{"image", &place.image},
                  {"namespace", &place.space},
                  {"node", &place.node},
                  {"service-account", &place.service_account}}));
    if (place.image.empty()) {
      return Missing(PositionOf(*node), "image", "an image of sstferry");
    }
  }
  const toml::node* const serve = root.get("serve");
  if (serve != nullptr) {
    RETURN_IF_ERROR(ReadTable("serve", *serve, &table));
    serve_.emplace().unit = "sstferry-server";
    serve_->words = {"serve"};
    serve_->where = PositionOf(*serve);
    if (const toml::node* const account = table->get("account")) {
      RETURN_IF_ERROR(
          ReadValue("account", *account, kAccountForm, &serve_->account));

    }
  }
  const toml::node* const node = root.get("database");
  const toml::array* const tables = node != nullptr ? node->as_array() : nullptr;
  if (tables == nullptr || tables->empty() ||
      !tables->is_homogeneous<toml::table>()) {
    return WithPlace(
        node != nullptr ? PositionOf(*node) : "line 1, column 1",
        Wrong("database", "[[database]]",
              node != nullptr ? "another value" : ""));
  }
  for (const toml::node& one : *tables) {
    RETURN_IF_ERROR(ReadDatabase(*one.as_table()));
  }
  return serve != nullptr ? FinishServe(*serve) : Status::OK();
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
  out->path = path;
  std::istringstream stream(text);
  const toml::parse_result parsed = toml::parse(stream);
  Status status;
  if (parsed) {
    status = Reader(out).Read(parsed.table());
  } else {
    const toml::source_position& at = parsed.error().source().begin;
    status = WithPlace(
        "line " + std::to_string(at.line) + ", column " +
            std::to_string(at.column),
        Status::InvalidArgument("not TOML: " +
                                std::string(parsed.error().description())));
  }
  if (status.ok()) {
    return status;
  }
  *out = HostFile();
  return status.IsInvalidArgument()
             ? WithPlace("--config " + path, status)
             : MakeStatus(EndStateOf(status),
                          "--config " + path + ": " + MessageOf(status));
}

Status ReadHostFile(const std::string& path, HostFile* out) {
  std::error_code error;
  const std::string absolute =
      std::filesystem::absolute(path, error).lexically_normal().string();
  std::string text;
  // If this process runs as root, only root may have written the file, because
  // root runs the shell commands in it.
  const Status status = ReadOwn(path, /*account=*/0, &text);
  if (!status.ok()) {
    return Status::InvalidArgument("--config " + MessageOf(status));
  }
  // The first line of each unit contains the path, so it must be one line.
  return absolute.find_first_of("\r\n") == std::string::npos
             ? ParseHostFile(absolute, text, out)
             : Wrong("--config", "a path without line breaks", "one with them");
}

}  // namespace sstferry
