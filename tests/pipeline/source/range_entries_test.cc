// Entries that are merged from tables without RocksDB must equal those of
// RocksDB's iterator.
#include <rapidcheck.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <utility>
#include <vector>

#include "pipeline/parts/range_entries.h"
#include "rocksdb/merge_operator.h"
#include "rocksdb/table.h"
#include "tests/support/catch.h"
#include "tests/support/table_world.h"

namespace sstferry::range_entries_test {
namespace {

using test::KeyOf;
using test::Op;
using Pairs = std::vector<std::pair<std::string, std::string>>;

template <typename Reader>
Pairs ReadAll(Reader* reader) {
  Pairs pairs;
  for (; reader->Valid(); reader->Next()) {
    pairs.emplace_back(reader->key().ToString(), reader->value().ToString());
  }
  return pairs;
}

template <typename Reader>
void Seek(const std::optional<std::string>& after, Reader* reader) {
  if (!after.has_value()) {
    reader->SeekToBegin();
  } else {
    reader->SeekAfter(*after);
  }
}

RangeEntriesOptions MergeOf(const std::vector<TableFile>& files) {
  RangeEntriesOptions options;
  options.readahead_bytes = 64u << 10;
  options.files = &files;
  return options;
}

Pairs Expected(test::TableWorld* world, const KeyInterval& interval = {}) {
  IntervalReader reader(world->db(), world->family(), interval, 0);
  reader.SeekToBegin();
  const Pairs pairs = ReadAll(&reader);
  REQUIRE_OK(reader.status());
  return pairs;
}

// Fills a database with several levels and versions, but no special entries.
void FillPlain(test::TableWorld* world) {
  for (int round = 0; round < 5; ++round) {
    for (int i = 1; i < 200; i += 1 + round) {
      world->Do(i % 7 == round ? Op::kDelete : Op::kPut, i, round * 3);
    }
    world->Do(round == 1 ? Op::kCompact : Op::kFlush, 3 - round % 2, 0);
  }
}

TEST_CASE("A merge without RocksDB gives the same entries as RocksDB",
          "[range_entries]") {
  rc::check([] {
    test::TableWorld world;
    const bool special = *rc::gen::arbitrary<bool>();
    world.options().comparator = *rc::gen::element(
        rocksdb::BytewiseComparator(), rocksdb::ReverseBytewiseComparator());
    world.options().compression =
        *rc::gen::element(rocksdb::kNoCompression, rocksdb::kSnappyCompression,
                          rocksdb::kLZ4Compression, rocksdb::kZSTD);
    world.table().block_size = *rc::gen::element<size_t>(64, 300, 4096);
    world.table().format_version = *rc::gen::element(2u, 3u, 4u, 5u);
    world.table().checksum =
        *rc::gen::element(rocksdb::kCRC32c, rocksdb::kxxHash64, rocksdb::kXXH3);
    world.table().index_type = *rc::gen::element(
        rocksdb::BlockBasedTableOptions::kBinarySearch,
        rocksdb::BlockBasedTableOptions::kTwoLevelIndexSearch,
        rocksdb::BlockBasedTableOptions::kBinarySearchWithFirstKey);
    world.table().metadata_block_size = 100;
    world.table().data_block_index_type = *rc::gen::element(
        rocksdb::BlockBasedTableOptions::kDataBlockBinarySearch,
        rocksdb::BlockBasedTableOptions::kDataBlockBinaryAndHash);
    world.Open();
    world.Live(special);
    const std::vector<TableFile> files = world.Files();
    for (int look = 0; look < 4; ++look) {
      KeyInterval interval;
      std::string a = KeyOf(*rc::gen::inRange(0, 60));
      std::string b = KeyOf(*rc::gen::inRange(0, 60));
      if (world.options().comparator->Compare(a, b) > 0) {
        std::swap(a, b);
      }
      if (*rc::gen::arbitrary<bool>()) {
        interval.begin = a;
      }
      if (a != b && *rc::gen::arbitrary<bool>()) {
        interval.end = b;
      }
      std::optional<std::string> from;
      if (*rc::gen::arbitrary<bool>()) {
        from = a;
      }
      IntervalReader shown(world.db(), world.family(), interval, 0);
      Seek(from, &shown);
      RangeEntries read(world.db(), world.family(), interval, MergeOf(files));
      Seek(from, &read);
      RC_CLASSIFY(read.is_merging(), "merges");
      RC_ASSERT(ReadAll(&read) == ReadAll(&shown));
      RC_CLASSIFY(read.is_merging(), "merged to the end");
      RC_ASSERT(read.status().ok());
      RC_ASSERT(shown.status().ok());
    }
  });
}

TEST_CASE("A database of plain puts and deletions is merged to its end",
          "[range_entries]") {
  test::TableWorld world;
  world.Open();
  FillPlain(&world);
  const std::vector<TableFile> files = world.Files();
  REQUIRE(files.size() > 3);
  RangeEntries read(world.db(), world.family(), {}, MergeOf(files));
  read.SeekToBegin();
  REQUIRE(ReadAll(&read) == Expected(&world));
  REQUIRE(read.is_merging());
}

TEST_CASE("RocksDB continues at a merge operand or a blob", "[range_entries]") {
  test::TableWorld world;
  SECTION("a merge operand") {
    world.Open();
    FillPlain(&world);
    world.Do(Op::kMerge, 25, 4);
  }
  SECTION("a blob") {
    world.options().enable_blob_files = true;
    world.options().min_blob_size = 1000;
    world.Open();
    FillPlain(&world);
    world.Do(Op::kPut, 25, 2000);
  }
  std::vector<TableFile> files = world.Files();
  for (TableFile& file : files) {
    file.has_blobs = false;  // so the merge meets it unprepared
  }
  RangeEntries read(world.db(), world.family(), {}, MergeOf(files));
  read.SeekToBegin();
  REQUIRE(read.is_merging());
  REQUIRE(ReadAll(&read) == Expected(&world));
  REQUIRE_FALSE(read.is_merging());
  REQUIRE_OK(read.status());
}

TEST_CASE("RocksDB reads parts with range deletions or blobs, or in memory",
          "[range_entries]") {
  test::TableWorld world;
  world.options().enable_blob_files = true;
  world.options().min_blob_size = 1000;
  world.Open();
  FillPlain(&world);
  SECTION("a range deletion") { world.Do(Op::kDeleteRange, 20, 29); }
  SECTION("a blob") { world.Do(Op::kPut, 25, 2000); }
  std::vector<TableFile> files = world.Files();
  RangeEntriesOptions options = MergeOf(files);
  SECTION("in memory") {
    world.Do(Op::kPut, 25, 2);
    options.files = nullptr;
  }
  RangeEntries read(world.db(), world.family(), {}, options);
  read.SeekToBegin();
  REQUIRE_FALSE(read.is_merging());
  REQUIRE(ReadAll(&read) == Expected(&world));
}

TEST_CASE("RocksDB continues before the first key that a range deletion covers",
          "[range_entries]") {
  test::TableWorld world;
  world.options().compression = rocksdb::kNoCompression;
  world.Open();
  for (int i = 1; i < 200; ++i) {
    world.Do(Op::kPut, i, 100);
  }
  world.Do(Op::kHold, 0, 0);  // so that compactions keep deleted entries
  REQUIRE_OK(world.db()->DeleteRange({}, world.family(), KeyOf(189),
                                     KeyOf(189) + "a"));
  rocksdb::CompactRangeOptions anew;
  anew.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForce;
  REQUIRE_OK(world.db()->Flush({}));
  REQUIRE_OK(world.db()->CompactRange(anew, nullptr, nullptr));
  const std::vector<TableFile> files = world.Files();
  REQUIRE(files.size() > 2);
  RangeEntries read(world.db(), world.family(), {}, MergeOf(files));
  read.SeekToBegin();
  REQUIRE(read.is_merging());  // the range deletion is in a later file
  REQUIRE(ReadAll(&read) == Expected(&world));
  REQUIRE_FALSE(read.is_merging());
  REQUIRE_OK(read.status());
}

TEST_CASE("RocksDB reports the damage that a merge meets", "[range_entries]") {
  test::TableWorld world;
  world.options().compression = rocksdb::kNoCompression;
  world.table().block_size = 200;
  world.table().no_block_cache = true;
  world.Open();
  FillPlain(&world);
  std::vector<TableFile> files = world.Files();
  const Pairs expected = Expected(&world);
  const TableFile& file = files.at(files.size() / 2);
  {
    std::fstream damaged(file.path,
                         std::ios::in | std::ios::out | std::ios::binary);
    damaged.seekp(500);
    damaged.put('\x7f');
  }
  RangeEntries read(world.db(), world.family(), {}, MergeOf(files));
  read.SeekToBegin();
  const Pairs found = ReadAll(&read);
  REQUIRE(read.status().IsCorruption());
  REQUIRE(read.status().ToString().find(
              file.path.substr(file.path.rfind('/') + 1)) !=
          std::string::npos);
  REQUIRE(found.size() < expected.size());
  REQUIRE(std::equal(found.begin(), found.end(), expected.begin()));
}

// Returns the number of this process's descriptors that are open on tables.
size_t OpenTables() {
  size_t open = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string file =
        std::filesystem::read_symlink(entry.path(), gone).string();
    open += file.ends_with(".sst") ? 1 : 0;
  }
  return open;
}

// Makes files in level 0, each with all keys.
std::vector<TableFile> FillLevel0(test::TableWorld* world, int files) {
  for (int file = 0; file < files; ++file) {
    for (int i = 0; i < 20; ++i) {
      world->Do(Op::kPut, i, 0);
    }
    world->Do(Op::kFlush, 0, 0);
  }
  return world->Files();
}

// Limits the number of descriptors of this process while it exists.
class FewDescriptors {
 public:
  explicit FewDescriptors(rlim_t few) {
    REQUIRE(getrlimit(RLIMIT_NOFILE, &old_) == 0);
    const rlimit limit{few, old_.rlim_max};
    REQUIRE(setrlimit(RLIMIT_NOFILE, &limit) == 0);
  }
  ~FewDescriptors() { setrlimit(RLIMIT_NOFILE, &old_); }

