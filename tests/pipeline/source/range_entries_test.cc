// Entries that are merged from tables without RocksDB, or read through its
// iterator, must equal those that RocksDB shows, and no error may be lost.
#include <rapidcheck.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <utility>
#include <vector>

#include "pipeline/base/rocksdb_compat.h"
#include "pipeline/parts/range_entries.h"
#include "rocksdb/cache.h"
#include "rocksdb/merge_operator.h"
#include "rocksdb/table.h"
#include "rocksdb/wide_columns.h"
#include "tests/support/catch.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/table_world.h"
#include "tests/support/test_db.h"

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

// Returns the entries that RocksDB itself shows, from the interval's begin or
// behind `from`.
Pairs Shown(test::TableWorld* world, const KeyInterval& interval = {},
            const std::optional<std::string>& from = {}) {
  const rocksdb::Comparator* const order = world->family()->GetComparator();
  const std::unique_ptr<rocksdb::Iterator> it(
      world->db()->NewIterator({}, world->family()));
  if (from.has_value() || interval.begin.has_value()) {
    it->Seek(from.has_value() ? *from : *interval.begin);
  } else {
    it->SeekToFirst();
  }
  if (from.has_value() && it->Valid() && it->key() == *from) {
    it->Next();
  }
  Pairs pairs;
  for (; it->Valid(); it->Next()) {
    if (interval.end.has_value() &&
        order->Compare(it->key(), *interval.end) >= 0) {
      break;
    }
    pairs.emplace_back(it->key().ToString(), it->value().ToString());
  }
  REQUIRE_OK(it->status());
  return pairs;
}

// Returns a random interval. *from: unset, or a key in it.
KeyInterval AnyInterval(const rocksdb::Comparator* order,
                        std::optional<std::string>* from) {
  KeyInterval interval;
  std::string a = KeyOf(*rc::gen::inRange(0, 60));
  std::string b = KeyOf(*rc::gen::inRange(0, 60));
  if (order->Compare(a, b) > 0) {
    std::swap(a, b);
  }
  if (*rc::gen::arbitrary<bool>()) {
    interval.begin = a;
  }
  if (a != b && *rc::gen::arbitrary<bool>()) {
    interval.end = b;
  }
  from->reset();
  if (*rc::gen::arbitrary<bool>()) {
    *from = a;
  }
  return interval;
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
  REQUIRE(rc::check([] {
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
      std::optional<std::string> from;
      const KeyInterval interval =
          AnyInterval(world.options().comparator, &from);
      RangeEntries read(world.db(), world.family(), interval, MergeOf(files));
      Seek(from, &read);
      RC_CLASSIFY(read.is_merging(), "merges");
      RC_ASSERT(ReadAll(&read) == Shown(&world, interval, from));
      RC_CLASSIFY(read.is_merging(), "merged to the end");
      RC_ASSERT(read.status().ok());
    }
  }));
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
  REQUIRE(ReadAll(&read) == Shown(&world));
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
  REQUIRE(ReadAll(&read) == Shown(&world));
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
  REQUIRE(ReadAll(&read) == Shown(&world));
}

// Compacts everything into tables of about 2,000 bytes in one level.
void CompactAll(test::TableWorld* world) {
  rocksdb::CompactRangeOptions anew;
  anew.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForce;
  REQUIRE_OK(world->db()->Flush({}));
  REQUIRE_OK(world->db()->CompactRange(anew, nullptr, nullptr));
}

// Deletes KeyOf(number) by a range deletion.
void DeleteOne(test::TableWorld* world, int number) {
  REQUIRE_OK(world->db()->DeleteRange({}, world->family(), KeyOf(number),
                                      KeyOf(number) + "a"));
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
  DeleteOne(&world, 189);
  CompactAll(&world);
  const std::vector<TableFile> files = world.Files();
  REQUIRE(files.size() > 2);
  RangeEntries read(world.db(), world.family(), {}, MergeOf(files));
  read.SeekToBegin();
  REQUIRE(read.is_merging());  // the range deletion is in a later file
  REQUIRE(ReadAll(&read) == Shown(&world));
  REQUIRE_FALSE(read.is_merging());
  REQUIRE_OK(read.status());
}

