// Tests deltas with a range deletion, which replaces many deletions of
// neighbouring target keys if the source has no key between them; and deltas of
// sides that differ much.
#include "rocksdb/cache.h"
#include "rocksdb/merge_operator.h"
#include "tests/support/catch.h"
#include "tests/support/named_comparator.h"
#include "tests/support/refreshed.h"

namespace sstferry::test::refresh_range_deletion_test {
namespace {

constexpr uint64_t kMost = 10'000;  // the default

// The contents of a family: ascending numbers, which become keys.
struct Content {
  std::vector<uint64_t> numbers;

  static Content From(uint64_t first, uint64_t count) {
    Content content;
    for (uint64_t i = 0; i < count; ++i) {
      content.numbers.push_back(first + i);
    }
    return content;
  }
  Content And(const Content& more) const {
    Content all = *this;
    all.numbers.insert(all.numbers.end(), more.numbers.begin(),
                       more.numbers.end());
    return all;
  }
};

void Fill(OpenDb* db, const Content& content,
          const std::string& family = "default") {
  for (const uint64_t number : content.numbers) {
    db->Put(NumberedKey(number), "value", family);
  }
  db->Flush();
}

struct Pair {
  ScratchDir dir;
  std::string source = dir / "source";
  std::string target = dir / "target";
  Families families = OneFamily(Quiet());
  PullOptions options;

