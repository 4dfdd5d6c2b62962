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
std::string PositionOf(const toml::source_region& region);

bool HasControl(const std::string& text);

// Reads a text without control characters, which no unit, cron line or manifest
// may contain.
[[nodiscard]] rocksdb::Status ReadText(const std::string& name,
                                       const toml::node& node,
                                       std::string* text);
// Reads an absolute path, without a slash at its end.
[[nodiscard]] rocksdb::Status ReadPath(const std::string& name,
                                       const toml::node& node,
                                       std::string* path);
// Reads an account's name or number.
[[nodiscard]] rocksdb::Status ReadAccount(const toml::node& node,
                                          std::string* account);
[[nodiscard]] rocksdb::Status ReadTable(const std::string& name,
                                        const toml::node& node,
                                        const toml::table** table);

// Returns the error for a key that `table` does not have.
rocksdb::Status UnknownKey(const toml::key& key, const std::string& table,
                           const std::vector<std::string>& known);

// Replaces each {name} by the name.
std::string Named(std::string text, const std::string& name);

// Reads the options in a job's table, but for its `own_keys`, after the words
// that the job has already, and checks the whole command line. An error that
// goes away without one of the options is at that option.
[[nodiscard]] rocksdb::Status ReadJobOptions(
    const std::vector<OptionSpec>& specs, const toml::table& table,
    const std::vector<std::string>& own_keys, HostJob* job);

// Adds the options that the packaged unit of the job has, unless the table has
// them.
void AddPackagedOptions(const toml::table& table, HostJob* job);

}  // namespace sstferry