TEST_CASE("Entries are those that RocksDB shows, also below range deletions",
          "[range_entries]") {
  REQUIRE(rc::check([] {
    test::TableWorld world;
    world.options().comparator = *rc::gen::element(
        rocksdb::BytewiseComparator(), rocksdb::ReverseBytewiseComparator());
    world.table().block_size = *rc::gen::element<size_t>(64, 4096);
    world.Open();
    const rc::Gen<Op> ops = rc::gen::weightedElement<Op>({{10, Op::kPut},
                                                          {2, Op::kDelete},
                                                          {2, Op::kMerge},
                                                          {4, Op::kDeleteRange},
                                                          {2, Op::kFlush},
                                                          {1, Op::kCompact},
                                                          {1, Op::kHold}});
    const int count = *rc::gen::inRange(1, 150);
    for (int i = 0; i < count; ++i) {
      world.Do(*ops, *rc::gen::inRange(0, 60), *rc::gen::inRange(0, 60));
    }
    if (*rc::gen::arbitrary<bool>()) {
      world.Do(Op::kFlush, 0, 0);
    }
    for (int look = 0; look < 4; ++look) {
      std::optional<std::string> from;
      const KeyInterval interval =
          AnyInterval(world.options().comparator, &from);
      const Pairs shown = Shown(&world, interval, from);
      IntervalReader read(world.db(), world.family(), interval, 0);
      Seek(from, &read);
      RC_ASSERT(ReadAll(&read) == shown);
      RC_ASSERT(read.status().ok());
      const Pairs all = Shown(&world, interval);
      read.SeekToLast();
      RC_ASSERT(read.Valid() == !all.empty());
      if (read.Valid()) {
        RC_ASSERT(read.key() == all.back().first);
        RC_ASSERT(read.value() == all.back().second);
        read.SeekFrom(all.front().first);
        RC_ASSERT(read.key() == all.front().first);
      }
      RC_ASSERT(read.status().ok());
    }
  }));
}

TEST_CASE("Entities below a range deletion are those that RocksDB shows",
          "[range_entries]") {
  test::TableWorld world;
  world.Open();
  const rocksdb::WideColumns old = {{"", "old"}, {"a", "1"}};
  const rocksdb::WideColumns anew = {{"", "new"}, {"b", "2"}};
  const rocksdb::WideColumns nameless = {{"c", "3"}};
  const auto put = [&world](int key, const rocksdb::WideColumns& columns) {
    REQUIRE_OK(
        world.db()->PutEntity({}, world.family(), KeyOf(key), columns));
  };
  for (int i = 1; i < 5; ++i) {
    put(i, old);
  }
  if (GENERATE(false, true)) {
    world.Do(Op::kFlush, 0, 0);
  }
  REQUIRE_OK(world.db()->DeleteRange({}, world.family(), KeyOf(1), KeyOf(4)));
  put(2, anew);
  put(3, nameless);
  if (GENERATE(false, true)) {
    world.Do(Op::kFlush, 0, 0);
  }
  IntervalReader read(world.db(), world.family(), {}, 0);
  read.SeekToBegin();
  for (const auto& [key, columns] : {std::pair(2, anew),
                                     std::pair(3, nameless),
                                     std::pair(4, old)}) {
    REQUIRE(read.Valid());
    REQUIRE(read.key() == KeyOf(key));
    REQUIRE(read.is_entity());
    REQUIRE(read.columns() == columns);
    REQUIRE(read.value() ==
            (columns[0].name().empty() ? columns[0].value() : ""));
    read.Next();
  }
  REQUIRE_FALSE(read.Valid());
  REQUIRE_OK(read.status());
}

TEST_CASE("More range deletions than are listed one by one hide their keys",
          "[range_entries]") {
  test::TableWorld world;
  world.Open();
  for (int i = 0; i < 10'000; ++i) {
    REQUIRE_OK(world.db()->Put({}, test::NumberedKey(i), "value"));
  }
  world.Do(Op::kFlush, 0, 0);
  for (int i = 0; i < 10'000; i += 2) {
    REQUIRE_OK(world.db()->DeleteRange({}, world.family(), test::NumberedKey(i),
                                       test::NumberedKey(i) + "a"));
  }
  world.Do(Op::kFlush, 0, 0);
  IntervalReader read(world.db(), world.family(), {}, 0);
  read.SeekToBegin();
  const Pairs found = ReadAll(&read);
  REQUIRE_OK(read.status());
  REQUIRE(found.size() == 5000);
  REQUIRE(found == Shown(&world));
}

