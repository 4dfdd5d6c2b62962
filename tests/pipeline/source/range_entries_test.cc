// Entries that are merged from tables without RocksDB are those that RocksDB's
// iterator shows.
#include <rapidcheck.h>

#include <fstream>
#include <memory>
#include <utility>
#include <vector>

#include "pipeline/base/rocksdb_compat.h"
#include "pipeline/source/chunk/range_entries.h"
#include "pipeline/source/plan/file_plan.h"
#include "rocksdb/merge_operator.h"
#include "rocksdb/table.h"
#include "tests/support/catch.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/test_db.h"

namespace sstferry {
namespace {

using rocksdb::Slice;
using rocksdb::Status;

using Pairs = std::vector<std::pair<std::string, std::string>>;

enum class Op {
  kPut,
  kDelete,
  kSingleDelete,
  kFlush,
  kCompact,
  kIngest,
  kHold,
  kMerge,
  kDeleteRange,
};

std::string KeyOf(int number) {
  return number == 0 ? "" : "key" + std::to_string(number % 10) +
                                std::string(number / 10, 'x');
}

class World {
 public:
  World() { options_.create_if_missing = true; }
  ~World() {
    for (const rocksdb::Snapshot* held : held_) {
      db_->ReleaseSnapshot(held);
    }
  }

  rocksdb::Options& options() { return options_; }
  rocksdb::BlockBasedTableOptions& table() { return table_; }
  rocksdb::DB* db() { return db_.get(); }

  void Open() {
    options_.disable_auto_compactions = true;
    options_.enforce_single_del_contracts = false;
    options_.level_compaction_dynamic_level_bytes = false;
    options_.target_file_size_base = 2000;
    options_.merge_operator = test::MergeOperatorNamed("stringappend");
    options_.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table_));
    REQUIRE_OK(rocksdb::DB::Open(options_, dir_ / "db", IntoDb(&db_)));
  }

  void Do(Op op, int number, int other) {
    const std::string key = KeyOf(number);
    const std::string value = std::to_string(++writes_) +
                              std::string(static_cast<size_t>(other), 'v');
    switch (op) {
      case Op::kPut: REQUIRE_OK(db_->Put({}, key, value)); break;
      case Op::kDelete: REQUIRE_OK(db_->Delete({}, key)); break;
      case Op::kSingleDelete: REQUIRE_OK(db_->SingleDelete({}, key)); break;
      case Op::kMerge: REQUIRE_OK(db_->Merge({}, key, value)); break;
      case Op::kDeleteRange: DeleteRange(key, KeyOf(other)); break;
      case Op::kFlush: REQUIRE_OK(db_->Flush({})); break;
      case Op::kCompact: Compact(1 + number % 4); break;
      case Op::kIngest: Ingest(key, value); break;
      case Op::kHold: held_.push_back(db_->GetSnapshot()); break;
    }
  }

  // All files of the family, with the memtable flushed.
  std::vector<FilePlan> Files() {
    REQUIRE_OK(db_->Flush({}));
    uint32_t runs = 0;
    std::vector<FilePlan> files =
        ListFiles(db_.get(), family(), KeyInterval(), &runs);
    CarryRules rules;
    rules.mode = CarryMode::kNever;
    rules.comparator = options_.comparator;
    TableSums sums;
    REQUIRE_OK(DecideCarrying(rules, "default", nullptr, &sums, &files));
    return files;
  }
  rocksdb::ColumnFamilyHandle* family() { return db_->DefaultColumnFamily(); }

 private:
  void DeleteRange(const std::string& a, const std::string& b) {
    const bool ordered = options_.comparator->Compare(a, b) <= 0;
    REQUIRE_OK(db_->DeleteRange({}, family(), ordered ? a : b,
                                ordered ? b : a));
  }
  // The files of the levels above, into that level.
  void Compact(int level) {
    rocksdb::ColumnFamilyMetaData metadata;
    db_->GetColumnFamilyMetaData(&metadata);
    std::vector<std::string> names;
    for (const auto& at : metadata.levels) {
      for (const auto& file : at.files) {
        if (at.level <= level) {
          names.push_back(file.name);
        }
      }
    }
    if (!names.empty()) {
      REQUIRE_OK(db_->CompactFiles({}, names, level));
    }
  }
  void Ingest(const std::string& key, const std::string& value) {
    const std::string path = dir_ / ("in" + std::to_string(writes_) + ".sst");
    rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), options_);
    REQUIRE_OK(writer.Open(path));
    REQUIRE_OK(writer.Put(key.empty() ? "key" : key, value));
    REQUIRE_OK(writer.Finish());
    REQUIRE_OK(db_->IngestExternalFile({path}, {}));
  }

  ScratchDir dir_;
  rocksdb::Options options_;
  rocksdb::BlockBasedTableOptions table_;
  std::unique_ptr<rocksdb::DB> db_;
  std::vector<const rocksdb::Snapshot*> held_;
  int writes_ = 0;
};

