// Tests refreshes that make an older target current.
#include <filesystem>

#include "rocksdb/comparator.h"
#include "tests/support/catch.h"
#include "tests/support/refreshed.h"

namespace sstferry::test::refresh_test {
namespace {

PullOptions Small() {
  PullOptions options;
  options.chunk_bytes = 64 << 10;
  options.lanes = 2;
  return options;
}

// Writes `count` entries of about 1 KiB, and compacts them.
void Fill(const std::string& dir, uint64_t count, uint64_t seed = 0) {
  OpenDb db(dir, OneFamily(Quiet()));
  for (uint64_t i = 0; i < count; ++i) {
    db.Put(NumberedKey(i), RandomBytes(1000, seed + i));
  }
  db.Flush();
  db.Compact();
}

TEST_CASE("A refresh leaves what the source holds, and nothing else",
          "[transfer][refresh]") {
  const ScratchDir dir;
  Fill(dir / "source", 400);
  REQUIRE_OK(Refresh(dir / "source", dir / "target", Small()).status);
  ExpectSameEntries(dir / "source", dir / "target");
  {
    OpenDb source(dir / "source", OneFamily(Quiet()));
    source.Delete(NumberedKey(3));
    source.DeleteRange(NumberedKey(100), NumberedKey(150));
    source.Put(NumberedKey(200), "new");
    source.Delete(NumberedKey(399));
    source.Put("a", "before all");
  }
  const Ferried refreshed =
      Refresh(dir / "source", dir / "target", Small());
  REQUIRE_OK(refreshed.status);
  REQUIRE(refreshed.summary.mode == "refresh");
  REQUIRE(refreshed.summary.state == "complete");
  REQUIRE(refreshed.summary.parts_left == 0);
  REQUIRE(refreshed.summary.sequence_new > refreshed.summary.sequence_old);
  ExpectSameEntries(dir / "source", dir / "target");
  REQUIRE_FALSE(std::filesystem::exists(dir / "target.sstferry"));
  // The source's last key was deleted, so it is not at the target either.
  REQUIRE(EntriesOf(dir / "target", OneFamily()).back().first ==
          NumberedKey(398));
}

TEST_CASE("A refresh of a source that did not change moves nothing",
          "[transfer][refresh]") {
  const ScratchDir dir;
  Fill(dir / "source", 400);
  REQUIRE_OK(Refresh(dir / "source", dir / "target", Small()).status);
  const Ferried again =
      Refresh(dir / "source", dir / "target", Small());
  REQUIRE_OK(again.status);
  REQUIRE(again.summary.parts_sent == 0);
  REQUIRE(again.summary.parts_compared == again.summary.parts);
  REQUIRE(again.summary.parts_unchanged == again.summary.parts);
  REQUIRE(again.summary.ingest_calls == 0);
  REQUIRE(again.summary.sst_bytes == 0);
  REQUIRE(again.summary.bytes_skipped > 0);
  ExpectSameEntries(dir / "source", dir / "target");
}

TEST_CASE("A refresh sends what changed in the WAL and little more",
          "[transfer][refresh]") {
  const ScratchDir dir;
  Fill(dir / "source", 3000);
  REQUIRE_OK(Refresh(dir / "source", dir / "target", Small()).status);
  {
    OpenDb source(dir / "source", OneFamily(Quiet()));
    for (int i = 1000; i < 1030; ++i) {
      source.Put(NumberedKey(i), RandomBytes(1000, 77 + i));
    }
  }
  const Ferried refreshed =
      Refresh(dir / "source", dir / "target", Small());
  REQUIRE_OK(refreshed.status);
  REQUIRE(refreshed.summary.entries_put == 30);
  REQUIRE(refreshed.summary.sst_bytes < 60'000);  // instead of 3 MB
  ExpectSameEntries(dir / "source", dir / "target");
}

TEST_CASE("A refresh replaces what an application wrote into the target",
          "[transfer][refresh]") {
  for (const bool compacted : {false, true}) {
    const ScratchDir dir;
    Fill(dir / "source", 400);
    REQUIRE_OK(
        Refresh(dir / "source", dir / "target", Small()).status);
    {
      OpenDb target(dir / "target", OneFamily(Quiet()));
      target.Put(NumberedKey(7), "foreign");
      target.Put("zzz", "foreign");
      target.Flush();
      if (compacted) {
        target.Compact();
      }
    }
    PassWrites(dir / "source");
    const Ferried refreshed =
        Refresh(dir / "source", dir / "target", Small());
    REQUIRE_OK(refreshed.status);
    REQUIRE(refreshed.summary.parts_compared > 0);
    ExpectSameEntries(dir / "source", dir / "target");
  }
}

TEST_CASE("A refresh of an open database shows all of it at once",
          "[transfer][refresh]") {
  const ScratchDir dir;
  Fill(dir / "source", 400);
  REQUIRE_OK(Refresh(dir / "source", dir / "target", Small()).status);
  Fill(dir / "source", 400, 5000);
  {
    OpenDb target(dir / "target", OneFamily(Quiet()));
    const rocksdb::Snapshot* before = target->GetSnapshot();
    PullOptions options = Small();
    options.if_absent = true;  // does not apply
    const Ferried refreshed =
        RefreshOpen(dir / "source", &target, {"default"}, options);
    REQUIRE_OK(refreshed.status);
    REQUIRE(refreshed.summary.ingest_calls == 1);
    REQUIRE(refreshed.summary.write_blocked_micros.count("max") == 1);
    rocksdb::ReadOptions old;
    old.snapshot = before;
    std::string value;
    REQUIRE_OK(target->Get(old, NumberedKey(11), &value));
    REQUIRE(value == RandomBytes(1000, 11));
    REQUIRE_OK(target->Get({}, NumberedKey(11), &value));
    REQUIRE(value == RandomBytes(1000, 5011));
    target->ReleaseSnapshot(before);
  }
  ExpectSameEntries(dir / "source", dir / "target");
}

TEST_CASE("A target that another process or handle has open is busy",
          "[transfer][refresh]") {
  const ScratchDir dir;
  Fill(dir / "source", 10);
  REQUIRE_OK(Refresh(dir / "source", dir / "target", Small()).status);
  OpenDb target(dir / "target", OneFamily(Quiet()));
  const Ferried refused =
      Refresh(dir / "source", dir / "target", Small());
  REQUIRE(refused.state() == EndState::kBusy);
  REQUIRE(refused.message().find("library") != std::string::npos);
  REQUIRE(refused.message().find("swap") != std::string::npos);
  REQUIRE_FALSE(std::filesystem::exists(dir / "target.sstferry"));
}

TEST_CASE("Only a target that remembers its source is refreshed from it",
          "[transfer][refresh]") {
  const ScratchDir dir;
  Fill(dir / "source", 10);
  Fill(dir / "other", 20);
  Fill(dir / "target", 30);
  PullOptions options = Small();
  Ferried ended = Refresh(dir / "source", dir / "target", options);
  REQUIRE(ended.state() == EndState::kRefused);
  REQUIRE(ended.message().find("expected a record of its source") !=
          std::string::npos);
  REQUIRE(ended.message().find("--adopt") != std::string::npos);
  options.adopt = true;
  REQUIRE_OK(Refresh(dir / "source", dir / "target", options).status);
  ExpectSameEntries(dir / "source", dir / "target");
  options.adopt = false;
  REQUIRE_OK(Refresh(dir / "source", dir / "target", options).status);
  ended = Refresh(dir / "other", dir / "target", options);
  REQUIRE(ended.state() == EndState::kRefused);
  ExpectSameEntries(dir / "source", dir / "target");
  options.adopt = true;
  REQUIRE_OK(Refresh(dir / "other", dir / "target", options).status);
  ExpectSameEntries(dir / "other", dir / "target");
}

TEST_CASE("Families that are new at the source are added, and missing ones "
          "dropped if requested",
          "[transfer][refresh]") {
  const ScratchDir dir;
  Families families = OneFamily(Quiet());
  families.emplace_back("goes", Quiet());
  {
    OpenDb source(dir / "source", families);
    source.Put("a", "1", "goes");
    source.Put("b", "2");
  }
  REQUIRE_OK(Refresh(dir / "source", dir / "target", Small()).status);
  {
    families.emplace_back("comes", Quiet());
    OpenDb source(dir / "source", families);
    source.Put("c", "3", "comes");
    REQUIRE_OK(source->DropColumnFamily(source.cf("goes")));
  }
  PullOptions options = Small();
  Ferried refreshed = Refresh(dir / "source", dir / "target", options);
  REQUIRE_OK(refreshed.status);
  REQUIRE(refreshed.notes_mention("'goes' is missing at the source"));
  std::vector<std::string> names;
  REQUIRE_OK(rocksdb::DB::ListColumnFamilies({}, dir / "target", &names));
  REQUIRE(names.size() == 3);
  options.drop_missing = true;
  options.selection.families = {"default"};
  REQUIRE(Refresh(dir / "source", dir / "target", options).state() ==
          EndState::kRefused);
  options.selection.families.clear();
  REQUIRE_OK(Refresh(dir / "source", dir / "target", options).status);
  REQUIRE_OK(rocksdb::DB::ListColumnFamilies({}, dir / "target", &names));
  REQUIRE(names.size() == 2);
  Expectation expected;
  expected.families = OneFamily(Quiet());
  expected.families.emplace_back("comes", Quiet());
  ExpectSameEntries(dir / "source", dir / "target", expected);
}

TEST_CASE("A replica of some keys is not extended without --adopt in a "
          "reversed order",
          "[transfer][refresh]") {
  const ScratchDir dir;
  rocksdb::ColumnFamilyOptions reversed = Quiet();
  reversed.comparator = rocksdb::ReverseBytewiseComparator();
  const Families families = OneFamily(reversed);
  {
    OpenDb source(dir / "source", families);
    for (const char* key : {"y", "n", "b"}) source.Put(key, "1");
  }
  PullOptions options = Small();
  options.selection.interval = {"z", "m"};
  REQUIRE_OK(Refresh(dir / "source", dir / "target", options).status);
  { OpenDb(dir / "target", families).Put("za", "of the application"); }
  PassWrites(dir / "source");
  PullOptions more = options;
  more.selection.interval = {"zz", "a"};
  const Ferried refused = Refresh(dir / "source", dir / "target", more);
  INFO(refused.message());
  REQUIRE(refused.state() == EndState::kRefused);
  REQUIRE(refused.message().find("asks for more") != std::string::npos);
  REQUIRE(EntriesOf(dir / "target", families).size() == 3);
  REQUIRE_OK(Refresh(dir / "source", dir / "target", options).status);
  more.adopt = true;
  REQUIRE_OK(Refresh(dir / "source", dir / "target", more).status);
  REQUIRE(EntriesOf(dir / "target", families) ==
          EntriesOf(dir / "source", families));
  // The record now has the larger interval. A swap of the smaller one is
  // refused, because it would remove the rest.
  options.mode = PullMode::kSwap;
  REQUIRE(Refresh(dir / "source", dir / "target", options).state() ==
          EndState::kRefused);
}

TEST_CASE("A refresh of an interval changes nothing outside of it",
          "[transfer][refresh]") {
  const ScratchDir dir;
  Fill(dir / "source", 300);
  REQUIRE_OK(Refresh(dir / "source", dir / "target", Small()).status);
  Fill(dir / "source", 300, 9000);
  PullOptions options = Small();
  options.selection.interval = {NumberedKey(100), NumberedKey(200)};
  REQUIRE_OK(Refresh(dir / "source", dir / "target", options).status);
  const auto entries = EntriesOf(dir / "target", OneFamily());
  REQUIRE(entries.size() == 300);
  for (size_t i = 0; i < entries.size(); ++i) {
    const bool inside = i >= 100 && i < 200;
    REQUIRE(entries[i].second == RandomBytes(1000, (inside ? 9000 : 0) + i));
  }
  // A refresh without an interval sends the rest.
  REQUIRE_OK(Refresh(dir / "source", dir / "target", Small()).status);
  ExpectSameEntries(dir / "source", dir / "target");
}

TEST_CASE("A refresh accepts an interval that ends with the empty key",
          "[transfer][refresh]") {
  const ScratchDir dir;
  Fill(dir / "source", 3);
  REQUIRE_OK(Refresh(dir / "source", dir / "target", Small()).status);
  {
    OpenDb target(dir / "target", OneFamily());
    target.Delete("");  // its first key is not in the interval
  }
  PullOptions options = Small();
  options.selection.interval = {std::nullopt, ""};
  REQUIRE_OK(Refresh(dir / "source", dir / "target", options).status);
  ExpectSameEntries(dir / "source", dir / "target");
}

TEST_CASE("A refresh that fills level 0 of a database with writers says so",
          "[transfer][refresh]") {
  const ScratchDir dir;
  rocksdb::ColumnFamilyOptions family;
  family.level_compaction_dynamic_level_bytes = true;
  family.level0_file_num_compaction_trigger = 3;
  family.level0_slowdown_writes_trigger = 3;
  Fill(dir / "source", 1000);
  REQUIRE_OK(Refresh(dir / "source", dir / "target", Small()).status);
  Fill(dir / "source", 1000, 9000);
  {
    OpenDb target(dir / "target", OneFamily(family));
    REQUIRE_OK(target->PauseBackgroundWork());  // a compaction might be faster
    PullOptions options = Small();
    options.compact = false;
    const Ferried refreshed =
        RefreshOpen(dir / "source", &target, {"default"}, options);
    REQUIRE_OK(refreshed.status);
    REQUIRE(refreshed.summary.ingested_levels ==
            std::map<int, uint64_t>{{0, refreshed.summary.chunks}});
    REQUIRE(refreshed.notes_mention("slows writers down from 3 files on"));
    REQUIRE_OK(target->ContinueBackgroundWork());
  }
  ExpectSameEntries(dir / "source", dir / "target");
}

}  // namespace
}  // namespace sstferry::test::refresh_test