TEST_CASE("A reader applies range deletions that a compaction has removed",
          "[range_entries]") {
  test::TableWorld world;
  world.Open();
  for (int i = 1; i < 50; ++i) {
    world.Do(Op::kPut, i, 10);
  }
  world.Do(Op::kFlush, 0, 0);
  DeleteOne(&world, 17);
  world.Do(Op::kFlush, 0, 0);
  const Pairs shown = Shown(&world);
  IntervalReader read(world.db(), world.family(), {}, 0);
  CompactAll(&world);
  read.SeekToBegin();
  REQUIRE(ReadAll(&read) == shown);
  REQUIRE_OK(read.status());
}

TEST_CASE("Range deletions below a row cache are read exactly, or refused",
          "[range_entries]") {
  const ScratchDir dir;
  rocksdb::Options options;
  options.create_if_missing = true;
  std::unique_ptr<rocksdb::DB> db;
  REQUIRE_OK(rocksdb::DB::Open(options, dir / "db", IntoDb(&db)));
  for (const char* key : {"a", "b", "c"}) {
    REQUIRE_OK(db->Put({}, key, "value"));
  }
  REQUIRE_OK(db->DeleteRange({}, db->DefaultColumnFamily(), "b", "c"));
  REQUIRE_OK(db->Flush({}));
  db.reset();
  options.row_cache = rocksdb::NewLRUCache(1 << 20);
  REQUIRE_OK(rocksdb::DB::Open(options, dir / "db", IntoDb(&db)));
  IntervalReader read(db.get(), db->DefaultColumnFamily(), {}, 0);
  read.SeekToBegin();
  const Pairs found = ReadAll(&read);
  if (kIteratorsLoseErrors) {
    REQUIRE(found == Pairs{{"a", "value"}});
    REQUIRE(EndStateOf(read.status()) == EndState::kRefused);
  } else {
    REQUIRE(found == Pairs{{"a", "value"}, {"c", "value"}});
    REQUIRE_OK(read.status());
  }
}

TEST_CASE("The skipping of deleted entries can be cancelled",
          "[range_entries]") {
  test::TableWorld world;
  world.Open();
  for (int i = 0; i < 2000; ++i) {
    REQUIRE_OK(world.db()->Put({}, test::NumberedKey(i), "value"));
  }
  world.Do(Op::kFlush, 0, 0);
  REQUIRE_OK(world.db()->DeleteRange({}, world.family(), test::NumberedKey(0),
                                     test::NumberedKey(2000)));
  world.Do(Op::kFlush, 0, 0);
  int looks = 0;
  IntervalReader read(world.db(), world.family(), {}, 0,
                      [&looks] { return ++looks == 2; });
  read.SeekToBegin();
  REQUIRE_FALSE(read.Valid());
  REQUIRE(looks == (kIteratorsLoseErrors ? 2 : 0));
  REQUIRE(EndStateOf(read.status()) == (kIteratorsLoseErrors
                                            ? EndState::kCancelled
                                            : EndState::kOk));
}

// Changes a byte of a file.
void Damage(const std::string& path, std::streamoff at) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(at);
  file.put('\x7f');
  REQUIRE(file.good());
}

// Requires that a reader has given the first of the entries, and then ended.
void RequireBegin(const Pairs& found, const Pairs& expected) {
  REQUIRE(found.size() < expected.size());
  REQUIRE(std::equal(found.begin(), found.end(), expected.begin()));
}

TEST_CASE("A merge reports the damage that it meets", "[range_entries]") {
  test::TableWorld world;
  world.options().compression = rocksdb::kNoCompression;
  world.table().block_size = 200;
  world.table().no_block_cache = true;
  world.Open();
  FillPlain(&world);
  std::vector<TableFile> files = world.Files();
  const Pairs expected = Shown(&world);
  TableFile& file = files.at(files.size() / 2);
  SECTION("of a table") {}
  SECTION("that RocksDB does not see") {
    const std::string copy = file.path + ".copy";
    std::filesystem::copy_file(file.path, copy);
    file.path = copy;
  }
  Damage(file.path, 500);
  RangeEntries read(world.db(), world.family(), {}, MergeOf(files));
  read.SeekToBegin();
  const Pairs found = ReadAll(&read);
  REQUIRE(read.status().IsCorruption());
  REQUIRE(read.status().ToString().find(
              file.path.substr(file.path.rfind('/') + 1)) !=
          std::string::npos);
  RequireBegin(found, expected);
}

