// From the bytes of delta chunks, a target computes which entries its parts
// will have. So it proves that they will equal the source's.
#include "pipeline/refresh/part_proof.h"

#include <rapidcheck.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "format/end_state.h"
#include "rocksdb/sst_file_writer.h"
#include "tests/support/catch.h"
#include "tests/support/named_comparator.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/test_db.h"

namespace sstferry::test::part_proof_test {
namespace {

constexpr TransferId kTransfer = {1, 2, 3};

struct InOrder {
  const rocksdb::Comparator* order;
  bool operator()(const std::string& a, const std::string& b) const {
    return order->Compare(a, b) < 0;
  }
};
using Entries = std::map<std::string, std::string, InOrder>;

EntrySums SumsOf(const Entries& entries) {
  EntryDigester digester(kTransfer);
  EntrySums sums;
  for (const auto& [key, value] : entries) {
    sums.Add(digester.DigestOfEntry(key, value, false));
  }
  return sums;
}

// The contents of a delta chunk: values to put (nullopt: a deletion) and ranges
// to delete.
struct Chunk {
  std::map<std::string, std::optional<std::string>, InOrder> entries;
  std::vector<std::pair<std::string, std::string>> ranges;
};

// A target that reads some entries and receives one chunk of changes.
class Target {
 public:
  explicit Target(const rocksdb::Comparator* order) : order_(order) {
    options_.comparator = order;
  }

  void Read(const Entries& entries) {
    for (const auto& [key, value] : entries) {
      const Digest128 digest = digester_.DigestOfEntry(key, value, false);
      REQUIRE(index_.Add(key, digest));
    }
    index_.Finish();
    proof_.AddRead(SumsOf(entries));
  }
  void Write(const Chunk& chunk) {
    rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), options_);
    REQUIRE_OK(writer.Open(path()));
    for (const auto& [key, value] : chunk.entries) {
      REQUIRE_OK(value ? writer.Put(key, *value) : writer.Delete(key));
    }
    for (const auto& [first, last] : chunk.ranges) {
      REQUIRE_OK(writer.DeleteRange(first, last));
    }
    REQUIRE_OK(writer.Finish());
  }
  void Take() { REQUIRE_OK(proof_.TakeChunk(delta(), index_, &digester_)); }
  void Clear(const std::string& first, const std::string& last) {
    REQUIRE_OK(proof_.TakeClearing(delta(), first, last));
  }
  CheckedDelta delta() const {
    return {rocksdb::FileSystem::Default().get(), path(), order_};
  }
  std::string path() const { return dir_ / "delta.sst"; }
  PartProof* proof() { return &proof_; }
  const GroupIndex& index() const { return index_; }

 private:
  const ScratchDir dir_;
  const rocksdb::Comparator* const order_;
  rocksdb::Options options_;
  EntryDigester digester_{kTransfer};
  GroupIndex index_{kTransfer, 4, GroupIndex::Keep::kEntries};
  PartProof proof_;
};

TEST_CASE("The computed effect of a delta equals RocksDB's",
          "[refresh][proof]") {
  // With this order, keys with different bytes may be the same key.
  static const CaselessComparator caseless;
  const rocksdb::Comparator* const order =
      GENERATE(rocksdb::BytewiseComparator(),
               rocksdb::ReverseBytewiseComparator(),
               static_cast<const rocksdb::Comparator*>(&caseless));
  REQUIRE(rc::check("any delta", [order] {
    const auto any_key = [] {
      return std::string(1, *rc::gen::inRange('a', 'k')) +
             std::string(1, *rc::gen::elementOf(std::string("aAbBcC")));
    };
    Entries entries(InOrder{order});
    const auto count = *rc::gen::inRange(0, 30);
    for (int i = 0; i < count; ++i) {
      entries[any_key()] = std::to_string(*rc::gen::inRange(0, 5));
    }
    Chunk chunk{decltype(Chunk::entries)(InOrder{order}), {}};
    const auto changes = *rc::gen::inRange(1, 20);
    for (int i = 0; i < changes; ++i) {
      std::optional<std::string> value;
      if (*rc::gen::arbitrary<bool>()) {
        value = std::to_string(*rc::gen::inRange(0, 5));
      }
      chunk.entries[any_key()] = value;
    }
    // Ranges between keys of the chunk that do not touch each other.
    std::vector<std::string> keys;
    for (const auto& entry : chunk.entries) {
      keys.push_back(entry.first);
    }
    for (size_t i = 0; i + 1 < keys.size(); i += 3) {
      if (*rc::gen::arbitrary<bool>()) {
        chunk.ranges.emplace_back(keys[i], keys[i + 1]);
      }
    }
    Target target(order);
    target.Read(entries);
    target.Write(chunk);
    target.Take();
    for (const auto& [first, last] : chunk.ranges) {
      entries.erase(entries.lower_bound(first), entries.lower_bound(last));
    }
    for (const auto& [key, value] : chunk.entries) {
      entries.erase(key);  // the old key may have other bytes
      if (value) {
        entries[key] = *value;
      }
    }
    RC_ASSERT(target.proof()->here() == SumsOf(entries));
  }));
}

Entries Numbered(uint64_t count) {
  Entries entries(InOrder{rocksdb::BytewiseComparator()});
  for (uint64_t i = 0; i < count; ++i) {
    entries[NumberedKey(i)] = std::to_string(i);
  }
  return entries;
}

