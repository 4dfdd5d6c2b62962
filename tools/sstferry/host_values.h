// Reads values of a host's file (host_file.h). Each error begins with the line
// and the column of its value; all are InvalidArgument, as in arguments.h.
#pragma once

#include <string>
#include <vector>

#include "rocksdb/status.h"
#include "tools/sstferry/arguments.h"
#include "tools/sstferry/host_file.h"
#include "tools/sstferry/toml.h"

namespace sstferry {

// Returns "line 12, column 3".
std::string PositionOf(const toml::node& node);

// Forms of values, as regular expressions, and what they are. No value has a
// control character, which no unit, cron line or manifest may contain.
struct HostForm {
  const char* pattern;
  const char* expected;
};
inline constexpr HostForm kTextForm = {
    ".+", "a text without control characters"};
inline constexpr HostForm kPathForm = {"/.*", "a path that begins with /"};
// systemd reads such a line without quotes.
inline constexpr HostForm kPlainPathForm = {
    "/[A-Za-z0-9/._@+=,:{}-]*", "a path of letters, digits and /._@+=,:-"};
// A unit runs in the directory /.
inline constexpr HostForm kPlaceForm = {
    "/.*|[^-].*:.*", "an address, or a path that begins with /"};
inline constexpr HostForm kAccountForm = {
    "[A-Za-z0-9_.][A-Za-z0-9_.-]{0,31}", "the name or number of an account"};

// Reads a value; a path without a slash at its end.
[[nodiscard]] rocksdb::Status ReadValue(const std::string& name,
                                        const toml::node& node,
                                        const HostForm& form,
                                        std::string* text);

// A key of a table. Null `out`: the caller reads its value.
struct HostKey {
  std::string name;
  std::string* out = nullptr;
  HostForm form = kTextForm;
};
// Reads the keys of a table, and refuses others. `what` names the table.
[[nodiscard]] rocksdb::Status ReadKeys(const std::string& what,
                                       const toml::table& table,
                                       const std::vector<HostKey>& keys);

// Reads a table of the key `name`.
[[nodiscard]] rocksdb::Status ReadTable(const std::string& name,
                                        const toml::node& node,
                                        const toml::table** table);

// Replaces each {name} by the name.
std::string Named(std::string text, const std::string& name);

// Reads the options in a job's table, but for its `own_keys`, after the words
// that the job has already, and checks the whole command line. If there is no
// error without one of the options, the error names the line of that option.
[[nodiscard]] rocksdb::Status ReadJobOptions(
    const std::vector<OptionSpec>& specs, const toml::table& table,
    const std::vector<std::string>& own_keys, HostJob* job);

// Adds the options that the packaged unit of the job has, unless the table has
// them.
void AddPackagedOptions(const toml::table& table, HostJob* job);

}  // namespace sstferry
