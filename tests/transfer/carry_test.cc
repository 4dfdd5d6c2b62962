// Files that travel as they are: which do, what arrives, what plan says.
#include "format/sst/sst_reader.h"
#include "pipeline/base/file_source.h"
#include "rocksdb/filter_policy.h"
#include "rocksdb/table.h"
#include "tests/support/carried.h"
#include "tests/support/catch.h"
#include "tests/support/named_comparator.h"

namespace sstferry::test {
namespace {

using rocksdb::BlockBasedTableOptions;

// Nobody but its maker knows it.
class OwnOrder : public NamedComparator {
 public:
  OwnOrder() : NamedComparator("sstferry.test.OwnOrder") {}
  int Compare(const rocksdb::Slice& a, const rocksdb::Slice& b) const override {
    return b.compare(a);
  }
};

// A source of several compacted files.
void MakeCompacted(const std::string& dir,
                   const rocksdb::ColumnFamilyOptions& options = SmallFiles(),
                   uint64_t entries = 2000) {
  OpenDb db(dir, OneFamily(options));
  FillCompacted(&db, 0, entries);
}

// The reasons of a plan's rebuilt files, each once.
std::set<std::string> Reasons(const Summary& plan) {
  std::set<std::string> reasons;
  for (const PlanItemSummary& item : plan.items) {
    if (item.action == "rebuild") reasons.insert(item.reason);
  }
  return reasons;
}

// Plan and pull say and do the same.
Ferried RequirePlanned(const std::string& source, const std::string& target,
                       PullOptions options, Via via = Via::kDirectory) {
  const Summary plan = PlanOf(source, options);
  const Ferried moved = Ferry(source, target, options, via);
  INFO(ItemsText(plan));
  REQUIRE_OK(moved.status);
  REQUIRE(moved.summary.chunks_carried == ItemsOf(plan, "carry"));
  REQUIRE(moved.summary.sst_bytes_carried == ItemBytesOf(plan, "carry"));
  REQUIRE(plan.ranges == moved.summary.ranges);
  if (ItemsOf(plan, "rebuild") == 0) {
    REQUIRE(moved.summary.chunks_built == 0);
    REQUIRE(moved.summary.sst_bytes == ItemBytesOf(plan, "carry"));
  }
  return moved;
}

}  // namespace

TEST_CASE("A compacted database is carried whole", "[transfer][carry]") {
  const TempDir dir;
  MakeCompacted(dir / "source");
  for (const Via via : {Via::kDirectory, Via::kTcp}) {
    for (const CarryMode mode : {CarryMode::kAuto, CarryMode::kOnly}) {
      const std::string target =
          dir / ("target" + std::to_string(static_cast<int>(mode)) +
                 std::to_string(static_cast<int>(via)));
      PullOptions options = Carrying(mode);
      options.verify = true;
      const Ferried moved =
          RequirePlanned(dir / "source", target, options, via);
      const uint64_t files = FileCount(dir / "source", ".sst");
      REQUIRE(files > 3);
      REQUIRE(moved.summary.chunks_carried == files);
      REQUIRE(moved.summary.entries == 2000);
      REQUIRE(moved.summary.verified);
      REQUIRE(moved.summary.chunks_unchecked == 0);
      Expectation expected;
      expected.families = OneFamily(SmallFiles());
      ExpectEqual(dir / "source", target, expected);
      RequireUsable(dir / "source", target, expected.families);
    }
  }
}

TEST_CASE("Carrying can be switched off", "[transfer][carry]") {
  const TempDir dir;
  MakeCompacted(dir / "source");
  const Ferried moved = RequirePlanned(dir / "source", dir / "target",
                                       Carrying(CarryMode::kNever));
  REQUIRE(moved.summary.chunks_carried == 0);
  REQUIRE(moved.summary.chunks_built > 0);
  REQUIRE(Reasons(PlanOf(dir / "source", Carrying(CarryMode::kNever))) ==
          std::set<std::string>{"carrying is disabled"});
}

TEST_CASE("A copy of a copy of a copy equals the first", "[transfer][carry]") {
  const TempDir dir;
  MakeCompacted(dir / "source");
  const PullOptions only = Carrying(CarryMode::kOnly);
  REQUIRE_OK(Ferry(dir / "source", dir / "one", only).status);
  REQUIRE_OK(Ferry(dir / "one", dir / "two", only).status);
  REQUIRE_OK(Ferry(dir / "two", dir / "three", only).status);
  const std::vector<std::string> first = TableContents(dir / "one");
  REQUIRE(first.size() > 3);
  REQUIRE(TableContents(dir / "two") == first);
  REQUIRE(TableContents(dir / "three") == first);
  ExpectSameEntries(dir / "source", dir / "three");
}

TEST_CASE("Files under newer ones are rebuilt, those beside are carried",
          "[transfer][carry]") {
  const TempDir dir;
  {
    OpenDb db(dir / "source", OneFamily(SmallFiles()));
    FillCompacted(&db, 0, 4000);
    // On top of the middle: new values, deletes, a range delete, an operand.
    for (uint64_t i = 1500; i < 2000; i += 3) db.Put(NumberedKey(i), "new");
    for (uint64_t i = 1700; i < 1800; i += 2) db.Delete(NumberedKey(i));
    db.DeleteRange(NumberedKey(1850), NumberedKey(1900));
    db.Flush();
    // Behind the end, where nothing is.
    db.Put(NumberedKey(9000), "far");
    db.Flush();
  }
  for (const uint32_t lanes : {1u, 4u}) {
    PullOptions options = Carrying(CarryMode::kAuto);
    options.lanes = lanes;
    options.chunk_bytes = 64 << 10;
    options.verify = true;
    const std::string target = dir / ("target" + std::to_string(lanes));
    const Ferried moved = RequirePlanned(dir / "source", target, options);
    REQUIRE(moved.summary.chunks_carried > 5);
    REQUIRE(moved.summary.chunks_built > 1);
    Expectation expected;
    expected.families = OneFamily(SmallFiles());
    ExpectEqual(dir / "source", target, expected);
    RequireUsable(dir / "source", target, expected.families);
  }
  const Ferried only =
      Ferry(dir / "source", dir / "only", Carrying(CarryMode::kOnly));
  REQUIRE(only.state() == EndState::kRefused);
  REQUIRE(only.message().find(".sst of column family 'default'") !=
          std::string::npos);
}

TEST_CASE("A range delete that is only in the WAL prevents carrying",
          "[transfer][carry]") {
  const TempDir dir;
  rocksdb::DBOptions options;
  options.avoid_flush_during_shutdown = true;
  {
    OpenDb db(dir / "source", OneFamily(SmallFiles()), options);
    FillCompacted(&db, 0, 3000);
    db.DeleteRange(NumberedKey(1400), NumberedKey(1600));
  }
  const Ferried moved = RequirePlanned(dir / "source", dir / "target",
                                       Carrying(CarryMode::kAuto));
  REQUIRE(moved.summary.entries == 2800);
  REQUIRE(moved.summary.chunks_carried > 2);
  REQUIRE(moved.summary.chunks_built > 0);
  Expectation expected;
  expected.families = OneFamily(SmallFiles());
  ExpectEqual(dir / "source", dir / "target", expected);
}

TEST_CASE("Bounds that cut a file have it rebuilt", "[transfer][carry]") {
  const TempDir dir;
  MakeCompacted(dir / "source", SmallFiles(), 3000);
  PullOptions options = Carrying(CarryMode::kAuto);
  options.selection.interval.begin = NumberedKey(333);
  options.selection.interval.end = NumberedKey(2222);
  options.verify = true;
  const Ferried moved =
      RequirePlanned(dir / "source", dir / "target", options);
  REQUIRE(moved.summary.entries == 2222 - 333);
  REQUIRE(moved.summary.chunks_carried > 2);
  REQUIRE(moved.summary.chunks_built >= 2);
  Expectation expected;
  expected.families = OneFamily(SmallFiles());
  expected.interval = options.selection.interval;
  ExpectEqual(dir / "source", dir / "target", expected);
  options.carry = CarryMode::kOnly;
  const Ferried only = Ferry(dir / "source", dir / "only", options);
  REQUIRE(only.state() == EndState::kRefused);
  REQUIRE(only.message().find("cut by the requested bounds") !=
          std::string::npos);
}

TEST_CASE("Data above sequence zero is rebuilt", "[transfer][carry]") {
  const TempDir dir;
  {
    OpenDb db(dir / "source", OneFamily(SmallFiles()));
    for (uint64_t i = 0; i < 500; ++i) db.Put(NumberedKey(i), "flushed");
    db.Flush();
  }
  const Ferried moved = RequirePlanned(dir / "source", dir / "target",
                                       Carrying(CarryMode::kAuto));
  REQUIRE(moved.summary.chunks_carried == 0);
  REQUIRE(Reasons(PlanOf(dir / "source")) ==
          std::set<std::string>{"sequence numbers up to 500"});
}

TEST_CASE("Files unlike what would be built are rebuilt, or carried as asked",
          "[transfer][carry]") {
  const TempDir dir;
  MakeCompacted(dir / "source");
  // Reopened with a filter, which files of before do not have.
  BlockBasedTableOptions table;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  { OpenDb db(dir / "source", OneFamily(WithTable(table))); }
  const Ferried rebuilt = RequirePlanned(dir / "source", dir / "auto",
                                         Carrying(CarryMode::kAuto));
  REQUIRE(rebuilt.summary.chunks_carried == 0);
  const Ferried carried = RequirePlanned(dir / "source", dir / "only",
                                         Carrying(CarryMode::kOnly));
  REQUIRE(carried.summary.chunks_built == 0);
  REQUIRE(carried.notes_mention("carried as requested"));
  REQUIRE(PlanOf(dir / "source", Carrying(CarryMode::kOnly))
              .items[0]
              .reason.find("filter: none") == 0);
  ExpectSameEntries(dir / "source", dir / "only");
}

TEST_CASE("Files without block checksums are carried only as asked, counted",
          "[transfer][carry]") {
  const TempDir dir;
  BlockBasedTableOptions table;
  table.checksum = rocksdb::kNoChecksum;
  MakeCompacted(dir / "source", WithTable(table));
  const Ferried rebuilt = RequirePlanned(dir / "source", dir / "auto",
                                         Carrying(CarryMode::kAuto));
  REQUIRE(rebuilt.summary.chunks_carried == 0);
  REQUIRE(rebuilt.summary.chunks_unchecked == 0);
  REQUIRE(Reasons(PlanOf(dir / "source")) ==
          std::set<std::string>{"no block checksums"});
  const Ferried carried = RequirePlanned(dir / "source", dir / "only",
                                         Carrying(CarryMode::kOnly));
  REQUIRE(carried.summary.chunks_carried > 3);
  REQUIRE(carried.summary.chunks_unchecked == carried.summary.chunks_carried);
  Expectation expected;
  expected.families = OneFamily(WithTable(table));
  ExpectEqual(dir / "source", dir / "only", expected);
}

TEST_CASE("A format version that was asked for is not carried around",
          "[transfer][carry]") {
  const TempDir dir;
  BlockBasedTableOptions table;
  table.format_version = 4;
  MakeCompacted(dir / "source", WithTable(table));
  PullOptions options = Carrying(CarryMode::kAuto);
  options.format_version = 5;
  const Ferried moved =
      RequirePlanned(dir / "source", dir / "target", options);
  REQUIRE(moved.summary.chunks_carried == 0);
  options.format_version = 4;
  REQUIRE(RequirePlanned(dir / "source", dir / "same", options)
              .summary.chunks_built == 0);
}

TEST_CASE("Files of two format versions keep theirs", "[transfer][carry]") {
  const TempDir dir;
  BlockBasedTableOptions table;
  table.format_version = 4;
  MakeCompacted(dir / "source", WithTable(table), 1000);
  table.format_version = 5;
  const Families families = OneFamily(WithTable(table));
  {
    OpenDb db(dir / "source", families);
    for (uint64_t i = 5000; i < 6000; ++i) {
      db.Put(NumberedKey(i), RandomBytes(200, i));
    }
    db.Flush();
    const std::string begin = NumberedKey(5000);
    const rocksdb::Slice first(begin);
    rocksdb::CompactRangeOptions compact;
    compact.bottommost_level_compaction =
        rocksdb::BottommostLevelCompaction::kForceOptimized;
    REQUIRE_OK(db->CompactRange(compact, &first, nullptr));
  }
  const Ferried moved = RequirePlanned(dir / "source", dir / "target",
                                       Carrying(CarryMode::kAuto));
  REQUIRE(moved.summary.chunks_built == 0);
  std::set<uint32_t> versions;
  for (const std::string& path : PathsWith(dir / "target", ".sst")) {
    std::unique_ptr<FileSource> source;
    SstReader reader;
    REQUIRE_OK(FileSource::Open(rocksdb::FileSystem::Default().get(), path,
                                &source));
    REQUIRE_OK(reader.Open(source.get()));
    versions.insert(reader.footer().format_version);
  }
  REQUIRE(versions == std::set<uint32_t>{4, 5});
  Expectation expected;
  expected.families = families;
  ExpectEqual(dir / "source", dir / "target", expected);
}

TEST_CASE("Nothing is carried beside a WAL that could not be flushed",
          "[transfer][carry]") {
  const TempDir dir;
  const OwnOrder order;
  rocksdb::ColumnFamilyOptions odd = SmallFiles();
  odd.comparator = &order;
  const Families families = {{"default", SmallFiles()}, {"odd", odd}};
  rocksdb::DBOptions database;
  database.avoid_flush_during_shutdown = true;
  {
    OpenDb db(dir / "source", families, database);
    FillCompacted(&db, 0, 1000);
    db.DeleteRange(NumberedKey(10), NumberedKey(20));
  }
  // A family this process cannot open leaves only reading.
  PullOptions options = Carrying(CarryMode::kAuto);
  options.selection.families = {"default"};
  const Ferried moved =
      RequirePlanned(dir / "source", dir / "target", options);
  REQUIRE(moved.summary.entries == 990);
  REQUIRE(moved.summary.chunks_carried == 0);
  REQUIRE(Reasons(PlanOf(dir / "source", options)) ==
          std::set<std::string>{"wal not flushed"});
  ExpectSameEntries(dir / "source", dir / "target", {OneFamily(), {}, {}, {}});
  // Once it holds nothing, reading only is no obstacle.
  {
    OpenDb db(dir / "source", families, database);
    db.Flush();
    db.Compact();
  }
  const Ferried flushed =
      RequirePlanned(dir / "source", dir / "flushed", options);
  REQUIRE(flushed.summary.chunks_built == 0);
}

TEST_CASE("plan explains every file of a live database of several levels",
          "[transfer][carry]") {
  const TempDir dir;
  rocksdb::ColumnFamilyOptions busy;
  busy.compression = rocksdb::kNoCompression;
  busy.write_buffer_size = 128 << 10;
  busy.target_file_size_base = 64 << 10;
  busy.max_bytes_for_level_base = 256 << 10;
  busy.max_bytes_for_level_multiplier = 4;
  busy.level0_file_num_compaction_trigger = 2;
  const Families families = {{"default", busy}, {"still", SmallFiles()}};
  // The database is open, and its threads log and delete what is obsolete when
  // they come to it: neither may look like a write of ours.
  rocksdb::DBOptions quiet;
  quiet.info_log_level = rocksdb::FATAL_LEVEL;
  OpenDb db(dir / "source", families, quiet);
  for (uint64_t i = 0; i < 12'000; ++i) {
    db.Put(NumberedKey(i * 7919 % 20'000), RandomBytes(200, i));
  }
  FillCompacted(&db, 0, 1000, "still");
  // From here on no compaction runs but those asked for.
  REQUIRE_OK(db->SetOptions(db.cf(), {{"disable_auto_compactions", "true"}}));
  rocksdb::CompactRangeOptions deep;
  deep.bottommost_level_compaction =
      rocksdb::BottommostLevelCompaction::kForceOptimized;
  deep.change_level = true;
  deep.target_level = 4;
  REQUIRE_OK(db->CompactRange(deep, db.cf(), nullptr, nullptr));
  for (uint64_t i = 0; i < 3000; ++i) {
    db.Put(NumberedKey(5000 + i * 31 % 3000), RandomBytes(150, i));
  }
  db.Flush();
  std::vector<rocksdb::LiveFileMetaData> live;
  db->GetLiveFilesMetaData(&live);
  std::vector<std::string> upper;
  for (const auto& file : live) {
    if (file.level == 0) upper.push_back(file.name);
  }
  REQUIRE_OK(db->CompactFiles({}, db.cf(), upper, 1));
  for (uint64_t i = 9000; i < 9100; ++i) db.Put(NumberedKey(i), "newest");
  db.Flush();
  REQUIRE_OK(db->PauseBackgroundWork());
  const Ferried moved = RequirePlanned(dir / "source", dir / "target",
                                       Carrying(CarryMode::kAuto));
  const Summary plan = PlanOf(dir / "source");
  live.clear();
  db->GetLiveFilesMetaData(&live);
  std::set<std::string> names;
  std::set<int> levels;
  for (const auto& file : live) {
    names.insert(file.relative_filename);
    levels.insert(file.level);
  }
  REQUIRE(levels.size() >= 3);
  std::set<std::string> planned;
  for (const PlanItemSummary& item : plan.items) {
    planned.insert(item.file);
    INFO(item.file << " " << item.action << " " << item.reason);
    REQUIRE((item.action == "carry" || !item.reason.empty()));
  }
  INFO(ItemsText(plan));
  REQUIRE(planned == names);
  REQUIRE(moved.summary.chunks_carried > 5);
  REQUIRE(moved.summary.chunks_built > 0);
  Expectation expected;
  expected.families = families;
  ExpectSameEntries(dir / "source", dir / "target", expected);
}

}  // namespace sstferry::test
