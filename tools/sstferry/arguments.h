// Parses text into values: sizes, durations, keys, and the options of one
// command from its command line and its config file. Accesses no database, no
// network and no standard output.
//
// Errors: every function returns InvalidArgument whose getState() is the
// sentence for the operator ("--lanes: expected 1 to 64, found 0").
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

// Returns "WHAT: expected EXPECTED, found "FOUND"".
[[nodiscard]] rocksdb::Status Wrong(const std::string& what,
                                    const std::string& expected,
                                    const std::string& found);

// Returns InvalidArgument "OPTION: needs NEEDED", for an option that works only
// together with something else. `found`: what was given instead; may be empty.
[[nodiscard]] rocksdb::Status OnlyWith(const std::string& option,
                                       const std::string& needed,
                                       const std::string& found = "");

// Returns the usage error `status` with "WHERE: " before its sentence.
[[nodiscard]] rocksdb::Status WithPlace(const std::string& where,
                                        const rocksdb::Status& status);

// Parses "64M", "1.5G" or "64MiB": a number and K M G T (powers of 1000) or Ki
// Mi Gi Ti (powers of 1024) in any case, each with or without a final B. At
// least 1. `what` names the option in errors.
[[nodiscard]] rocksdb::Status ParseByteCount(const std::string& what,
                                             const std::string& text,
                                             uint64_t* bytes);

// Parses "90s", "1h30m" or "1d": whole numbers with d, h, m, s or ms, each at
// most once and in this order; 1 ms to 365 days.
[[nodiscard]] rocksdb::Status ParseDuration(const std::string& what,
                                            const std::string& text,
                                            std::chrono::milliseconds* out);

// Parses a key: 0x and an even number of hex digits is hex ("0x" alone: the
// empty key); anything else is taken literally.
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

// Parsed from "[NAME=]DIR": the text before the first '=' is the name unless it
// contains a '/'. Default name: DIR's last component.
struct NamedDirectory {
  std::string name;
  std::string directory;
};
[[nodiscard]] rocksdb::Status ParseNamedDirectory(const std::string& what,
                                                  const std::string& text,
                                                  NamedDirectory* out);

// The section of a command's help that lists an option. kEvery: every command
// has the option. kHidden: not in help, but for tests, or suggested by an error
// message.
enum class OptionGroup {
  kCommon,
  kNetwork,
  kLimits,
  kOutput,
  kAdvanced,
  kEvery,
  kHidden,
};

// One option, as used by the command line, the config file and the manuals.
// option_rows.h makes the options that set a member of a command's arguments.
struct OptionSpec {
  const char* name;
  const char* value;   // "BYTES", or choices such as "a|b"; null: a switch
  OptionGroup group;
  // A noun phrase or an imperative. States the default unless `initial` does.
  const char* help;
  bool repeatable = false;
  std::string bounds{};   // "1 to 64", as checked; empty: none
  std::string initial{};  // default value; empty: in `help`, or none
  // Sets the option's member in the struct that `arguments` points to. Null:
  // the code that reads the command's arguments sets the member.
  std::function<rocksdb::Status(const std::string& text, void* arguments)>
      read{};
  // True for an option that permits one act, such as --adopt. It is refused in
  // config files: a unit would permit the act again at each start, even if the
  // directory has become a primary meanwhile.
  bool is_once = false;
};
// Returns the option's help, followed by its bounds and its default.
std::string HelpText(const OptionSpec& spec);

// The option texts given to one command.
class OptionTexts {
 public:
  bool Has(const std::string& name) const { return values_.count(name) != 0; }
  // Returns the value of a non-repeatable option; `otherwise` if not given.
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

// Reads `arguments` (without program and command name), then the TOML file of
// --config. An option on the command line replaces the file's value, or all of
// its values for a repeatable option. Operands (SOURCE, TARGET_DIR...) are also
// options of the same names; arguments that are not options set them in order.
// `specs` must contain the option "config". If that option sets a member of the
// command's arguments, the command reads the file itself.
[[nodiscard]] rocksdb::Status ReadOptions(
    const std::vector<OptionSpec>& specs,
    const std::vector<std::string>& operands,
    const std::vector<std::string>& arguments, OptionTexts* out);

}  // namespace sstferry