template <typename Reader>
Pairs ReadAll(Reader* reader) {
  Pairs pairs;
  for (; reader->Valid(); reader->Next()) {
    pairs.emplace_back(reader->key().ToString(), reader->value().ToString());
  }
  return pairs;
}

template <typename Reader>
void Seek(const std::optional<std::string>& key, bool excluded,
          Reader* reader) {
  if (!key.has_value()) {
    reader->SeekToBegin();
  } else if (excluded) {
    reader->SeekAfter(*key);
  } else {
    reader->SeekFrom(*key);
  }
}

RangeEntriesOptions MergeOf(const std::vector<FilePlan>& files) {
  RangeEntriesOptions options;
  options.readahead_bytes = 64u << 10;
  options.files = &files;
  return options;
}

Pairs Expected(World* world, const KeyInterval& interval = {}) {
  IntervalReader reader(world->db(), world->family(), interval, 0);
  reader.SeekToBegin();
  const Pairs pairs = ReadAll(&reader);
  REQUIRE_OK(reader.status());
  return pairs;
}

// A database of several levels and versions without anything special.
void FillPlain(World* world) {
  for (int round = 0; round < 5; ++round) {
    for (int i = 1; i < 200; i += 1 + round) {
      world->Do(i % 7 == round ? Op::kDelete : Op::kPut, i, round * 3);
    }
    world->Do(round == 1 ? Op::kCompact : Op::kFlush, 3 - round % 2, 0);
  }
}

TEST_CASE("A range is merged without RocksDB as RocksDB shows it",
          "[range_entries]") {
  rc::check([] {
    World world;
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
    const auto ops = rc::gen::weightedElement<Op>(
        {{20, Op::kPut},
         {6, Op::kDelete},
         {3, Op::kSingleDelete},
         {3, Op::kFlush},
         {1, Op::kCompact},
         {2, Op::kIngest},
         {1, Op::kHold},
         {special ? 1u : 0u, Op::kMerge},
         {special ? 1u : 0u, Op::kDeleteRange}});
    const int count = *rc::gen::inRange(1, 200);
    for (int i = 0; i < count; ++i) {
      world.Do(*ops, *rc::gen::inRange(0, 60), *rc::gen::inRange(0, 60));
    }
    const std::vector<FilePlan> files = world.Files();
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
      const bool excluded = *rc::gen::arbitrary<bool>();
      IntervalReader shown(world.db(), world.family(), interval, 0);
      Seek(from, excluded, &shown);
      RangeEntries read(world.db(), world.family(), interval, MergeOf(files));
      Seek(from, excluded, &read);
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
  World world;
  world.Open();
  FillPlain(&world);
  const std::vector<FilePlan> files = world.Files();
  REQUIRE(files.size() > 3);
  RangeEntries read(world.db(), world.family(), {}, MergeOf(files));
  read.SeekToBegin();
  REQUIRE(ReadAll(&read) == Expected(&world));
  REQUIRE(read.is_merging());
}

TEST_CASE("RocksDB goes on where a merge operand or a blob comes",
          "[range_entries]") {
  World world;
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
  std::vector<FilePlan> files = world.Files();
  for (FilePlan& file : files) {
    file.has_blobs = false;  // known only when it comes
  }
  RangeEntries read(world.db(), world.family(), {}, MergeOf(files));
  read.SeekToBegin();
  REQUIRE(read.is_merging());
  REQUIRE(ReadAll(&read) == Expected(&world));
  REQUIRE_FALSE(read.is_merging());
  REQUIRE_OK(read.status());
}

TEST_CASE("RocksDB reads what holds range deletions or blobs, or is in memory",
          "[range_entries]") {
  World world;
  world.options().enable_blob_files = true;
  world.options().min_blob_size = 1000;
  world.Open();
  FillPlain(&world);
  SECTION("a range deletion") { world.Do(Op::kDeleteRange, 20, 29); }
  SECTION("a blob") { world.Do(Op::kPut, 25, 2000); }
  std::vector<FilePlan> files = world.Files();
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

TEST_CASE("RocksDB reports the damage that a merge meets", "[range_entries]") {
  World world;
  world.options().compression = rocksdb::kNoCompression;
  world.table().block_size = 200;
  world.table().no_block_cache = true;
  world.Open();
  FillPlain(&world);
  std::vector<FilePlan> files = world.Files();
  const Pairs expected = Expected(&world);
  const FilePlan& file = files.at(files.size() / 2);
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
  REQUIRE(read.status().ToString().find(file.name) != std::string::npos);
  REQUIRE(found.size() < expected.size());
  REQUIRE(std::equal(found.begin(), found.end(), expected.begin()));
}

TEST_CASE("A merge of deletions alone can be cancelled", "[range_entries]") {
  World world;
  world.Open();
  for (int i = 0; i < 20000; ++i) {
    REQUIRE_OK(world.db()->Delete({}, std::to_string(i)));
  }
  const std::vector<FilePlan> files = world.Files();
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
}  // namespace sstferry