 private:
  rlimit old_{};
};

TEST_CASE("All merges of a table share one descriptor", "[range_entries]") {
  test::TableWorld world;
  world.options().max_open_files = 10;
  world.Open();
  const std::vector<TableFile> files = FillLevel0(&world, 12);
  const Pairs expected = Expected(&world);
  const size_t before = OpenTables();
  std::vector<std::unique_ptr<RangeEntries>> lanes;
  for (int lane = 0; lane < 4; ++lane) {
    lanes.push_back(std::make_unique<RangeEntries>(
        world.db(), world.family(), KeyInterval(), MergeOf(files)));
    lanes.back()->SeekToBegin();
    REQUIRE(lanes.back()->is_merging());
  }
  REQUIRE(OpenTables() == before + files.size());
  lanes.erase(lanes.begin());
  for (const auto& lane : lanes) {
    REQUIRE(ReadAll(lane.get()) == expected);
  }
  lanes.clear();
  REQUIRE(OpenTables() == before);
}

TEST_CASE("RocksDB reads if there are more sorted runs than a quarter of the "
          "descriptors",
          "[range_entries]") {
  test::TableWorld world;
  world.Open();
  const std::vector<TableFile> files = FillLevel0(&world, 30);
  const Pairs expected = Expected(&world);
  const FewDescriptors few(4 * 25);
  RangeEntries read(world.db(), world.family(), {}, MergeOf(files));
  read.SeekToBegin();
  REQUIRE_FALSE(read.is_merging());
  REQUIRE(ReadAll(&read) == expected);
  REQUIRE_OK(read.status());
}

TEST_CASE("If no descriptor is left for a merge, RocksDB reads",
          "[range_entries]") {
  test::TableWorld first;
  first.Open();
  const std::vector<TableFile> files = FillLevel0(&first, 20);
  test::TableWorld second;
  second.Open();
  const std::vector<TableFile> others = FillLevel0(&second, 20);
  const Pairs expected = Expected(&second);
  const FewDescriptors few(4 * 30);
  RangeEntries holds(first.db(), first.family(), {}, MergeOf(files));
  holds.SeekToBegin();
  REQUIRE(holds.is_merging());
  RangeEntries read(second.db(), second.family(), {}, MergeOf(others));
  read.SeekToBegin();
  REQUIRE_FALSE(read.is_merging());
  REQUIRE(ReadAll(&read) == expected);
  REQUIRE_OK(read.status());
}

TEST_CASE("A merge of deletions alone can be cancelled", "[range_entries]") {
  test::TableWorld world;
  world.Open();
  for (int i = 0; i < 20000; ++i) {
    REQUIRE_OK(world.db()->Delete({}, std::to_string(i)));
  }
  const std::vector<TableFile> files = world.Files();
  RangeEntriesOptions options = MergeOf(files);
  int looks = 0;
  options.cancelled = [&looks] { return ++looks == 2; };
  RangeEntries read(world.db(), world.family(), {}, options);
  read.SeekToBegin();
  REQUIRE_FALSE(read.Valid());
  REQUIRE(looks == 2);
  REQUIRE(EndStateOf(read.status()) == EndState::kCancelled);
}

}  // namespace
}  // namespace sstferry::range_entries_test
