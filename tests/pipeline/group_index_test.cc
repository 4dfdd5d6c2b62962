// Groups of entries, cut at the same keys by both sides of a refresh.
#include "pipeline/refresh/group_index.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "format/limits.h"
#include "tests/support/catch.h"
#include "tests/support/sample_bytes.h"
#include "tests/support/test_db.h"

namespace sstferry::test::group_index_test {
namespace {

using Entries = std::map<std::string, std::string>;
using Keep = GroupIndex::Keep;

constexpr TransferId kSalt = {1, 2, 3};

// The index of these entries.
class IndexOf : public GroupIndex {
 public:
  IndexOf(const Entries& entries, uint32_t group_entries,
          Keep keep = Keep::kEntries, const TransferId& salt = kSalt)
      : GroupIndex(salt, group_entries, keep) {
    for (const auto& [key, value] : entries) {
      Add(key, value, false);
    }
    Finish();
  }
};

Entries Numbered(uint64_t count) {
  Entries entries;
  for (uint64_t i = 0; i < count; ++i) {
    entries[NumberedKey(i)] = RandomBytes(20, i);
  }
  return entries;
}

std::set<std::pair<uint64_t, uint64_t>> DigestsOf(const GroupIndex& index) {
  std::set<std::pair<uint64_t, uint64_t>> digests;
  for (const Digest128& group : index.groups()) {
    digests.emplace(group.high, group.low);
  }
  return digests;
}

size_t Different(const GroupIndex& a, const GroupIndex& b) {
  const auto ours = DigestsOf(a);
  const auto theirs = DigestsOf(b);
  return static_cast<size_t>(
      std::count_if(ours.begin(), ours.end(),
                    [&](const auto& one) { return theirs.count(one) == 0; }));
}

TEST_CASE("Groups hold every entry once, about as many as asked for",
          "[group_index]") {
  const uint32_t wanted = GENERATE(1, 2, 6, 100);
  const Entries entries = Numbered(10'000);
  const IndexOf index(entries, wanted);
  REQUIRE(index.entries() == entries.size());
  REQUIRE(index.kept() == entries.size());
  size_t at = 0;
  for (size_t group = 0; group < index.groups().size(); ++group) {
    REQUIRE(index.GroupBegin(group) == at);
    REQUIRE(index.GroupEnd(group) > at);
    REQUIRE(index.GroupEnd(group) - at <= 4 * wanted);
    at = index.GroupEnd(group);
  }
  REQUIRE(at == entries.size());
  const double mean = 10'000.0 / static_cast<double>(index.groups().size());
  REQUIRE(mean > 0.7 * wanted);
  REQUIRE(mean < 1.3 * wanted + 1);
}

TEST_CASE("One changed, added or removed entry changes few groups",
          "[group_index]") {
  const Entries before = Numbered(10'000);
  const IndexOf index(before, 6);
  size_t worst = 0;
  size_t sum = 0;
  constexpr size_t kTries = 100;
  for (size_t i = 0; i < kTries; ++i) {
    Entries after = before;
    const std::string key = NumberedKey(97 * i);
    if (i % 3 == 0) {
      after[key] = "changed";
    } else if (i % 3 == 1) {
      after[key + "x"] = "added";
    } else {
      after.erase(key);
    }
    const IndexOf changed(after, 6);
    REQUIRE_FALSE(changed.content() == index.content());
    worst = std::max(worst, Different(index, changed));
    sum += Different(index, changed);
  }
  REQUIRE(sum <= 4 * kTries);
  REQUIRE(worst <= 40);
}

TEST_CASE("Groups are the same whatever is kept of them", "[group_index]") {
  const Entries entries = Numbered(1000);
  const IndexOf all(entries, 6);
  const IndexOf first(entries, 6, Keep::kFirstKeys);
  REQUIRE(all.groups() == first.groups());
  REQUIRE(all.content() == first.content());
  REQUIRE(first.kept() == first.groups().size());
  for (size_t i = 0; i < first.kept(); ++i) {
    REQUIRE(first.key(i) == all.key(all.GroupBegin(i)));
  }
}

TEST_CASE("Another transfer has other digests", "[group_index]") {
  const Entries entries = Numbered(100);
  REQUIRE(Different(IndexOf(entries, 6),
                    IndexOf(entries, 6, Keep::kEntries, {9})) > 0);
}

TEST_CASE("A key and its value are not confused with their neighbours",
          "[group_index]") {
  GroupIndex index(kSalt, 1, Keep::kEntries);
  REQUIRE_FALSE(index.DigestOfEntry("ab", "c", false) ==
                index.DigestOfEntry("a", "bc", false));
  REQUIRE_FALSE(index.DigestOfEntry("a", "b", false) ==
                index.DigestOfEntry("a", "b", true));
}

TEST_CASE("A part with too many entries has a digest and no groups",
          "[group_index]") {
  GroupIndex index(kSalt, 1, Keep::kEntries);
  for (uint64_t i = 0; i < kMaxGroups + 10; ++i) {
    index.Add(NumberedKey(i), "v", false);
  }
  index.Finish();
  REQUIRE_FALSE(index.has_groups());
  REQUIRE(index.groups().empty());
  REQUIRE(index.kept() == 0);
  REQUIRE(index.entries() == kMaxGroups + 10);
}

TEST_CASE("An entry fits as long as all that were added are kept",
          "[group_index]") {
  GroupIndex index(kSalt, 1000, Keep::kEntries);
  const std::string key(kMaxKeyBytes, 'k');
  uint64_t added = 0;
  for (; index.Fits(key); ++added) {
    index.Add(key, "v", false);
  }
  REQUIRE(added == kMaxIndexKeyBytes / kMaxKeyBytes);
  REQUIRE(index.Fits(""));
  REQUIRE(index.has_groups());
  index.Add(key, "v", false);
  REQUIRE_FALSE(index.has_groups());
  REQUIRE_FALSE(GroupIndex(kSalt, 1, Keep::kEntries).Fits(key + "k"));
}

TEST_CASE("An empty part has no groups and one digest", "[group_index]") {
  const IndexOf a({}, 6);
  REQUIRE(a.has_groups());
  REQUIRE(a.groups().empty());
  REQUIRE(a.content() == IndexOf({}, 100).content());
}

}  // namespace
}  // namespace sstferry::test::group_index_test