  Pair() {
    options.adopt = true;  // so that everything is compared
    options.compact = false;
  }
  void Fill(const Content& at_source, const Content& at_target) {
    OpenDb from(source, families);
    refresh_range_deletion_test::Fill(&from, at_source);
    OpenDb to(target, families);
    refresh_range_deletion_test::Fill(&to, at_target);
  }
  Ferried Run() {
    const Ferried refreshed = Refresh(source, target, options);
    INFO(refreshed.message());
    REQUIRE_OK(refreshed.status);
    Expectation expected;
    expected.families = families;
    ExpectSameEntries(source, target, expected);
    return refreshed;
  }
  // Returns the number of tables with range deletions. Requires the same
  // entries after a compaction.
  uint64_t RangeDeletions() {
    const uint64_t count = IngestedRangeDeletions(target, families);
    {
      OpenDb db(target, families);
      for (const auto& family : families) {
        db.Compact(family.name);
      }
    }
    Expectation expected;
    expected.families = families;
    ExpectSameEntries(source, target, expected);
    return count;
  }
};

TEST_CASE("An iterator and a snapshot from before a range deletion see the old "
          "entries",
          "[transfer][refresh][range_deletion]") {
  const bool compacts = GENERATE(false, true);
  Pair pair;
  pair.options.most_point_deletions = 10;
  pair.Fill(Content::From(0, 10).And(Content::From(190, 10)),
            Content::From(0, 200));
  OpenDb db(pair.target, pair.families);
  const std::unique_ptr<rocksdb::Iterator> open(
      db->NewIterator(rocksdb::ReadOptions()));
  open->SeekToFirst();
  const rocksdb::Snapshot* const before = db->GetSnapshot();
  const Ferried refreshed =
      RefreshOpen(pair.source, &db, {"default"}, pair.options);
  INFO(refreshed.message());
  REQUIRE_OK(refreshed.status);
  REQUIRE(refreshed.summary.entries_deleted >= 1);
  const auto count = [](rocksdb::Iterator* it) {
    uint64_t entries = 0;
    for (; it->Valid(); it->Next()) ++entries;
    REQUIRE_OK(it->status());
    return entries;
  };
  if (compacts) db.Compact();
  REQUIRE(count(open.get()) == 200);
  rocksdb::ReadOptions then;
  then.snapshot = before;
  const std::unique_ptr<rocksdb::Iterator> old(db->NewIterator(then));
  old->SeekToFirst();
  REQUIRE(count(old.get()) == 200);
  const std::unique_ptr<rocksdb::Iterator> now(
      db->NewIterator(rocksdb::ReadOptions()));
  now->SeekToFirst();
  REQUIRE(count(now.get()) == 20);
  db->ReleaseSnapshot(before);
}

TEST_CASE("More than 10,000 neighbouring deletions become one range deletion",
          "[transfer][refresh][range_deletion]") {
  const uint64_t count = GENERATE(kMost - 1, kMost, kMost + 1);
  const bool is_many = count > kMost;
  Pair pair;
  const Content around =
      Content::From(0, 100).And(Content::From(50'000, 100));
  pair.Fill(around, Content::From(0, 100)
                        .And(Content::From(20'000, count))
                        .And(Content::From(50'000, 100)));
  const Ferried refreshed = pair.Run();
  // A range deletion counts as the deletions of its two bounds.
  REQUIRE(refreshed.summary.entries_deleted == (is_many ? 2 : count));
  REQUIRE(refreshed.summary.entries_put == 0);
  REQUIRE(pair.RangeDeletions() == (is_many ? 1 : 0));
}

TEST_CASE("A key of the source separates neighbours",
          "[transfer][refresh][range_deletion]") {
  const bool is_same = GENERATE(false, true);  // also at the target
  Pair pair;
  pair.options.most_point_deletions = 100;
  Content at_target = Content::From(0, 90).And(Content::From(91, 90));
  if (is_same) {
    at_target = at_target.And(Content::From(90, 1));
  }
  pair.Fill(Content::From(90, 1), at_target);
  REQUIRE(pair.Run().summary.entries_deleted == 180);
  REQUIRE(pair.RangeDeletions() == 0);
  pair.options.most_point_deletions = 89;
  pair.Fill({}, Content::From(0, 90).And(Content::From(91, 90)));
  REQUIRE(pair.Run().summary.entries_deleted == 4);
  REQUIRE(pair.RangeDeletions() == 1);  // one table
}

TEST_CASE("Keys that both sides have separate neighbours, even in groups that "
          "are equal",
          "[transfer][refresh][range_deletion]") {
  // The target has runs of own keys between long equal ranges. The source does
  // not read the equal ranges.
  Pair pair;
  pair.options.most_point_deletions = 60;
  Content at_source;
  Content at_target;
  for (uint64_t i = 0; i < 40; ++i) {
    const Content equal = Content::From(10'000 * i, 3000);
    at_source = at_source.And(equal);
    at_target =
        at_target.And(equal).And(Content::From(10'000 * i + 5000, 40 + i));
  }
  pair.Fill(at_source, at_target);
  const Ferried refreshed = pair.Run();
  // Runs of 40 to 60 keys are deleted singly. Runs of 61 to 79 keys are range
  // deletions, which count as two deletions each.
  REQUIRE(refreshed.summary.entries_deleted == 21 * 50 + 19 * 2);
  REQUIRE(pair.RangeDeletions() > 0);
}

TEST_CASE("A range deletion covers only keys that the target had in the "
          "comparison",
          "[transfer][refresh][range_deletion]") {
  // An application writes next to these keys while the refresh runs.
  const bool compacts = GENERATE(false, true);
  Pair pair;
  pair.options.compact = compacts;
  pair.options.most_point_deletions = 10;
  pair.Fill(Content::From(0, 10).And(Content::From(500, 10)),
            Content::From(0, 10)
                .And(Content::From(100, 50))
                .And(Content::From(500, 10)));
  OpenDb target(pair.target, pair.families);
  const std::unique_ptr<rocksdb::Iterator> before(target->NewIterator({}));
  bool wrote = false;
  pair.options.on_transfer = [&](const std::string&) {
    wrote = true;
    target.Put(NumberedKey(99), "beside");
    target.Put(NumberedKey(150), "beside");
  };
  const Ferried refreshed =
      RefreshOpen(pair.source, &target, {"default"}, pair.options);
  REQUIRE_OK(refreshed.status);
  REQUIRE(wrote);
  const auto value_of = [&](uint64_t number) {
    std::string value;
    const rocksdb::Status found =
        target->Get({}, NumberedKey(number), &value);
    return found.IsNotFound() ? std::string("none") : value;
  };
  REQUIRE(value_of(100) == "none");
  REQUIRE(value_of(149) == "none");
  // These keys may stay or be deleted, because the source does not have them
  // either.
  REQUIRE((value_of(99) == "none" || value_of(99) == "beside"));
  REQUIRE((value_of(150) == "none" || value_of(150) == "beside"));
  // An iterator that was open during the refresh still shows the old entries.
  uint64_t seen = 0;
  for (before->SeekToFirst(); before->Valid(); before->Next()) {
    ++seen;
  }
  REQUIRE_OK(before->status());
  REQUIRE(seen == 70);
  REQUIRE_OK(
      RefreshOpen(pair.source, &target, {"default"}, pair.options).status);
  REQUIRE(value_of(99) == "none");
  REQUIRE(value_of(150) == "none");
}

TEST_CASE("If the target has many keys where the source has none, the source "
          "sends two keys",
          "[transfer][refresh][range_deletion]") {
  const bool is_all = GENERATE(false, true);
  Pair pair;
  const Content kept = is_all ? Content() : Content::From(0, 10);
  pair.Fill(kept, kept.And(Content::From(1000, 3 * kMost)));
  const Ferried refreshed = pair.Run();
  REQUIRE(refreshed.summary.entries_deleted == 2);
  REQUIRE(pair.RangeDeletions() == 1);
}

TEST_CASE("Range deletions include the first and the last key of a family, in "
          "every order",
          "[transfer][refresh][range_deletion]") {
  static const NamedComparator own("sstferry.test.own");
  const rocksdb::Comparator* const order = GENERATE(
      static_cast<const rocksdb::Comparator*>(&own),
      rocksdb::BytewiseComparator(), rocksdb::ReverseBytewiseComparator());
  const bool keeps_middle = GENERATE(false, true);
  Pair pair;
  pair.families[0].options.comparator = order;
  pair.options.registry.comparators = {&own};
  pair.options.most_point_deletions = 20;
  {
    OpenDb source(pair.source, pair.families);
    if (keeps_middle) {
      source.Put(NumberedKey(50), "value");
    }
    source.Flush();
    OpenDb target(pair.target, pair.families);
    target.Put("", "the empty key");
    target.Put(std::string(300, '\xff'), "the last key");
    Fill(&target, Content::From(0, 100));
  }
  pair.Run();
  REQUIRE(pair.RangeDeletions() == 1);
  // The deleted keys arrive again when the source has them again.
  {
    OpenDb source(pair.source, pair.families);
    source.Put("", "again");
    source.Put(std::string(300, '\xff'), "again");
    source.Put("k", "again");
    source.Flush();
  }
  pair.Run();
  {
    OpenDb source(pair.source, pair.families);
    source.Put("", "changed");
    source.Delete(std::string(300, '\xff'));
    source.Flush();
  }
  pair.options.adopt = false;
  pair.Run();
}

TEST_CASE("Families have range deletions of their own",
          "[transfer][refresh][range_deletion]") {
  Pair pair;
  pair.families.emplace_back("other", Quiet());
  pair.options.most_point_deletions = 50;
  {
    OpenDb source(pair.source, pair.families);
    Fill(&source, Content::From(0, 100));
    Fill(&source, Content::From(200, 100), "other");
    OpenDb target(pair.target, pair.families);
    Fill(&target, Content::From(0, 200));
    Fill(&target, Content::From(0, 300), "other");
  }
  REQUIRE(pair.Run().summary.entries_deleted == 4);
  REQUIRE(pair.RangeDeletions() == 2);
}

TEST_CASE("A database with a row cache gets only deletions of single keys",
          "[transfer][refresh][range_deletion]") {
  Pair pair;
  pair.options.most_point_deletions = 10;
  pair.Fill(Content::From(0, 10), Content::From(0, 100));
  rocksdb::DBOptions caching;
  caching.row_cache = rocksdb::NewLRUCache(1 << 20);
  {
    OpenDb target(pair.target, pair.families, caching);
    const Ferried refreshed =
        RefreshOpen(pair.source, &target, {"default"}, pair.options);
    REQUIRE_OK(refreshed.status);
    REQUIRE(refreshed.summary.entries_deleted == 90);
  }
  REQUIRE(pair.RangeDeletions() == 0);
}

TEST_CASE("More keys than an index can have are compared in pieces",
          "[transfer][refresh][range_deletion]") {
  // With keys this long, the 32 MiB of an index are 160 keys.
  const auto key = [](uint64_t number) {
    return NumberedKey(number) + std::string(200 << 10, 'k');
  };
  const bool is_alike = GENERATE(false, true);
  Pair pair;
  pair.options.most_point_deletions = GENERATE(0u, 30u);
  pair.options.chunk_bytes = 1 << 30;  // so that there are few parts
  pair.options.lanes = 1;
  {
    OpenDb source(pair.source, pair.families);
    for (uint64_t i = 0; i < 400; i += is_alike ? 1 : 90) {
      source.Put(key(i), "value");
    }
    source.Flush();
    OpenDb target(pair.target, pair.families);
    for (uint64_t i = 0; i < 400; ++i) {
      target.Put(key(i), i % 7 == 0 ? "older" : "value");
    }
    target.Flush();
  }
  const Ferried refreshed = pair.Run();
  REQUIRE(refreshed.summary.entries_put == (is_alike ? 58 : 1));
  REQUIRE(refreshed.summary.chunks_delta > refreshed.summary.parts_delta);
  REQUIRE((pair.RangeDeletions() > 0) ==
          (!is_alike && pair.options.most_point_deletions > 0));
}

TEST_CASE("Families and keys that are new at the target arrive as puts only",
          "[transfer][refresh][delta]") {
  Pair pair;
  pair.families.emplace_back("new", Quiet());
  {
    OpenDb source(pair.source, pair.families);
    Fill(&source, Content::From(0, 5000), "new");
    Fill(&source, Content::From(0, 5000));
    OpenDb target(pair.target, OneFamily(Quiet()));
    Fill(&target, Content::From(0, 10));
  }
  pair.options.chunk_bytes = 64 << 10;
  const Ferried refreshed = pair.Run();
  REQUIRE(refreshed.summary.chunks_built > 0);
  REQUIRE(refreshed.summary.parts_compared == 1);
  REQUIRE(refreshed.summary.entries_deleted == 0);
}

TEST_CASE("Merge operands, blobs and empty values are compared as readers see "
          "them",
          "[transfer][refresh][delta]") {
  Pair pair;
  rocksdb::ColumnFamilyOptions& options = pair.families[0].options;
  options.merge_operator = MergeOperatorNamed("stringappend");
  options.enable_blob_files = true;
  options.min_blob_size = 100;
  const auto fill = [&](const std::string& dir, const std::string& what) {
    OpenDb db(dir, pair.families);
    for (uint64_t i = 0; i < 300; ++i) {
      db.Put(NumberedKey(i), std::string(i % 3 == 0 ? 500 : i % 3, 'v'));
      if (i % 10 == 0) {
        db.Merge(NumberedKey(i), what);
      }
    }
    db.Flush();
  };
  fill(pair.source, "a");
  fill(pair.target, "b");
  const Ferried refreshed = pair.Run();
  REQUIRE(refreshed.summary.entries_put == 30);
  REQUIRE(refreshed.summary.entries_deleted == 0);
  REQUIRE(pair.RangeDeletions() == 0);
}

}  // namespace
}  // namespace sstferry::test::refresh_range_deletion_test
