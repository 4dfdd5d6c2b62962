#include "tools/sstferry/host_values.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <sstream>

#include "format/nearest.h"
#include "tools/sstferry/command_arguments.h"
#include "tools/sstferry/unit_templates.h"

namespace sstferry {

using rocksdb::Status;
using Strings = std::vector<std::string>;

std::string PositionOf(const toml::source_region& region) {
  return "line " + std::to_string(region.begin.line) + ", column " +
         std::to_string(region.begin.column);
}

bool HasControl(const std::string& text) {
  return std::any_of(text.begin(), text.end(), [](unsigned char c) {
    return c < ' ' || c == 0x7f;
  });
}

Status ReadText(const std::string& name, const toml::node& node,
                std::string* text) {
  const std::string where = PositionOf(node.source());
  const Status status = TextOfToml(name, node, text);
  if (!status.ok()) {
    return WithPlace(where, status);
  }
  return text->empty() || HasControl(*text)
             ? WithPlace(where, Wrong(name, "a text without control characters",
                               text->empty() ? "" : "one with them"))
             : Status::OK();
}

Status ReadPath(const std::string& name, const toml::node& node,
                std::string* path) {
  RETURN_IF_ERROR(ReadText(name, node, path));
  while (path->size() > 1 && path->back() == '/') {
    path->pop_back();
  }
  return (*path)[0] == '/'
             ? Status::OK()
             : WithPlace(PositionOf(node.source()),
                  Wrong(name, "a path that begins with /", *path));
}

Status ReadAccount(const toml::node& node, std::string* account) {
  RETURN_IF_ERROR(ReadText("account", node, account));
  const bool is_right =
      (*account)[0] != '-' && account->size() <= 32 &&
      std::all_of(account->begin(), account->end(), [](unsigned char c) {
        return std::isalnum(c) || c == '_' || c == '-' || c == '.';
      });
  return is_right ? Status::OK()
                  : WithPlace(PositionOf(node.source()),
                       Wrong("account", "the name or number of an account",
                             *account));
}

Status ReadTable(const std::string& name, const toml::node& node,
                 const toml::table** table) {
  *table = node.as_table();
  return *table != nullptr
             ? Status::OK()
             : WithPlace(PositionOf(node.source()),
                  Status::InvalidArgument(name + ": expected a table, such as "
                                          "[database." + name +
                                          "], found a value"));
}

Status UnknownKey(const toml::key& key, const std::string& table,
                  const Strings& known) {
  const std::string name(key.str());
  return WithPlace(PositionOf(key.source()),
            Status::InvalidArgument(name + ": unknown key of " + table +
                                    DidYouMean(name, known)));
}

std::string Named(std::string text, const std::string& name) {
  static const std::string mark = "{name}";
  for (size_t at = 0; (at = text.find(mark, at)) != std::string::npos;
       at += name.size()) {
    text.replace(at, mark.size(), name);
  }
  return text;
}

namespace {

// Options that a job cannot have: they print, or the file has them elsewhere.
const std::set<std::string>& OtherOptions() {
  static const std::set<std::string> names = {
      "config", "help", "version", "dry-run", "db", "db-dir", "stdio", "once"};
  return names;
}


// Checks a command line as its command does.
Status CheckWords(const Strings& words) {
  const Strings arguments(words.begin() + 1, words.end());
  PullArguments pull;
  ServeArguments serve;
  FollowArguments follow;
  ArchiveArguments archive;
  return words[0] == "serve"    ? ParseServe(arguments, &serve)
         : words[0] == "follow" ? ParseFollow(arguments, &follow)
         : words[0] == "archive"
             ? ParseArchive(arguments, &archive)
             : ParsePull(words[0] == "swap" ? PullMode::kSwap
                                            : PullMode::kRefresh,
                         arguments, &pull);
}

// An option of a job, and its place in the file.
struct GivenOption {
  Strings words;
  std::string where;
};

bool IsPathValue(const OptionSpec& spec) {
  const std::string value = spec.value == nullptr ? "" : spec.value;
  return value == "DIR" || value.starts_with("FILE");
}

// Reads an option of a job.
Status ReadOption(const OptionSpec& spec, const toml::node& node,
                  HostJob* job, GivenOption* option) {
  const std::string name = spec.name;
  option->where = PositionOf(node.source());
  if (const auto* truth = node.as_boolean(); truth != nullptr) {
    if (spec.value != nullptr) {
      return WithPlace(option->where, Wrong(name, "a value", truth->get() ? "true"
                                                                   : "false"));
    }
    if (truth->get()) {
      option->words.push_back("--" + name);
    }
    return Status::OK();
  }
  const toml::array* const array = node.as_array();
  if (spec.value == nullptr || (array != nullptr && !spec.repeatable)) {
    return WithPlace(option->where,
              Wrong(name, spec.value == nullptr ? "true or false" : "one value",
                    spec.value == nullptr ? "a value" : "a list"));
  }
  for (size_t i = 0; i < (array != nullptr ? array->size() : 1); ++i) {
    const toml::node& one = array != nullptr ? *array->get(i) : node;
    std::string text;
    if (IsPathValue(spec)) {
      RETURN_IF_ERROR(ReadPath(name, one, &text));
      text = Named(text, job->database);
      job->paths.push_back({text, name == "drill" || name == "metrics-file" ||
                                      name == "snapshot-dir"});
    } else {
      RETURN_IF_ERROR(ReadText(name, one, &text));
      text = Named(text, job->database);
    }
    option->words.push_back("--" + name + "=" + text);
  }
  if (std::string(spec.value) == "CMD") {
    job->has_hooks = true;
  }
  return Status::OK();
}

}  // namespace

Status ReadJobOptions(const std::vector<OptionSpec>& specs,
                      const toml::table& table, const Strings& own_keys,
                      HostJob* job) {
  std::vector<GivenOption> given;
  Strings known = own_keys;
  for (const OptionSpec& spec : specs) {
    if (!OtherOptions().contains(spec.name)) {
      known.push_back(spec.name);
    }
  }
  for (const auto& [key, node] : table) {
    const std::string name(key.str());
    if (std::find(own_keys.begin(), own_keys.end(), name) != own_keys.end()) {
      continue;
    }
    const auto spec =
        std::find_if(specs.begin(), specs.end(),
                     [&](const OptionSpec& one) { return one.name == name; });
    if (spec == specs.end() || OtherOptions().contains(name)) {
      return UnknownKey(key, JobKindName(job->kind), known);
    }
    RETURN_IF_ERROR(
        ReadOption(*spec, node, job, &given.emplace_back()));
    if (name == "metrics-file" && !given.back().words.empty()) {
      job->metrics_file = given.back().words[0].substr(name.size() + 3);
    }
  }
  const auto words_without = [&](const GivenOption* left_out) {
    Strings words = job->words;
    for (const GivenOption& option : given) {
      if (&option != left_out) {
        words.insert(words.end(), option.words.begin(), option.words.end());
      }
    }
    return words;
  };
  const Status status = CheckWords(words_without(nullptr));
  if (status.ok()) {
    job->words = words_without(nullptr);
    return status;
  }
  for (const GivenOption& option : given) {
    if (CheckWords(words_without(&option)).ok()) {
      return WithPlace(option.where, status);
    }
  }
  return WithPlace(job->where, status);
}

void AddPackagedOptions(const toml::table& table, HostJob* job) {
  const std::string unit = PackagedUnit(job->kind, false, "service");
  std::istringstream lines(UnitTemplates().at(unit));
  const std::string prefix = "ExecStart=";
  Strings words;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(prefix)) {
      std::istringstream stream(line);
      for (std::string word; stream >> word;) {
        words.push_back(word);
      }
    }
  }
  // The rest of its command line comes from the file.
  static const std::set<std::string> others = {"config", "metrics-file",
                                               "drill"};
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    const std::string name = words[i].substr(words[i].starts_with("--") ? 2 : 0);
    if (name == words[i] || others.contains(name) ||
        name.starts_with("keep-") || table.contains(name)) {
      continue;
    }
    std::string value = words[i + 1];
    if (value.ends_with("%%")) {
      value.pop_back();
    }
    job->words.push_back(words[i] + "=" + value);
  }
}

}  // namespace sstferry
