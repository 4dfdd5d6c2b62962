// Restores parts of a set (some keys of some column families) from an archive.
// Only the needed bytes are read. The store counts them, and may return wrong
// ones.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "format/byte_source.h"
#include "format/end_state.h"
#include "format/release.h"
#include "format/rocksdb/sst_reader.h"
#include "pipeline/archive/open_store.h"
#include "pipeline/archive/restore.h"
#include "pipeline/archive/seal.h"
#include "pipeline/archive/set_reader.h"
#include "pipeline/base/rocksdb_compat.h"
#include "rocksdb/filter_policy.h"
#include "rocksdb/table.h"
#include "sstferry/archive.h"
#include "sstferry/target.h"
#include "tests/support/catch.h"
#include "tests/support/edited_options.h"
#include "tests/support/log_bytes.h"
#include "tests/support/named_comparator.h"
#include "tests/support/restored.h"
#include "tests/support/test_db.h"

namespace sstferry::test::range_test {
namespace {

namespace fs = std::filesystem;
using rocksdb::ColumnFamilyOptions;
using rocksdb::Slice;
using rocksdb::Status;

// Changes the bytes that a read of an object returns.
using Lie = std::function<void(const GetRequest& request, std::string* bytes)>;

constexpr std::chrono::milliseconds kSlow{500};

struct Reads {
  std::atomic<uint64_t> bytes{0};   // from tables and blob files
  std::atomic<uint64_t> others{0};  // from WALs, MANIFEST, OPTIONS
  std::atomic<uint64_t> most{UINT64_MAX};  // later reads fail
  std::atomic<int> slow{0};  // number of reads that take kSlow longer
  Lie lie;                          // may be null
};

// A store in a directory that counts reads, and may return wrong bytes.
class WatchedStore : public ObjectStore {
 public:
  WatchedStore(std::unique_ptr<ObjectStore> store, Reads* reads)
      : store_(std::move(store)), reads_(*reads) {}

  StoreResult GetUnproven(const GetRequest& request,
                          const ObjectSink& sink) override {
    std::string bytes;
    const StoreResult got = store_->Get(
        request, [&bytes](const Slice& piece) {
          bytes.append(piece.data(), piece.size());
          return Status::OK();
        });
    const bool is_file = request.key.starts_with("files/");
    const bool is_part = request.key.starts_with("parts/");
    if ((is_file || is_part) && --reads_.slow >= 0) {
      std::this_thread::sleep_for(kSlow);  // the slowness itself
    }
    if (is_file || is_part) {
      if (reads_.most == 0) {
        return StoreError(StoreCode::kUnreachable, "a store that is away");
      }
      --reads_.most;
      (is_file ? reads_.bytes : reads_.others) += bytes.size();
    }
    if (!got.ok()) {
      return got;
    }
    const size_t whole = bytes.size();
    if (is_file && reads_.lie) {
      reads_.lie(request, &bytes);
    }
    const Status taken = sink(bytes);
    if (!taken.ok()) {
      return {StoreCode::kCaller, taken};
    }
    return bytes.size() == whole
               ? got
               : StoreError(StoreCode::kDamaged, "the object ends before");
  }
  void Cancel() override { store_->Cancel(); }
  const std::string& place() const override { return store_->place(); }
  StoreResult Now(UnixSeconds* now) override { return store_->Now(now); }
  UnixSeconds SigningTime() const override { return store_->SigningTime(); }
  StoreResult Put(const PutRequest& request) override {
    return store_->Put(request);
  }
  StoreResult HeadUnproven(const std::string& key, ObjectInfo* info) override {
    return store_->Head(key, info);
  }
  StoreResult List(const std::string& prefix, const std::string& after,
                   ListPage* page) override {
    return store_->List(prefix, after, page);
  }
  StoreResult Delete(const std::vector<std::string>& keys) override {
    return store_->Delete(keys);
  }
  StoreResult RemoveUploads(
      UnixSeconds before,
      const std::function<bool(const std::string& key)>& may_remove,
      uint64_t* removed) override {
    return store_->RemoveUploads(before, may_remove, removed);
  }

