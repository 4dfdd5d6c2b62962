// Tests that a database that cannot be moved exactly is refused with the family
// and the reason, and that objects of the application make it movable.
#include <algorithm>
#include <filesystem>

#include "pipeline/pull/source_session.h"
#include "rocksdb/comparator.h"
#include "rocksdb/convenience.h"
#include "rocksdb/merge_operator.h"
#include "tests/support/catch.h"
#include "tests/support/fake_peer.h"
#include "tests/support/log_bytes.h"
#include "tests/support/named_comparator.h"
#include "tests/support/sample_database.h"
#include "tests/support/test_db.h"

namespace sstferry::test::refused_test {
namespace {

// Compares from the last byte to the first.
class BackToFront : public NamedComparator {
 public:
  BackToFront() : NamedComparator("sstferry.test.BackToFront") {}
  int Compare(const rocksdb::Slice& a, const rocksdb::Slice& b) const override {
    const std::string x(a.data(), a.size());
    const std::string y(b.data(), b.size());
    return std::string(x.rbegin(), x.rend())
        .compare(std::string(y.rbegin(), y.rend()));
  }
};
const BackToFront kBackToFront;

// Keeps the longest operand.
class Longest : public rocksdb::AssociativeMergeOperator {
 public:
  const char* Name() const override { return "sstferry.test.Longest"; }
  bool Merge(const rocksdb::Slice&, const rocksdb::Slice* existing,
             const rocksdb::Slice& operand, std::string* result,
             rocksdb::Logger*) const override {
    *result = existing != nullptr && existing->size() > operand.size()
                  ? existing->ToString()
                  : operand.ToString();
    return true;
  }
};

Families WithComparator() {
  Families families = {{"default", Quiet()}, {"odd", Quiet()}};
  families[1].options.comparator = &kBackToFront;
  return families;
}

void FillOdd(const std::string& path) {
  OpenDb db(path, WithComparator());
  for (int i = 0; i < 3000; ++i) {
    db.Put(NumberedKey(i), RandomBytes(80, i), "odd");
    db.Put(NumberedKey(i), RandomBytes(20, i));
    if (i == 1500) db.Flush();
  }
}

void RequireRefused(const Ferried& moved,
                    const std::vector<std::string>& words) {
  INFO(moved.message());
  REQUIRE((moved.state() == EndState::kRefused ||
           moved.state() == EndState::kIncompatible));
  for (const std::string& word : words) {
    INFO("expected in the message: " << word);
    REQUIRE(moved.message().find(word) != std::string::npos);
  }
  REQUIRE(moved.summary.sst_bytes == 0);
}

}  // namespace

TEST_CASE("A comparator that this process does not have is refused by name",
          "[transfer][refused]") {
  const ScratchDir dir;
  FillOdd(dir / "source");
  for (const Via via : {Via::kDirectory, Via::kTcp}) {
    RequireRefused(Ferry(dir / "source", dir / "target", AsChunks({}), via),
                   {"'odd'", "sstferry.test.BackToFront"});
  }
}

TEST_CASE("A blob file that only a WAL refers to is refused by every method",
          "[transfer][refused]") {
  const ScratchDir dir;
  {
    OpenDb db(dir / "source", OneFamily());
    db.Put("a", "value");
    // Imitates RocksDB 11, which writes a value or a column like this to
    // 000099.blob at once and logs only a reference: file, offset and size.
    const std::string reference("\x01\x63\x20\x05\x00", 5);
    const bool is_column = GENERATE(false, true);
    const std::string value =
        is_column ? ReferringEntity(reference) : reference;
    std::string batch(12, '\0');
    batch[8] = 1;
    batch += is_column ? '\x16' : '\x11';
    batch += "\x01k";
    batch += static_cast<char>(value.size());
    rocksdb::WriteBatch referring(batch + value);
    REQUIRE_OK(db->Write({}, &referring));
  }
  for (const PullMethod method : {PullMethod::kClone, PullMethod::kIngest}) {
    PullOptions options;
    options.method = method;
    const Ferried moved = Ferry(dir / "source", dir / "target", options);
    RequireRefused(moved, {"000099.blob", "enable_blob_direct_write", "flush"});
  }
}

TEST_CASE("Entities of an unknown version in a WAL are refused by every method",
          "[transfer][refused]") {
  const ScratchDir dir;
  {
    OpenDb db(dir / "source", OneFamily());
    db.Put("a", "value");
  }
  const std::vector<std::string> wals = PathsWith(dir / "source", ".log");
  std::string batch("\x02\0\0\0\0\0\0\0\x01\0\0\0", 12);
  AppendBatch(*std::max_element(wals.begin(), wals.end()),
              batch + "\x16\x01k\x05\x03rest");
  for (const PullMethod method : {PullMethod::kClone, PullMethod::kIngest}) {
    PullOptions options;
    options.method = method;
    const Ferried moved = Ferry(dir / "source", dir / "target", options);
    RequireRefused(moved, {"cannot read", "flush"});
  }
}

TEST_CASE("An application's comparator is found in its registry",
          "[transfer][exact]") {
  const ScratchDir dir;
  FillOdd(dir / "source");
  PullOptions options;
  options.registry.comparators = {&kBackToFront};
  options.chunk_bytes = 64 << 10;
  Expectation expected;
  expected.families = WithComparator();
  RequireMoves(dir, expected, options);
}

TEST_CASE("Families beside one with an unknown comparator can be named",
          "[transfer][exact]") {
  const ScratchDir dir;
  FillOdd(dir / "source");
  PullOptions options;
  options.selection.families = {"default"};
  REQUIRE_OK(Ferry(dir / "source", dir / "target", options).status);
  REQUIRE(EntriesOf(dir / "target", OneFamily()).size() == 3000);
  REQUIRE(EntriesOf(dir / "target", OneFamily()) ==
          EntriesOf(dir / "source", OneFamily()));
}

TEST_CASE("User-defined timestamps are refused", "[transfer][refused]") {
  const ScratchDir dir;
  Families families = {{"default", Quiet()}, {"stamped", Quiet()}};
  const rocksdb::Comparator* stamped = nullptr;
  REQUIRE_OK(rocksdb::Comparator::CreateFromString(
      rocksdb::ConfigOptions(), "leveldb.BytewiseComparator.u64ts", &stamped));
  families[1].options.comparator = stamped;
  {
    OpenDb db(dir / "source", families);
    db.Put("key", "value");
    REQUIRE_OK(db->Put({}, db.cf("stamped"), "key", std::string(8, '\1'),
                       "value"));
    db.Flush();
  }
  PullOptions options = AsChunks({});
  RequireRefused(Ferry(dir / "source", dir / "target", options),
                 {"'stamped'", "timestamps"});
  options.registry.comparators = {stamped};
  RequireRefused(Ferry(dir / "source", dir / "target", options),
                 {"'stamped'", "timestamps"});
}

TEST_CASE("An unknown merge operator is refused only if operands exist",
          "[transfer][refused]") {
  Families families = {{"default", Quiet()}, {"merged", Quiet()}};
  families[1].options.merge_operator = std::make_shared<Longest>();
  const bool only_wal = GENERATE(false, true);
  CAPTURE(only_wal);
  rocksdb::DBOptions db_options;
  db_options.avoid_flush_during_shutdown = true;
  const ScratchDir dir;
  {
    OpenDb db(dir / "source", families, db_options);
    for (int i = 0; i < 100; ++i) {
      db.Put(NumberedKey(i), "value");
      db.Put(NumberedKey(i), "value", "merged");
    }
    if (!only_wal) db.Flush();
  }
  const Ferried moved = Ferry(dir / "source", dir / "target");
  REQUIRE_OK(moved.status);
  Expectation expected;
  expected.families = families;
  ExpectSameEntries(dir / "source", dir / "target", expected);
  {
    OpenDb db(dir / "source", families, db_options);
    db.Merge(NumberedKey(7), "a longer value", "merged");
    if (!only_wal) db.Flush();
  }
  RequireRefused(Ferry(dir / "source", dir / "target2", AsChunks({})),
                 {"'merged'", "sstferry.test.Longest"});

  PullOptions options;
  options.registry.merge_operators = {families[1].options.merge_operator};
  RequireMoves(dir, expected, options);
  const auto found = EntriesOf(dir / "local", families, "merged");
  REQUIRE(found[7].second == "a longer value");
}

TEST_CASE("A database that an application has open arrives",
          "[transfer][exact]") {
  const ScratchDir dir;
  Families families = WithComparator();
  families[0].options.merge_operator = std::make_shared<Longest>();
  OpenDb db(dir / "source", families);
  for (int i = 0; i < 2000; ++i) {
    db.Put(NumberedKey(i), RandomBytes(50, i));
    db.Merge(NumberedKey(i), RandomBytes(90, i));
    db.Put(NumberedKey(i), RandomBytes(50, i), "odd");
    if (i == 700) db.Flush();
  }
  // This write is in no WAL, but the source's flush before its snapshot
  // includes it.
  rocksdb::WriteOptions no_wal;
  no_wal.disableWAL = true;
  REQUIRE_OK(db->Put(no_wal, "without WAL", "value"));
  PullOptions options;
  options.registry.comparators = {&kBackToFront};
  options.registry.merge_operators = {families[0].options.merge_operator};
  ServedDatabase served;
  served.name = "open";
  served.db = db.get();
  served.handles = {db.cf(), db.cf("odd")};
  const Ferried moved = FerryOpen(served, dir / "target", options);
  REQUIRE_OK(moved.status);
  db.Flush();
  Expectation expected;
  expected.families = families;
  ExpectEqual(dir / "source", dir / "target", expected);
  REQUIRE(moved.summary.entries == 4001);
}

TEST_CASE("Wide-column entities are refused for a target that cannot ingest "
          "them",
          "[transfer][refused]") {
  const ScratchDir dir;
  {
    OpenDb db(dir / "source", OneFamily(Quiet()));
    db.Put("a", "plain");
    REQUIRE_OK(db->PutEntity({}, db.cf(), "b", {{"column", "value"}}));
    db.Flush();
  }
  TestServer server(ServeSample(dir / "source"));
  Hello old = MakeHello();
  old.features &= ~kFeatureEntities;
  std::unique_ptr<Channel> control;
  std::unique_ptr<Channel> lane;
  Opened opened;
  uint32_t parts = 0;
  REQUIRE_OK(OpenSample(server.address(), &opened, &control, &parts, &old));
  REQUIRE_OK(DialLane(server.address(), opened.transfer_id, 0, &lane));
  Finish totals;
  REQUIRE_FALSE(TakeParts(lane.get(), parts, &totals).ok());
  const rocksdb::Status told = ReceiveEnd(control.get());
  INFO(told.ToString());
  REQUIRE(EndStateOf(told) == EndState::kRefused);
  for (const char* word : {"'default'", "0x62", "target's sstferry"}) {
    REQUIRE(told.ToString().find(word) != std::string::npos);
  }
  REQUIRE(EndStateOf(server.Report(0).status) == EndState::kRefused);
}

TEST_CASE("A family whose name is too long for the wire is refused",
          "[transfer][refused]") {
  const ScratchDir dir;
  const std::string name(5000, 'n');
  {
    OpenDb db(dir / "source", {{"default", Quiet()}, {name, Quiet()}});
    db.Put("key", "value", name);
    db.Flush();
  }
  const bool options_file = GENERATE(true, false);
  CAPTURE(options_file);
  if (!options_file) {
    for (const std::string& path : PathsWith(dir / "source", "")) {
      if (path.find("/OPTIONS-") != std::string::npos) {
        std::filesystem::remove(path);
      }
    }
  }
  RequireRefused(Ferry(dir / "source", dir / "target", AsChunks({})),
                 {"'nnnn", "4096", "5000"});
}

}  // namespace sstferry::test::refused_test
