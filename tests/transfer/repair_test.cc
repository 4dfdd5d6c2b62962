// What a verify finds different is repaired at the cost of the difference.
#include <filesystem>
#include <functional>

#include "format/record/cover_file.h"
#include "pipeline/base/last_transfer.h"
#include "pipeline/target/memory/cover_record.h"
#include "tests/support/catch.h"
#include "tests/support/fake_peer.h"
#include "tests/support/faulty_file_system.h"
#include "tests/support/refreshed.h"

namespace sstferry::test {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kKeys = 8000;

Families Both() {
  Families families = OneFamily(Quiet());
  families.emplace_back("more", Quiet());
  return families;
}

// A source, and a replica that is equal to it.
struct Pair {
  TempDir dir;
  std::string source = dir / "source";
  std::string target = dir / "target";

  Pair() {
    {
      OpenDb db(source, Both());
      for (uint64_t i = 0; i < kKeys; ++i) {
        db.Put(NumberedKey(i), RandomBytes(200, i));
        db.Put(NumberedKey(i), RandomBytes(100, i), "more");
      }
      db.Flush();
      db.Compact();
      db.Compact("more");
    }
    REQUIRE_OK(Refresh(source, target).status);
  }
  void Damage(const std::function<void(OpenDb* db)>& work) {
    OpenDb db(target, Both());
    work(&db);
    db.Flush();
  }
  Summary Verify() {
    VerifyOptions options;
    options.left.directory = source;
    options.right.directory = target;
    Summary summary;
    MakeVerify(options)->Run(&summary).PermitUncheckedError();
    return summary;
  }
  Ferried Repair(const std::vector<FamilyRange>& ranges) {
    PullOptions options;
    options.ranges = ranges;
    return Refresh(source, target, options);
  }
  CoverFile Record() const {
    bool found = false;
    CoverFile record;
    REQUIRE_OK(ReadCovers(rocksdb::FileSystem::Default().get(), target, &found,
                          &record));
    REQUIRE(found);
    return record;
  }
};

bool IsIn(const std::vector<FamilyRange>& ranges, const std::string& family,
          const std::string& key) {
  for (const FamilyRange& range : ranges) {
    if (range.column_family == family &&
        (!range.interval.begin || *range.interval.begin <= key) &&
        (!range.interval.end || key < *range.interval.end)) {
      return true;
    }
  }
  return false;
}

void DeleteAndAlter(OpenDb* db) {
  db->Delete(NumberedKey(100));
  db->Delete(NumberedKey(101));
  db->Put(NumberedKey(4000), "altered");
  db->Put(NumberedKey(5000) + "x", "foreign", "more");
  db->Delete(NumberedKey(kKeys - 1), "more");
}

TEST_CASE("What a verify lists is repaired at the cost of the difference",
          "[transfer][repair]") {
  Pair pair;
  const std::string told = pair.target + "/last_transfer.json";
  LastTransfer before;
  REQUIRE(ReadLastTransfer(pair.target, &before));
  pair.Damage(DeleteAndAlter);
  const Summary found = pair.Verify();
  REQUIRE(EndStateOf(found.status) == EndState::kDifferent);
  REQUIRE(found.different_ranges ==
          std::vector<FamilyRange>{
              {"default", {NumberedKey(100), NumberedKey(102)}},
              {"default", {NumberedKey(4000), NumberedKey(4001)}},
              {"more", {NumberedKey(5000) + "x", NumberedKey(5001)}},
              {"more", {NumberedKey(kKeys - 1), std::nullopt}}});
  REQUIRE(found.repair == "sstferry pull " + pair.source + " " + pair.target +
                              " --mode refresh --ranges FILE");

  const Ferried repaired = pair.Repair(found.different_ranges);
  REQUIRE_OK(repaired.status);
  const Summary& summary = repaired.summary;
  REQUIRE(summary.state == "repaired");
  REQUIRE(summary.entries_put + summary.entries_deleted +
              summary.chunks_built >= 2);
  REQUIRE(summary.ranges_compared == 4);
  REQUIRE(summary.ranges_not_compared == 5);
  REQUIRE(summary.ranges_unchanged == 0);
  REQUIRE(summary.wire_bytes < 30'000);
  REQUIRE(summary.sst_bytes < 30'000);
  REQUIRE(repaired.notes_mention("the rest of the target was not looked at"));
  ExpectSameEntries(pair.source, pair.target, {Both()});
  REQUIRE_OK(pair.Verify().status);
  LastTransfer after;
  REQUIRE(ReadLastTransfer(pair.target, &after));
  REQUIRE(before == after);
}

TEST_CASE("A repair believes nothing that it did not look at",
          "[transfer][repair]") {
  Pair pair;
  const CoverFile before = pair.Record();
  pair.Damage(DeleteAndAlter);
  const std::vector<FamilyRange> all = pair.Verify().different_ranges;
  // Only what differs in one family is listed.
  const Ferried repaired = pair.Repair({all[0], all[1]});
  REQUIRE_OK(repaired.status);
  const Summary left = pair.Verify();
  REQUIRE(left.different_ranges == std::vector<FamilyRange>{all[2], all[3]});
  // It remembers the last whole refresh, and doubts what the repair touched.
  const CoverFile after = pair.Record();
  REQUIRE(after.transfer_id == before.transfer_id);
  REQUIRE(after.sequence_new == before.sequence_new);
  REQUIRE(after.covers.size() == before.covers.size());
  for (const Cover& cover : after.covers) {
    const bool holds = after.families[cover.family].name == "default" &&
                       (IsIn({{"default", cover.interval}}, "default",
                             NumberedKey(100)) ||
                        IsIn({{"default", cover.interval}}, "default",
                             NumberedKey(4000)));
    REQUIRE((!holds || cover.doubted));
  }
  // So the next ordinary refresh finds the rest.
  REQUIRE_OK(Refresh(pair.source, pair.target).status);
  ExpectSameEntries(pair.source, pair.target, {Both()});
  REQUIRE_OK(pair.Verify().status);
}

TEST_CASE("A repair from a source that went on is followed by a refresh that "
          "finds all",
          "[transfer][repair]") {
  Pair pair;
  pair.Damage(DeleteAndAlter);
  const std::vector<FamilyRange> all = pair.Verify().different_ranges;
  {
    OpenDb db(pair.source, Both());
    for (uint64_t i = 50; i < kKeys; i += 100) {
      db.Put(NumberedKey(i), "later");
      db.Delete(NumberedKey(i + 1), "more");
    }
    db.Put(NumberedKey(100), "later, too");
  }
  REQUIRE_OK(pair.Repair(all).status);
  REQUIRE(EndStateOf(pair.Verify().status) == EndState::kChangedSince);
  const Ferried refreshed = Refresh(pair.source, pair.target);
  REQUIRE_OK(refreshed.status);
  ExpectSameEntries(pair.source, pair.target, {Both()});
  REQUIRE(refreshed.summary.state == "complete");
}

TEST_CASE("What a repair brought is doubted, also where the source is as it was "
          "before",
          "[transfer][repair]") {
  Pair pair;
  const std::string saved = pair.dir / "saved";
  fs::copy(pair.source, saved, fs::copy_options::recursive);
  {
    OpenDb db(pair.source, Both());
    db.Put(NumberedKey(55), "later");
    db.Flush();
  }
  REQUIRE_OK(
      pair.Repair({{"default", {NumberedKey(50), NumberedKey(60)}}}).status);
  ExpectSameEntries(pair.source, pair.target, {Both()});
  // Every file that the target remembers is live again.
  fs::remove_all(pair.source);
  fs::rename(saved, pair.source);
  REQUIRE_OK(Refresh(pair.source, pair.target).status);
  ExpectSameEntries(pair.source, pair.target, {Both()});
}

TEST_CASE("A family that the replica lost is repaired as a whole",
          "[transfer][repair]") {
  Pair pair;
  {
    OpenDb db(pair.target, Both());
    db.Drop("more");
  }
  const Summary found = pair.Verify();
  REQUIRE(found.different_ranges ==
          std::vector<FamilyRange>{{"more", KeyInterval()}});
  REQUIRE_OK(pair.Repair(found.different_ranges).status);
  ExpectSameEntries(pair.source, pair.target, {Both()});
  REQUIRE_OK(Refresh(pair.source, pair.target).status);
  ExpectSameEntries(pair.source, pair.target, {Both()});
}

TEST_CASE("A family is listed where only the origin has it, whichever side that "
          "is",
          "[transfer][repair]") {
  Pair pair;
  const bool copy_is_left = GENERATE(false, true);
  const auto verify = [&] {
    VerifyOptions options;
    options.left.directory = copy_is_left ? pair.target : pair.source;
    options.right.directory = copy_is_left ? pair.source : pair.target;
    Summary summary;
    MakeVerify(options)->Run(&summary).PermitUncheckedError();
    return summary;
  };
  SECTION("lost by the copy") {
    {
      OpenDb db(pair.target, Both());
      db.Drop("more");
    }
    const Summary found = verify();
    REQUIRE(found.different_ranges ==
            std::vector<FamilyRange>{{"more", KeyInterval()}});
    REQUIRE(found.repair.find("--ranges FILE") != std::string::npos);
    REQUIRE_OK(pair.Repair(found.different_ranges).status);
    REQUIRE_OK(verify().status);
  }
  SECTION("foreign to the origin") {
    pair.Damage([](OpenDb* db) { db->Put(NumberedKey(7), "altered"); });
    {
      OpenDb db(pair.target, Both());
      db.Create({"foreign", Quiet()});
      db.Put("a", "foreign", "foreign");
    }
    const Summary found = verify();
    REQUIRE(found.different_ranges ==
            std::vector<FamilyRange>{
                {"default", {NumberedKey(7), NumberedKey(8)}}});
    REQUIRE_FALSE(found.notes.empty());
    REQUIRE(found.notes.back() ==
            std::string("no range is listed of column family 'foreign', which "
                        "only ") +
                (copy_is_left ? "left" : "right") + " has: sstferry pull " +
                pair.source + " " + pair.target +
                " --mode refresh --drop-missing drops what the source does "
                "not have");
    REQUIRE_OK(pair.Repair(found.different_ranges).status);
    PullOptions options;
    options.drop_missing = true;
    REQUIRE_OK(Refresh(pair.source, pair.target, options).status);
    REQUIRE_OK(verify().status);
  }
}

TEST_CASE("More differences than are listed become ranges that hold them all",
          "[transfer][repair]") {
  Pair pair;
  pair.Damage([](OpenDb* db) {
    for (uint64_t i = 0; i < kKeys; i += 3) {
      db->Put(NumberedKey(i), "altered");
    }
  });
  const Summary found = pair.Verify();
  REQUIRE(found.differences == (kKeys + 2) / 3);
  REQUIRE(found.different_ranges.size() <= kMaxDifferentRanges);
  REQUIRE(found.different_ranges.size() > kMaxDifferentRanges / 4);
  for (uint64_t i = 0; i < kKeys; i += 3) {
    REQUIRE(IsIn(found.different_ranges, "default", NumberedKey(i)));
  }
  REQUIRE_OK(pair.Repair(found.different_ranges).status);
  REQUIRE_OK(pair.Verify().status);
}

TEST_CASE("A refresh whose verify fails lists the ranges that a repair needs",
          "[transfer][repair]") {
  Pair pair;
  // Nobody wrote: the target believes its files, as after damage of a disk.
  pair.Damage(DeleteAndAlter);
  CoverFile record = pair.Record();
  {
    OpenDb db(pair.target, Both());
    for (CoveredFamily& family : record.families) {
      std::vector<LiveTable> tables;
      REQUIRE_OK(ListLiveTables(db.get(), db.cf(family.name), &tables));
      family.files.clear();
      for (const LiveTable& table : tables) {
        family.files.push_back({*table.id, table.smallest, table.largest,
                                table.bytes, table.smallest_sequence,
                                table.largest_sequence});
      }
    }
  }
  REQUIRE_OK(WriteCovers(rocksdb::FileSystem::Default().get(), pair.target,
                         record));
  PullOptions options;
  options.verify = true;
  const Ferried failed = Refresh(pair.source, pair.target, options);
  REQUIRE(EndStateOf(failed.status) == EndState::kCorrupt);
  const std::vector<FamilyRange>& ranges = failed.summary.different_ranges;
  REQUIRE(IsIn(ranges, "default", NumberedKey(100)));
  REQUIRE(IsIn(ranges, "default", NumberedKey(101)));
  REQUIRE(IsIn(ranges, "default", NumberedKey(4000)));
  REQUIRE(IsIn(ranges, "more", NumberedKey(5000) + "x"));
  REQUIRE(IsIn(ranges, "more", NumberedKey(kKeys - 1)));
  REQUIRE(failed.summary.repair.find("--ranges FILE") != std::string::npos);
  const Ferried repaired = pair.Repair(ranges);
  REQUIRE_OK(repaired.status);
  REQUIRE(repaired.summary.wire_bytes < 60'000);
  REQUIRE_OK(pair.Verify().status);
}

TEST_CASE("A repair is refused where it would not be one",
          "[transfer][repair]") {
  Pair pair;
  const std::vector<FamilyRange> range = {{"default", {"a", "b"}}};
  const auto refused = [&](const std::vector<FamilyRange>& ranges,
                           const std::string& why, PullOptions options = {}) {
    options.ranges = ranges;
    const Ferried ferried = Refresh(pair.source, pair.target, options);
    INFO(ferried.message());
    REQUIRE(EndStateOf(ferried.status) == EndState::kRefused);
    REQUIRE(ferried.message().find(why) != std::string::npos);
    REQUIRE_FALSE(fs::exists(pair.target + ".sstferry"));
  };
  refused({{"default", {"b", "a"}}},
          "expected a begin before its end, found column family 'default', "
          "'b' to 'a'");
  refused({{"default", {"a", "a"}}}, "expected a begin before its end");
  refused({{"nowhere", {"a", "b"}}}, "nowhere");
  PullOptions other;
  other.visibility = Visibility::kChunk;
  refused(range, "visibility all", other);
  other = {};
  other.adopt = true;
  refused(range, "without a selection, compare, adopt", other);
  other = {};
  other.verify = true;
  refused(range, "verify", other);
  other = {};
  other.selection.families = {"default"};
  refused(range, "without a selection", other);
  refused(std::vector<FamilyRange>(kMaxListedRanges + 1, range[0]),
          "at most 10000");
  PullOptions options;
  options.ranges = range;
  const Ferried none = Refresh(pair.source, pair.dir / "none", options);
  REQUIRE(EndStateOf(none.status) == EndState::kRefused);
  REQUIRE(none.message().find("expected a replica to repair, found none") !=
          std::string::npos);
  REQUIRE_FALSE(fs::exists(pair.dir / "none"));
}

TEST_CASE("A refresh tells what it read and wrote, compaction included",
          "[transfer][refresh]") {
  Pair pair;
  {
    OpenDb db(pair.source, Both());
    for (uint64_t i = 0; i < kKeys; i += 2) {
      db.Put(NumberedKey(i), RandomBytes(200, i + 1));
    }
    db.Flush();
    db.Compact();
  }
  PullOptions options;
  options.compact = false;
  options.compare = CompareMode::kDigest;
  const Ferried plain = Refresh(pair.source, pair.target, options);
  REQUIRE_OK(plain.status);
  // Both sides read all of it: 8000 entries of 200 and of 100 bytes.
  REQUIRE(plain.summary.bytes_read > 2 * kKeys * 300);
  REQUIRE(plain.summary.bytes_read < 8 * kKeys * 300);
  REQUIRE(plain.summary.bytes_written == plain.summary.sst_bytes);
  // Now nothing comes, but what was laid above the data is merged with it.
  const Ferried merged = Refresh(pair.source, pair.target);
  REQUIRE_OK(merged.status);
  REQUIRE(merged.summary.sst_bytes == 0);
  REQUIRE(merged.summary.bytes_written > kKeys * 200 / 2);
  REQUIRE(merged.summary.bytes_read < 200'000);
}

}  // namespace
}  // namespace sstferry::test
