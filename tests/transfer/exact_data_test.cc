// Tests unusual keys and values, and all places where a source may keep
// entries.
#include <thread>

#include "tests/support/catch.h"
#include "tests/support/test_db.h"

namespace sstferry::test::exact_data_test {
TEST_CASE("The empty key and the empty value arrive", "[transfer][exact]") {
  const ScratchDir dir;
  {
    OpenDb db(dir / "source", OneFamily(Quiet()));
    db.Put("", "of the empty key");
    db.Put("a", "");
    db.Flush();
  }
  RequireMoves(dir);
  const auto found = EntriesOf(dir / "local", OneFamily());
  REQUIRE(found == std::vector<std::pair<std::string, std::string>>{
                       {"", "of the empty key"}, {"a", ""}});
}

TEST_CASE("The empty key arrives if it is the only entry",
          "[transfer][exact]") {
  const ScratchDir dir;
  {
    OpenDb db(dir / "source", OneFamily(Quiet()));
    db.Put("", "");
  }
  RequireMoves(dir);
  REQUIRE(EntriesOf(dir / "tcp", OneFamily()).size() == 1);
}

TEST_CASE("Keys of NULs and 0xff arrive", "[transfer][exact]") {
  const ScratchDir dir;
  {
    OpenDb db(dir / "source", OneFamily(Quiet()));
    for (size_t length = 0; length < 40; ++length) {
      for (const char byte : {'\0', '\x01', '\x7f', '\xfe', '\xff'}) {
        db.Put(std::string(length, byte), RandomBytes(length * 50, length));
        db.Put(std::string(length, byte) + std::string(1, '\0'), "then NUL");
        db.Put(std::string(length, byte) + "\xff", std::string(300, '\0'));
      }
    }
    db.Flush();
  }
  PullOptions options;
  options.chunk_bytes = 64 << 10;
  RequireMoves(dir, {}, options);
  REQUIRE(EntriesOf(dir / "local", OneFamily()).size() > 400);
}

TEST_CASE("Keys of 64 KiB arrive", "[transfer][exact]") {
  const ScratchDir dir;
  {
    OpenDb db(dir / "source", OneFamily(Quiet()));
    for (int i = 0; i < 30; ++i) {
      // These keys differ in the last byte only; the random keys differ in the
      // first.
      db.Put(std::string(65535, 'k') + static_cast<char>(i), "tail");
      db.Put(RandomBytes(65536, i), RandomBytes(100, i));
      if (i % 10 == 9) db.Flush();
    }
  }
  PullOptions options;
  options.chunk_bytes = 100'000;
  RequireMoves(dir, {}, options);
}

TEST_CASE("A key above the bound is refused and named", "[transfer][refused]") {
  const ScratchDir dir;
  {
    OpenDb db(dir / "source", OneFamily(Quiet()));
    db.Put("small", "value");
    db.Put(std::string(300'000, 'x'), "value");
  }
  PullOptions as_chunks;
  as_chunks.method = PullMethod::kIngest;
  const Ferried moved = Ferry(dir / "source", dir / "target", as_chunks);
  INFO(moved.message());
  REQUIRE(moved.state() == EndState::kRefused);
  REQUIRE(moved.message().find("'default'") != std::string::npos);
  REQUIRE(moved.message().find("300000") != std::string::npos);
}

TEST_CASE("Values from nothing to 8 MiB arrive", "[transfer][exact]") {
  const ScratchDir dir;
  {
    OpenDb db(dir / "source", OneFamily(Quiet()));
    size_t bytes = 0;
    for (int i = 0; bytes <= (8u << 20); ++i, bytes = bytes * 2 + (i & 1)) {
      db.Put(NumberedKey(i), RandomBytes(bytes, i));
      db.Put(NumberedKey(i) + "z", std::string(bytes, '\0'));
      if (i == 0) bytes = 1;
    }
    db.Flush();
  }
  PullOptions options;
  options.chunk_bytes = 1'000'000;
  RequireMoves(dir, {}, options);
}

TEST_CASE("A value of 64 MiB and 256 of 3.84 MB arrive",
          "[transfer][exact][.slow]") {
  const ScratchDir dir;
  {
    OpenDb db(dir / "source", OneFamily(Quiet()));
    db.Put("big", RandomBytes(64u << 20, 1));
    for (int i = 0; i < 256; ++i) {
      db.Put(NumberedKey(i), RandomBytes(3'840'000, i) + std::string(3, '\0'));
    }
  }
  const Ferried moved = Ferry(dir / "source", dir / "target", {}, Via::kTcp);
  REQUIRE_OK(moved.status);
  ExpectEqual(dir / "source", dir / "target");
  REQUIRE(moved.summary.entries == 257);
}

TEST_CASE("Data that is only in the WAL arrives", "[transfer][exact]") {
  const ScratchDir dir;
  const Families families = {{"default", Quiet()}, {"other", Quiet()}};
  rocksdb::DBOptions options;
  options.avoid_flush_during_shutdown = true;
  {
    OpenDb db(dir / "source", families, options);
    for (int i = 0; i < 5000; ++i) {
      db.Put(NumberedKey(i % 3000), std::to_string(i));
      db.Put(NumberedKey(i), RandomBytes(i % 90, i), "other");
    }
    db.DeleteRange(NumberedKey(100), NumberedKey(200));
    db.Delete(NumberedKey(7), "other");
  }
  REQUIRE(FileCount(dir / "source", ".sst") == 0);
  Expectation expected;
  expected.families = families;
  RequireMoves(dir, expected);
  REQUIRE(EntriesOf(dir / "local", families).size() == 2900);
}

TEST_CASE("Overwrites and all kinds of deletions over many L0 files arrive "
          "resolved",
          "[transfer][exact]") {
  const ScratchDir dir;
  {
    OpenDb db(dir / "source", OneFamily(Quiet()));
    for (int round = 0; round < 12; ++round) {
      for (int i = round; i < 4000; i += 3) {
        db.Put(NumberedKey(i), RandomBytes(60, round * 10'000 + i));
      }
      for (int i = 2 * round; i < 4000; i += 17) {
        db.Delete(NumberedKey(i));
      }
      for (int i = 0; i < 200; ++i) {  // put once, then single-deleted
        const std::string key = "once" + NumberedKey(round * 200 + i);
        db.Put(key, "value");
      }
      if (round > 0) {
        for (int i = 0; i < 200; i += 2) {
          const std::string key = "once" + NumberedKey((round - 1) * 200 + i);
          REQUIRE_OK(db->SingleDelete({}, db.cf(), key));
        }
      }
      db.DeleteRange(NumberedKey(round * 300), NumberedKey(round * 300 + 90));
      if (round < 11) db.Flush();  // the last round is only in the WAL
    }
  }
  PullOptions options;
  options.chunk_bytes = 64 << 10;
  RequireMoves(dir, {}, options);
}

TEST_CASE("Versions that only a held snapshot sees are not sent",
          "[transfer][exact]") {
  const ScratchDir dir;
  OpenDb db(dir / "source", OneFamily(Quiet()));
  for (int i = 0; i < 2000; ++i) db.Put(NumberedKey(i), "old");
  const rocksdb::Snapshot* first = db->GetSnapshot();
  for (int i = 0; i < 2000; i += 2) db.Put(NumberedKey(i), "new");
  db.Flush();
  const rocksdb::Snapshot* second = db->GetSnapshot();
  for (int i = 0; i < 2000; i += 3) db.Delete(NumberedKey(i));
  db.DeleteRange(NumberedKey(500), NumberedKey(700));
  db.Flush();
  db.Compact();  // keeps what the snapshots see: sequences stay in L6
  // RocksDB deletes the flushed WALs in the background.
  while (FileCount(dir / "source", ".log") > 1) std::this_thread::yield();
  // The database is open in this process, but its directory is pinned as if
  // another process had it open.
  RequireMoves(dir);
  db->ReleaseSnapshot(first);
  db->ReleaseSnapshot(second);
}

TEST_CASE("Deleted keys do not arrive", "[transfer][exact]") {
  const ScratchDir dir;
  {
    OpenDb db(dir / "source", OneFamily(Quiet()));
    for (int i = 0; i < 10'000; ++i) db.Put(NumberedKey(i), "value");
    db.Flush();
    for (int i = 0; i < 10'000; i += 2) db.Delete(NumberedKey(i));
    db.Flush();
  }
  const Ferried moved = Ferry(dir / "source", dir / "target");
  REQUIRE_OK(moved.status);
  REQUIRE(moved.summary.entries == 5000);
  ExpectEqual(dir / "source", dir / "target");
}

TEST_CASE("A family with nothing but tombstones arrives empty",
          "[transfer][exact]") {
  const ScratchDir dir;
  {
    OpenDb db(dir / "source", OneFamily(Quiet()));
    for (int i = 0; i < 1000; ++i) db.Put(NumberedKey(i), "value");
    db.Flush();
    db.DeleteRange("", "z");
    for (int i = 0; i < 1000; i += 5) db.Delete(NumberedKey(i));
    db.Flush();
  }
  RequireMoves(dir);
  REQUIRE(EntriesOf(dir / "local", OneFamily()).empty());
  REQUIRE(FileCount(dir / "local", ".sst") == 0);
}

TEST_CASE("Merge operands are resolved by the operator that OPTIONS names",
          "[transfer][exact]") {
  Families families = {{"default", Quiet()}, {"sums", Quiet()},
                       {"joined", Quiet()}, {"highest", Quiet()}};
  families[1].options.merge_operator = MergeOperatorNamed("uint64add");
  families[2].options.merge_operator =
      MergeOperatorNamed("id=stringappend;delimiter=/");
  families[3].options.merge_operator = MergeOperatorNamed("max");
  const ScratchDir dir;
  {
    OpenDb db(dir / "source", families);
    for (int round = 0; round < 6; ++round) {
      for (int i = 0; i < 600; ++i) {
        const char addend[8] = {static_cast<char>(i + 1)};
        db.Merge(NumberedKey(i), std::string(addend, 8), "sums");
        db.Merge(NumberedKey(i), NumberedKey(round), "joined");
        db.Merge(NumberedKey(i), RandomBytes(4, round * 1000 + i), "highest");
        if (i % 7 == round) db.Put(NumberedKey(i), "base", "joined");
        if (i % 11 == round) db.Delete(NumberedKey(i), "joined");
      }
      if (round % 2 == 0) db.Flush();
    }
  }
  Expectation expected;
  expected.families = families;
  RequireMoves(dir, expected);
  const auto joined = EntriesOf(dir / "local", families, "joined");
  const std::map<std::string, std::string> by_key(joined.begin(),
                                                  joined.end());
  REQUIRE(by_key.at(NumberedKey(20)) ==
          "k00000000/k00000001/k00000002/k00000003/k00000004/k00000005");
}

TEST_CASE("Operands are refused if OPTIONS name their operator ambiguously",
          "[transfer][refused]") {
  // In OPTIONS, an empty delimiter looks like no delimiter.
  rocksdb::ColumnFamilyOptions options = Quiet();
  options.merge_operator = MergeOperatorNamed("id=stringappend;delimiter= ");
  const ScratchDir dir;
  {
    OpenDb db(dir / "source", OneFamily(options));
    db.Merge("a", "1");
    db.Merge("a", "2");
    db.Flush();
  }
  PullOptions as_chunks;
  as_chunks.method = PullMethod::kIngest;
  const Ferried moved = Ferry(dir / "source", dir / "target", as_chunks);
  INFO(moved.message());
  REQUIRE(moved.state() == EndState::kRefused);
  REQUIRE(moved.message().find("StringAppendOperator") != std::string::npos);

  PullOptions pull;
  pull.registry.merge_operators = {options.merge_operator};
  REQUIRE_OK(Ferry(dir / "source", dir / "target2", pull).status);
  REQUIRE(EntriesOf(dir / "target2", OneFamily(options))[0].second == "12");
}

}  // namespace sstferry::test::exact_data_test