 private:
  const std::unique_ptr<ObjectStore> store_;
  Reads& reads_;
};

uint64_t Setting(const char* name, uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// Returns options for small tables and blocks, so that a small database has
// many.
ColumnFamilyOptions Small() {
  ColumnFamilyOptions options = Quiet();
  options.target_file_size_base = 48u << 10;
  options.compression = rocksdb::kNoCompression;
  rocksdb::BlockBasedTableOptions table;
  table.block_size = 1024;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

Families SomeFamilies() {
  Families families = OneFamily(Small());
  ColumnFamilyOptions blobs = Small();
  blobs.enable_blob_files = true;
  blobs.min_blob_size = 200;
  families.emplace_back("blobs", blobs);
  ColumnFamilyOptions merges = Small();
  merges.merge_operator = MergeOperatorNamed("id=stringappend;delimiter=/");
  families.emplace_back("merges", merges);
  ColumnFamilyOptions indexed = Small();
  rocksdb::BlockBasedTableOptions table;
  table.block_size = 512;
  table.metadata_block_size = 512;
  table.index_type = rocksdb::BlockBasedTableOptions::kTwoLevelIndexSearch;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  table.partition_filters = true;
  table.format_version = 4;
  indexed.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  families.emplace_back("indexed", indexed);
  return families;
}

constexpr int kKeys = 6000;

// Writes some random entries and deletions. Some range deletions are wide.
void WriteSome(OpenDb* db, int count, std::mt19937_64* random) {
  for (const char* const family : {"default", "blobs", "merges", "indexed"}) {
    for (int i = 0; i < count; ++i) {
      const uint64_t number = (*random)() % kKeys;
      const std::string key = NumberedKey(number);
      const uint64_t step = (*random)() % 40;
      if (step == 0) {
        const uint64_t width = (*random)() % ((*random)() % 8 == 0 ? 900 : 40);
        db->DeleteRange(key, NumberedKey(number + 1 + width), family);
      } else if (step < 4) {
        db->Delete(key, family);
      } else if (step < 14 && family == std::string("merges")) {
        db->Merge(key, "and " + std::to_string(i), family);
      } else if (step < 8 && family == std::string("blobs") &&
                 kLinkedRelease >= kReadsBlobColumns) {
        const std::string value = RandomBytes(300, number + i);
        const std::string longer = value + "c";
        const rocksdb::WideColumns columns = {{"", value}, {"column", longer}};
        REQUIRE_OK((*db)->PutEntity({}, db->cf(family), key, columns));
      } else {
        db->Put(key, RandomBytes(20 + (*random)() % 400, number + i), family);
      }
    }
  }
}

void CompactTo(OpenDb* db, const std::string& family, int level) {
  rocksdb::CompactRangeOptions options;
  options.change_level = true;
  options.target_level = level;
  REQUIRE_OK((*db)->CompactRange(options, db->cf(family), nullptr, nullptr));
}

// Moves the files of level 0 to another level.
void MoveLevel0(OpenDb* db, const std::string& family, int level) {
  rocksdb::ColumnFamilyMetaData metadata;
  (*db)->GetColumnFamilyMetaData(db->cf(family), &metadata);
  std::vector<std::string> inputs;
  for (const auto& file : metadata.levels[0].files) {
    inputs.push_back(file.name);
  }
  REQUIRE_OK((*db)->CompactFiles(rocksdb::CompactionOptions(), db->cf(family),
                                 inputs, level));
}

// Makes a database with entries in several levels, in level 0, and only in the
// WAL.
void MakeLevels(const std::string& path, uint64_t seed) {
  std::mt19937_64 random(seed);
  const Families families = SomeFamilies();
  OpenDb db(path, families);
  for (const auto& family : families) {
    for (int i = 0; i < kKeys; ++i) {
      db.Put(NumberedKey(i), RandomBytes(60 + i % 300, i), family.name);
    }
  }
  db.Flush();
  for (const auto& family : families) {
    CompactTo(&db, family.name, 6);
  }
  // These entries go to level 4, above the ones in level 6.
  WriteSome(&db, 1200, &random);
  db.Flush();
  for (const auto& family : families) {
    MoveLevel0(&db, family.name, 4);
  }
  for (int flush = 0; flush < 3; ++flush) {
    WriteSome(&db, 200, &random);
    db.Flush();
  }
  WriteSome(&db, 100, &random);
}

using Entries = std::vector<std::pair<std::string, std::string>>;

Entries Within(const Entries& entries, const KeyInterval& interval) {
  Entries inside;
  std::copy_if(entries.begin(), entries.end(), std::back_inserter(inside),
               [&interval](const auto& entry) {
                 return (!interval.begin || entry.first >= *interval.begin) &&
                        (!interval.end || entry.first < *interval.end);
               });
  return inside;
}

// An archive of a database. Restores parts of it.
class World {
 public:
  void Push() {
    InitArchive(dir / "archive");
    PushTo(dir / "archive", dir / "source");
  }
  Ferried Restore(const Selection& selection,
                  const std::string& target = "target") {
    StoreOptions where;
    where.where.directory = dir / "archive";
    std::unique_ptr<ObjectStore> store;
    REQUIRE_OK(OpenStore(where, &store));
    fs::create_directory(dir / "scratch");
    PullOptions pull;
    pull.target_dir = dir / target;
    pull.lanes = 2;
    pull.chunk_bytes = chunk_bytes;
    pull.selection = selection;
    pull.method = method;
    pull.verify = verify;
    pull.timeouts = TriedOnce(timeouts);
    const Ferried restored = RestoreThrough(
        MakeArchiveOriginOf(
            std::make_unique<WatchedStore>(std::move(store), &reads), "latest",
            key),
        pull, dir / "scratch");
    // No blocks or directories are left.
    REQUIRE(fs::is_empty(dir / "scratch"));
    return restored;
  }
  std::string LargestTable() const {
    std::string largest;
    for (const auto& entry :
         fs::recursive_directory_iterator(dir / "archive/files")) {
      if (entry.is_regular_file() &&
          (largest.empty() ||
           entry.file_size() > fs::file_size(largest))) {
        largest = entry.path();
      }
    }
    return largest;
  }

  ScratchDir dir;
  Reads reads;
  uint64_t chunk_bytes = 256u << 10;
  PullMethod method = PullMethod::kAuto;
  bool verify = false;
  Timeouts timeouts;
  std::shared_ptr<SealKey> key;  // null: the set is not sealed
};

KeyInterval Between(uint64_t begin, uint64_t end) {
  return {NumberedKey(begin), NumberedKey(end)};
}

TEST_CASE("A restored range of a set equals that range of a full restore",
          "[archive][range]") {
  World world;
  MakeLevels(world.dir / "source", 1);
  world.Push();
  const Ferried full = RestoreFrom(world.dir / "archive", world.dir / "full");
  REQUIRE_OK(full.status);
  const Families families = SomeFamilies();
  std::vector<Entries> expected;
  for (const auto& family : families) {
    expected.push_back(EntriesOf(world.dir / "full", families, family.name));
  }
  std::mt19937_64 random(Setting("SSTFERRY_RANGES_SEED", 1));
  const uint64_t ranges = Setting("SSTFERRY_RANGES", 6);
  for (uint64_t i = 0; i < ranges; ++i) {
    Selection selection;
    const uint64_t width = 1 + random() % (random() % 4 == 0 ? kKeys : 300);
    const uint64_t begin = random() % kKeys;
    selection.interval = Between(begin, begin + width);
    switch (random() % 8) {
      case 0: selection.interval.begin.reset(); break;
      case 1: selection.interval.end.reset(); break;
      default: break;
    }
    if (random() % 4 == 0) {
      selection.families = {families[random() % families.size()].name};
    }
    world.verify = random() % 4 == 0;
    const Ferried part = world.Restore(selection);
    INFO(i << ": " << begin << " + " << width << ": " << part.message());
    REQUIRE_OK(part.status);
    REQUIRE(part.summary.method == "ingest");
    Families restored = families;
    std::erase_if(restored, [&selection](const auto& family) {
      return !selection.families.empty() && family.name != "default" &&
             family.name != selection.families[0];
    });
    for (size_t at = 0; at < families.size(); ++at) {
      const std::string& name = families[at].name;
      const bool is_wanted =
          selection.families.empty() || selection.families[0] == name;
      INFO(name);
      if (is_wanted) {
        REQUIRE((EntriesOf(world.dir / "target", restored, name) ==
                 Within(expected[at], selection.interval)));
      }
    }
    fs::remove_all(world.dir / "target");
  }
}

TEST_CASE("A restore of a range is refused if an entry may have unknown blobs",
          "[archive][range]") {
  World world;
  {
    OpenDb db(world.dir / "source", OneFamily(Small()));
    for (int i = 0; i < 1000; ++i) {
      db.Put(NumberedKey(i), RandomBytes(300, i));
    }
    const std::string key = NumberedKey(700);
    const std::string entity = ReferringEntity(ExpiringReference());
    std::string batch(12, '\0');
    batch[8] = 1;
    batch += '\x16';
    batch += static_cast<char>(key.size());
    batch += key;
    batch += static_cast<char>(entity.size());
    rocksdb::WriteBatch odd(batch + entity);
    REQUIRE_OK(db->Write({}, &odd));
    db.Flush();
  }
  world.Push();
  Selection selection;
  selection.interval = Between(100, 200);
  REQUIRE_OK(world.Restore(selection).status);
  selection.interval = Between(600, 800);
  const Ferried part = world.Restore(selection, "refused");
  INFO(part.message());
  REQUIRE(part.state() == EndState::kRefused);
  REQUIRE(part.message().find("without --begin and --end") !=
          std::string::npos);
}

// At a range deletion, RocksDB seeks to its end, even after the end of the
// interval. Blocks there were not fetched, so RocksDB would report damage.
TEST_CASE("RocksDB does not read unfetched blocks after a wide range deletion",
          "[archive][range]") {
  World world;
  {
    OpenDb db(world.dir / "source", OneFamily(Small()));
    for (int i = 0; i < 4000; ++i) {
      db.Put(NumberedKey(i), RandomBytes(300, i));
    }
    db.Flush();
    CompactTo(&db, "default", 6);
    // One range deletion leads from 500 to 1500, the next from there to 3000.
    db.DeleteRange(NumberedKey(1400), NumberedKey(3000));
    db.Flush();
    db.DeleteRange(NumberedKey(500), NumberedKey(1500));
    db.DeleteRange(NumberedKey(700), NumberedKey(720));
    db.Flush();
    db.DeleteRange(NumberedKey(3300), NumberedKey(3800));  // in the WAL
  }
  world.Push();
  const Entries all = EntriesOf(world.dir / "source", OneFamily(Small()));
  for (const KeyInterval& interval :
       {Between(300, 600), Between(300, 710), Between(600, 1600),
        Between(300, 501), Between(1450, 3100), Between(3200, 3500)}) {
    Selection selection;
    selection.interval = interval;
    const Ferried part = world.Restore(selection);
    INFO(*interval.begin << ": " << part.message());
    REQUIRE_OK(part.status);
    REQUIRE((EntriesOf(world.dir / "target", OneFamily(Small())) ==
             Within(all, interval)));
    fs::remove_all(world.dir / "target");
  }
}

// RocksDB splits overlapping range deletions only within one table. Recovery
// flushes these two range deletions into two tables, so the one from 700 does
// not end the one from 500.
TEST_CASE("RocksDB reads no unfetched blocks after deletions of two WAL tables",
          "[archive][range]") {
  World world;
  ColumnFamilyOptions options = Small();
  options.target_file_size_base = 64u << 20;
  {
    OpenDb db(world.dir / "source", OneFamily(options));
    for (int i = 0; i < 4000; ++i) {
      db.Put(NumberedKey(i), RandomBytes(300, i));
    }
    db.Flush();
    CompactTo(&db, "default", 6);
    db.DeleteRange(NumberedKey(500), NumberedKey(3000));
    // Writes more than a memtable of the snapshot's copy can hold, so that
    // recovery makes two tables.
    for (int i = 9000; i < 9040; ++i) {
      db.Put(NumberedKey(i), RandomBytes(1 << 20, i));
    }
    db.DeleteRange(NumberedKey(700), NumberedKey(720));
  }
  world.Push();
  Selection selection;
  selection.interval = Between(300, 550);
  const Ferried part = world.Restore(selection);
  INFO(part.message());
  REQUIRE_OK(part.status);
  REQUIRE((EntriesOf(world.dir / "target", OneFamily(options)) ==
           Within(EntriesOf(world.dir / "source", OneFamily(options)),
                  selection.interval)));
}

// A seek reads a block of each table of level 0. In each other level, it reads
// a block of the first table that does not end before the key, even if this
// table begins after the interval.
TEST_CASE("RocksDB does not read unfetched blocks after a gap in a level",
          "[archive][range]") {
  const int level = GENERATE(0, 4);
  World world;
  world.chunk_bytes = 64u << 10;
  ColumnFamilyOptions options = Small();
  options.merge_operator = MergeOperatorNamed("id=stringappend;delimiter=/");
  {
    OpenDb db(world.dir / "source", OneFamily(options));
    for (int i = 0; i < 4000; ++i) {
      // The largest parts, with these two values, are requested first.
      const bool is_large = i == 1000 || i == 2000;
      db.Put(NumberedKey(i), RandomBytes(is_large ? 200'000 : 300, i));
    }
    db.Flush();
    CompactTo(&db, "default", 6);
    for (int i = 5000; i < 5010; ++i) {
      db.Put(NumberedKey(i), RandomBytes(300, i));
    }
    db.Flush();
    if (level != 0) {
      MoveLevel0(&db, "default", level);
    }
    // Only RocksDB's iterator reads parts with merge operands.
    for (int i = 0; i < 4000; ++i) {
      db.Merge(NumberedKey(i), "more");
    }
    db.Flush();
  }
  world.Push();
  Selection selection;
  selection.interval = Between(0, 6000);
  const Ferried part = world.Restore(selection);
  INFO("level " << level << ": " << part.message());
  REQUIRE_OK(part.status);
  REQUIRE((EntriesOf(world.dir / "target", OneFamily(options)) ==
           EntriesOf(world.dir / "source", OneFamily(options))));
}

// A look-up of 150, at the end of a range deletion, continues with the block of
// 100, whose separator is above the interval, to that of 900.
TEST_CASE("RocksDB does not read unfetched blocks when it looks a key up",
          "[archive][range]") {
  World world;
  ColumnFamilyOptions options = Small();
  rocksdb::BlockBasedTableOptions table;
  table.block_size = 1;  // a block for each entry
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  {
    OpenDb db(world.dir / "source", OneFamily(options));
    db.Put(NumberedKey(150), "value");
    db.Flush();
    CompactTo(&db, "default", 6);
    db.Put(NumberedKey(100), "value");
    db.Put(NumberedKey(900), "value");
    db.Flush();
    db.DeleteRange(NumberedKey(120), NumberedKey(150));
  }
  world.Push();
  const Entries all = EntriesOf(world.dir / "source", OneFamily(options));
  Selection selection;
  selection.interval = Between(50, 160);
  const Ferried part = world.Restore(selection);
  INFO(part.message());
  REQUIRE_OK(part.status);
  REQUIRE((EntriesOf(world.dir / "target", OneFamily(options)) ==
           Within(all, selection.interval)));
}

// Returns options for blocks of equal size. Before format_version 6, a block's
// checksum does not depend on its place.
ColumnFamilyOptions OfOneSize() {
  ColumnFamilyOptions options = Small();
  options.target_file_size_base = 64u << 20;
  rocksdb::BlockBasedTableOptions table;
  table.block_size = 1000;
  table.block_restart_interval = 1;
  table.format_version = 5;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

void MakeOfOneSize(const std::string& path, uint64_t seed) {
  OpenDb db(path, OneFamily(OfOneSize()));
  for (int i = 0; i < 2000; ++i) {
    db.Put(NumberedKey(i), RandomBytes(100, seed + i));
  }
  db.Flush();
}

TEST_CASE(
    "A block from another place is detected, though its checksum is right",
    "[archive][range]") {
  World world;
  MakeOfOneSize(world.dir / "source", 1);
  world.Push();
  const std::string path = world.LargestTable();
  std::ifstream in(path, std::ios::binary);
  const std::string table{std::istreambuf_iterator<char>(in), {}};
  SstReader reader;
  const SliceSource source(table);
  REQUIRE_OK(reader.Open(&source));
  uint64_t block_bytes = 0;
  REQUIRE_OK(reader.ForEachIndexEntry([&](const SstIndexEntry& entry) {
    block_bytes = block_bytes == 0 ? entry.handle.end() : block_bytes;
    return Status::OK();
  }));
  Selection selection;
  selection.interval = Between(500, 700);
  std::atomic<int> lies{0};
  world.reads.lie = [&](const GetRequest& request, std::string* bytes) {
    if (request.offset > block_bytes &&
        request.offset + bytes->size() < table.size() * 3 / 4) {
      *bytes = table.substr(request.offset - block_bytes, bytes->size());
      ++lies;
    }
  };
  const Ferried part = world.Restore(selection);
  INFO(part.message());
  REQUIRE(part.state() == EndState::kCorrupt);
  REQUIRE(part.message().find("as the index says") != std::string::npos);
  REQUIRE(lies == kTriesOfBytes);
}

TEST_CASE("A table of another database is detected, though it is intact",
          "[archive][range]") {
  World world;
  MakeOfOneSize(world.dir / "source", 1);
  MakeOfOneSize(world.dir / "other", 7);
  world.Push();
  const std::string other = PathsWith(world.dir / "other", ".sst").at(0);
  const std::string path = world.LargestTable();
  REQUIRE(fs::file_size(other) == fs::file_size(path));
  fs::remove(path);
  fs::copy_file(other, path);
  Selection selection;
  selection.interval = Between(500, 700);
  const Ferried part = world.Restore(selection);
  INFO(part.message());
  REQUIRE(part.state() == EndState::kCorrupt);
  REQUIRE(part.message().find("another table") != std::string::npos);
}

TEST_CASE("A range costs little more than its own bytes", "[archive][range]") {
  World world;
  // The size of the database in MB: 5000 makes 5 GB.
  const uint64_t megabytes = Setting("SSTFERRY_RANGE_MEGABYTES", 40);
  const uint64_t keys = megabytes * 1000;
  ColumnFamilyOptions options = Quiet();
  options.write_buffer_size = 16u << 20;
  options.target_file_size_base =
      std::min<uint64_t>(64u << 20, megabytes * 20'000);
  options.compression = rocksdb::kNoCompression;
  uint64_t last_level_bytes = 0;
  {
    OpenDb db(world.dir / "source", OneFamily(options));
    const auto put = [&](uint64_t number, uint64_t seed) {
      db.Put(NumberedKey(number), RandomBytes(1000, seed));
    };
    for (uint64_t i = 0; i < keys; ++i) put(i, i % 1000);
    db.Flush();
    CompactTo(&db, "default", 6);
    for (uint64_t i = 0; i < keys; i += 10) put(i, i % 999);
    db.DeleteRange(NumberedKey(keys / 2 + keys / 100),
                   NumberedKey(keys / 2 + keys / 90));
    db.Flush();
    for (uint64_t i = 0; i < keys; i += 100) put(i, i % 998);
    db.Flush();
    for (uint64_t i = 0; i < 100; ++i) put(i * keys / 100, i);
  }
  world.Push();
  Selection selection;
  selection.interval = Between(keys / 2, keys / 2 + keys / 50);
  const Ferried part = world.Restore(selection);
  INFO(part.message());
  REQUIRE_OK(part.status);
  REQUIRE(part.notes_mention("reads of the archive: about "));
  const Entries entries =
      EntriesOf(world.dir / "target", OneFamily(options));
  for (const auto& entry : entries) {
    last_level_bytes += entry.first.size() + entry.second.size();
  }
  REQUIRE(last_level_bytes > keys * 1000 / 60);
  // In a small database, the footers and indexes of tables weigh more.
  const double most = megabytes >= 1000 ? 1.3 : 2;
  WARN(megabytes << " MB: " << world.reads.bytes << " bytes of tables, "
                 << last_level_bytes << " bytes of entries, "
                 << world.reads.others << " of WALs and MANIFEST");
  REQUIRE(static_cast<double>(world.reads.bytes) <
          most * static_cast<double>(last_level_bytes));
}

TEST_CASE(
    "If a store lies about a range, the range is requested again or fails",
    "[archive][range]") {
  World world;
  MakeLevels(world.dir / "source", 2);
  world.Push();
  Selection selection;
  selection.interval = Between(2000, 2600);
  const Families families = SomeFamilies();
  REQUIRE_OK(world.Restore(selection, "right").status);
  const auto require_right = [&](const std::string& target) {
    for (const auto& family : families) {
      REQUIRE((EntriesOf(world.dir / target, families, family.name) ==
               EntriesOf(world.dir / "right", families, family.name)));
    }
  };
  std::mt19937_64 random(3);
  std::atomic<uint64_t> at{0};
  uint64_t wrong_at = 0;
  int bad = 0;
  const auto other_bytes = [&](const GetRequest& request, std::string* bytes) {
    // Bytes from another place of the same file, with correct checksums.
    const std::string path = world.dir / "archive" + ("/" + request.key);
    std::ifstream in(path, std::ios::binary);
    const std::string whole{std::istreambuf_iterator<char>(in), {}};
    const uint64_t shift = 1040;
    const uint64_t from = request.offset >= shift ? request.offset - shift : 0;
    *bytes = whole.substr(from, bytes->size());
  };
  const std::vector<Lie> lies = {
      [&](const GetRequest&, std::string* bytes) {
        (*bytes)[bytes->size() / 2] ^= 1;
      },
      [&](const GetRequest&, std::string* bytes) { bytes->resize(1); },
      [&](const GetRequest&, std::string* bytes) {
        bytes->assign(bytes->size(), '\0');
      },
      other_bytes,
  };
  for (const Lie& lie : lies) {
    for (wrong_at = 0; wrong_at < 60; wrong_at += 1 + random() % 20) {
      // One wrong read: the bytes are requested again.
      at = 0;
      world.reads.lie = [&](const GetRequest& request, std::string* bytes) {
        if (at++ == wrong_at) lie(request, bytes);
      };
      const Ferried once = world.Restore(selection);
      INFO(wrong_at << ": " << once.message());
      REQUIRE_OK(once.status);
      require_right("target");
      fs::remove_all(world.dir / "target");
    }
    // From the 30th read on, every read is wrong.
    at = 0;
    world.reads.lie = [&](const GetRequest& request, std::string* bytes) {
      if (at++ >= 30) lie(request, bytes);
    };
    const Ferried always = world.Restore(selection);
    INFO(always.message());
    REQUIRE(always.state() == EndState::kCorrupt);
    REQUIRE(always.message().find("archive/files/") != std::string::npos);
    REQUIRE_FALSE(fs::exists(world.dir / "target"));
    fs::remove_all(world.dir / "target.sstferry");
    ++bad;
  }
  REQUIRE(bad == 4);
}

TEST_CASE("A restore of a range requires only the files that it needs",
          "[archive][range]") {
  World world;
  {
    OpenDb db(world.dir / "source", OneFamily(Small()));
    for (int i = 0; i < 400; ++i) {
      db.Put(NumberedKey(i), RandomBytes(1000, i));
      if (i == 99) db.Flush();  // the smaller table
    }
    db.Flush();
  }
  world.Push();
  fs::remove(world.LargestTable());
  Selection selection;
  selection.interval = Between(0, 50);
  const Ferried whole = world.Restore(selection);
  INFO(whole.message());
  REQUIRE_OK(whole.status);
  REQUIRE(EntriesOf(world.dir / "target", OneFamily(Small())).size() == 50);
  selection.interval = Between(50, 150);
  const Ferried lost = world.Restore(selection, "lost");
  INFO(lost.message());
  REQUIRE(lost.state() == EndState::kCorrupt);
  REQUIRE(lost.message().find("is missing") != std::string::npos);
  REQUIRE_FALSE(fs::exists(world.dir / "lost"));
}

TEST_CASE("A plan of a range reads no blocks", "[archive][range]") {
  World world;
  MakeOfOneSize(world.dir / "source", 1);
  world.Push();
  {
    std::fstream table(world.LargestTable(),
                       std::ios::binary | std::ios::in | std::ios::out);
    table << std::string(100'000, '\0');
  }
  PullOptions plan;
  plan.source.directory = world.dir / "archive";
  plan.target_dir = world.dir / "target";
  plan.selection.interval = Between(100, 700);
  Summary summary;
  REQUIRE_OK(MakePlan(plan)->Run(&summary));
  const Ferried part = world.Restore(plan.selection);
  INFO(part.message());
  REQUIRE(part.state() == EndState::kCorrupt);
}

TEST_CASE("A range is refused if another family's comparator is unknown",
          "[archive][range]") {
  World world;
  const NamedComparator comparator("house.Comparator");
  Families families = OneFamily(Small());
  families.emplace_back("house", Small());
  families.back().options.comparator = &comparator;
  {
    OpenDb db(world.dir / "source", families);
    db.Put(NumberedKey(1), "a");
    db.Put(NumberedKey(1), "b", "house");
    db.Flush();
  }
  // A note about this option follows the one about the comparator.
  EditOptions(world.dir / "source", "[DBOptions]\n",
              "[DBOptions]\n  shape_of_a_fork=round\n");
  world.Push();
  Selection selection;
  selection.families = {"default"};
  selection.interval = Between(0, 2);
  const Ferried refused = world.Restore(selection);
  INFO(refused.message());
  REQUIRE(refused.state() == EndState::kRefused);
  REQUIRE(refused.message().find("house.Comparator") != std::string::npos);
  REQUIRE_FALSE(fs::exists(world.dir / "target"));
}

TEST_CASE("A target waits for a plan while its archive is read slowly",
          "[archive][range]") {
  World world;
  {
    OpenDb db(world.dir / "source", OneFamily(Small()));
    for (int i = 0; i < 8000; ++i) {
      db.Put(NumberedKey(i), RandomBytes(300, i));
    }
    db.Flush();
    CompactTo(&db, "default", 6);
    db.Put(NumberedKey(1), "in the WAL");
  }
  world.Push();
  // The indexes of some 50 tables are read before the plan is made.
  world.reads.slow = 60;
  world.timeouts.stall = std::chrono::milliseconds(3000);
  Selection selection;
  selection.interval = Between(0, 8000);
  const auto start = std::chrono::steady_clock::now();
  const Ferried restored = world.Restore(selection);
  INFO(restored.message());
  REQUIRE_OK(restored.status);
  REQUIRE(std::chrono::steady_clock::now() - start > world.timeouts.stall);
  REQUIRE(restored.summary.bytes_read > 0);
}

TEST_CASE("A restore of a range resumes: received parts are not fetched again",
          "[archive][range]") {
  World world;
  MakeLevels(world.dir / "source", 4);
  world.Push();
  world.chunk_bytes = 64u << 10;
  Selection selection;
  selection.interval = Between(500, 5500);
  REQUIRE_OK(world.Restore(selection, "whole").status);
  const uint64_t all = world.reads.bytes.exchange(0);
  const uint64_t reads = UINT64_MAX - world.reads.most;
  world.reads.most = reads * 3 / 4;
  const Ferried stopped = world.Restore(selection);
  INFO(stopped.message());
  REQUIRE(stopped.state() == EndState::kDeadPeer);
  world.reads.most = UINT64_MAX;
  world.reads.bytes = 0;
  const Ferried resumed = world.Restore(selection);
  INFO(resumed.message());
  REQUIRE_OK(resumed.status);
  REQUIRE(world.reads.bytes < all * 3 / 4);
  for (const auto& family : SomeFamilies()) {
    REQUIRE((EntriesOf(world.dir / "target", SomeFamilies(), family.name) ==
             EntriesOf(world.dir / "whole", SomeFamilies(), family.name)));
  }
}

TEST_CASE("A range of a sealed set is read only with its key",
          "[archive][range]") {
  World world;
  MakeLevels(world.dir / "source", 6);
  const std::string key_file = world.dir / "key";
  std::ofstream(key_file) << std::string(64, 'a') << "\n";
  fs::permissions(key_file, fs::perms::owner_read | fs::perms::owner_write);
  InitArchive(world.dir / "archive");
  ArchiveOptions push;
  push.action = ArchiveAction::kPush;
  push.store.where.directory = world.dir / "archive";
  push.store.key_file = key_file;
  push.source.directory = world.dir / "source";
  ArchiveReport report;
  REQUIRE_OK(MakeArchiveJob(push)->Run(&report));
  Selection selection;
  selection.interval = Between(1000, 1500);
  REQUIRE(world.Restore(selection).state() == EndState::kRefused);
  REQUIRE_OK(SealKey::Read(key_file, &world.key));
  // One chunk has a wrong byte once.
  std::atomic<int> reads{0};
  world.reads.lie = [&reads](const GetRequest&, std::string* bytes) {
    if (reads++ == 9) (*bytes)[bytes->size() / 2] ^= 1;
  };
  const Ferried part = world.Restore(selection);
  INFO(part.message());
  REQUIRE_OK(part.status);
  const Families families = SomeFamilies();
  for (const auto& family : families) {
    REQUIRE((EntriesOf(world.dir / "target", families, family.name) ==
             Within(EntriesOf(world.dir / "source", families, family.name),
                    selection.interval)));
  }
}

TEST_CASE("A set is restored as chunks if that is requested",
          "[archive][range]") {
  World world;
  MakeLevels(world.dir / "source", 5);
  world.Push();
  world.method = PullMethod::kIngest;
  const Ferried restored = world.Restore(Selection());
  INFO(restored.message());
  REQUIRE_OK(restored.status);
  REQUIRE(restored.summary.method == "ingest");
  Expectation expected;
  expected.families = SomeFamilies();
  ExpectSameEntries(world.dir / "source", world.dir / "target", expected);
}

}  // namespace
}  // namespace sstferry::test::range_test
