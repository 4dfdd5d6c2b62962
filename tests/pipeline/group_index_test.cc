// Groups of entries: both sides of a refresh cut them at the same keys.
#include "pipeline/refresh/group_index.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "format/end_state.h"
#include "format/limits.h"
#include "tests/support/catch.h"
#include "tests/support/sample_bytes.h"
#include "tests/support/test_db.h"

namespace sstferry::test::group_index_test {
namespace {

using Entries = std::map<std::string, std::string>;
using Keep = GroupIndex::Keep;

constexpr TransferId kSalt = {1, 2, 3};

// An index of the given entries.
class IndexOf : public GroupIndex {
 public:
  IndexOf(const Entries& entries, uint32_t group_entries,
          Keep keep = Keep::kEntries, const TransferId& salt = kSalt)
      : GroupIndex(salt, group_entries, keep) {
    EntryDigester digester(salt);
    for (const auto& [key, value] : entries) {
      const Digest128 digest = digester.DigestOfEntry(key, value, false);
      REQUIRE(Add(key, digest));
      sums_.Add(digest);
    }
    Finish();
  }
  const EntrySums& sums() const { return sums_; }

 private:
  EntrySums sums_;
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

TEST_CASE("Groups contain every entry once, and have about the requested size",
          "[group_index]") {
  const uint32_t wanted = GENERATE(1, 2, 6, 100);
  const Entries entries = Numbered(10'000);
  const IndexOf index(entries, wanted);
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
    REQUIRE_FALSE(changed.sums() == index.sums());
    worst = std::max(worst, Different(index, changed));
    sum += Different(index, changed);
  }
  REQUIRE(sum <= 4 * kTries);
  REQUIRE(worst <= 40);
}

TEST_CASE("Groups do not depend on what the index keeps of them",
          "[group_index]") {
  const Entries entries = Numbered(1000);
  const IndexOf all(entries, 6);
  const IndexOf first(entries, 6, Keep::kFirstKeys);
  REQUIRE(all.groups() == first.groups());
  REQUIRE(all.sums() == first.sums());
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
  EntryDigester digester(kSalt);
  REQUIRE_FALSE(digester.DigestOfEntry("ab", "c", false) ==
                digester.DigestOfEntry("a", "bc", false));
  REQUIRE_FALSE(digester.DigestOfEntry("a", "b", false) ==
                digester.DigestOfEntry("a", "b", true));
}

// Reads the given entries like a database.
class Listed : public EntryReader {
 public:
  explicit Listed(const Entries* entries)
      : entries_(entries), at_(entries->begin()) {}
  bool Valid() const override { return at_ != entries_->end(); }
  void Next() override { ++at_; }
  rocksdb::Slice key() const override { return at_->first; }
  rocksdb::Slice value() const override { return at_->second; }
  rocksdb::Status status() const override { return rocksdb::Status::OK(); }
  bool is_entity() const override { return false; }
  const rocksdb::WideColumns& columns() const override { return no_columns_; }

 private:
  const rocksdb::WideColumns no_columns_;
  const Entries* const entries_;
  Entries::const_iterator at_;
};

TEST_CASE("An index keeps all entries up to each of its limits",
          "[group_index]") {
  // Groups of one entry, and of several.
  const uint32_t group_entries = GENERATE(1, 3);
  const Entries entries = Numbered(300);
  const size_t key_bytes = entries.begin()->first.size();
  IndexLimits limits;
  size_t most = 0;  // entries that fit (or at least fit, with larger groups)
  SECTION("groups") {
    limits.groups = GENERATE(range(uint64_t{1}, uint64_t{40}));
    most = limits.groups;
  }
  SECTION("entries") {
    limits.entries = GENERATE(range(uint64_t{1}, uint64_t{40}));
    most = limits.entries;
  }
  SECTION("bytes of keys") {
    limits.key_bytes = key_bytes * GENERATE(range(uint64_t{1}, uint64_t{40})) +
                       GENERATE(0, 1);
    most = limits.key_bytes / key_bytes;
  }
  const bool of_groups = limits.groups != IndexLimits().groups;
  Listed reader(&entries);
  EntryDigester digester(kSalt);
  EntrySums sums;
  GroupIndex index(kSalt, group_entries, Keep::kEntries, limits);
  REQUIRE_OK(IndexFitting(&reader, &digester, nullptr, &sums, &index));
  // All entries that were read and summed are kept, and the reader is at the
  // next one.
  REQUIRE(index.kept() == sums.entries);
  REQUIRE(index.groups().size() <= limits.groups);
  REQUIRE(index.kept() >= most);
  if (group_entries == 1 || !of_groups) {
    REQUIRE(index.kept() == most);
  }
  REQUIRE(reader.Valid());
  REQUIRE(reader.key() == std::next(entries.begin(), index.kept())->first);
  size_t in_groups = 0;
  for (size_t group = 0; group < index.groups().size(); ++group) {
    in_groups += index.GroupEnd(group) - index.GroupBegin(group);
  }
  REQUIRE(in_groups == index.kept());
}

TEST_CASE("If some entries do not fit, no index is made", "[group_index]") {
  const uint64_t count = GENERATE(range(uint64_t{8}, uint64_t{13}));
  const Entries entries = Numbered(count);
  IndexLimits limits;
  limits.groups = 10;
  Listed reader(&entries);
  EntryDigester digester(kSalt);
  EntrySums sums;
  std::optional<GroupIndex> index(std::in_place, kSalt, 1, Keep::kFirstKeys,
                                  limits);
  uint64_t key_value_bytes = 0;
  REQUIRE_OK(IndexAll(&reader, &digester, nullptr, &sums, &key_value_bytes,
                      &index));
  REQUIRE(sums.entries == count);
  REQUIRE(index.has_value() == (count <= 10));
  if (index) {
    REQUIRE(index->groups().size() == count);
  }
  REQUIRE_FALSE(reader.Valid());
}

TEST_CASE("An index has at most as many groups as a message", "[group_index]") {
  GroupIndex index(kSalt, 1, Keep::kEntries);
  for (uint64_t i = 0; i < kMaxGroups; ++i) {
    REQUIRE(index.Add(NumberedKey(i), Digest128()));
  }
  REQUIRE_FALSE(index.Add(NumberedKey(kMaxGroups), Digest128()));
  index.Finish();
  REQUIRE(index.groups().size() == kMaxGroups);
}

TEST_CASE("A key that is too long for a message is refused", "[group_index]") {
  const bool alone = GENERATE(true, false);
  Entries entries;
  entries[std::string(kMaxKeyBytes + 1, 'k')] = "v";
  if (!alone) {
    entries["a"] = "v";
  }
  Listed reader(&entries);
  EntryDigester digester(kSalt);
  EntrySums sums;
  GroupIndex index(kSalt, 1, Keep::kEntries);
  const rocksdb::Status status =
      IndexFitting(&reader, &digester, nullptr, &sums, &index);
  REQUIRE(EndStateOf(status) == EndState::kRefused);
  REQUIRE(index.kept() == (alone ? 0 : 1));
}

TEST_CASE("An empty part has no groups and a sum of zero", "[group_index]") {
  const IndexOf a({}, 6);
  REQUIRE(a.groups().empty());
  REQUIRE(a.sums() == EntrySums());
}

}  // namespace
}  // namespace sstferry::test::group_index_test
