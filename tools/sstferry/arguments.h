// Parses text into values: sizes, durations, keys, and the options of one
// command from its command line and its config file. Accesses no database, no
// network and no standard output.
//
// On error, all functions return InvalidArgument. Its getState() is the message
// for the operator, such as "--begin: expected only hex digits after 0x, found
// "0xyz"".
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "rocksdb/status.h"

namespace sstferry {

// Returns InvalidArgument with the message
// "WHAT: expected EXPECTED, found "FOUND"".
[[nodiscard]] rocksdb::Status Wrong(const std::string& what,
                                    const std::string& expected,
                                    const std::string& found);

// Returns InvalidArgument with the message "OPTION: needs NEEDED, found FOUND".
// If `found` is empty, the message ends after NEEDED. Use this error for an
// option that works only together with another option.
[[nodiscard]] rocksdb::Status OnlyWith(const std::string& option,
                                       const std::string& needed,
                                       const std::string& found = "");

// Returns the usage error `status` with "WHERE: " before its message.
[[nodiscard]] rocksdb::Status WithPlace(const std::string& where,
                                        const rocksdb::Status& status);

// Parses a number of bytes such as "64M", "1.5G" or "64MiB". K M G T are powers
// of 1000, and Ki Mi Gi Ti are powers of 1024. Accepts units in lower case, and
// a B after a unit. The result is at least 1. `what` is the name of the option
// in errors.
[[nodiscard]] rocksdb::Status ParseByteCount(const std::string& what,
                                             const std::string& text,
                                             uint64_t* bytes);

// Parses a duration from 1 ms to 365 days, such as "90s", "1h30m" or "1d". Each
// unit (d, h, m, s, ms) may occur once. Larger units must come first.
[[nodiscard]] rocksdb::Status ParseDuration(const std::string& what,
                                            const std::string& text,
                                            std::chrono::milliseconds* out);

// Parses a key. Text that begins with 0x is hexadecimal and must have an even
// number of digits; "0x" alone is the empty key. Other text is the key itself.
[[nodiscard]] rocksdb::Status ParseKey(const std::string& what,
                                       const std::string& text,
                                       std::string* key);

// Parses a decimal number from `least` to `most`.
[[nodiscard]] rocksdb::Status ParseNumber(const std::string& what,
                                          const std::string& text,
                                          uint64_t least, uint64_t most,
                                          uint64_t* number);

// Parses a percentage from 0% to `most`.
[[nodiscard]] rocksdb::Status ParsePercent(const std::string& what,
                                           const std::string& text,
                                           uint64_t most, double* percent);

// A directory and its name, parsed from "NAME=DIR" or "DIR". If there is no
// '=', or a '/' before the first '=', the complete text is DIR, and the name is
// the last component of DIR.
struct NamedDirectory {
  std::string name;
  std::string directory;
};
[[nodiscard]] rocksdb::Status ParseNamedDirectory(const std::string& what,
                                                  const std::string& text,
                                                  NamedDirectory* out);

// The section of a command's help that lists an option. Every command has the
// options of kEvery. Help does not list the options of kHidden: they are for
// tests, or an error message suggests them.
enum class OptionGroup {
  kCommon,
  kNetwork,
  kLimits,
  kOutput,
  kAdvanced,
  kEvery,
  kHidden,
};

// One option. The command line, the config file and the manuals are made from
// it. Row() in option_rows.h makes an option that sets a member of a struct.
struct OptionSpec {
  const char* name;
  const char* value;   // "BYTES", or choices such as "a|b"; null for a switch
  OptionGroup group;
  // The help text: a noun phrase or an imperative, without the bounds. If the
  // option has a default and `initial` is empty, the text states the default.
  const char* help;
  bool repeatable = false;
  std::string bounds{};   // "1 to 64", for help; empty if there are none
  std::string initial{};  // the default value, for help; may be empty
  // Parses `text` and sets a member of the struct at `arguments`. If `read` is
  // null, the function that parses the command's arguments sets the member.
  std::function<rocksdb::Status(const std::string& text, void* arguments)>
      read{};
  // True for an option that permits a dangerous step once, such as --adopt. A
  // config file must not contain the option: a systemd unit would then permit
  // the step at each start, even if the directory has become a primary.
  bool is_once = false;
};
// Returns the option's help text with its bounds and its default, for example
// "Move N parts at once. 1 to 64. Default: 4."
std::string HelpText(const OptionSpec& spec);

// The options that a command got from its command line and its config file, as
// unparsed text.
class OptionTexts {
 public:
  bool Has(const std::string& name) const { return values_.count(name) != 0; }
  // Returns the value of a non-repeatable option. If the option was not given,
  // returns `otherwise`.
  std::string Get(const std::string& name,
                  const std::string& otherwise = "") const;
  // Returns all values of a repeatable option, in order.
  std::vector<std::string> GetAll(const std::string& name) const;
  bool IsSet(const std::string& name) const {
    return switches_.count(name) != 0;
  }

  void Add(const std::string& name, const std::string& value) {
    values_[name].push_back(value);
  }
  void Set(const std::string& name) { switches_.insert(name); }

 private:
  std::map<std::string, std::vector<std::string>> values_;
  std::set<std::string> switches_;
};

// Reads `arguments`, the command line without the program's and the command's
// name, and then the TOML file of --config. If both have an option, the command
// line wins; the file then adds no values, even to a repeatable option.
// `operands` are the names of options that words without "--" set in this
// order, such as "source" and "target". `specs` must contain the option
// "config". If this option has a function `read`, the caller reads the file.
[[nodiscard]] rocksdb::Status ReadOptions(
    const std::vector<OptionSpec>& specs,
    const std::vector<std::string>& operands,
    const std::vector<std::string>& arguments, OptionTexts* out);

}  // namespace sstferry
