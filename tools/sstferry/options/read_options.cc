// The options of one command: from its command line and its config file.
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>

#include "tools/sstferry/options/arguments.h"
#include "tools/sstferry/options/nearest.h"

namespace sstferry {
namespace {

using rocksdb::Status;

// Options that say how this one run talks; a file cannot hold them.
bool IsCommandLineOnly(const std::string& name) {
  return name == "config" || name == "help" || name == "version";
}

std::string Trimmed(const std::string& text) {
  constexpr const char* kSpace = " \t\r\n";
  const size_t begin = text.find_first_not_of(kSpace);
  return begin == std::string::npos
             ? ""
             : text.substr(begin, text.find_last_not_of(kSpace) + 1 - begin);
}

// The options and operands of one command, by name.
class OptionReader {
 public:
  OptionReader(const std::vector<OptionSpec>& specs,
               const std::vector<std::string>& operands)
      : operands_(operands) {
    for (const OptionSpec& spec : specs) {
      specs_[spec.name] = spec;
    }
    for (const std::string& operand : operands) {
      specs_[operand] = {operand.c_str(), "VALUE", OptionGroup::kCommon, ""};
    }
  }

  [[nodiscard]] Status ReadCommandLine(
      const std::vector<std::string>& arguments, OptionTexts* out) const;
  // Reads the text of a config file.
  [[nodiscard]] Status ReadLines(const std::string& text,
                                 OptionTexts* out) const;

 private:
  Status ReadOption(const std::vector<std::string>& arguments, size_t* at,
                    OptionTexts* out) const;
  Status ReadLine(const std::string& line, OptionTexts* out) const;
  Status AddValue(const OptionSpec& spec, const std::string& shown,
                  const std::string& value, OptionTexts* out) const;
  std::vector<std::string> Names(bool in_file) const;

