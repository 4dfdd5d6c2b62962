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

// Returns the text that a command line would have: "yes" or "no" for a switch.
// InvalidArgument, as in arguments.h: the value has another type.
[[nodiscard]] rocksdb::Status TextOfToml(const std::string& name,
                                         const toml::node& node,
                                         std::string* text);

// Checks that the option `name`, with this number of values in a file, is not
// an empty `allow`: without a value, it allows everybody.
[[nodiscard]] rocksdb::Status CheckAllowsSome(const std::string& name,
                                              size_t values);

}  // namespace sstferry
