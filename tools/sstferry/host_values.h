// Reads values from a host file (host_file.h). Each error begins with the line
// and the column of the value; all are InvalidArgument, as in arguments.h.
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

// A form of values: a regular expression, and its description for errors. No
// value may have control characters, because units, cron lines and manifests
// must not contain them.
struct HostForm {
  const char* pattern;
  const char* expected;
};
inline constexpr HostForm kTextForm = {
    ".+", "a text without control characters"};
inline constexpr HostForm kPathForm = {"/.*", "a path that begins with /"};
// For lines of a unit in which systemd accepts no quotes.
inline constexpr HostForm kPlainPathForm = {
    "/[A-Za-z0-9/._@+=,:{}-]*", "a path of letters, digits and /._@+=,:-"};
// Allows no relative path, because a unit runs in the directory /.
inline constexpr HostForm kPlaceForm = {
    "/.*|[^-].*:.*", "an address, or a path that begins with /"};
inline constexpr HostForm kAccountForm = {
    "[A-Za-z0-9_.][A-Za-z0-9_.-]{0,31}", "the name or number of an account"};

// Reads a value. Removes the slash at the end of a path.
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
// Reads the keys of a table, and refuses unknown ones. `what` names the table.
[[nodiscard]] rocksdb::Status ReadKeys(const std::string& what,
                                       const toml::table& table,
                                       const std::vector<HostKey>& keys);

// Reads the table that is the value of the key `name`.
[[nodiscard]] rocksdb::Status ReadTable(const std::string& name,
                                        const toml::node& node,
                                        const toml::table** table);

// Replaces each "{name}" in `text` by `name`.
std::string Named(std::string text, const std::string& name);

// Appends the options in a job's table, except `own_keys`, to the job's words,
// and checks the complete command line. If leaving out one option makes it
// valid, the error names that option's line.
[[nodiscard]] rocksdb::Status ReadJobOptions(
    const std::vector<OptionSpec>& specs, const toml::table& table,
    const std::vector<std::string>& own_keys, HostJob* job);

// Adds the options in the job's packaged unit that the table does not set.
void AddPackagedOptions(const toml::table& table, HostJob* job);

}  // namespace sstferry
