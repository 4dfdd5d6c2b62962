// Random refreshes of targets with a history of their own. The limits are so
// small that parts reach all of them: entries, bytes of keys and groups of an
// index, marks, and message sizes. A second test adds a fault to each refresh.
// Environment:
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "format/limits.h"
#include "tests/support/catch.h"
#include "tests/support/compare_limits.h"
#include "tests/support/refreshed.h"
#include "tests/support/sample_bytes.h"
#include "tests/support/test_db.h"

namespace sstferry::test::refresh_limits_test {
namespace {

uint64_t NumberOf(const char* name, uint64_t usually) {
  const char* const text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : usually;
}

class Dice {
 public:
  explicit Dice(uint64_t seed) : random_(seed) {}
  // Returns a number from `least` to `most`.
  uint64_t Between(uint64_t least, uint64_t most) {
    return least + random_() % (most - least + 1);
  }
  bool Once(uint64_t of) { return Between(1, of) == 1; }

 private:
  std::mt19937_64 random_;
};

Families AllFamilies() {
  rocksdb::ColumnFamilyOptions reverse = Quiet();
  reverse.comparator = rocksdb::ReverseBytewiseComparator();
  return {{"default", Quiet()}, {"a", Quiet()}, {"b", reverse}, {"c", Quiet()}};
}

// Returns a key of a small set. Some keys have a random suffix.
std::string KeyOf(Dice* dice) {
  std::string key = NumberedKey(dice->Between(0, 700));
  if (dice->Once(12)) {
    key += RandomBytes(dice->Between(1, 60), dice->Between(0, 30));
  }
  return key;
}

// Applies the changes of one day to a database.
void Play(Dice* dice, const std::string& dir) {
  OpenDb db(dir, AllFamilies());
  for (rocksdb::ColumnFamilyHandle* const family : db.families()) {
    const uint64_t rounds = dice->Between(0, 3);
    for (uint64_t round = 0; round < rounds; ++round) {
      rocksdb::WriteBatch batch;
      const uint64_t writes =
          dice->Once(3) ? dice->Between(100, 500) : dice->Between(0, 30);
      for (uint64_t i = 0; i < writes; ++i) {
        const std::string key = KeyOf(dice);
        if (dice->Once(4)) {
          REQUIRE_OK(batch.Delete(family, key));
        } else {
          REQUIRE_OK(batch.Put(
              family, key,
              RandomBytes(dice->Once(40) ? dice->Between(0, 6000)
                                         : dice->Between(0, 12),
                          dice->Between(0, 3))));
        }
      }
      if (dice->Once(3)) {
        std::string first = KeyOf(dice);
        std::string last = dice->Once(4) ? "z" : KeyOf(dice);
        if (family->GetComparator()->Compare(first, last) > 0) {
          std::swap(first, last);
        }
        REQUIRE_OK(batch.DeleteRange(family, first, last));
      }
      REQUIRE_OK(db->Write({}, &batch));
      if (dice->Once(2)) {
        REQUIRE_OK(db->Flush({}, family));
      }
      if (dice->Once(6)) {
        REQUIRE_OK(db->CompactRange({}, family, nullptr, nullptr));
      }
    }
  }
}

CompareTuning SmallBounds(Dice* dice) {
  CompareTuning tuning;
  if (dice->Once(2)) {
    tuning.index.entries = dice->Between(1, 300);
  }
  if (dice->Once(2)) {
    tuning.index.groups = dice->Between(1, 60);
  }
  if (dice->Once(3)) {
    tuning.index.key_bytes = dice->Between(80, 3000);
  }
  tuning.marks = dice->Between(1, 200);
  tuning.few_entries = dice->Between(1, 20);
  tuning.message_bytes = dice->Between(1, 2000);
  return tuning;
}

std::map<std::string, std::string> EntriesOf(
    rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family) {
  std::map<std::string, std::string> entries;
  const std::unique_ptr<rocksdb::Iterator> at(db->NewIterator({}, family));
  for (at->SeekToFirst(); at->Valid(); at->Next()) {
    entries[at->key().ToString()] = at->value().ToString();
  }
  REQUIRE_OK(at->status());
  return entries;
}

bool AreEqual(const std::string& source, const std::string& target) {
  const OpenDb ours(source, AllFamilies());
  const OpenDb theirs(target, AllFamilies());
  for (size_t i = 0; i < ours.families().size(); ++i) {
    if (EntriesOf(ours.get(), ours.family(i)) !=
        EntriesOf(theirs.get(), theirs.family(i))) {
      return false;
    }
  }
  return true;
}

struct Tally {
  uint64_t refreshes = 0;
  uint64_t wrong = 0;  // ended with OK, but the target differs
  uint64_t failed = 0;
  uint64_t unproven = 0;  // refreshes with a part that was not proven at first
  uint64_t compared = 0;  // parts
  uint64_t in_pieces = 0;  // refreshes with a part of several pieces
  uint64_t planted = 0;
};

std::ostream& operator<<(std::ostream& os, const Tally& tally) {
  return os << tally.refreshes << " refreshes, " << tally.wrong << " wrong, "
            << tally.failed << " failed, " << tally.unproven
            << " with unproven parts, " << tally.in_pieces
            << " with parts in pieces, " << tally.compared
            << " parts compared, " << tally.planted << " with a fault";
}

// Alternates writes and refreshes. If `fault` is not null, plants it once in
// each refresh that gives it a chance.
Tally RefreshOften(uint64_t count, uint64_t seed, const CompareFault* fault) {
  Dice dice(seed);
  Tally tally;
  ScratchDir dir;
  bool is_new = true;
  while (tally.refreshes < count) {
    // A target with another history, which has never had the source's data.
    if (is_new || dice.Once(10)) {
      std::filesystem::remove_all(dir / "target");
      Play(&dice, dir / "target");
      is_new = false;
    }
    Play(&dice, dir / "source");
    if (dice.Once(2)) {
      Play(&dice, dir / "target");
    }
    // Limits that lead to groups of one entry or of many.
    CompareTuning tuning = SmallBounds(&dice);
    if (fault != nullptr && !dice.Once(3)) {
      // Larger limits, so that marks are compared, too.
      tuning.index = IndexLimits();
      tuning.marks = kMaxMarks;
      tuning.few_entries = 1;
    }
    Planting planting(fault != nullptr ? *fault : CompareFault(),
                      dice.Once(2) ? 0 : static_cast<int>(dice.Between(0, 12)),
                      fault != nullptr ? 1 : 0);
    tuning.plants = std::ref(planting);
    PullOptions options;
    options.adopt = true;
    options.lanes = 4;
    options.chunk_bytes = 64u << 10;
    options.durability = Durability::kNone;
    options.compact = dice.Once(4);
    options.most_point_deletions =
        dice.Once(4) ? 0
                     : static_cast<uint32_t>(
                           dice.Between(1, fault != nullptr ? 3 : 30));
    Ferried refreshed;
    {
      const ComparedWith compared(tuning);
      refreshed = Refresh(dir / "source", dir / "target", options);
    }
    ++tally.refreshes;
    const Summary& summary = refreshed.summary;
    tally.compared += summary.parts_compared;
    tally.unproven += refreshed.notes_mention("did not prove them") ? 1 : 0;
    tally.in_pieces += summary.chunks_delta > summary.parts_delta ? 1 : 0;
    tally.planted += static_cast<uint64_t>(planting.planted());
    if (!refreshed.status.ok()) {
      ++tally.failed;
      std::cout << "refresh " << tally.refreshes << " of seed " << seed
                << " failed: " << refreshed.message() << std::endl;
      is_new = true;
    } else if (!AreEqual(dir / "source", dir / "target")) {
      ++tally.wrong;
      std::cout << "refresh " << tally.refreshes << " of seed " << seed
                << " is wrong" << std::endl;
      is_new = true;
    }
  }
  return tally;
}

TEST_CASE("Parts near every limit of a comparison become equal to the source",
          "[transfer][refresh][proof]") {
  const uint64_t count = NumberOf("SSTFERRY_REFRESHES", 60);
  const uint64_t seed = NumberOf("SSTFERRY_REFRESH_SEED", 1);
  const Tally tally = RefreshOften(count, seed, nullptr);
  std::ostringstream told;
  told << "seed " << seed << ": " << tally;
  INFO(told.str());
  if (count > 60) {
    std::cout << told.str() << std::endl;
  }
  REQUIRE(tally.wrong == 0);
  REQUIRE(tally.failed == 0);
  REQUIRE(tally.unproven == 0);
  REQUIRE(tally.in_pieces > count / 10);
}

TEST_CASE("A fault in one step of a comparison never leaves a wrong target",
          "[transfer][refresh][proof]") {
  const std::map<CompareFault, std::string> faults = {
      {CompareFault::kIndexLacksEntry, "index lacks an entry"},
      {CompareFault::kGroupTakenForEqual, "group taken for equal"},
      {CompareFault::kMarkBelieved, "mark believed"},
      {CompareFault::kSiftedAway, "sifted away"},
      {CompareFault::kEntryNotTold, "entry not told"},
      {CompareFault::kPutLeftOut, "put left out"},
      {CompareFault::kDeletionLeftOut, "deletion left out"},
      {CompareFault::kRangeTooShort, "range too short"}};
  const uint64_t all = NumberOf("SSTFERRY_REFRESHES", 60);
  const uint64_t count = std::max<uint64_t>(10, all / 25);
  const uint64_t seed = NumberOf("SSTFERRY_REFRESH_SEED", 1);
  // SSTFERRY_REFRESH_FAULT restricts a long run to one fault.
  const char* const only = getenv("SSTFERRY_REFRESH_FAULT");
  for (const auto& [fault, name] : faults) {
    if (only != nullptr && name != only) continue;
    const Tally tally = RefreshOften(count, seed + 1000, &fault);
    std::ostringstream told;
    told << name << ", seed " << seed << ": " << tally;
    INFO(told.str());
    if (all > 60) {
      std::cout << told.str() << std::endl;
    }
    CHECK(tally.wrong == 0);
    CHECK(tally.failed == 0);
    CHECK(tally.planted > 0);
    CHECK(tally.unproven <= tally.planted);
  }
}

}  // namespace
}  // namespace sstferry::test::refresh_limits_test
