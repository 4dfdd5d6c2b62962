// Reads RocksDB's own headers as text, to learn which members and enumerators
// the release of this build has.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace sstferry::test {

// Returns a header without comments, strings and preprocessor lines.
std::string HeaderCode(const std::string& text);

// Returns the names of the data members of `struct name` (or class) in a
// header's code. Includes pointers to functions; excludes functions, types and
// statics. nullopt: the header does not define it.
std::optional<std::vector<std::string>> StructMembers(const std::string& code,
                                                      const std::string& name);

// Returns the enumerators of `enum name`, with their values. nullopt: the
// header does not define it, or a value is not a number, a shift or another
// enumerator.
std::optional<std::map<std::string, uint64_t>> Enumerators(
    const std::string& code, const std::string& name);

}  // namespace sstferry::test
