// Block-cache keys follow from a table's session id and file number, which a
// new tail keeps: one cache serves every stamp of one file.
#include "pipeline/base/rocksdb_compat.h"
#include "rocksdb/cache.h"
#include "rocksdb/db.h"
#include "rocksdb/env.h"
#include "rocksdb/filter_policy.h"
#include "rocksdb/statistics.h"
#include "tests/support/carried_sst.h"
#include "tests/support/catch.h"
#include "tests/support/scratch_dir.h"

namespace sstferry {
namespace {

using rocksdb::BlockBasedTableOptions;
using rocksdb::DB;
using test::KeyValues;
using test::TableShape;

// On the host's file system, where ingestion can write into a file.
struct Database {
  std::unique_ptr<DB> db;
  std::shared_ptr<rocksdb::Statistics> statistics =
      rocksdb::CreateDBStatistics();
  std::string path;

  Database(const TableShape& shape, const std::string& directory)
      : path(directory) {
    rocksdb::Options options = shape.ToOptions(rocksdb::Env::Default());
    options.statistics = statistics;
    REQUIRE_OK(DB::Open(options, path, IntoDb(&db)));
  }

  std::string TheFile() const {
    std::vector<rocksdb::LiveFileMetaData> files;
    db->GetLiveFilesMetaData(&files);
    REQUIRE(!files.empty());
    return test::ReadWhole(rocksdb::Env::Default(), path + files[0].name);
  }

  void Ingest(const std::string& file, bool stamp) {
    const std::string name = path + ".sst";
    REQUIRE_OK(
        rocksdb::WriteStringToFile(rocksdb::Env::Default(), file, name));
    rocksdb::IngestExternalFileOptions ingest;
    ingest.write_global_seqno = stamp;
    REQUIRE_OK(db->IngestExternalFile({name}, ingest));
  }

  uint64_t misses() const {
    return statistics->getTickerCount(rocksdb::BLOCK_CACHE_MISS);
  }

  void RequireReads(const KeyValues& expected) const {
    rocksdb::ReadOptions read;
    read.total_order_seek = true;
    const std::unique_ptr<rocksdb::Iterator> it(db->NewIterator(read));
    KeyValues found;
    for (it->SeekToFirst(); it->Valid(); it->Next()) {
      found.emplace_back(it->key().ToString(), it->value().ToString());
    }
    REQUIRE_OK(it->status());
    REQUIRE(found == expected);
    std::string value;
    for (const auto& [key, text] : expected) {
      REQUIRE_OK(db->Get({}, key, &value));
      REQUIRE(value == text);
    }
  }
};

// A block cache for all databases, filled by each reading first once.
TEST_CASE("Stamps of one file are read right through one block cache",
          "[sst][carry]") {
  for (const uint32_t version : test::WritableVersions()) {
    for (const size_t first : {0, 1, 2}) {
      INFO("format version " << version << ", first " << first);
      const ScratchDir dir;
      TableShape shape = test::PlainShape("cache");
      shape.options.compression = rocksdb::kLZ4Compression;
      shape.table.format_version = version;
      shape.table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
      shape.table.partition_filters = true;
      shape.table.index_type = BlockBasedTableOptions::kTwoLevelIndexSearch;
      shape.table.cache_index_and_filter_blocks = true;
      shape.table.block_cache = rocksdb::NewLRUCache(8 << 20);
      const KeyValues entries = test::InOrder(shape);

      Database source(shape, dir / "source");
      for (const auto& [key, value] : shape.entries) {
        REQUIRE_OK(source.db->Put({}, key, value));
      }
      rocksdb::CompactRangeOptions compact;
      compact.bottommost_level_compaction =
          rocksdb::BottommostLevelCompaction::kForce;
      REQUIRE_OK(source.db->CompactRange(compact, nullptr, nullptr));
      const std::string original = source.TheFile();
      const std::string carried = test::Carried(original);
      REQUIRE(carried != original);
      Database copy(shape, dir / "copy");
      copy.Ingest(carried, false);
      // Above an older value and below a newer one: a sequence number is
      // written into the file.
      Database above(shape, dir / "above");
      REQUIRE_OK(above.db->Put({}, entries[7].first, "older"));
      above.Ingest(carried, true);
      REQUIRE(above.TheFile() != carried);
      REQUIRE_OK(above.db->Put({}, entries[9].first, "newer"));
      KeyValues changed = entries;
      changed[9].second = "newer";

      const std::vector<std::pair<const Database*, KeyValues>> stamps = {
          {&source, entries}, {&copy, entries}, {&above, changed}};
      stamps[first].first->RequireReads(stamps[first].second);
      std::vector<uint64_t> misses;
      for (const auto& [database, expected] : stamps) {
        misses.push_back(database->misses());
      }
      for (size_t i = 0; i < stamps.size(); ++i) {
        INFO("stamp " << i);
        stamps[i].first->RequireReads(stamps[i].second);
        // What one read, the others find.
        REQUIRE(stamps[i].first->misses() == misses[i]);
      }
    }
  }
}

}  // namespace
}  // namespace sstferry