Chunk NoChange() {
  return {decltype(Chunk::entries)(InOrder{rocksdb::BytewiseComparator()}), {}};
}

TEST_CASE("A part is not proven by a delta that misses a change",
          "[refresh][proof]") {
  Entries source = Numbered(20);
  source.erase(NumberedKey(3));
  source[NumberedKey(5)] = "changed";
  source["new"] = "1";
  Chunk chunk = NoChange();
  chunk.entries[NumberedKey(3)] = std::nullopt;
  chunk.entries[NumberedKey(5)] = "changed";
  chunk.entries["new"] = "1";
  bool holds = false;
  SECTION("all changes") { holds = true; }
  SECTION("a deletion of a key that does not exist") {
    chunk.entries["absent"] = std::nullopt;
    holds = true;
  }
  SECTION("a missing deletion") { chunk.entries.erase(NumberedKey(3)); }
  SECTION("a missing changed value") { chunk.entries.erase(NumberedKey(5)); }
  SECTION("a missing new entry") { chunk.entries.erase("new"); }
  SECTION("another value") { chunk.entries["new"] = "2"; }
  SECTION("one deletion too many") {
    chunk.entries[NumberedKey(7)] = std::nullopt;
  }
  SECTION("a range deletion") {
    chunk.entries[NumberedKey(4)] = std::nullopt;
    source.erase(NumberedKey(4));
    chunk.ranges.emplace_back(NumberedKey(3), NumberedKey(5));
    holds = true;
    SECTION("that is too long by one entry") {
      chunk.ranges.back() = {NumberedKey(2), NumberedKey(5)};
      chunk.entries[NumberedKey(2)] = std::nullopt;
      holds = false;
    }
  }
  Target target(rocksdb::BytewiseComparator());
  target.proof()->SetSource(SumsOf(source));
  target.Read(Numbered(20));
  target.Write(chunk);
  REQUIRE_FALSE(target.proof()->holds());
  target.Take();
  REQUIRE(target.proof()->holds() == holds);
}

TEST_CASE("An entry that is not in the index cannot be proven as deleted",
          "[refresh][proof]") {
  // A part may have more groups than an index.
  Entries all = Numbered(20);
  Entries indexed = Numbered(10);
  Entries others = all;
  for (const auto& entry : indexed) {
    others.erase(entry.first);
  }
  Target target(rocksdb::BytewiseComparator());
  target.Read(indexed);
  target.proof()->AddRead(SumsOf(others));
  Chunk chunk = NoChange();
  for (const auto& entry : all) {
    chunk.entries[entry.first] = std::nullopt;
  }
  target.Write(chunk);
  target.proof()->SetSource(EntrySums());
  target.Take();
  REQUIRE_FALSE(target.proof()->holds());
  REQUIRE(target.proof()->here() == SumsOf(others));
}

TEST_CASE("A part that is empty at the source is proven by deletions up to its "
          "outermost keys", "[refresh][proof]") {
  const std::string first = NumberedKey(0);
  const std::string last = NumberedKey(19);
  Chunk chunk = NoChange();
  chunk.entries[first] = std::nullopt;
  chunk.entries[last] = std::nullopt;
  chunk.ranges.emplace_back(first, last);
  std::string found_first = first;
  std::string found_last = last;
  bool holds = false;
  SECTION("up to the outermost keys") { holds = true; }
  SECTION("if the target has only one key") {
    found_first = found_last;
    holds = true;
  }
  SECTION("if the target has a key before them") { found_first = "a"; }
  SECTION("if the target has a key after them") { found_last = "z"; }
  SECTION("if the last key is not deleted") { chunk.entries.erase(last); }
  SECTION("if the range is too short") {
    chunk.ranges.back().second = NumberedKey(18);
  }
  SECTION("if there is no range") { chunk.ranges.clear(); }
  SECTION("if something is put") { chunk.entries[NumberedKey(7)] = "value"; }
  Target target(rocksdb::BytewiseComparator());
  target.proof()->SetSource(EntrySums());
  // the entries that fit into the index
  target.proof()->AddRead(SumsOf(Numbered(5)));
  target.Write(chunk);
  target.Clear(found_first, found_last);
  REQUIRE(target.proof()->holds() == holds);
}

TEST_CASE("Bytes that are not a table cannot be a delta", "[refresh][proof]") {
  Target target(rocksdb::BytewiseComparator());
  target.Read(Numbered(3));
  std::ofstream(target.path()) << "no table";
  EntryDigester digester(kTransfer);
  REQUIRE(EndStateOf(target.proof()->TakeChunk(target.delta(), target.index(),
                                               &digester)) ==
          EndState::kCorrupt);
}

TEST_CASE("Sums do not depend on order, and may wrap below zero",
          "[refresh][proof]") {
  const Digest128 small{0, 1};
  const Digest128 large{UINT64_MAX, UINT64_MAX};
  EntrySums sums;
  sums.Remove(small);
  REQUIRE(sums.sum == large);
  sums.Add(large);
  sums.Add(small);
  sums.Remove(large);
  REQUIRE(sums == EntrySums());
  REQUIRE(SumOf({1, UINT64_MAX}, {2, 1}) == Digest128{4, 0});
  REQUIRE(DifferenceOf({4, 0}, {2, 1}) == Digest128{1, UINT64_MAX});
}

}  // namespace
}  // namespace sstferry::test::part_proof_test
