#include "tools/sstferry/host_values.h"

#include <algorithm>
#include <regex>
#include <set>

#include "format/nearest.h"
#include "tools/sstferry/command_arguments.h"
#include "tools/sstferry/unit_templates.h"

namespace sstferry {

using rocksdb::Status;
using Strings = std::vector<std::string>;

namespace {

Status At(const toml::node& node, const Status& status) {
  return WithPlace(PositionOf(node), status);
}

std::string PlaceOf(const toml::source_position& at) {
  return "line " + std::to_string(at.line) + ", column " +
         std::to_string(at.column);
}

}  // namespace

std::string PositionOf(const toml::node& node) {
  return PlaceOf(node.source().begin);
}

Status ReadValue(const std::string& name, const toml::node& node,
                 const HostForm& form, std::string* text) {
  const Status status = TextOfToml(name, node, text);
  if (!status.ok()) {
    return At(node, status);
  }
  const bool has_control =
      std::any_of(text->begin(), text->end(),
                  [](unsigned char c) { return c < ' ' || c == 0x7f; });
  if (has_control) {
    return At(node, Wrong(name, kTextForm.expected, "one with them"));
  }
  while (form.pattern == kPathForm.pattern && text->size() > 1 &&
         text->back() == '/') {
    text->pop_back();
  }
  return std::regex_match(*text, std::regex(form.pattern))
             ? Status::OK()
             : At(node, Wrong(name, form.expected, *text));
}

Status ReadKeys(const std::string& what, const toml::table& table,
                const std::vector<HostKey>& keys) {
  Strings known;
  for (const HostKey& key : keys) {
    known.push_back(key.name);
  }
  for (const auto& [name, node] : table) {
    const auto key = std::find(known.begin(), known.end(), name.str());
    if (key == known.end()) {
      return WithPlace(PlaceOf(name.source().begin),
                       Status::InvalidArgument(
                           std::string(name.str()) + ": unknown key of " +
                           what + DidYouMean(std::string(name.str()), known)));
    }
    const HostKey& found = keys[static_cast<size_t>(key - known.begin())];
    RETURN_IF_ERROR(found.out != nullptr ? ReadValue(found.name, node,
                                                     found.form, found.out)
                                         : Status::OK());
  }
  return Status::OK();
}

Status ReadTable(const std::string& name, const toml::node& node,
                 const toml::table** table) {
  *table = node.as_table();
  return *table != nullptr
             ? Status::OK()
             : At(node, Status::InvalidArgument(
                            name + ": expected a table, such as [database." +
                            name + "], found a value"));
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

// Options that a job's table must not have. Either they make a command only
// print something, such as --help, or other keys of the host file set them.
const std::set<std::string> kOtherOptions = {
    "config", "help", "version", "dry-run", "db", "db-dir", "stdio", "once"};

// Checks a command line by parsing it. The first word is the command.
Status CheckWords(const Strings& words) {
  const Strings arguments(words.begin() + 1, words.end());
  PullArguments pull;
  ServeArguments serve;
  FollowArguments follow;
  ArchiveArguments archive;
  return words[0] == "serve"     ? ParseServe(arguments, &serve)
         : words[0] == "follow"  ? ParseFollow(arguments, &follow)
         : words[0] == "archive" ? ParseArchive(arguments, &archive)
                                 : ParsePull(words[0] == "swap"
                                                 ? PullMode::kSwap
                                                 : PullMode::kRefresh,
                                             arguments, &pull);
}

// An option of a job: its words on the command line, and its position in the
// host file.
using GivenOption = std::pair<Strings, std::string>;

// Reads one option in a job's table.
Status ReadOption(const OptionSpec& spec, const toml::node& node, HostJob* job,
                  GivenOption* option) {
  const std::string name = spec.name;
  const std::string value = spec.value == nullptr ? "" : spec.value;
  option->second = PositionOf(node);
  if (value.empty() != node.is_boolean()) {
    return At(node, Wrong(name, value.empty() ? "true or false" : "a value",
                          value.empty() ? "a value" : "true or false"));
  }
  if (value.empty()) {
    if (node.value_or(false)) {
      option->first.push_back("--" + name);
    }
    return Status::OK();
  }
  const toml::array* const array =
      spec.repeatable ? node.as_array() : nullptr;
  const bool is_path = value == "DIR" || value.starts_with("FILE");
  for (size_t i = 0; i < (array != nullptr ? array->size() : 1); ++i) {
    std::string text;
    RETURN_IF_ERROR(ReadValue(name, array != nullptr ? *array->get(i) : node,
                              is_path ? kPathForm : kTextForm, &text));
    text = Named(text, job->database);
    if (is_path) {
      job->paths.push_back({text, name == "drill" || name == "metrics-file" ||
                                      name == "snapshot-dir"});
    }
    option->first.push_back("--" + name + "=" + text);
  }
  job->has_hooks = job->has_hooks || value == "CMD";
  return Status::OK();
}

}  // namespace

Status ReadJobOptions(const std::vector<OptionSpec>& specs,
                      const toml::table& table, const Strings& own_keys,
                      HostJob* job) {
  std::vector<HostKey> keys;
  for (const std::string& name : own_keys) {
    keys.push_back({name});
  }
  for (const OptionSpec& spec : specs) {
    if (!kOtherOptions.contains(spec.name) && !spec.is_once) {
      keys.push_back({spec.name});
    }
  }
  RETURN_IF_ERROR(ReadKeys(JobKindName(job->kind), table, keys));
  std::vector<GivenOption> given;
  for (const OptionSpec& spec : specs) {
    const toml::node* const node = table.get(spec.name);
    if (node == nullptr || std::find(own_keys.begin(), own_keys.end(),
                                     spec.name) != own_keys.end()) {
      continue;
    }
    RETURN_IF_ERROR(ReadOption(spec, *node, job, &given.emplace_back()));
    if (std::string(spec.name) == "metrics-file") {
      job->metrics_file = job->paths.back().path;
    }
  }
  const auto words_without = [&](const GivenOption* left_out) {
    Strings words = job->words;
    for (const GivenOption& option : given) {
      if (&option != left_out) {
        words.insert(words.end(), option.first.begin(), option.first.end());
      }
    }
    return words;
  };
  const Strings words = words_without(nullptr);
  const Status status = CheckWords(words);
  if (status.ok()) {
    job->words = words;
    return status;
  }
  for (const GivenOption& option : given) {
    if (CheckWords(words_without(&option)).ok()) {
      return WithPlace(option.second, status);
    }
  }
  return WithPlace(job->where, status);
}

void AddPackagedOptions(const toml::table& table, HostJob* job) {
  // Matches the options of the packaged unit except --config, --drill and
  // --keep-..., which only the host file sets.
  static const std::regex option(
      R"(--(?!config|drill|keep-)([a-z-]+) ([^ %\n]+%?))");
  const std::string& unit =
      UnitTemplates().at(PackagedUnit(job->kind, false, "service"));
  const std::string line = unit.substr(unit.find("\nExecStart=") + 1);
  const std::string command = line.substr(0, line.find('\n'));
  for (std::sregex_iterator found(command.begin(), command.end(), option), end;
       found != end; ++found) {
    if (!table.contains((*found)[1].str())) {
      job->words.push_back("--" + (*found)[1].str() + "=" +
                           (*found)[2].str());
    }
  }
}

}  // namespace sstferry
