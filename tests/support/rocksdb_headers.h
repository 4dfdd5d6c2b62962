// The names that RocksDB's own headers have, read as text: whichever release
// this build has, its structs and enumerations tell what it knows.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace sstferry::test {

// A header without comments, strings and preprocessor lines.
std::string HeaderCode(const std::string& text);

// Names of the data members of `struct name` (or class), as declared in a
// header's code, also of those that point to functions; none of its functions,
// types and statics. nullopt: the header does not define it.
std::optional<std::vector<std::string>> StructMembers(const std::string& code,
                                                      const std::string& name);

// Enumerators of `enum name`, and their values. nullopt as above, and for a
// value that is neither a number, nor a shift, nor another enumerator's.
std::optional<std::map<std::string, uint64_t>> Enumerators(
    const std::string& code, const std::string& name);

}  // namespace sstferry::test
