// Includes the TOML parser toml++, which throws no exceptions here.
#pragma once

#include <cstddef>
#include <string>

#define TOML_EXCEPTIONS 0
// Disables the parser's assertions. Some invalid input, such as "[:x", would
// fail an assertion, although the parser also returns an error for it.
#define TOML_ASSERT(expression) static_cast<void>(0)
#include <toml++/toml.h>

#include "rocksdb/status.h"

namespace sstferry {

// Converts a TOML value to the text of an option on a command line. A boolean
// becomes "yes" or "no". Returns InvalidArgument (see arguments.h) if the value
// is not a string, an integer or a boolean.
[[nodiscard]] rocksdb::Status TextOfToml(const std::string& name,
                                         const toml::node& node,
                                         std::string* text);

// Returns InvalidArgument if the option `name` is "allow" and a file has an
// empty list for it: everybody could then read the database. `values` is the
// number of values in the list.
[[nodiscard]] rocksdb::Status CheckAllowsSome(const std::string& name,
                                              size_t values);

}  // namespace sstferry