// Fills a level with many tables, and deletes one key by a range deletion if
// `deletes`.
void FillLevel(bool deletes, test::TableWorld* world) {
  world->options().compression = rocksdb::kNoCompression;
  world->options().max_open_files = 20;
  world->table().no_block_cache = true;
  world->Open();
  for (int i = 1; i < 600; ++i) {
    world->Do(Op::kPut, i, 1000);
  }
  CompactAll(world);
  if (deletes) {
    DeleteOne(world, 17);
  }
}

TEST_CASE("A reader ends at a table whose first block is damaged",
          "[range_entries]") {
  const bool merges = GENERATE(false, true);
  const bool deletes = GENERATE(false, true);
  test::TableWorld world;
  FillLevel(deletes, &world);
  const std::vector<TableFile> files = world.Files();
  REQUIRE(files.size() > 100);
  const Pairs expected = Shown(&world);
  const std::string& path = files.at(files.size() / 2).path;
  Damage(path, 20);
  RangeEntriesOptions options = MergeOf(files);
  if (!merges) {
    options.files = nullptr;
  }
  RangeEntries read(world.db(), world.family(), {}, options);
  read.SeekToBegin();
  REQUIRE(read.is_merging() == (merges && !deletes));
  const Pairs found = ReadAll(&read);
  REQUIRE(read.status().IsCorruption());
  REQUIRE(read.status().ToString().find(path.substr(path.rfind('/') + 1)) !=
          std::string::npos);
  REQUIRE(found.size() > expected.size() / 4);
  RequireBegin(found, expected);
}

TEST_CASE("A reader that has met an error does not move on",
          "[range_entries]") {
  test::TableWorld world;
  FillLevel(/*deletes=*/false, &world);
  const std::vector<TableFile> files = world.Files();
  REQUIRE(files.size() > 100);
  Damage(files[1].path, 20);
  IntervalReader read(world.db(), world.family(), {}, 0);
  read.SeekToBegin();
  ReadAll(&read);
  REQUIRE(read.status().IsCorruption());
  read.SeekFrom(files[50].smallest);
  REQUIRE_FALSE(read.Valid());
  REQUIRE(read.status().IsCorruption());
}

TEST_CASE("A range deletion that ends before it begins changes nothing",
          "[range_entries]") {
  const ScratchDir dir;
  test::TableWorld world;
  world.Open();
  for (int i = 1; i < 10; ++i) {
    world.Do(Op::kPut, i, 10);
  }
  world.Do(Op::kFlush, 0, 0);
  for (const int key : {2, 8}) {
    REQUIRE_OK(world.db()->DeleteRange({}, world.family(), KeyOf(key),
                                       KeyOf(key + 1)));
    world.Do(Op::kFlush, 0, 0);
  }
  rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), world.options());
  REQUIRE_OK(writer.Open(dir / "inverted.sst"));
  REQUIRE_OK(writer.Put(KeyOf(6), "ingested"));
  // RocksDB since 8.3 refuses this.
  writer.DeleteRange(KeyOf(6), KeyOf(1)).PermitUncheckedError();
  REQUIRE_OK(writer.Finish());
  REQUIRE_OK(world.db()->IngestExternalFile(world.family(),
                                            {dir / "inverted.sst"}, {}));
  IntervalReader read(world.db(), world.family(), {}, 0);
  read.SeekToBegin();
  REQUIRE(ReadAll(&read) == Shown(&world));
  REQUIRE_OK(read.status());
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

TEST_CASE("A reader ends at a table that cannot be opened", "[range_entries]") {
  const bool deletes = GENERATE(false, true);
  test::TableWorld world;
  FillLevel(deletes, &world);
  REQUIRE(world.Files().size() > 100);
  const Pairs expected = Shown(&world);
  IntervalReader read(world.db(), world.family(), {}, 0);
  read.SeekToBegin();
  REQUIRE(read.Valid());
  Pairs found;
  {
    const FewDescriptors none(0);
    found = ReadAll(&read);
  }
  REQUIRE(read.status().IsIOError());
  RequireBegin(found, expected);
}

TEST_CASE("All merges of a table share one descriptor", "[range_entries]") {
  test::TableWorld world;
  world.options().max_open_files = 10;
  world.Open();
  const std::vector<TableFile> files = FillLevel0(&world, 12);
  const Pairs expected = Shown(&world);
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
  const Pairs expected = Shown(&world);
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
  const Pairs expected = Shown(&second);
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