  const std::vector<std::string>& operands_;
  std::map<std::string, OptionSpec> specs_;
};

std::vector<std::string> OptionReader::Names(bool in_file) const {
  std::vector<std::string> names;
  for (const auto& [name, spec] : specs_) {
    const bool is_operand =
        std::find(operands_.begin(), operands_.end(), name) != operands_.end();
    if (in_file ? !IsCommandLineOnly(name) : !is_operand) {
      names.push_back(name);
    }
  }
  return names;
}

Status OptionReader::AddValue(const OptionSpec& spec, const std::string& shown,
                              const std::string& value,
                              OptionTexts* out) const {
  if (out->Has(spec.name) && !spec.repeatable) {
    return Status::InvalidArgument(shown + ": expected once, found again");
  }
  out->Add(spec.name, value);
  return Status::OK();
}

// "--NAME", "--NAME VALUE" or "--NAME=VALUE" at `*at`, which moves behind it.
Status OptionReader::ReadOption(const std::vector<std::string>& arguments,
                                size_t* at, OptionTexts* out) const {
  const std::string& argument = arguments[*at];
  ++*at;
  const size_t equals = argument.find('=');
  const bool adjacent = equals != std::string::npos;
  const std::string shown = argument.substr(0, equals);
  const std::string name = shown.substr(2);
  const auto found = specs_.find(name);
  if (found == specs_.end()) {
    return Status::InvalidArgument(shown + ": unknown option" +
                                   DidYouMean(name, Names(false), "--"));
  }
  if (found->second.value == nullptr) {
    if (adjacent) {
      return Wrong(shown, "no value", argument.substr(equals + 1));
    }
    out->Set(name);
    return Status::OK();
  }
  if (adjacent && equals + 1 == argument.size()) {
    return Status::InvalidArgument(
        shown + ": expected a value behind =, found nothing (an empty value "
        "is a word of its own: " + shown + " \"\")");
  }
  if (adjacent) {
    return AddValue(found->second, shown, argument.substr(equals + 1), out);
  }
  if (*at == arguments.size()) {
    return Status::InvalidArgument(shown +
                                   ": expected a value, found nothing");
  }
  const std::string& value = arguments[(*at)++];
  if (value.starts_with("--")) {
    return Wrong(shown,
                 "a value (one that begins with -- needs the form " + shown +
                     "=VALUE)",
                 value);
  }
  return AddValue(found->second, shown, value, out);
}

Status OptionReader::ReadCommandLine(
    const std::vector<std::string>& arguments, OptionTexts* out) const {
  size_t operand = 0;
  bool only_operands = false;
  for (size_t at = 0; at < arguments.size();) {
    const std::string& argument = arguments[at];
    Status status;
    if (!only_operands && argument == "--") {
      only_operands = true;
      ++at;
    } else if (!only_operands && argument.starts_with("--")) {
      status = ReadOption(arguments, &at, out);
    } else if (!only_operands && argument.size() > 1 && argument[0] == '-') {
      status = Status::InvalidArgument(
          argument + ": unknown option" +
          DidYouMean(argument.substr(1), Names(false), "--"));
    } else if (operand == operands_.size()) {
      status = Wrong("operands",
                     operands_.empty()
                         ? "none"
                         : "no more than " + std::to_string(operands_.size()),
                     argument);
    } else {
      const std::string& name = operands_[operand++];
      status = AddValue(specs_.at(name), name, argument, out);
      ++at;
    }
    if (!status.ok()) {
      return status;
    }
  }
  return Status::OK();
}

// "NAME = VALUE"; a switch is yes, also without a word, or no.
Status OptionReader::ReadLine(const std::string& line,
                              OptionTexts* out) const {
  const size_t equals = line.find('=');
  if (equals == std::string::npos) {
    return Wrong("line", "NAME = VALUE", line);
  }
  const std::string name = Trimmed(line.substr(0, equals));
  std::string value = Trimmed(line.substr(equals + 1));
  const auto found = specs_.find(name);
  if (found == specs_.end() || IsCommandLineOnly(name)) {
    return Status::InvalidArgument(
        name + ": " +
        (found == specs_.end() ? "unknown option"
                               : "expected on the command line only") +
        DidYouMean(name, Names(true)));
  }
  if (found->second.value != nullptr) {
    return AddValue(found->second, name, value, out);
  }
  std::transform(value.begin(), value.end(), value.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  const bool yes =
      value.empty() || value == "yes" || value == "true" || value == "on" || value == "1";
  const bool no =
      value == "no" || value == "false" || value == "off" || value == "0";
  if (yes) {
    out->Set(name);
  }
  return yes || no ? Status::OK() : Wrong(name, "yes or no", value);
}

Status OptionReader::ReadLines(const std::string& text,
                               OptionTexts* out) const {
  std::istringstream lines(text);
  size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    line = Trimmed(line.substr(0, line.find('#')));
    const Status status = line.empty() ? Status::OK() : ReadLine(line, out);
    if (!status.ok()) {
      return Status::InvalidArgument("line " + std::to_string(number) + ": " +
                                     status.getState());
    }
  }
  return Status::OK();
}

Status ReadConfigFile(const std::string& path, const OptionReader& reader,
                      OptionTexts* out) {
  std::error_code error;
  std::ifstream file;
  if (std::filesystem::is_regular_file(path, error)) {
    file.open(path);
  }
  if (!file.is_open()) {
    return Wrong("--config", "a readable file", path);
  }
  const std::string text(std::istreambuf_iterator<char>(file), {});
  if (file.bad()) {
    return Wrong("--config", "a readable file", path);
  }
  const Status status = reader.ReadLines(text, out);
  return status.ok() ? status
                     : Status::InvalidArgument("--config " + path + ": " +
                                               status.getState());
}

}  // namespace

std::string OptionTexts::Get(const std::string& name,
                             const std::string& otherwise) const {
  const auto found = values_.find(name);
  return found == values_.end() ? otherwise : found->second.front();
}

std::vector<std::string> OptionTexts::GetAll(const std::string& name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? std::vector<std::string>() : found->second;
}

void OptionTexts::AddMissing(const OptionTexts& other) {
  values_.insert(other.values_.begin(), other.values_.end());
  switches_.insert(other.switches_.begin(), other.switches_.end());
}

Status ReadOptions(const std::vector<OptionSpec>& specs,
                   const std::vector<std::string>& operands,
                   const std::vector<std::string>& arguments,
                   OptionTexts* out) {
  *out = OptionTexts();
  const OptionReader reader(specs, operands);
  Status status = reader.ReadCommandLine(arguments, out);
  if (status.ok() && out->Has("config")) {
    OptionTexts in_file;
    status = ReadConfigFile(out->Get("config"), reader, &in_file);
    out->AddMissing(in_file);
  }
  return status;
}

}  // namespace sstferry
