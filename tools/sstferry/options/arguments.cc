#include "tools/sstferry/options/arguments.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <sstream>
#include <system_error>

#include <boost/program_options.hpp>

#include "format/hex.h"
#include "format/limits.h"
#include "sstferry/options.h"

namespace sstferry {
namespace {

namespace po = boost::program_options;
using rocksdb::Status;

constexpr uint64_t kMaxMillis = 365ull * 24 * 3600 * 1000;

struct Unit {
  const char* suffix;
  uint64_t factor;
};

constexpr Unit kByteUnits[] = {
    {"", 1},           {"B", 1},
    {"K", 1000},       {"KB", 1000},
    {"M", 1000'000},   {"MB", 1000'000},
    {"G", 1000'000'000}, {"GB", 1000'000'000},
    {"Ki", 1u << 10},  {"KiB", 1u << 10},
    {"Mi", 1u << 20},  {"MiB", 1u << 20},
    {"Gi", 1u << 30},  {"GiB", 1u << 30},
};
constexpr Unit kTimeUnits[] = {
    {"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}};

bool ReadDigits(const std::string& digits, uint64_t* number) {
  if (digits.empty()) {
    return false;
  }
  *number = 0;
  for (const char c : digits) {
    if (c < '0' || c > '9' ||
        __builtin_mul_overflow(*number, uint64_t{10}, number) ||
        __builtin_add_overflow(*number, static_cast<uint64_t>(c - '0'),
                               number)) {
      return false;
    }
  }
  return true;
}

// False unless `text` is digits and one of the units, its product fits and is
// not zero.
template <size_t kCount>
bool ReadWithUnit(const std::string& text, const Unit (&units)[kCount],
                  uint64_t* value) {
  const size_t digits = std::min(text.find_first_not_of("0123456789"),
                                 text.size());
  const std::string suffix = text.substr(digits);
  uint64_t number = 0;
  if (!ReadDigits(text.substr(0, digits), &number)) {
    return false;
  }
  for (const Unit& unit : units) {
    if (suffix == unit.suffix) {
      return !__builtin_mul_overflow(number, unit.factor, value) && *value > 0;
    }
  }
  return false;
}

void AddOption(const OptionSpec& spec, po::options_description* out) {
  if (spec.value == nullptr) {
    out->add_options()(spec.name, po::bool_switch());
  } else if (spec.repeatable) {
    out->add_options()(spec.name, po::value<std::vector<std::string>>());
  } else {
    out->add_options()(spec.name, po::value<std::string>());
  }
}

// Options that say how this one run talks; a file cannot hold them.
bool IsCommandLineOnly(const OptionSpec& spec) {
  const std::string name = spec.name;
  return name == "config" || name == "help" || name == "version";
}

// What Boost says is wrong. It puts names and values into its sentences by
// replacing %placeholders%, without end where what it puts in holds one: then
// the sentence is ours. `given` is all that Boost was given.
std::string SentenceOf(const po::error& wrong, const std::string& given) {
  const bool may_hold_placeholder = given.find('%') != given.rfind('%');
  if (may_hold_placeholder &&
      dynamic_cast<const po::error_with_option_name*>(&wrong) != nullptr) {
    return "expected options and values as --help lists them, found one that "
           "is not, and '%' among them";
  }
  return wrong.what();
}

Status ReadConfigFile(const std::string& path,
                      const po::options_description& known,
                      po::variables_map* map) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    return Wrong("--config", "a readable file", path);
  }
  std::ifstream file(path);
  if (!file) {
    return Wrong("--config", "a readable file", path);
  }
  const std::string text(std::istreambuf_iterator<char>(file), {});
  if (file.bad()) {
    return Wrong("--config", "a readable file", path);
  }
  try {
    std::istringstream lines(text);
    po::store(po::parse_config_file(lines, known), *map);
  } catch (const po::error& wrong) {
    return Status::InvalidArgument("--config " + path,
                                   SentenceOf(wrong, text));
  }
  return Status::OK();
}

// Refuses what Boost lets through: an unknown option with one dash would become
// an operand, and "--begin --verify" would take the option as the key.
Status CheckTokens(const std::vector<std::string>& arguments,
                   const po::parsed_options& parsed) {
  const std::vector<std::string> after_terminator(
      std::find(arguments.begin(), arguments.end(), "--"), arguments.end());
  for (const po::option& option : parsed.options) {
    const bool is_operand = option.position_key >= 0;
    for (const std::string& value : option.value) {
      if (is_operand && value.size() > 1 && value[0] == '-' &&
          std::find(after_terminator.begin(), after_terminator.end(), value) ==
              after_terminator.end()) {
        return Status::InvalidArgument("unrecognised option '" + value + "'");
      }
      if (!is_operand && option.original_tokens.size() > 1 &&
          value.compare(0, 2, "--") == 0) {
        return Wrong("--" + option.string_key,
                     "a value (one that begins with -- needs the form --" +
                         option.string_key + "=VALUE)",
                     value);
      }
    }
  }
  return Status::OK();
}

Status TooManyOperands(size_t expected,
                       const std::vector<std::string>& arguments) {
  for (const std::string& argument : arguments) {
    if (argument == "--") {
      break;
    }
    if (argument.size() > 1 && argument[0] == '-' && argument[1] != '-') {
      return Status::InvalidArgument("unrecognised option '" + argument +
                                     "'");
    }
  }
  return Status::InvalidArgument("expected at most " +
                                 std::to_string(expected) +
                                 " operands, found more");
}

}  // namespace

Status Wrong(const std::string& what, const std::string& expected,
             const std::string& found) {
  return Status::InvalidArgument(what + ": expected " + expected +
                                 ", found \"" + found + "\"");
}

Status ParseByteCount(const std::string& what, const std::string& text,
                      uint64_t* bytes) {
  if (!ReadWithUnit(text, kByteUnits, bytes)) {
    return Wrong(what,
                 "bytes as a whole number from 1 below 2^64 with K M G "
                 "(powers of 1000) or Ki Mi Gi (of 1024)",
                 text);
  }
  return Status::OK();
}

Status ParseDuration(const std::string& what, const std::string& text,
                     std::chrono::milliseconds* out) {
  uint64_t millis = 0;
  if (!ReadWithUnit(text, kTimeUnits, &millis) || millis > kMaxMillis) {
    return Wrong(what,
                 "a duration of at least 1ms and at most 8760h as a whole "
                 "number with ms, s, m or h",
                 text);
  }
  *out = std::chrono::milliseconds(millis);
  return Status::OK();
}

Status ParseKey(const std::string& what, const std::string& text,
                std::string* key) {
  if (text.compare(0, 2, "0x") != 0) {
    *key = text;
  } else {
    if (text.size() % 2 != 0) {
      return Wrong(what, "an even number of hex digits after 0x", text);
    }
    key->clear();
    for (size_t i = 2; i < text.size(); i += 2) {
      const auto byte = HexByte(text[i], text[i + 1]);
      if (!byte.has_value()) {
        return Wrong(what, "only hex digits after 0x", text);
      }
      key->push_back(static_cast<char>(*byte));
    }
  }
  if (key->size() > kMaxKeyBytes) {
    return Status::InvalidArgument(
        what + ": expected a key of at most " + std::to_string(kMaxKeyBytes) +
        " bytes, found " + std::to_string(key->size()));
  }
  return Status::OK();
}

Status ParseNumber(const std::string& what, const std::string& text,
                   uint64_t least, uint64_t most, uint64_t* number) {
  if (!ReadDigits(text, number) || *number < least || *number > most) {
    return Wrong(what,
                 "a whole number from " + std::to_string(least) + " to " +
                     std::to_string(most),
                 text);
  }
  return Status::OK();
}

Status ParsePercent(const std::string& what, const std::string& text,
                    double* percent) {
  uint64_t number = 0;
  if (text.empty() || text.back() != '%' ||
      !ParseNumber(what, text.substr(0, text.size() - 1), 0, 99, &number)
           .ok()) {
    return Wrong(what, "0% to 99%", text);
  }
  *percent = static_cast<double>(number);
  return Status::OK();
}

Status ParseNamedDirectory(const std::string& what, const std::string& text,
                           NamedDirectory* out) {
  const size_t equals = text.find('=');
  const bool named =
      equals != std::string::npos && text.find('/') >= equals;
  out->directory = named ? text.substr(equals + 1) : text;
  if (out->directory.empty()) {
    return Wrong(what, "[NAME=]DIR with a directory", text);
  }
  if (named) {
    out->name = text.substr(0, equals);
  } else {
    std::error_code error;
    std::filesystem::path path =
        std::filesystem::absolute(out->directory, error).lexically_normal();
    if (!path.has_filename()) {
      path = path.parent_path();  // a final '/'
    }
    out->name = path.filename().string();
  }
  if (!IsValidDatabaseName(out->name)) {
    return Wrong(what,
                 "a name of 1 to 64 of A-Z a-z 0-9 . _ - (NAME=DIR gives a "
                 "directory one)",
                 out->name);
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
  po::options_description on_command_line;
  po::options_description in_file;
  po::positional_options_description positions;
  for (const OptionSpec& spec : specs) {
    AddOption(spec, &on_command_line);
    if (!IsCommandLineOnly(spec)) {
      AddOption(spec, &in_file);
    }
  }
  for (const std::string& operand : operands) {
    on_command_line.add_options()(operand.c_str(), po::value<std::string>());
    in_file.add_options()(operand.c_str(), po::value<std::string>());
    positions.add(operand.c_str(), 1);
  }
  po::variables_map map;
  try {
    const po::parsed_options parsed =
        po::command_line_parser(arguments)
            .options(on_command_line)
            .positional(positions)
            .style(po::command_line_style::allow_long |
                   po::command_line_style::long_allow_adjacent |
                   po::command_line_style::long_allow_next)
            .run();
    const Status status = CheckTokens(arguments, parsed);
    if (!status.ok()) {
      return status;
    }
    po::store(parsed, map);
  } catch (const po::too_many_positional_options_error&) {
    return TooManyOperands(operands.size(), arguments);
  } catch (const po::error& wrong) {
    std::string given;
    for (const std::string& argument : arguments) {
      given += argument;
    }
    return Status::InvalidArgument(SentenceOf(wrong, given));
  }
  if (map.count("config") != 0) {
    const Status status =
        ReadConfigFile(map["config"].as<std::string>(), in_file, &map);
    if (!status.ok()) {
      return status;
    }
  }
  for (const auto& [name, value] : map) {
    if (const auto* given = boost::any_cast<bool>(&value.value())) {
      if (*given) {
        out->switches_.insert(name);
      }
    } else if (const auto* one =
                   boost::any_cast<std::string>(&value.value())) {
      out->values_[name] = {*one};
    } else if (const auto* many = boost::any_cast<std::vector<std::string>>(
                   &value.value())) {
      out->values_[name] = *many;
    }
  }
  return Status::OK();
}

}  // namespace sstferry
