// Reads values from a host file (host_file.h). All errors are InvalidArgument
// (see arguments.h). The message begins with the line and the column of the
// wrong value.
#pragma once

#include <string>
#include <vector>

#include "rocksdb/status.h"
#include "tools/sstferry/arguments.h"
#include "tools/sstferry/host_file.h"
#include "tools/sstferry/toml.h"

namespace sstferry {

// Returns the position of a value in its file, such as "line 12, column 3".
std::string PositionOf(const toml::node& node);

// A form that values must have: a regular expression, and a description of the
// form for errors. In addition, ReadValue() refuses control characters, because
// systemd units, cron lines and Kubernetes manifests must not contain them.
struct HostForm {
  const char* pattern;
  const char* expected;
};
inline constexpr HostForm kTextForm = {
    ".+", "a text without control characters"};
inline constexpr HostForm kPathForm = {"/.*", "a path that begins with /"};
// A path without special characters. Some lines of a systemd unit need it,
// because systemd does not accept quotes there.
inline constexpr HostForm kPlainPathForm = {
    "/[A-Za-z0-9/._@+=,:{}-]*", "a path of letters, digits and /._@+=,:-"};
// An address or an absolute path. A relative path would be wrong, because
// systemd runs a unit in the directory /.
inline constexpr HostForm kPlaceForm = {
    "/.*|[^-].*:.*", "an address, or a path that begins with /"};
inline constexpr HostForm kAccountForm = {
    "[A-Za-z0-9_.][A-Za-z0-9_.-]{0,31}", "the name or number of an account"};

// Sets *text to the value `node` of the key `name`. Returns an error if the
// value does not have the form. If the form is a path, removes slashes from its
// end.
[[nodiscard]] rocksdb::Status ReadValue(const std::string& name,
                                        const toml::node& node,
                                        const HostForm& form,
                                        std::string* text);

// A key that a table may have. ReadKeys() stores the value of the key in *out.
// If `out` is null, ReadKeys() does not read the value.
struct HostKey {
  std::string name;
  std::string* out = nullptr;
  HostForm form = kTextForm;
};
// Reads the values of `keys` from a table. Returns an error if the table has a
// key that is not in `keys`. `what` is the table's name for the error.
[[nodiscard]] rocksdb::Status ReadKeys(const std::string& what,
                                       const toml::table& table,
                                       const std::vector<HostKey>& keys);

// Sets *table to the table `node`, the value of the key `name`. Returns an
// error if the value is not a table.
[[nodiscard]] rocksdb::Status ReadTable(const std::string& name,
                                        const toml::node& node,
                                        const toml::table** table);

// Returns `text` with `name` in place of each "{name}".
std::string Named(std::string text, const std::string& name);

// Appends the options in a job's table to the job's command line, and checks
// the complete command line. Ignores `own_keys`, which are keys of the job that
// are not options, such as "when". If the command line is wrong only because of
// one option, the error has the line of this option.
[[nodiscard]] rocksdb::Status ReadJobOptions(
    const std::vector<OptionSpec>& specs, const toml::table& table,
    const std::vector<std::string>& own_keys, HostJob* job);

// Appends options to the job's command line: those that the packaged unit of
// the job sets and the job's table does not set.
void AddPackagedOptions(const toml::table& table, HostJob* job);

}  // namespace sstferry
