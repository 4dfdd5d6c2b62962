// Predicts the contents of a target after a refresh, key by key, from what both
// sides had before.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "sstferry/options.h"
#include "tests/support/test_db.h"

namespace sstferry::test {

using FamilyContents = std::map<std::string, std::string>;
using Contents = std::map<std::string, FamilyContents>;

// Returns the contents of those of these families that exist, read by plain
// RocksDB with these options; nullopt if there is no database.
std::optional<Contents> ContentsOf(const std::string& path,
                                   const Families& families);

// The options of a refresh that decide what it changes.
struct RefreshAsked {
  Selection selection;
  bool replaces_all = false;   // an exchange, or a missing target
  bool drops_missing = false;
};
// Returns what the target contains after a refresh. `known`: all families, with
// their orders.
Contents ContentsAfter(const RefreshAsked& asked, const Families& known,
                       const std::optional<Contents>& before,
                       const Contents& source);

// Fails rapidcheck's current history unless the contents are equal, and reports
// the first difference.
void RequireSame(const std::string& when, const Contents& expected,
                 const Contents& found);

// Returns the entries of `contents` whose values are not empty.
Contents WithoutEmptyValues(Contents contents);

}  // namespace sstferry::test
