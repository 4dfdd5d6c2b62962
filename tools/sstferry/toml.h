// The TOML parser, without exceptions.
#pragma once

#include <cstddef>
#include <string>

#define TOML_EXCEPTIONS 0
// The parser asserts on some invalid input ("[:x"), which it also reports.
#define TOML_ASSERT(expression) static_cast<void>(0)
#include <toml++/toml.h>

#include "rocksdb/status.h"

namespace sstferry {

// Converts a TOML value to the text that a command line would have. A boolean
// becomes "yes" or "no". InvalidArgument, as in arguments.h: the value is no
// text, whole number or boolean.
[[nodiscard]] rocksdb::Status TextOfToml(const std::string& name,
                                         const toml::node& node,
                                         std::string* text);

// Refuses an empty list of `allow` in a file: it would open the database to
// everybody. `values`: the number of values that the file gives for the option
// `name`.
[[nodiscard]] rocksdb::Status CheckAllowsSome(const std::string& name,
                                              size_t values);

}  // namespace sstferry
