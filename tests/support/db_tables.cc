#include "tests/support/db_tables.h"

#include "pipeline/base/rocksdb_compat.h"
#include "rocksdb/convenience.h"
#include "rocksdb/db.h"
#include "tests/support/catch.h"

namespace sstferry::test {
namespace {

std::unique_ptr<rocksdb::DB> OpenIn(const rocksdb::Options& options) {
  std::unique_ptr<rocksdb::DB> db;
  REQUIRE_OK(rocksdb::DB::Open(options, "/db", IntoDb(&db)));
  return db;
}

void CompactAll(rocksdb::DB* db) {
  rocksdb::CompactRangeOptions options;
  options.bottommost_level_compaction =
      rocksdb::BottommostLevelCompaction::kForce;
  REQUIRE_OK(db->CompactRange(options, nullptr, nullptr));
}

std::string OnlyFile(rocksdb::DB* db) {
  std::vector<rocksdb::LiveFileMetaData> files;
  db->GetLiveFilesMetaData(&files);
  REQUIRE(files.size() == 1);
  REQUIRE(files[0].smallest_seqno == 0);
  REQUIRE(files[0].largest_seqno == 0);
  return ReadWhole(db->GetEnv(), files[0].db_path + files[0].name);
}

}  // namespace

rocksdb::Options TableShape::ToOptions(rocksdb::Env* env) const {
  rocksdb::Options made = options;
  rocksdb::ConfigOptions lenient;
  lenient.ignore_unknown_options = true;
  rocksdb::BlockBasedTableOptions table_options;
  REQUIRE_OK(rocksdb::GetBlockBasedTableOptionsFromString(
      lenient, table, newer, &table_options));
  made.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table_options));
  made.env = env;
  made.create_if_missing = true;
  made.disable_auto_compactions = true;
  return made;
}

TableShape PlainShape(const std::string& name, size_t count) {
  TableShape shape;
  shape.name = name;
  shape.options.compression = rocksdb::kNoCompression;
  shape.table.block_size = 512;
  shape.table.metadata_block_size = 256;
  shape.table.format_version = 5;
  shape.entries = SampleEntries(count);
  return shape;
}

std::string WriteDbFile(const TableShape& shape) {
  const auto env = NewMemoryEnv();
  const auto db = OpenIn(shape.ToOptions(env.get()));
  for (const auto& [key, value] : shape.entries) {
    REQUIRE_OK(db->Put({}, key, value));
  }
  CompactAll(db.get());
  return OnlyFile(db.get());
}

}  // namespace sstferry::test
