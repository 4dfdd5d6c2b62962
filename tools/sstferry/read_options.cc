// Reads the options of a command from its command line and its config file. The
// command line is parsed by Boost.Program_options, and the file is TOML. Never
// calls what() of Boost's errors. what() replaces %placeholders% in a loop,
// which would not end if the operator's text contained a placeholder.
#include <algorithm>
#include <set>
#include <sstream>

#include <boost/program_options.hpp>

#include "format/end_state.h"
#include "format/nearest.h"
#include "sstferry/own_file.h"
#include "tools/sstferry/arguments.h"
#include "tools/sstferry/toml.h"

namespace sstferry {
namespace {

namespace po = boost::program_options;
using rocksdb::Status;
using Strings = std::vector<std::string>;

// The name of an option that gets operands for which the command has no name.
constexpr const char* kBeyond = "operands";

// The options of a command, and the names of options that a config file must
// not contain.
struct KnownOptions {
  po::options_description all;
  std::set<std::string> only_typed = {"config", "help", "version"};
};

// Returns the error for `word`, an unknown option or a switch with a value. The
// error suggests an option with a similar name.
Status RefusedOption(const std::string& word,
                     const po::options_description& known,
                     const std::string& prefix) {
  const size_t equals = word.find('=');
  const std::string shown = word.substr(0, equals);
  const size_t dashes = std::min(shown.find_first_not_of('-'), shown.size());
  Strings names;
  for (const auto& option : known.options()) {
    if (equals != std::string::npos && shown == "--" + option->long_name()) {
      return Wrong(shown, "no value", word.substr(equals + 1));
    }
    names.push_back(option->long_name());
  }
  return Status::InvalidArgument(
      shown + ": unknown option" +
      DidYouMean(shown.substr(dashes), names, prefix));
}

// Refuses two errors that Boost accepts: too many operands, and an option in
// the place of a value. For example, in "--begin --verify" the value of --begin
// is missing.
Status CheckWords(const po::parsed_options& parsed) {
  for (const po::option& option : parsed.options) {
    if (option.string_key == kBeyond) {
      const std::string most = std::to_string(option.position_key);
      return Wrong(kBeyond, most == "0" ? "none" : "no more than " + most,
                   option.value.front());
    }
    if (option.original_tokens.size() > 1 &&
        option.value.front().starts_with("--")) {
      const std::string& shown = option.original_tokens.front();
      return Wrong(shown,
                   "a value (one that begins with -- needs the form " + shown +
                       "=VALUE)",
                   option.value.front());
    }
  }
  return Status::OK();
}

// Adds the parsed options to `map`. Ignores options that `map` already
// contains, even repeatable ones.
Status Store(const po::parsed_options& parsed, po::variables_map* map) {
  try {
    po::store(parsed, *map);
  } catch (const po::multiple_occurrences& wrong) {
    return Status::InvalidArgument(wrong.get_option_name() +
                                   ": expected once, found again");
  }
  return Status::OK();
}

Status ReadCommandLine(const Strings& operands, const Strings& arguments,
                       const po::options_description& known,
                       po::variables_map* map) {
  using Style = po::command_line_style::style_t;
  po::positional_options_description positions;
  for (const std::string& operand : operands) {
    positions.add(operand.c_str(), 1);
  }
  positions.add(kBeyond, -1);
  // Boost would accept three kinds of wrong words: it reads "-x" as an operand
  // and "--=x" as any option, and ignores the value in "--json=x". This parser
  // reports them as unknown options.
  const auto refuse = [&](const std::string& word) {
    const std::string name = word.substr(0, word.find('='));
    const auto* option = name.size() > 2 && name.starts_with("--")
                             ? known.find_nothrow(name.substr(2), false)
                             : nullptr;
    const bool is_right =
        word.size() < 2 || word[0] != '-' || word == "--" ||
        (option != nullptr &&
         (name == word || option->semantic()->max_tokens() > 0));
    return std::pair(is_right ? "" : word, std::string());
  };
  try {
    const po::parsed_options parsed =
        po::command_line_parser(arguments)
            .options(known)
            .positional(positions)
            .extra_parser(refuse)
            .style(Style::allow_long | Style::long_allow_adjacent |
                   Style::long_allow_next)
            .run();
    const Status status = CheckWords(parsed);
    return status.ok() ? Store(parsed, map) : status;
  } catch (const po::unknown_option& wrong) {
    return RefusedOption(wrong.get_option_name(), known, "--");
  } catch (const po::invalid_syntax& wrong) {
    const std::string shown = wrong.get_option_name();
    return Status::InvalidArgument(
        shown + (wrong.kind() == po::invalid_syntax::empty_adjacent_parameter
                     ? ": expected a value after =, found nothing (an empty "
                       "value is a word of its own: " + shown + " \"\")"
                     : ": expected a value, found nothing"));
  }
}

Status AtLine(size_t line, const Status& status) {
  return WithPlace("line " + std::to_string(line), status);
}

// Reads the value of an option in the config file. The value of a repeatable
// option may be an array.
Status ReadValue(const std::string& name, const toml::node& node,
                 const KnownOptions& known, po::parsed_options* in_file) {
  const po::option_description* spec = known.all.find_nothrow(name, false);
  if (spec == nullptr) {
    return RefusedOption(name, known.all, "");
  }
  if (known.only_typed.count(name) != 0) {
    return Status::InvalidArgument(
        name + ": expected this option on the command line, not in this file");
  }
  const toml::array* const array = node.as_array();
  const size_t count = array != nullptr ? array->size() : 1;
  RETURN_IF_ERROR(CheckAllowsSome(name, count));
  for (size_t i = 0; i < count; ++i) {
    std::string text;
    RETURN_IF_ERROR(
        TextOfToml(name, array != nullptr ? *array->get(i) : node, &text));
    const bool is_switch = spec->semantic()->max_tokens() == 0;
    if (is_switch != (node.as_boolean() != nullptr)) {
      return Wrong(name, is_switch ? "true or false" : "a value", text);
    }
    po::option option(name, {text});
    option.unregistered = false;
    in_file->options.push_back(option);
  }
  po::variables_map alone;
  po::parsed_options of_line(&known.all);
  std::copy_if(in_file->options.begin(), in_file->options.end(),
               std::back_inserter(of_line.options),
               [&](const po::option& o) { return o.string_key == name; });
  return Store(of_line, &alone);
}

// Reads the tables [[database]] of the config file. The keys name and directory
// replace --db, and the keys allow and wal-dir replace options of the same
// names.
Status ReadDatabaseTables(const toml::node& node,
                         const po::options_description& known,
                         po::parsed_options* in_file) {
  static const Strings keys = {"name", "directory", "allow", "wal-dir"};
  const toml::array* const tables = node.as_array();
  if (known.find_nothrow("db", false) == nullptr || tables == nullptr ||
      !tables->is_homogeneous<toml::table>()) {
    return AtLine(node.source().begin.line,
                  Wrong("database", "[[database]] in a file of serve",
                        "something else"));
  }
  for (const toml::node& one : *tables) {
    const toml::table& table = *one.as_table();
    const std::string name = table["name"].value_or(std::string());
    const std::string directory = table["directory"].value_or(std::string());
    const size_t line = table.source().begin.line;
    if (name.empty() || directory.empty()) {
      return AtLine(line, Wrong("[[database]]", "name and directory",
                                "only one of them"));
    }
    in_file->options.push_back(po::option("db", {name + "=" + directory}));
    for (const auto& [key, value] : table) {
      const std::string word(key.str());
      if (std::find(keys.begin(), keys.end(), word) == keys.end()) {
        return AtLine(value.source().begin.line,
                      Status::InvalidArgument(
                          word + ": unknown key of [[database]]" +
                          DidYouMean(word, keys, "")));
      }
      const toml::array* const array = value.as_array();
      const size_t count = array != nullptr ? array->size() : 1;
      const Status some = CheckAllowsSome(word, count);
      if (!some.ok()) {
        return AtLine(value.source().begin.line, some);
      }
      for (size_t i = 0;
           (word == "allow" || word == "wal-dir") && i < count; ++i) {
        std::string text;
        const Status status =
            TextOfToml(word, array != nullptr ? *array->get(i) : value, &text);
        if (!status.ok()) {
          return AtLine(value.source().begin.line, status);
        }
        in_file->options.push_back(po::option(word, {name + "=" + text}));
      }
    }
  }
  return Status::OK();
}

Status ReadToml(std::istream& file, const KnownOptions& known,
                po::parsed_options* in_file) {
  const toml::parse_result parsed = toml::parse(file);
  if (!parsed) {
    return AtLine(
        parsed.error().source().begin.line,
        Status::InvalidArgument("not TOML: " +
                                std::string(parsed.error().description()) +
                                "; expected lines such as target = "
                                "\"/data/users\", with the quotes"));
  }
  for (const auto& [key, node] : parsed.table()) {
    const std::string name(key.str());
    const Status status =
        name == "database"
            ? ReadDatabaseTables(node, known.all, in_file)
            : ReadValue(name, node, known, in_file);
    if (!status.ok()) {
      return name == "database" ? status
                                : AtLine(node.source().begin.line, status);
    }
  }
  return Status::OK();
}

Status ReadConfigFile(const std::string& path,
                      const KnownOptions& known, po::variables_map* map) {
  // If this process runs as root, only root may have written the file, because
  // root runs the shell commands in it.
  std::string text;
  Status status = ReadOwn(path, /*account=*/0, &text);
  if (!status.ok()) {
    return Status::InvalidArgument("--config " + MessageOf(status));
  }
  std::istringstream file(text);
  po::parsed_options in_file(&known.all);
  status = ReadToml(file, known, &in_file);
  if (status.ok()) {
    status = Store(in_file, map);
  }
  return status.ok()
             ? status
             : WithPlace("--config " + path, status);
}

}  // namespace

Status WithPlace(const std::string& where, const Status& status) {
  return Status::InvalidArgument(where + ": " + status.getState());
}

Status CheckAllowsSome(const std::string& name, size_t values) {
  return name != "allow" || values > 0
             ? Status::OK()
             : Wrong(name,
                     "at least one certificate (* allows every one), because "
                     "a database without allow is open to all",
                     "an empty list");
}

Status TextOfToml(const std::string& name, const toml::node& node,
                  std::string* text) {
  if (const auto* string = node.as_string()) {
    *text = string->get();
  } else if (const auto* number = node.as_integer()) {
    *text = std::to_string(number->get());
  } else if (const auto* truth = node.as_boolean()) {
    *text = truth->get() ? "yes" : "no";
  } else {
    std::ostringstream found;
    found << node.type();
    return Wrong(name, "text, a whole number, true or false", found.str());
  }
  return Status::OK();
}

std::string OptionTexts::Get(const std::string& name,
                             const std::string& otherwise) const {
  const auto found = values_.find(name);
  return found == values_.end() ? otherwise : found->second.front();
}

std::vector<std::string> OptionTexts::GetAll(const std::string& name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? std::vector<std::string>() : found->second;
}

Status ReadOptions(const std::vector<OptionSpec>& specs,
                   const std::vector<std::string>& operands,
                   const std::vector<std::string>& arguments,
                   OptionTexts* out) {
  *out = OptionTexts();
  KnownOptions known;
  auto add = known.all.add_options();
  for (const OptionSpec& spec : specs) {
    if (spec.is_once) {
      known.only_typed.insert(spec.name);
    }
    if (spec.value == nullptr) {
      add(spec.name, po::bool_switch());
    } else if (spec.repeatable) {
      add(spec.name, po::value<Strings>());
    } else {
      add(spec.name, po::value<std::string>());
    }
  }
  for (const std::string& operand : operands) {
    if (known.all.find_nothrow(operand, false) == nullptr) {
      add(operand.c_str(), po::value<std::string>());
    }
  }
  po::variables_map map;
  Status status = ReadCommandLine(operands, arguments, known.all, &map);
  const bool is_own_file =
      std::any_of(specs.begin(), specs.end(), [](const OptionSpec& spec) {
        return std::string(spec.name) == "config" && spec.read != nullptr;
      });
  if (status.ok() && map.count("config") != 0 && !is_own_file) {
    status = ReadConfigFile(map["config"].as<std::string>(), known, &map);
  }
  for (const auto& [name, given] : map) {
    if (const auto* on = boost::any_cast<bool>(&given.value())) {
      if (*on) {
        out->Set(name);
      }
    } else if (const auto* all = boost::any_cast<Strings>(&given.value())) {
      for (const std::string& text : *all) {
        out->Add(name, text);
      }
    } else {
      out->Add(name, given.as<std::string>());
    }
  }
  return status;
}

}  // namespace sstferry
