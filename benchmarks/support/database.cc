#include "benchmarks/support/database.h"

#include <algorithm>

#include "pipeline/base/rocksdb_compat.h"
#include "rocksdb/cache.h"
#include "rocksdb/filter_policy.h"
#include "rocksdb/table.h"
#include "rocksdb/utilities/options_util.h"

namespace sstferry::bench {

rocksdb::Options DatabaseOptions() {
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = rocksdb::NewLRUCache(32u << 20);
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  rocksdb::Options options;
  options.create_if_missing = true;
  options.target_file_size_base = 64u << 20;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

rocksdb::Status OpenReadOnly(const std::string& dir,
                             std::unique_ptr<rocksdb::DB>* db) {
  rocksdb::DBOptions db_options;
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  rocksdb::ConfigOptions config;
  config.ignore_unknown_options = true;
  rocksdb::Status s =
      rocksdb::LoadLatestOptions(config, dir, &db_options, &families);
  if (!s.ok()) return s;
  db_options.max_open_files = 256;
  return rocksdb::DB::OpenForReadOnly(
      rocksdb::Options(db_options, families.front().options), dir, IntoDb(db));
}

std::vector<KeyRange> SplitByFiles(rocksdb::DB* db, size_t count) {
  std::vector<rocksdb::LiveFileMetaData> files;
  db->GetLiveFilesMetaData(&files);
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) {
    return a.smallestkey < b.smallestkey;
  });
  uint64_t total = 0;
  for (const auto& file : files) total += file.size;
  std::vector<KeyRange> parts(1);
  uint64_t passed = 0;
  for (const auto& file : files) {
    const bool full = passed * count >= total * parts.size();
    if (full && file.smallestkey > parts.back().begin) {
      parts.back().end = file.smallestkey;
      parts.push_back({file.smallestkey, ""});
    }
    passed += file.size;
  }
  return parts;
}

std::unique_ptr<rocksdb::Iterator> NewRangeIterator(
    rocksdb::DB* db, const KeyRange& part,
    const rocksdb::Slice* upper_bound) {
  rocksdb::ReadOptions read;
  read.total_order_seek = true;
  read.fill_cache = false;
  read.readahead_size = 2u << 20;
  if (!part.end.empty()) read.iterate_upper_bound = upper_bound;
  std::unique_ptr<rocksdb::Iterator> it(db->NewIterator(read));
  it->Seek(part.begin);
  return it;
}

Shape ShapeOf(rocksdb::DB* db) {
  Shape shape;
  std::vector<rocksdb::LiveFileMetaData> files;
  db->GetLiveFilesMetaData(&files);
  for (const auto& file : files) {
    const auto level = static_cast<size_t>(file.level);
    if (shape.files_per_level.size() <= level) {
      shape.files_per_level.resize(level + 1);
    }
    ++shape.files_per_level[level];
    ++shape.files;
    shape.bytes += file.size;
    if (file.largest_seqno != 0) ++shape.files_with_sequence;
  }
  return shape;
}

std::string LevelsJson(const Shape& shape) {
  std::string json;
  for (size_t level = 0; level < shape.files_per_level.size(); ++level) {
    if (shape.files_per_level[level] == 0) continue;
    json += (json.empty() ? "\"" : ", \"") + std::to_string(level) +
            "\": " + std::to_string(shape.files_per_level[level]);
  }
  return "{" + json + "}";
}

}  // namespace sstferry::bench
