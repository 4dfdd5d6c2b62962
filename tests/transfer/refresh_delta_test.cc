// Tests refreshes that send single entries of groups that differ.
#include <filesystem>
#include <functional>

#include "format/limits.h"
#include "rocksdb/sst_file_writer.h"
#include "tests/support/catch.h"
#include "tests/support/named_comparator.h"
#include "tests/support/refreshed.h"
#include "tests/support/sample_bytes.h"

namespace sstferry::test::refresh_delta_test {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kKeys = 20'000;

rocksdb::DBOptions KeepingWal() {
  rocksdb::DBOptions options;
  options.avoid_flush_during_recovery = true;
  options.avoid_flush_during_shutdown = true;
  return options;
}

void Fill(const std::string& dir) {
  OpenDb db(dir, OneFamily(Quiet()));
  for (uint64_t i = 0; i < kKeys; ++i) {
    db.Put(NumberedKey(i), RandomBytes(100, i));
  }
  db.Flush();
  db.Compact();
}

using Play = std::function<void(OpenDb* db)>;

// Opens the source, calls `play`, and flushes.
void Change(const std::string& dir, const Play& play) {
  OpenDb db(dir, OneFamily(Quiet()));
  play(&db);
  db.Flush();
}

// A source, and a target that is equal to it.
struct Pair {
  ScratchDir dir;
  std::string source = dir / "source";
  std::string target = dir / "target";
  Pair() {
    Fill(source);
    REQUIRE_OK(Refresh(source, target).status);
  }
  Ferried Run(PullOptions options = {}) {
    Ferried refreshed = Refresh(source, target, options);
    REQUIRE_OK(refreshed.status);
    ExpectSameEntries(source, target);
    return refreshed;
  }
};

void Scatter(OpenDb* db) {
  for (uint64_t i = 0; i < kKeys; i += 200) {
    db->Put(NumberedKey(i), "changed " + std::to_string(i));
    db->Delete(NumberedKey(i + 50));
    db->Put(NumberedKey(i) + "-new", "new");
  }
}

TEST_CASE("Scattered changes in a new file are found by groups",
          "[transfer][refresh][delta]") {
  Pair pair;
  Change(pair.source, Scatter);
  const Ferried refreshed = pair.Run();
  const Summary& summary = refreshed.summary;
  REQUIRE(summary.parts_compared == summary.parts);
  REQUIRE(summary.entries_put == 200);
  REQUIRE(summary.entries_deleted == 100);
  REQUIRE(summary.chunks_delta == summary.chunks);
  REQUIRE(summary.sst_bytes < 40'000);
  // A second refresh sends nothing: the comparison includes the ingested
  // deltas.
  const Ferried again = pair.Run();
  REQUIRE(again.summary.parts_unchanged == again.summary.parts);
  REQUIRE(again.summary.sst_bytes == 0);
}

TEST_CASE("Scattered changes of a compacted source are found by groups",
          "[transfer][refresh][delta]") {
  Pair pair;
  Change(pair.source, [](OpenDb* db) {
    Scatter(db);
    db->Flush();
    db->Compact();
  });
  const Ferried refreshed = pair.Run();
  const Summary& summary = refreshed.summary;
  REQUIRE(summary.parts_compared == summary.parts);
  REQUIRE(summary.parts_delta > 0);
  REQUIRE(summary.entries_put == 200);
  REQUIRE(summary.entries_deleted == 100);
  REQUIRE(summary.chunks_built == 0);
  // Most groups differ. Each of their entries costs a mark (a short digest),
  // not a key.
  REQUIRE(summary.wire_bytes < 150'000);
}

TEST_CASE("A refresh sends what differs, and nothing else",
          "[transfer][refresh][delta]") {
  Pair pair;
  {
    OpenDb target(pair.target, OneFamily(Quiet()));
    target.Put("foreign", "x");
    target.Put(NumberedKey(7), "x");
    target.Delete(NumberedKey(9));
  }
  PassWrites(pair.source);
  const Ferried refreshed = pair.Run();
  REQUIRE(refreshed.summary.entries_put == 2);
  REQUIRE(refreshed.summary.entries_deleted == 1);
}

TEST_CASE("Writes of an application to the target are found by groups",
          "[transfer][refresh][delta]") {
  Pair pair;
  {
    OpenDb target(pair.target, OneFamily(Quiet()));
    target.DeleteRange(NumberedKey(100), NumberedKey(110));
    target.Put(NumberedKey(5000) + "x", "foreign");
  }
  PassWrites(pair.source);
  const Ferried refreshed = pair.Run();
  REQUIRE(refreshed.summary.entries_put == 10);
  REQUIRE(refreshed.summary.entries_deleted == 1);
}

TEST_CASE("A range deletion in a new file is sent as deletions of the keys "
          "that it deletes",
          "[transfer][refresh][delta]") {
  Pair pair;
  Change(pair.source, [](OpenDb* db) {
    db->DeleteRange(NumberedKey(300), NumberedKey(320));
    db->Put(NumberedKey(310), "above it");
  });
  const Ferried refreshed = pair.Run();
  REQUIRE(refreshed.summary.entries_put == 1);
  REQUIRE(refreshed.summary.entries_deleted == 19);
}

TEST_CASE("Entries of a WAL are taken back after the source lost its WAL",
          "[transfer][refresh][delta]") {
  Pair pair;
  const std::string saved = pair.dir / "saved";
  fs::copy(pair.source, saved, fs::copy_options::recursive);
  {
    OpenDb db(pair.source, OneFamily(Quiet()), KeepingWal());
    Scatter(&db);
  }
  const Ferried with_wal = pair.Run();
  REQUIRE(with_wal.summary.entries_put == 200);
  // The source has the same files, but no WAL any more.
  fs::remove_all(pair.source);
  fs::rename(saved, pair.source);
  const Ferried without = pair.Run();
  REQUIRE(without.summary.entries_put == 200);
  REQUIRE(without.summary.entries_deleted == 100);
}

TEST_CASE(
    "A key of a lost WAL is not deleted under other bytes of the same key",
    "[transfer][refresh][delta]") {
  static const CaselessComparator order;
  rocksdb::ColumnFamilyOptions caseless = Quiet();
  caseless.comparator = &order;
  const Families families = OneFamily(caseless);
  const ScratchDir dir;
  const std::string source = dir / "source";
  const std::string saved = dir / "saved";
  PullOptions options;
  options.registry.comparators = {&order};
  {
    OpenDb db(source, families);
    for (uint64_t i = 0; i < kKeys; ++i) {
      db.Put(NumberedKey(i), "value");
    }
    db.Put("Name", "old");
    db.Flush();
    db.Compact();
  }
  REQUIRE_OK(Refresh(source, dir / "target", options).status);
  fs::copy(source, saved, fs::copy_options::recursive);
  OpenDb(source, families, KeepingWal()).Put("NAME", "new");
  REQUIRE_OK(Refresh(source, dir / "target", options).status);
  REQUIRE(EntriesOf(dir / "target", families) == EntriesOf(source, families));
  fs::remove_all(source);
  fs::rename(saved, source);
  const Ferried refreshed = Refresh(source, dir / "target", options);
  INFO(refreshed.message());
  REQUIRE_OK(refreshed.status);
  REQUIRE(EntriesOf(dir / "target", families) == EntriesOf(source, families));
}

TEST_CASE("Entries of a file are taken back after the source lost the file",
          "[transfer][refresh][delta]") {
  Pair pair;
  const std::string saved = pair.dir / "saved";
  fs::copy(pair.source, saved, fs::copy_options::recursive);
  Change(pair.source, Scatter);
  pair.Run();
  fs::remove_all(pair.source);
  fs::rename(saved, pair.source);
  Change(pair.source, [](OpenDb* db) { db->Put(NumberedKey(1), "one"); });
  const Ferried without = pair.Run();
  REQUIRE(without.summary.entries_put == 201);
  REQUIRE(without.summary.entries_deleted == 100);
}

TEST_CASE("Keys that a lost WAL had deleted are sent again",
          "[transfer][refresh][delta]") {
  Pair pair;
  const std::string saved = pair.dir / "saved";
  fs::copy(pair.source, saved, fs::copy_options::recursive);
  {
    OpenDb db(pair.source, OneFamily(Quiet()), KeepingWal());
    db.DeleteRange(NumberedKey(300), NumberedKey(320));
  }
  pair.Run();
  fs::remove_all(pair.source);
  fs::rename(saved, pair.source);
  const Ferried without = pair.Run();
  REQUIRE(without.summary.entries_put == 20);
}

TEST_CASE("Changes close together and far apart are sent once each",
          "[transfer][refresh][delta]") {
  // Several files have changes that are close together, far apart, and both in
  // turn.
  Pair pair;
  uint64_t puts = 0;
  uint64_t deletions = 0;
  Change(pair.source, [&](OpenDb* db) {
    const auto change = [&](uint64_t i, uint64_t kind) {
      if (kind % 3 == 0) {
        db->Delete(NumberedKey(i));
        ++deletions;
      } else {
        db->Put(NumberedKey(i) + (kind % 3 == 1 ? "" : "-new"), "changed");
        ++puts;
      }
    };
    for (uint64_t i = kKeys / 2; i < kKeys; i += 97) {
      change(i, i);
    }
    db->Flush();
    for (uint64_t i = 0; i < kKeys / 4; ++i) {
      change(i, i);
    }
    db->Flush();
    for (uint64_t i = kKeys / 4; i < kKeys / 2; i += i % 2 == 0 ? 1 : 60) {
      change(i, i / 2);
    }
  });
  const Ferried refreshed = pair.Run();
  REQUIRE(refreshed.summary.entries_put == puts);
  REQUIRE(refreshed.summary.entries_deleted == deletions);
}

TEST_CASE("If everything differs, everything is sent once",
          "[transfer][refresh][delta]") {
  Pair pair;
  Change(pair.source, [](OpenDb* db) {
    for (uint64_t i = 0; i < kKeys; ++i) {
      db->Put(NumberedKey(i), "changed");
    }
  });
  const Ferried refreshed = pair.Run();
  REQUIRE(refreshed.summary.entries_put == kKeys);
  REQUIRE(refreshed.summary.entries_deleted == 0);
  REQUIRE(refreshed.summary.parts_compared > 0);
}

TEST_CASE("A part with more groups than an index holds loses none of them",
          "[transfer][refresh][delta]") {
  // Parts of large values come first, so that the last part has groups of one
  // entry each: more groups at the target than an index can have. The source
  // has one of these entries, or all.
  const bool deleted = GENERATE(true, false);
  constexpr uint64_t kLarge = 400;
  constexpr uint64_t kSmall = kMaxGroups + 10'000;
  const ScratchDir dir;
  const auto fill = [&](const std::string& name, uint64_t small) {
    OpenDb db(dir / name, OneFamily(Quiet()));
    for (uint64_t i = 0; i < kLarge; ++i) {
      db.Put("a" + NumberedKey(i), RandomBytes(8000, i));
    }
    db.Flush();
    for (uint64_t i = kSmall - small; i < kSmall; ++i) {
      db.Put("b" + NumberedKey(i), "v");
    }
    db.Flush();
  };
  fill("source", deleted ? 1 : kSmall);
  fill("target", kSmall);
  PullOptions options;
  options.adopt = true;
  options.lanes = 1;
  options.chunk_bytes = 256u << 10;
  const Ferried refreshed = Refresh(dir / "source", dir / "target", options);
  REQUIRE_OK(refreshed.status);
  ExpectSameEntries(dir / "source", dir / "target");
  const Summary& summary = refreshed.summary;
  REQUIRE(summary.parts > 3);
  REQUIRE(summary.entries_put == 0);
  // Keys are deleted singly or by range deletions. A range deletion counts as
  // the deletions of its two bounds.
  REQUIRE((summary.entries_deleted != 0) == deleted);
}

TEST_CASE("The empty key is a key like all others",
          "[transfer][refresh][delta]") {
  const bool compacted = GENERATE(false, true);
  Pair pair;
  const auto put = [compacted](const std::string& value) {
    return [compacted, value](OpenDb* db) {
      db->Put("", value);
      db->Put(NumberedKey(3), value);
      if (compacted) {
        db->Flush();
        db->Compact();
      }
    };
  };
  Change(pair.source, put("1"));
  pair.Run();
  Change(pair.source, put("2"));
  pair.Run();
  Change(pair.source, [](OpenDb* db) { db->Delete(""); });
  pair.Run();
}

TEST_CASE("A refresh of a key interval sends single entries, too",
          "[transfer][refresh][delta]") {
  Pair pair;
  Change(pair.source, Scatter);
  PullOptions options;
  options.selection.interval = {NumberedKey(1000), NumberedKey(3010)};
  const Ferried partly = Refresh(pair.source, pair.target, options);
  REQUIRE_OK(partly.status);
  REQUIRE(partly.summary.entries_put == 22);
  REQUIRE(partly.summary.entries_deleted == 10);
  pair.Run();
}

TEST_CASE("Merge operands are sent as the value that a reader sees",
          "[transfer][refresh][delta]") {
  const ScratchDir dir;
  rocksdb::ColumnFamilyOptions merging = Quiet();
  merging.merge_operator = MergeOperatorNamed("stringappend");
  const Families families = OneFamily(merging);
  {
    OpenDb db(dir / "source", families);
    for (uint64_t i = 0; i < 1000; ++i) {
      db.Merge(NumberedKey(i), "a");
    }
    db.Flush();
  }
  REQUIRE_OK(Refresh(dir / "source", dir / "target").status);
  {
    OpenDb db(dir / "source", families);
    db.Merge(NumberedKey(10), "b");
    db.Flush();
  }
  const Ferried refreshed = Refresh(dir / "source", dir / "target");
  REQUIRE_OK(refreshed.status);
  REQUIRE(refreshed.summary.entries_put == 1);
  OpenDb target(dir / "target", families);
  std::string value;
  REQUIRE_OK(target->Get({}, NumberedKey(10), &value));
  REQUIRE(value == "a,b");
}

}  // namespace
}  // namespace sstferry::test::refresh_delta_test
