// What a target holds after a refresh, said plainly: by key, from what both
// sides held before.
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

// Of the families that are there, read with these options by plain RocksDB;
// none of a directory without a database.
std::optional<Contents> ContentsOf(const std::string& path,
                                   const Families& families);

// `known` tells the orders of all families.
struct RefreshAsked {
  Selection selection;
  bool replaces_all = false;   // an exchange, or a target that is not there
  bool drops_missing = false;
};
Contents ContentsAfter(const RefreshAsked& asked, const Families& known,
                       const std::optional<Contents>& before,
                       const Contents& source);

// Fails the history that rapidcheck plays unless they are equal, and tells the
// first difference.
void RequireSame(const std::string& when, const Contents& expected,
                 const Contents& found);

// Entries of `contents` but for those with empty values.
Contents WithoutEmptyValues(Contents contents);

}  // namespace sstferry::test
