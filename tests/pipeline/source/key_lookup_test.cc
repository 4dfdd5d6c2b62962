// Keys that are looked up, in new files first, are what RocksDB shows.
#include "pipeline/refresh/key_lookup.h"

#include <rapidcheck.h>

#include <set>

#include "tests/support/catch.h"
#include "tests/support/named_comparator.h"
#include "tests/support/table_world.h"

namespace sstferry::key_lookup_test {
namespace {

using test::KeyOf;
using test::Op;

// What is found of a key: its value, "-" for none.
std::string Found(KeyLookup* lookup, const std::string& key) {
  EntryReader* entry = nullptr;
  const rocksdb::Status status = lookup->Find(key, &entry);
  if (!status.ok()) {
    return status.ToString();
  }
  return entry == nullptr ? "-" : "=" + entry->value().ToString();
}

std::string Shown(test::TableWorld* world, const std::string& key) {
  std::string value;
  const rocksdb::Status status = world->db()->Get({}, key, &value);
  return status.IsNotFound() ? "-" : "=" + value;
}

// Puts each file into one of the two lists.
LookupFiles Divide(const std::vector<TableFile>& files,
                   const std::function<bool(const TableFile&)>& is_added) {
  LookupFiles divided;
  for (const TableFile& file : files) {
    (is_added(file) ? divided.added : divided.kept).push_back(file);
  }
  return divided;
}

bool InLevel0(const TableFile& file) {
  return file.depth < DescribeTable({}, /*level=*/1, /*place=*/0).depth;
}

TEST_CASE("A key is looked up as RocksDB shows it, whichever files are new",
          "[key_lookup]") {
  rc::check([] {
    test::TableWorld world;
    const bool special = *rc::gen::arbitrary<bool>();
    world.options().comparator = *rc::gen::element(
        rocksdb::BytewiseComparator(), rocksdb::ReverseBytewiseComparator());
    world.table().block_size = *rc::gen::element<size_t>(64, 4096);
    world.Open();
    world.Live(special);
    const std::vector<TableFile> files = world.Files();
    std::vector<std::string> keys;
    for (int number = 1; number < 60; ++number) {
      keys.push_back(KeyOf(number));
    }
    keys.push_back("key");  // of ingested files
    const rocksdb::Comparator* const order = world.options().comparator;
    std::sort(keys.begin(), keys.end(),
              [order](const std::string& a, const std::string& b) {
                return order->Compare(a, b) < 0;
              });
    for (int look = 0; look < 4; ++look) {
      // The newest ones, as they are after a night; or any.
      const auto newest = *rc::gen::inRange<uint64_t>(0, files.size() + 1);
      const bool any = *rc::gen::arbitrary<bool>();
      std::set<std::string> chosen;
      for (const TableFile& file : files) {
        if (*rc::gen::arbitrary<bool>()) {
          chosen.insert(file.path);
        }
      }
      const LookupFiles divided =
          Divide(files, [&](const TableFile& file) {
            return any ? chosen.count(file.path) != 0 : file.depth < newest;
          });
      KeyLookup lookup(world.db(), world.family(), {}, divided);
      for (const std::string& key : keys) {
        RC_ASSERT(Found(&lookup, key) == Shown(&world, key));
      }
      RC_CLASSIFY(lookup.asked() == 0, "all in new files");
      RC_CLASSIFY(lookup.asked() > 0 && lookup.asked() < keys.size(),
                  "some in new files");
    }
  });
}

TEST_CASE("Keys of files on top are found without RocksDB", "[key_lookup]") {
  test::TableWorld world;
  world.Open();
  for (int i = 1; i < 100; ++i) {
    world.Do(Op::kPut, i, 5);
  }
  world.Do(Op::kFlush, 0, 0);
  world.Do(Op::kCompact, 3, 0);
  for (int i = 1; i < 100; i += 3) {
    world.Do(i % 2 == 0 ? Op::kDelete : Op::kPut, i, 7);
  }
  const LookupFiles files = Divide(world.Files(), InLevel0);
  REQUIRE(files.added.size() == 1);
  REQUIRE_FALSE(files.kept.empty());
  std::set<std::string> changed;
  for (int i = 1; i < 100; i += 3) {
    changed.insert(KeyOf(i));
  }
  KeyLookup lookup(world.db(), world.family(), {}, files);
  for (const std::string& key : changed) {
    REQUIRE(Found(&lookup, key) == Shown(&world, key));
  }
  REQUIRE(lookup.asked() == 0);
}

TEST_CASE("A new file below an old one does not tell what a key holds",
          "[key_lookup]") {
  test::TableWorld world;
  world.Open();
  world.Do(Op::kPut, 5, 1);
  world.Do(Op::kFlush, 0, 0);
  world.Do(Op::kCompact, 3, 0);
  world.Do(Op::kPut, 5, 9);
  const std::vector<TableFile> all = world.Files();
  const LookupFiles files =
      Divide(all, [](const TableFile& file) { return !InLevel0(file); });
  REQUIRE(files.added.size() == 1);
  KeyLookup lookup(world.db(), world.family(), {}, files);
  REQUIRE(Found(&lookup, KeyOf(5)) == Shown(&world, KeyOf(5)));
  REQUIRE(lookup.asked() == 1);
}

TEST_CASE("RocksDB is asked for all keys once a new file holds a merge operand",
          "[key_lookup]") {
  test::TableWorld world;
  world.Open();
  for (int i = 1; i < 30; ++i) {
    world.Do(Op::kPut, i, 5);
  }
  world.Do(Op::kFlush, 0, 0);
  world.Do(Op::kCompact, 3, 0);
  world.Do(Op::kPut, 2, 3);
  world.Do(Op::kMerge, 15, 3);
  world.Do(Op::kPut, 19, 3);
  const LookupFiles files = Divide(world.Files(), InLevel0);
  KeyLookup lookup(world.db(), world.family(), {}, files);
  for (const int number : {2, 15, 19}) {
    REQUIRE(Found(&lookup, KeyOf(number)) == Shown(&world, KeyOf(number)));
  }
  REQUIRE(lookup.asked() == 2);
}

TEST_CASE("A key is found under the bytes that its order takes for the same",
          "[key_lookup]") {
  static const test::CaselessComparator order;
  test::TableWorld world;
  world.options().comparator = &order;
  world.Open();
  REQUIRE_OK(world.db()->Put({}, "Key", "value"));
  const bool is_added = GENERATE(true, false);
  const LookupFiles files = Divide(
      world.Files(), [is_added](const TableFile&) { return is_added; });
  KeyLookup lookup(world.db(), world.family(), {}, files);
  EntryReader* entry = nullptr;
  REQUIRE_OK(lookup.Find("KEY", &entry));
  REQUIRE(entry != nullptr);
  REQUIRE(entry->key() == "Key");
  REQUIRE(entry->value() == "value");
  REQUIRE(lookup.asked() == (is_added ? 0u : 1u));
}

}  // namespace
}  // namespace sstferry::key_lookup_test
